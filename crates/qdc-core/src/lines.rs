//! Panels of numbers, one line for each vertex, and the two loops over them where nearly all the time of a kernel goes:
//! a step of Clenshaw's recurrence, previous <- scale L current - previous, and back substitution, x_i <- x_i - sum_j R_ij x_j.
//!
//! Compiled three times (AVX-512, AVX2 with fused multiply-add, and the baseline of the target) and chosen at run
//! time. Unsafe, for two reasons that were measured: bounds checks in the innermost loop, and calls of functions
//! compiled for a CPU feature. The proofs stand beside the blocks.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

use crate::chebyshev::Operator;
use crate::{Csr, Scalar};

/// On aarch64 fused multiply-add belongs to the baseline; on x86-64 without it, `mul_add` would be a library call.
const FUSED_AT_BASELINE: bool = cfg!(target_arch = "aarch64");

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
    dispatch(operator, rows, scale, current, None, previous);
}

/// `previous[i] <- scale * (L current)[i] - previous[i] + factor * signals[i]` for all rows, in one pass over memory.
///
/// # Panics
/// If a panel does not have one row for each vertex.
pub(crate) fn step_adding<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    scale: T,
    current: &[Line<T, W>],
    (factor, signals): (T, &[Line<T, W>]),
    previous: &mut [Line<T, W>],
) {
    assert_eq!(signals.len(), operator.nodes(), "one row for each vertex");
    dispatch(operator, Rows::All, scale, current, Some((factor, signals)), previous);
}

/// Signals that a step adds, and their factor.
type Addend<'a, T, const W: usize> = Option<(T, &'a [Line<T, W>])>;

fn dispatch<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    addend: Addend<'_, T, W>,
    previous: &mut [Line<T, W>],
) {
    assert_eq!(current.len(), operator.nodes(), "one row for each vertex");
    assert_eq!(previous.len(), operator.nodes(), "one row for each vertex");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU was just asked.
            return unsafe { step_avx512(operator, rows, scale, current, addend, previous) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU was just asked.
            return unsafe { step_avx2(operator, rows, scale, current, addend, previous) };
        }
    }
    step_here::<T, W, FUSED_AT_BASELINE>(operator, rows, scale, current, addend, previous);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn step_avx512<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    addend: Addend<'_, T, W>,
    previous: &mut [Line<T, W>],
) {
    step_here::<T, W, true>(operator, rows, scale, current, addend, previous);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn step_avx2<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    addend: Addend<'_, T, W>,
    previous: &mut [Line<T, W>],
) {
    step_here::<T, W, true>(operator, rows, scale, current, addend, previous);
}

#[inline(always)]
fn step_here<T: Scalar, const W: usize, const FUSED: bool>(
    operator: &Operator<T>,
    rows: Rows<'_>,
    scale: T,
    current: &[Line<T, W>],
    addend: Addend<'_, T, W>,
    previous: &mut [Line<T, W>],
) {
    match (rows, addend) {
        (Rows::All, None) => {
            for row in 0..operator.nodes() {
                step_row::<T, W, FUSED>(operator, row, scale, current, &mut previous[row]);
            }
        }
        (Rows::All, Some((factor, signals))) => {
            for (row, signal) in signals.iter().enumerate() {
                step_row::<T, W, FUSED>(operator, row, scale, current, &mut previous[row]);
                for lane in 0..W {
                    previous[row][lane] = multiply_add::<T, FUSED>(factor, signal[lane], previous[row][lane]);
                }
            }
        }
        (Rows::Listed(list), _) => {
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

/// A strictly lower triangular matrix: the columns of a row lie before it.
#[derive(Clone, Debug)]
pub(crate) struct Triangle(Csr<f64>);

impl Triangle {
    /// # Panics
    /// If an entry does not lie below the diagonal.
    pub(crate) fn new(matrix: Csr<f64>) -> Self {
        // Columns ascend, so the last is the largest.
        let below = |row: usize| matrix.row(row).0.last().is_none_or(|&column| (column as usize) < row);
        assert!((0..matrix.rows()).all(below), "every entry lies below the diagonal");
        Self(matrix)
    }

    pub(crate) fn matrix(&self) -> &Csr<f64> {
        &self.0
    }
}

/// `x[i] <- x[i] - sum_j R_ij x[j]` for the rows from `first` on, in ascending order.
///
/// # Panics
/// If the panel does not have one line for each row.
pub(crate) fn substitute<const W: usize>(triangle: &Triangle, first: usize, panel: &mut [Line<f64, W>]) {
    assert_eq!(panel.len(), triangle.0.rows(), "one line for each row");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU was just asked.
            return unsafe { substitute_avx512(triangle, first, panel) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the CPU was just asked.
            return unsafe { substitute_avx2(triangle, first, panel) };
        }
    }
    substitute_here::<W, FUSED_AT_BASELINE>(triangle, first, panel);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx512f,avx2,fma")]
fn substitute_avx512<const W: usize>(triangle: &Triangle, first: usize, panel: &mut [Line<f64, W>]) {
    substitute_here::<W, true>(triangle, first, panel);
}

#[cfg(target_arch = "x86_64")]
#[target_feature(enable = "avx2,fma")]
fn substitute_avx2<const W: usize>(triangle: &Triangle, first: usize, panel: &mut [Line<f64, W>]) {
    substitute_here::<W, true>(triangle, first, panel);
}

#[inline(always)]
fn substitute_here<const W: usize, const FUSED: bool>(
    triangle: &Triangle,
    first: usize,
    panel: &mut [Line<f64, W>],
) {
    for row in first..panel.len() {
        let (done, rest) = panel.split_at_mut(row);
        let (indices, values) = triangle.0.row(row);
        let mut sum = rest[0].0;
        for (&index, &value) in indices.iter().zip(values) {
            // SAFETY: every column of a `Triangle` lies before its row (checked where it was made), and `done` has
            // as many lines as there are rows before this one.
            let other = unsafe { done.get_unchecked(index as usize) };
            for lane in 0..W {
                sum[lane] = multiply_add::<f64, FUSED>(-value, other[lane], sum[lane]);
            }
        }
        rest[0].0 = sum;
    }
}

#[inline(always)]
fn multiply_add<T: Scalar, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}
