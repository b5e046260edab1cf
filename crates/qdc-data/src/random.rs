//! The random numbers of generators and splits: SplitMix64, so that a seed means the same for ever.

use qdc_core::splitmix::{STEP, scramble};

/// A stream of random numbers, fixed by its seed.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: u64,
}

impl Random {
    /// The stream `stream` of a seed; streams of one seed are independent.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut random = Self { state: seed };
        random.state = random.bits() ^ stream.wrapping_mul(0xd1b5_4a32_d192_ed03);
        random.bits();
        random
    }

    /// 64 random bits.
    pub(crate) fn bits(&mut self) -> u64 {
        let bits = scramble(self.state);
        self.state = self.state.wrapping_add(STEP);
        bits
    }

    /// Uniform in [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform among 0..count (off by at most count / 2^64 in probability).
    pub(crate) fn below(&mut self, count: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(count)) >> 64) as u64
    }

    /// Normal with mean 0 and deviation 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// Puts `items` in random order.
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_that_of_the_reference() {
        // First outputs for seed 1234567 of the reference program of S. Vigna.
        let mut random = Random { state: 1_234_567 };
        assert_eq!(random.bits(), 6_457_827_717_110_365_317);
        assert_eq!(random.bits(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn numbers_have_the_moments_they_should() {
        let mut random = Random::new(0, 0);
        let normals: Vec<f64> = (0..100_000).map(|_| random.normal()).collect();
        let mean = normals.iter().sum::<f64>() / 1e5;
        let square = normals.iter().map(|x| x * x).sum::<f64>() / 1e5;
        assert!(mean.abs() < 0.02 && (square - 1.0).abs() < 0.02, "{mean} {square}");
        let mut order: Vec<u32> = (0..100).collect();
        random.shuffle(&mut order);
        assert_ne!(order, (0..100).collect::<Vec<_>>());
        order.sort_unstable();
        assert_eq!(order, (0..100).collect::<Vec<_>>());
    }
}
