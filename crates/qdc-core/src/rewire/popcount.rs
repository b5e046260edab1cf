//! The number of bits two bitsets have in common, with the processor's own population count where it has one.
//!
//! The portable default of x86-64 counts bits by a dozen operations a word. On squirrel, whose curvatures are
//! almost nothing but this count, the instructions chosen here at run time save most of the time.
#![allow(unsafe_code)]

/// The bits set in both.
#[inline]
pub(super) fn common_bits(a: &[u64], b: &[u64]) -> u32 {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vpopcntdq") {
            // SAFETY: the function needs nothing but the features just found.
            return unsafe { with_avx512(a, b) };
        }
        if is_x86_feature_detected!("popcnt") {
            // SAFETY: the function needs nothing but the feature just found.
            return unsafe { with_popcnt(a, b) };
        }
    }
    count(a, b)
}

#[inline(always)]
fn count(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(a, b)| u64::from((a & b).count_ones())).sum::<u64>() as u32
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx512vpopcntdq")]
fn with_avx512(a: &[u64], b: &[u64]) -> u32 {
    count(a, b)
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "popcnt")]
fn with_popcnt(a: &[u64], b: &[u64]) -> u32 {
    count(a, b)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_way_to_count_gives_the_same(words in proptest::collection::vec(any::<(u64, u64)>(), 0..40)) {
            let (a, b): (Vec<u64>, Vec<u64>) = words.into_iter().unzip();
            let expected: u32 = a.iter().zip(&b).map(|(a, b)| (a & b).count_ones()).sum();
            prop_assert_eq!(count(&a, &b), expected);
            prop_assert_eq!(common_bits(&a, &b), expected);
        }
    }
}
