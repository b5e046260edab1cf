//! Random numbers that depend on a seed and a counter and nothing else.
//!
//! A sequential generator makes each number wait for the one before; a hash of the counter does not, so the loops
//! that draw dropout masks vectorise, and a mask can be drawn again in the backward pass instead of being stored.

use crate::Real;

/// Loops of this fixed length are what the compiler vectorises most reliably.
const BLOCK: usize = 64;

/// A well-mixed 32-bit hash (the constants are those of "lowbias32", C. Wellons' search for low bias).
#[inline(always)]
pub(crate) fn hash(counter: u32) -> u32 {
    let mut x = counter;
    x = (x ^ (x >> 16)).wrapping_mul(0x21f0_aaad);
    x = (x ^ (x >> 15)).wrapping_mul(0x735a_2d97);
    x ^ (x >> 15)
}

/// Derives a seed from another and a number: the seed of a split, of a step, of a layer.
pub fn derive(seed: u64, number: u64) -> u64 {
    // The finaliser of SplitMix64 (Steele, Lea, Flood 2014) on a Weyl sequence started at the seed.
    let mut z = seed.wrapping_add(number.wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A number in [0, 1), the `number`-th of the stream `seed`.
pub(crate) fn uniform(seed: u64, number: u64) -> f64 {
    (derive(seed, number) >> 11) as f64 / (1u64 << 53) as f64
}

/// A dropout mask: entry `i` stays with probability 1 - rate, and is then divided by 1 - rate.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mask {
    key: u32,
    second_key: u32,
    threshold: u32,
    scale: f64,
}

impl Mask {
    /// The mask of rate `rate` in [0, 1) drawn from `seed`; none at rate 0.
    pub(crate) fn new(rate: f64, seed: u64) -> Option<Self> {
        assert!((0.0..1.0).contains(&rate), "a dropout rate lies in [0, 1), not {rate}");
        (rate > 0.0).then_some(Self {
            key: seed as u32,
            second_key: (seed >> 32) as u32,
            threshold: (rate * 4_294_967_296.0) as u32,
            scale: 1.0 / (1.0 - rate),
        })
    }

    /// Whether entry `index` stays.
    #[inline(always)]
    pub(crate) fn keeps(self, index: usize) -> bool {
        // Two keys: streams that differ in the seed do not overlap as shifted copies of one another.
        hash((index as u32).wrapping_add(self.key) ^ self.second_key) >= self.threshold
    }

    /// Whether the entries from `first` on stay, for a whole block of them.
    #[inline(always)]
    fn block(self, first: usize) -> [bool; BLOCK] {
        let mut kept = [false; BLOCK];
        for (at, kept) in kept.iter_mut().enumerate() {
            *kept = self.keeps(first + at);
        }
        kept
    }

    /// Writes for every entry whether it stays: 1 or 0.
    #[inline(always)]
    pub(crate) fn write_flags(self, flags: &mut [u8]) {
        for (block, flags) in flags.chunks_mut(BLOCK).enumerate() {
            let kept = self.block(block * BLOCK);
            for (flag, kept) in flags.iter_mut().zip(kept) {
                *flag = u8::from(kept);
            }
        }
    }

    /// Replaces every entry x, of which the first is entry `first` of the mask, by f(x) / (1 - rate) if it stays, by 0
    /// otherwise.
    #[inline(always)]
    pub(crate) fn apply<T: Real>(self, first: usize, values: &mut [T], f: impl Fn(T) -> T) {
        let scale = T::from_f64(self.scale);
        for (block, values) in values.chunks_mut(BLOCK).enumerate() {
            let kept = self.block(first + block * BLOCK);
            if let Ok(values) = <&mut [T; BLOCK]>::try_from(&mut *values) {
                for at in 0..BLOCK {
                    let value = f(values[at]) * scale;
                    values[at] = if kept[at] { value } else { T::ZERO };
                }
            } else {
                for (value, kept) in values.iter_mut().zip(kept) {
                    *value = if kept { f(*value) * scale } else { T::ZERO };
                }
            }
        }
    }

    /// Turns the sign of every entry that does not stay; `first` as in [`Mask::apply`].
    #[inline(always)]
    pub(crate) fn mark<T: Real>(self, first: usize, values: &mut [T]) {
        for (block, values) in values.chunks_mut(BLOCK).enumerate() {
            let kept = self.block(first + block * BLOCK);
            for (value, kept) in values.iter_mut().zip(kept) {
                *value = if kept { *value } else { -*value };
            }
        }
    }

    /// 1 / (1 - rate).
    #[inline(always)]
    pub(crate) fn scale(self) -> f64 {
        self.scale
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mask_keeps_its_share_and_differs_between_seeds() {
        for rate in [0.1, 0.5, 0.9] {
            let mask = Mask::new(rate, derive(1, 2)).unwrap();
            let kept = (0..100_000).filter(|&i| mask.keeps(i)).count() as f64 / 1e5;
            assert!((kept - (1.0 - rate)).abs() < 0.006, "rate {rate} kept {kept}");
        }
        let (a, b) = (Mask::new(0.5, derive(1, 0)).unwrap(), Mask::new(0.5, derive(1, 1)).unwrap());
        let agree = (0..100_000).filter(|&i| a.keeps(i) == b.keeps(i)).count() as f64 / 1e5;
        assert!((agree - 0.5).abs() < 0.01, "masks of two seeds agree on {agree}");
        assert!(Mask::new(0.0, 1).is_none());
    }

    #[test]
    fn uniform_numbers_fill_the_unit_interval() {
        let mean = (0..10_000).map(|i| uniform(7, i)).sum::<f64>() / 1e4;
        assert!((mean - 0.5).abs() < 0.01);
    }
}
