//! Random numbers that depend on a seed and a counter and nothing else.
//!
//! A sequential generator makes each number wait for the one before; a hash of the counter does not, so the
//! loops that draw dropout masks vectorise, and a mask can be drawn again in the backward pass instead of
//! being stored.

use qdc_core::splitmix::{STEP, scramble};

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
    // The outputs of SplitMix64 started at the seed.
    scramble(seed.wrapping_add(number.wrapping_mul(STEP)))
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

    /// A number that decides about entry `index`: it stays if the number reaches the threshold.
    #[inline(always)]
    fn draw(self, index: usize) -> u32 {
        // Two keys: streams that differ in the seed do not overlap as shifted copies of one another.
        hash((index as u32).wrapping_add(self.key) ^ self.second_key)
    }

    /// Whether entry `index` stays.
    #[cfg(test)]
    fn keeps(self, index: usize) -> bool {
        self.draw(index) >= self.threshold
    }

    /// The numbers of a whole block. They are compared where they are used: a vector of them fits one of
    /// `f32`, a vector of truth values would have to be unpacked first.
    #[inline(always)]
    fn draws(self, first: usize) -> [u32; BLOCK] {
        let mut draws = [0; BLOCK];
        for (at, draw) in draws.iter_mut().enumerate() {
            *draw = self.draw(first + at);
        }
        draws
    }

    /// Writes for every entry whether it stays: 1 or 0.
    #[inline(always)]
    pub(crate) fn write_flags(self, flags: &mut [u8]) {
        for (block, flags) in flags.chunks_mut(BLOCK).enumerate() {
            let draws = self.draws(block * BLOCK);
            for (flag, draw) in flags.iter_mut().zip(draws) {
                *flag = u8::from(draw >= self.threshold);
            }
        }
    }

    /// Replaces every entry x, of which the first is entry `first` of the mask, by f(x) / (1 - rate) if it
    /// stays, by 0 otherwise.
    #[inline(always)]
    pub(crate) fn apply<T: Real>(self, first: usize, values: &mut [T], f: impl Fn(T) -> T) {
        let scale = T::from_f64(self.scale);
        self.choose(first, values, |x| f(x) * scale, |_| T::ZERO);
    }

    /// Turns the sign of every entry that does not stay; `first` as in [`Mask::apply`].
    #[inline(always)]
    pub(crate) fn mark<T: Real>(self, first: usize, values: &mut [T]) {
        self.choose(first, values, |x| x, |x| -x);
    }

    #[inline(always)]
    fn choose<T: Real>(self, first: usize, values: &mut [T], stays: impl Fn(T) -> T, goes: impl Fn(T) -> T) {
        let (blocks, rest) = values.as_chunks_mut::<BLOCK>();
        for (number, block) in blocks.iter_mut().enumerate() {
            let draws = self.draws(first + number * BLOCK);
            for at in 0..BLOCK {
                let (kept, gone) = (stays(block[at]), goes(block[at]));
                block[at] = if draws[at] >= self.threshold { kept } else { gone };
            }
        }
        let draws = self.draws(first + blocks.len() * BLOCK);
        for (value, draw) in rest.iter_mut().zip(draws) {
            *value = if draw >= self.threshold { stays(*value) } else { goes(*value) };
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
