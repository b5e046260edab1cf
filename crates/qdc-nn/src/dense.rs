//! Dense products of strided matrices.
//!
//! `gemm` is at its best where all three sizes are large. The products of a network have a narrow right side:
//! the classes, or a few heads of them. There, rearranging the left side costs more than multiplying, so
//! those are loops of our own: a few rows of the result stay in registers while the rows of the right side
//! stream by (bench/train/RESULTS.md).

use std::ops::Range;

use crate::hardware::{Loops, dispatch, gemm};
use crate::parallel::{for_rows, sum_over_blocks};
use crate::sparse::{accumulate, tile};
use crate::{Matrix, Real};

/// A strided view of a dense matrix: entry (i, j) is `values[i * row_step + j * column_step]`.
#[derive(Clone, Copy)]
pub(crate) struct View<'a, T> {
    pub(crate) rows: usize,
    pub(crate) columns: usize,
    pub(crate) values: &'a [T],
    pub(crate) row_step: usize,
    pub(crate) column_step: usize,
}

impl<'a, T: Real> View<'a, T> {
    /// Rows one after the other.
    pub(crate) fn new(rows: usize, columns: usize, values: &'a [T]) -> Self {
        assert_eq!(values.len(), rows * columns, "values of a {rows} x {columns} matrix");
        Self { rows, columns, values, row_step: columns, column_step: 1 }
    }

    /// The transpose, without moving anything.
    pub(crate) fn transposed(self) -> Self {
        Self {
            rows: self.columns,
            columns: self.rows,
            values: self.values,
            row_step: self.column_step,
            column_step: self.row_step,
        }
    }

    /// Some of the rows.
    fn rows(self, rows: Range<usize>) -> Self {
        let start = (rows.start * self.row_step).min(self.values.len());
        Self { rows: rows.len(), values: &self.values[start..], ..self }
    }

    /// Some of the columns.
    fn columns(self, columns: Range<usize>) -> Self {
        self.transposed().rows(columns).transposed()
    }
}

impl<'a, T: Real> From<&'a Matrix<T>> for View<'a, T> {
    fn from(matrix: &'a Matrix<T>) -> Self {
        Self::new(matrix.rows(), matrix.stride(), matrix.values())
    }
}

/// `out = left * right`, rows of `out` one after the other.
///
/// Rows of `out` may come from several threads. Where the inner size is large (a gradient of weights: a sum over
/// all vertices), the sum is taken in blocks.
pub(crate) fn product<T: Real>(left: View<'_, T>, right: View<'_, T>, out: &mut [T]) {
    /// The fewest rows of a part: `gemm` orders its sums otherwise below 65.
    const LEAST: usize = 128;
    assert_eq!(left.columns, right.rows, "inner sizes of a product");
    assert_eq!(out.len(), left.rows * right.columns, "size of a product");
    let work = out.len().saturating_mul(left.columns);
    sum_over_blocks(out, left.columns, work, |inner, out| {
        let (left, right) = (left.columns(inner.clone()), right.rows(inner.clone()));
        let work = out.len().saturating_mul(inner.len());
        for_rows(out, right.columns, (8, LEAST), work, |first, out| {
            product_of_part(left.rows(first..first + out.len() / right.columns), right, out);
        });
    });
}

fn product_of_part<T: Real>(left: View<'_, T>, right: View<'_, T>, out: &mut [T]) {
    match (right.column_step, right.columns) {
        (1, 8) => dispatch(Narrow::<T, 8, 8> { left, right, out }),
        (1, 16) => dispatch(Narrow::<T, 16, 8> { left, right, out }),
        (1, 24) => dispatch(Narrow::<T, 24, 4> { left, right, out }),
        (1, 32) => dispatch(Narrow::<T, 32, 4> { left, right, out }),
        _ => gemm(left, right, out),
    }
}

/// A product whose right side has `W` columns, `R` rows of the result at a time.
struct Narrow<'a, T, const W: usize, const R: usize> {
    left: View<'a, T>,
    right: View<'a, T>,
    out: &'a mut [T],
}

impl<T: Real, const W: usize, const R: usize> Loops for Narrow<'_, T, W, R> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { left, right, out } = self;
        let right = &right.values.as_chunks::<W>().0[..right.rows];
        if left.column_step == 1 {
            rows::<T, W, R, FUSED>(left, right, out);
        } else {
            columns::<T, W, R, FUSED>(left, right, out);
        }
    }
}

