//! SplitMix64: a fixed scrambling of 64 bits, for random starts, for streams of random numbers and for keys.
//!
//! Reference: G. Steele, D. Lea, C. Flood, "Fast splittable pseudorandom number generators", 2014.

/// What advances the state of a SplitMix64 stream by one: 2^64 divided by the golden ratio.
pub const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// The next output of a SplitMix64 stream whose state is `state`; the state then becomes `state + STEP`.
///
/// ```
/// use qdc_core::splitmix::{STEP, scramble};
///
/// // The first outputs for the seed 1234567 in the reference program of S. Vigna.
/// assert_eq!(scramble(1_234_567), 6_457_827_717_110_365_317);
/// assert_eq!(scramble(1_234_567 + STEP), 3_203_168_211_198_807_973);
/// ```
pub fn scramble(state: u64) -> u64 {
    let mut bits = state.wrapping_add(STEP);
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}
