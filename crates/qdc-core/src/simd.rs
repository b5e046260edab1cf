//! Panels of numbers, one line for each vertex, and the two loops over them that take nearly all the time of
//! a kernel: a step of Clenshaw's recurrence, previous <- scale L current - previous, and back substitution,
//! x_i <- x_i - sum_j R_ij x_j.
//!
//! [`cpu::dispatch`] compiles and chooses them for the CPU at hand. Unsafe, because bounds checks in the
//! innermost loop were measured to cost too much; the proofs stand beside the blocks.

#![allow(unsafe_code)]

use std::ops::{Deref, DerefMut};

use crate::chebyshev::Operator;
use crate::cpu::{self, Loops};
use crate::{Csr, Scalar};

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
    cpu::dispatch(Step { operator, rows, scale, current, addend: None, previous });
}

/// `previous[i] <- scale * (L current)[i] - previous[i] + factor * signals[i]` for all rows, in one pass over
/// memory.
///
/// # Panics
/// If a panel does not have one row for each vertex.
pub(crate) fn step_adding<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    scale: T,
    current: &[Line<T, W>],
    addend: (T, &[Line<T, W>]),
    previous: &mut [Line<T, W>],
) {
    assert_eq!(current.len(), operator.nodes(), "one row for each vertex");
    assert_eq!(previous.len(), operator.nodes(), "one row for each vertex");
    assert_eq!(addend.1.len(), operator.nodes(), "one row for each vertex");
    cpu::dispatch(Step { operator, rows: Rows::All, scale, current, addend: Some(addend), previous });
}

/// A step of the recurrence.
struct Step<'a, T, const W: usize> {
    operator: &'a Operator<T>,
    rows: Rows<'a>,
    scale: T,
    current: &'a [Line<T, W>],
    /// Signals that the step adds, and their factor.
    addend: Option<(T, &'a [Line<T, W>])>,
    previous: &'a mut [Line<T, W>],
}

impl<T: Scalar, const W: usize> Loops for Step<'_, T, W> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { operator, rows, scale, current, addend, previous } = self;
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
                        previous[row][lane] =
                            multiply_add::<T, FUSED>(factor, signal[lane], previous[row][lane]);
                    }
                }
            }
            (Rows::Listed(list), _) => {
                for &row in list {
                    step_row::<T, W, FUSED>(
                        operator,
                        row as usize,
                        scale,
                        current,
                        &mut previous[row as usize],
                    );
                }
            }
        }
    }
}

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
        // SAFETY: every index of an `Operator` is below its number of vertices (its invariant, from a valid
        // square `Csr`), and `step` asserted that `current` has that many rows.
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
    cpu::dispatch(Substitution { triangle, first, panel });
}

/// A back substitution.
struct Substitution<'a, const W: usize> {
    triangle: &'a Triangle,
    first: usize,
    panel: &'a mut [Line<f64, W>],
}

impl<const W: usize> Loops for Substitution<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { triangle, first, panel } = self;
        for row in first..panel.len() {
            let (done, rest) = panel.split_at_mut(row);
            let (indices, values) = triangle.0.row(row);
            let mut sum = rest[0].0;
            for (&index, &value) in indices.iter().zip(values) {
                // SAFETY: every column of a `Triangle` lies before its row (checked where it was made), and
                // `done` has as many lines as there are rows before this one.
                let other = unsafe { done.get_unchecked(index as usize) };
                for lane in 0..W {
                    sum[lane] = multiply_add::<f64, FUSED>(-value, other[lane], sum[lane]);
                }
            }
            rest[0].0 = sum;
        }
    }
}

#[inline(always)]
fn multiply_add<T: Scalar, const FUSED: bool>(a: T, b: T, c: T) -> T {
    if FUSED { a.mul_add(b, c) } else { a * b + c }
}