/// The left side lies row by row: out_i = sum_k left_ik right_k.
#[inline(always)]
fn rows<T: Real, const W: usize, const R: usize, const FUSED: bool>(
    left: View<'_, T>,
    right: &[[T; W]],
    out: &mut [T],
) {
    let (out, _) = out.as_chunks_mut::<W>();
    let row = |i: usize| &left.values[i * left.row_step..][..right.len()];
    let (blocks, rest) = out.as_chunks_mut::<R>();
    for (number, block) in blocks.iter_mut().enumerate() {
        let mut left = [row(0); R];
        for r in 0..R {
            left[r] = row(number * R + r);
        }
        let mut sums = [[T::ZERO; W]; R];
        for (k, right) in right.iter().enumerate() {
            for r in 0..R {
                accumulate::<T, W, FUSED>(&mut sums[r], left[r][k], right);
            }
        }
        *block = sums;
    }
    let first = blocks.len() * R;
    for (number, out) in rest.iter_mut().enumerate() {
        let mut sum = [T::ZERO; W];
        for (&left, right) in row(first + number).iter().zip(right) {
            accumulate::<T, W, FUSED>(&mut sum, left, right);
        }
        *out = sum;
    }
}

/// The left side lies column by column, as a transpose does: column k adds left_ik right_k to every row i of
/// `out`.
#[inline(always)]
fn columns<T: Real, const W: usize, const R: usize, const FUSED: bool>(
    left: View<'_, T>,
    right: &[[T; W]],
    out: &mut [T],
) {
    /// Columns of the left side that pass by before the next rows of `out` are taken up: they stay in the cache.
    const PORTION: usize = 64;
    debug_assert_eq!((left.row_step, left.rows % R), (1, 0));
    out.fill(T::ZERO);
    for (number, right) in right.chunks(PORTION).enumerate() {
        let left = |k: usize| &left.values[(number * PORTION + k) * left.column_step..][..left.rows];
        for (block, sums) in out.as_chunks_mut::<W>().0.as_chunks_mut::<R>().0.iter_mut().enumerate() {
            let mut here = *sums;
            for (k, right) in right.iter().enumerate() {
                let factors = *tile::<T, R>(left(k), block * R);
                for r in 0..R {
                    accumulate::<T, W, FUSED>(&mut here[r], factors[r], right);
                }
            }
            *sums = here;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::uniform;

    #[test]
    fn a_product_and_its_transposes_agree_with_the_definition() {
        let a = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]; // 2 x 3
        let b = [1.0, 0.0, -1.0, 2.0, 3.0, 1.0]; // 3 x 2
        let mut out = [0.0f64; 4];
        product(View::new(2, 3, &a), View::new(3, 2, &b), &mut out);
        assert_eq!(out, [8.0, 7.0, 17.0, 16.0]);
        let mut gram = [0.0f64; 9];
        product(View::new(2, 3, &a).transposed(), View::new(2, 3, &a), &mut gram);
        assert_eq!(gram, [17.0, 22.0, 27.0, 22.0, 29.0, 36.0, 27.0, 36.0, 45.0]);
    }

    #[test]
    fn narrow_products_agree_with_the_definition_for_every_width_and_orientation() {
        let numbers =
            |seed, count: usize| -> Vec<f64> { (0..count).map(|i| uniform(seed, i as u64) - 0.5).collect() };
        for (rows, inner) in [(1, 1), (16, 70), (24, 200), (19, 8), (0, 8)] {
            for columns in [8, 16, 24, 32, 40] {
                let (left, right) = (numbers(1, rows * inner), numbers(2, inner * columns));
                let entry = |i: usize, j: usize| -> f64 {
                    (0..inner).map(|k| left[i * inner + k] * right[k * columns + j]).sum()
                };
                let expected: Vec<f64> =
                    (0..rows * columns).map(|at| entry(at / columns, at % columns)).collect();
                let right = View::new(inner, columns, &right);
                let mut out = vec![7.0; rows * columns];
                product(View::new(rows, inner, &left), right, &mut out);
                assert!(
                    out.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12),
                    "{rows} {inner} {columns}"
                );
                if rows % 8 != 0 {
                    continue; // what is transposed is an activation, padded to whole vectors
                }
                let transposed: Vec<f64> =
                    (0..inner * rows).map(|at| left[at % rows * inner + at / rows]).collect();
                let mut out = vec![7.0; rows * columns];
                product(View::new(inner, rows, &transposed).transposed(), right, &mut out);
                assert!(
                    out.iter().zip(&expected).all(|(a, b)| (a - b).abs() < 1e-12),
                    "{rows} {inner} {columns}"
                );
            }
        }
    }
}
