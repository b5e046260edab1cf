//! NumPy's legacy `RandomState`: the generator behind Optuna's samplers.
//!
//! Mersenne Twister MT19937 seeded by `init_genrand`; a double takes two words a, b and is
//! ((a >> 5) 2^26 + (b >> 6)) / 2^53. Kept bit for bit, since suggestions are compared with Optuna's.

use qdc_core::splitmix::{STEP, scramble};

const WORDS: usize = 624;
const SHIFT: usize = 397;

/// A stream of doubles in [0, 1), the same as `numpy.random.RandomState(seed).random_sample()`.
///
/// ```
/// let mut stream = qdc_tune::RandomState::new(0);
/// assert_eq!(stream.next_double(), 0.5488135039273248); // NumPy: RandomState(0).random_sample()
/// ```
#[derive(Clone)]
pub struct RandomState {
    words: [u32; WORDS],
    position: usize,
}

impl RandomState {
    /// The stream of a seed.
    pub fn new(seed: u32) -> Self {
        let mut words = [0u32; WORDS];
        words[0] = seed;
        for i in 1..WORDS {
            let previous = words[i - 1];
            words[i] = 1_812_433_253u32.wrapping_mul(previous ^ (previous >> 30)).wrapping_add(i as u32);
        }
        Self { words, position: WORDS }
    }

    /// The next double in [0, 1).
    pub fn next_double(&mut self) -> f64 {
        let high = f64::from(self.next_word() >> 5);
        let low = f64::from(self.next_word() >> 6);
        (high * 67_108_864.0 + low) / 9_007_199_254_740_992.0
    }

    /// The next `count` doubles.
    pub fn doubles(&mut self, count: usize) -> Vec<f64> {
        (0..count).map(|_| self.next_double()).collect()
    }

    fn next_word(&mut self) -> u32 {
        if self.position == WORDS {
            self.twist();
        }
        let mut word = self.words[self.position];
        self.position += 1;
        word ^= word >> 11;
        word ^= (word << 7) & 0x9d2c_5680;
        word ^= (word << 15) & 0xefc6_0000;
        word ^ (word >> 18)
    }

    fn twist(&mut self) {
        for i in 0..WORDS {
            let joined = (self.words[i] & 0x8000_0000) | (self.words[(i + 1) % WORDS] & 0x7fff_ffff);
            let mut next = self.words[(i + SHIFT) % WORDS] ^ (joined >> 1);
            if joined & 1 == 1 {
                next ^= 0x9908_b0df;
            }
            self.words[i] = next;
        }
        self.position = 0;
    }
}

impl std::fmt::Debug for RandomState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "RandomState(at {} of {WORDS})", self.position)
    }
}

/// Mixes a study's seed with a trial's number into a seed of its own, so that a suggestion depends on nothing
/// but seed, number and the trials it may look at.
pub(crate) fn mix(seed: u64, number: u64) -> u32 {
    scramble(seed.wrapping_mul(STEP).wrapping_add(number)) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_is_numpys() {
        // NumPy 2.4.6: RandomState(12345).random_sample(3), and the 1000th double of RandomState(0)
        let mut stream = RandomState::new(12345);
        assert_eq!(stream.doubles(3), [0.9296160928171479, 0.3163755545817859, 0.18391881167709445]);
        assert_eq!(*RandomState::new(0).doubles(1000).last().unwrap(), NUMPY_THOUSANDTH);
    }

    const NUMPY_THOUSANDTH: f64 = 0.6771411441114241;

    #[test]
    fn neighbouring_trials_get_unrelated_seeds() {
        let seeds: std::collections::BTreeSet<u32> =
            (0..50).flat_map(|seed| (0..50).map(move |number| mix(seed, number))).collect();
        assert_eq!(seeds.len(), 2500);
    }
}
