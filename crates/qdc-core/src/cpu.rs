//! The one place that asks which CPU this is: loops are compiled for several instruction sets and chosen at
//! run time.
//!
//! The default build runs on any x86-64 or aarch64. A [`Loops`] is compiled three times, for AVX-512, for
//! AVX2 with fused multiply-add and for the baseline of the target, and [`dispatch`] picks one. Only that
//! choice is unsafe.

#![allow(unsafe_code)]

/// A piece of numerical work, written once and compiled for several instruction sets.
///
/// Everything it calls must be `#[inline(always)]` and no closure: what is not inlined is compiled for the
/// baseline, where `mul_add` is a call of a library function, twenty times slower.
pub trait Loops {
    /// What the work gives.
    type Output;

    /// Does the work; `FUSED` says whether a fused multiply-add is one instruction.
    fn run<const FUSED: bool>(self) -> Self::Output;
}

/// Runs `work` compiled for the best instruction set this CPU has.
///
/// ```
/// use qdc_core::cpu::{Loops, dispatch};
///
/// struct Sum<'a>(&'a [f64]);
///
/// impl Loops for Sum<'_> {
///     type Output = f64;
///
///     fn run<const FUSED: bool>(self) -> f64 {
///         self.0.iter().sum()
///     }
/// }
///
/// assert_eq!(dispatch(Sum(&[1.0, 2.0])), 3.0);
/// ```
#[inline]
pub fn dispatch<L: Loops>(work: L) -> L::Output {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx512f,avx512vl,avx512dq,avx512bw,avx2,fma,bmi2")]
        fn with_avx512<L: Loops>(work: L) -> L::Output {
            work.run::<true>()
        }
        #[target_feature(enable = "avx2,fma,bmi2")]
        fn with_avx2<L: Loops>(work: L) -> L::Output {
            work.run::<true>()
        }
        let avx2 = is_x86_feature_detected!("avx2")
            && is_x86_feature_detected!("fma")
            && is_x86_feature_detected!("bmi2");
        let avx512 = is_x86_feature_detected!("avx512f")
            && is_x86_feature_detected!("avx512vl")
            && is_x86_feature_detected!("avx512dq")
            && is_x86_feature_detected!("avx512bw");
        if avx2 && avx512 {
            // SAFETY: every feature the function is compiled with was just detected.
            return unsafe { with_avx512(work) };
        }
        if avx2 {
            // SAFETY: as above.
            return unsafe { with_avx2(work) };
        }
        work.run::<false>()
    }
    #[cfg(not(target_arch = "x86_64"))]
    work.run::<{ cfg!(target_arch = "aarch64") }>() // NEON has it from the start
}

/// Asks for an element that will soon be needed, where the CPU can be asked; an index out of range does nothing.
///
/// ```
/// qdc_core::cpu::prefetch(&[1.0, 2.0], 1);
/// ```
#[inline(always)]
pub fn prefetch<T>(slice: &[T], at: usize) {
    #[cfg(target_arch = "x86_64")]
    if let Some(element) = slice.get(at) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: the pointer comes from a reference, and a prefetch changes nothing but the cache.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::from_ref(element).cast()) }
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = (slice, at);
}
