//! One step of the recurrence, previous <- scale L current - previous, where nearly all the time of a kernel goes.
//!
//! Compiled three times (AVX-512, AVX2 with fused multiply-add, and the baseline of the target) and chosen at run
//! time. Unsafe, for two reasons that were measured: bounds checks in the innermost loop, and calls of functions
//! compiled for a CPU feature. The proofs stand beside the blocks.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

use super::Operator;
use crate::Scalar;

/// W numbers of one vertex, aligned so that no load of 64 bytes straddles two cache lines.
#[derive(Clone, Copy, Debug)]
#[repr(C, align(64))]
pub(crate) struct Line<T, const W: usize>(pub(crate) [T; W]);

impl<T: Scalar, const W: usize> Line<T, W> {
    pub(crate) const ZERO: Self = Self([T::ZERO; W]);
}

impl<T, const W: usize> Deref for Line<T, W> {
    type Target = [T; W];

    #[inline(always)]
    fn deref(&self) -> &[T; W] {
        &self.0
    }
}

impl<T, const W: usize> DerefMut for Line<T, W> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut [T; W] {
        &mut self.0
    }
}

/// The rows a step works on; the others of both panels are 0 and stay so.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    All,
    Listed(&'a [u32]),
}

/// `previous[i] <- scale * (L current)[i] - previous[i]` for the given rows.
///
/// # Panics
/// If a panel does not have one row for each vertex, or a listed row does not exist.
pub(crate) fn step<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    previous: &mut [Line<T, W>],
) {
    assert_eq!(current.len(), operator.nodes(), "one row for each vertex");
    assert_eq!(previous.len(), operator.nodes(), "one row for each vertex");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU was just asked.
            return unsafe { step_avx512(operator, rows, scale, current, previous) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU was just asked.
            return unsafe { step_avx2(operator, rows, scale, current, previous) };
        }
    }
    // On aarch64 fused multiply-add belongs to the baseline; on x86-64 without it, `mul_add` would be a library call.
    const FUSED: bool = cfg!(target_arch = "aarch64");
    step_here::<T, W, FUSED>(operator, rows, scale, current, previous);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn step_avx512<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    previous: &mut [Line<T, W>],
) {
    step_here::<T, W, true>(operator, rows, scale, current, previous);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn step_avx2<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    previous: &mut [Line<T, W>],
) {
    step_here::<T, W, true>(operator, rows, scale, current, previous);
}

#[inline(always)]
fn step_here<T: Scalar, const W: usize, const FUSED: bool>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    previous: &mut [Line<T, W>],
) {
    match rows {
        Rows::All => {
            for row in 0..operator.nodes() {
                step_row::<T, W, FUSED>(operator, row, scale, current, &mut previous[row]);
            }
        }
        Rows::Listed(list) => {
            for &row in list {
                step_row::<T, W, FUSED>(operator, row as usize, scale, current, &mut previous[row as usize]);
            }
        }
    }
}

// A function and not a closure: a closure would not inherit the CPU features of its caller, and `mul_add` would
// become a library call, twenty times slower.
#[inline(always)]
fn step_row<T: Scalar, const W: usize, const FUSED: bool>(
    operator: &Operator<T>,
    row: usize,
    scale: T,
    current: &[Line<T, W>],
    previous: &mut Line<T, W>,
) {
    let range = operator.pointers()[row]..operator.pointers()[row + 1];
    let indices = &operator.indices()[range.clone()];
    let values = &operator.values()[range];
    let mut sum = [T::ZERO; W];
    for (&index, &value) in indices.iter().zip(values) {
        // SAFETY: every index of an `Operator` is below its number of vertices (its invariant, from a valid square
        // `Csr`), and `step` asserted that `current` has that many rows.
        let other = unsafe { current.get_unchecked(index as usize) };
        for lane in 0..W {
            sum[lane] = multiply_add::<T, FUSED>(value, other[lane], sum[lane]);
        }
    }
    for lane in 0..W {
        previous[lane] = multiply_add::<T, FUSED>(sum[lane], scale, -previous[lane]);
    }
}

#[inline(always)]
fn multiply_add<T: Scalar, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}
