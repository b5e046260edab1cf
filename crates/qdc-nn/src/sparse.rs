//! Products of a sparse matrix with a dense one, whose rows are padded to whole vectors.
//!
//! [`gather`] computes Y = S X row by row: the accumulators of a row stay in registers while rows of X stream
//! by. [`scatter`] computes Y = S^T X without a transpose. [`Tiles`] is the layout for matrices with so many
//! entries that streaming X from the second-level cache is what takes the time.

use std::ops::Range;

use qdc_core::Csr;

use crate::hardware::{Loops, dispatch, multiply_add};
use crate::matrix::LANES;
use crate::parallel::for_rows;
use crate::{Real, Width};

/// Sparse rows, borrowed.
#[derive(Clone, Copy)]
pub(crate) struct SparseRows<'a, T> {
    pub(crate) pointers: &'a [usize],
    pub(crate) indices: &'a [u32],
    pub(crate) values: &'a [T],
}

impl<'a, T> SparseRows<'a, T> {
    /// Number of rows.
    fn rows(&self) -> usize {
        self.pointers.len() - 1
    }

    /// Multiplications of a product with rows of this width.
    fn work(&self, width: Width) -> usize {
        (self.pointers[self.rows()] - self.pointers[0]) * width.stride()
    }

    /// Some of the rows.
    fn part(self, rows: Range<usize>) -> Self {
        Self { pointers: &self.pointers[rows.start..=rows.end], ..self }
    }
}

impl<'a, T: Real> From<&'a Csr<T>> for SparseRows<'a, T> {
    fn from(matrix: &'a Csr<T>) -> Self {
        Self { pointers: matrix.pointers(), indices: matrix.indices(), values: matrix.values() }
    }
}

/// Calls `$tile::<W>(.., offset)` for tiles of 64, 16 and 8 columns until `$columns` of them are done.
macro_rules! for_tiles {
    ($columns:expr, |$offset:ident, $W:ident| $body:expr) => {{
        let mut $offset = 0;
        while $offset + 64 <= $columns {
            const $W: usize = 64;
            $body;
            $offset += 64;
        }
        while $offset + 16 <= $columns {
            const $W: usize = 16;
            $body;
            $offset += 16;
        }
        while $offset < $columns {
            const $W: usize = 8;
            $body;
            $offset += 8;
        }
    }};
}
pub(crate) use for_tiles;

/// The `W` numbers of `values` from `at` on.
#[inline(always)]
pub(crate) fn tile<T, const W: usize>(values: &[T], at: usize) -> &[T; W] {
    values[at..at + W].try_into().expect("the range has length W")
}

/// The `W` numbers of `values` from `at` on, to change.
#[inline(always)]
pub(crate) fn tile_mut<T, const W: usize>(values: &mut [T], at: usize) -> &mut [T; W] {
    (&mut values[at..at + W]).try_into().expect("the range has length W")
}

/// `sum += factor * row`, tile by tile.
#[inline(always)]
pub(crate) fn accumulate<T: Real, const W: usize, const FUSED: bool>(
    sum: &mut [T; W],
    factor: T,
    row: &[T; W],
) {
    if W > 16 {
        for w in 0..W {
            sum[w] = multiply_add::<T, FUSED>(factor, row[w], sum[w]);
        }
    } else {
        let (sum, _) = sum.as_chunks_mut::<LANES>();
        let (row, _) = row.as_chunks::<LANES>();
        for (sum, row) in sum.iter_mut().zip(row) {
            T::add_scaled_lanes::<FUSED>(sum, factor, row);
        }
    }
}

/// Y = S X: row i of Y is the sum over entries (j, s) of row i of S of s X_j.
pub(crate) fn gather<T: Real>(sparse: SparseRows<'_, T>, x: &[T], width: Width, y: &mut [T]) {
    assert_eq!(y.len(), sparse.rows() * width.stride(), "one row of output for each sparse row");
    let stride = width.stride();
    for_rows(y, stride, (1, 32), sparse.work(width), |first, y| {
        let sparse = sparse.part(first..first + y.len() / stride);
        dispatch(Gather { sparse, x, width, y });
    });
}

struct Gather<'a, T> {
    sparse: SparseRows<'a, T>,
    x: &'a [T],
    width: Width,
    y: &'a mut [T],
}

impl<T: Real> Loops for Gather<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { sparse, x, width, y } = self;
        let stride = width.stride();
        for rows in portions(sparse.rows(), x) {
            let pointers = &sparse.pointers[rows.start..=rows.end];
            let y = &mut y[rows.start * stride..rows.end * stride];
            for_tiles!(width.occupied(), |offset, W| {
                for (ends, y) in pointers.windows(2).zip(y.chunks_exact_mut(stride)) {
                    let entries = ends[0]..ends[1];
                    let mut sum = [T::ZERO; W];
                    for (&j, &value) in sparse.indices[entries.clone()].iter().zip(&sparse.values[entries]) {
                        accumulate::<T, W, FUSED>(&mut sum, value, tile(x, j as usize * stride + offset));
                    }
                    *tile_mut(y, offset) = sum;
                }
            });
        }
    }
}

/// Y = S^T X, where Y is set to 0 first: every entry (i, j, s) of S adds s X_i to row j of Y.
pub(crate) fn scatter<T: Real>(sparse: SparseRows<'_, T>, x: &[T], width: Width, y: &mut [T]) {
    assert_eq!(x.len(), sparse.rows() * width.stride(), "one row of input for each sparse row");
    y.fill(T::ZERO);
    let (stride, columns) = (width.stride(), y.len() / width.stride());
    for_rows(y, stride, (1, 32), sparse.work(width), |first, y| {
        let rows = y.len() / stride;
        if rows == columns {
            dispatch(Scatter { sparse, x, width, y, columns: None });
        } else {
            let columns = first as u32..(first + rows) as u32;
            dispatch(Scatter { sparse, x, width, y, columns: Some(columns) });
        }
    });
}

struct Scatter<'a, T> {
    sparse: SparseRows<'a, T>,
    x: &'a [T],
    width: Width,
    y: &'a mut [T],
    /// The columns of S whose rows of Y are asked for, where that is not all of them. Columns ascend in a row.
    columns: Option<Range<u32>>,
}

impl<T: Real> Loops for Scatter<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { sparse, x, width, y, columns } = self;
        let stride = width.stride();
        let first = columns.as_ref().map_or(0, |columns| columns.start);
        for rows in portions(sparse.rows(), y) {
            let pointers = &sparse.pointers[rows.start..=rows.end];
            let x = &x[rows.start * stride..rows.end * stride];
            for_tiles!(width.occupied(), |offset, W| {
                for (ends, x) in pointers.windows(2).zip(x.chunks_exact(stride)) {
                    let mut entries = ends[0]..ends[1];
                    if let Some(columns) = &columns {
                        let own = &sparse.indices[entries.clone()];
                        let place = |column: u32| ends[0] + own.partition_point(|&j| j < column);
                        entries = place(columns.start)..place(columns.end);
                    }
                    let row = *tile::<T, W>(x, offset);
                    for (&j, &value) in sparse.indices[entries.clone()].iter().zip(&sparse.values[entries]) {
                        let at = (j - first) as usize * stride + offset;
                        accumulate::<T, W, FUSED>(tile_mut(y, at), value, &row);
                    }
                }
            });
        }
    }
}

/// The sparse rows that are taken through all tiles of columns before the next ones: few, so that their
/// entries are read from memory once, where the dense `operand` they reach into stays in the second-level
/// cache as a whole; all rows where only a tile of it does.
fn portions<T>(rows: usize, operand: &[T]) -> impl Iterator<Item = Range<usize>> + use<T> {
    const CACHE: usize = 1 << 20; // bytes
    ranges(rows, if size_of_val(operand) <= CACHE { 32 } else { rows })
}

/// 0..`count`, cut into ranges of length `size` and a last one that may be shorter.
pub(crate) fn ranges(count: usize, size: usize) -> impl Iterator<Item = Range<usize>> {
    let size = size.max(1);
    (0..count).step_by(size).map(move |first| first..(first + size).min(count))
}

/// A sparse matrix cut into vertical strips of [`Tiles::COLUMNS`] columns.
///
/// While a strip is worked on, the rows of X it names (256 rows of 64 `f32` are 64 kB) stay close: most of
/// them in the first-level cache. Entries lie strip by strip, row by row.
#[derive(Clone, Debug)]
pub(crate) struct Tiles<T> {
    rows: usize,
    /// Where each (strip, row) begins; one more at the end.
    cells: Vec<u32>,
    /// Column within the strip.
    indices: Vec<u16>,
    values: Vec<T>,
}

impl<T: Real> Tiles<T> {
    /// Columns of a strip.
    pub(crate) const COLUMNS: usize = 256;

    /// Bytes it takes.
    pub(crate) fn bytes(&self) -> usize {
        size_of_val(self.cells.as_slice())
            + size_of_val(self.indices.as_slice())
            + size_of_val(self.values.as_slice())
    }

    /// Cuts `matrix` up. Its entries must be fewer than 2^32.
    pub(crate) fn new(matrix: &Csr<T>) -> Self {
        let strips = matrix.columns().div_ceil(Self::COLUMNS);
        let mut cells = Vec::with_capacity(strips * matrix.rows() + 1);
        let (mut indices, mut values) =
            (Vec::with_capacity(matrix.entries()), Vec::with_capacity(matrix.entries()));
        let mut next = matrix.pointers()[..matrix.rows()].to_vec();
        cells.push(0);
        for strip in 0..strips {
            let end = (strip + 1) * Self::COLUMNS;
            for row in 0..matrix.rows() {
                while next[row] < matrix.pointers()[row + 1] && (matrix.indices()[next[row]] as usize) < end {
                    indices.push((matrix.indices()[next[row]] as usize - strip * Self::COLUMNS) as u16);
                    values.push(matrix.values()[next[row]]);
                    next[row] += 1;
                }
                cells.push(indices.len() as u32);
            }
        }
        Self { rows: matrix.rows(), cells, indices, values }
    }

    /// Y = S X.
    pub(crate) fn gather(&self, x: &[T], width: Width, y: &mut [T]) {
        assert_eq!(y.len(), self.rows * width.stride(), "one row of output for each sparse row");
        y.fill(T::ZERO);
        let stride = width.stride();
        for_rows(y, stride, (1, 64), self.values.len() * stride, |first, y| {
            dispatch(GatherTiles { tiles: self, first, x, width, y });
        });
    }
}

/// The rows of a product from `first` on.
struct GatherTiles<'a, T> {
    tiles: &'a Tiles<T>,
    first: usize,
    x: &'a [T],
    width: Width,
    y: &'a mut [T],
}

impl<T: Real> Loops for GatherTiles<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { tiles, first, x, width, y } = self;
        let stride = width.stride();
        if tiles.rows == 0 {
            return;
        }
        for (strip, x) in x.chunks(Tiles::<T>::COLUMNS * stride).enumerate() {
            let start = strip * tiles.rows + first;
            let cells = &tiles.cells[start..=start + y.len() / stride];
            for (ends, y) in cells.windows(2).zip(y.chunks_exact_mut(stride)) {
                let indices = &tiles.indices[ends[0] as usize..ends[1] as usize];
                let values = &tiles.values[ends[0] as usize..ends[1] as usize];
                for_tiles!(width.occupied(), |offset, W| {
                    let mut sum = *tile::<T, W>(y, offset);
                    for (&j, &value) in indices.iter().zip(values) {
                        accumulate::<T, W, FUSED>(&mut sum, value, tile(x, j as usize * stride + offset));
                    }
                    *tile_mut(y, offset) = sum;
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Matrix;
    use crate::random::uniform;

    #[test]
    fn rows_gathered_and_scattered_are_the_dense_products_and_padding_stays_0() {
        let (rows, columns) = (5, 7);
        let entry = |i: usize, j: usize| (uniform(1, (i * columns + j) as u64) - 0.5).max(0.0); // about half are 0
        let sparse = Csr::from_rows(
            columns,
            (0..rows).map(|i| {
                (0..columns as u32).map(|j| (j, entry(i, j as usize))).filter(|e| e.1 > 0.0).unzip()
            }),
        )
        .unwrap();
        // the last has rows of 256 columns, and a cache line of padding besides
        for width in [Width::single(93), Width::blocks(3, 5), Width::blocks(4, 64)] {
            let random = |seed, rows| {
                let values: Vec<f64> =
                    (0..rows * width.columns()).map(|at| uniform(seed, at as u64)).collect();
                Matrix::from_dense(rows, width, &values)
            };
            let (x, z) = (random(2, columns), random(3, rows));
            let (mut sx, mut sz) = (Matrix::zeros(rows, width), Matrix::zeros(columns, width));
            gather((&sparse).into(), x.values(), width, sx.values_mut());
            scatter((&sparse).into(), z.values(), width, sz.values_mut());
            for k in 0..width.columns() {
                for i in 0..rows {
                    let expected: f64 = (0..columns).map(|j| entry(i, j) * x.get(j, k)).sum();
                    assert!((sx.get(i, k) - expected).abs() < 1e-14, "{width:?}: row {i}, column {k}");
                }
                for j in 0..columns {
                    let expected: f64 = (0..rows).map(|i| entry(i, j) * z.get(i, k)).sum();
                    assert!((sz.get(j, k) - expected).abs() < 1e-14, "{width:?}: row {j}, column {k}");
                }
            }
            for product in [&sx, &sz] {
                let sum: f64 = product.to_dense().iter().sum();
                assert!((product.values().iter().sum::<f64>() - sum).abs() < 1e-9, "{width:?}: the padding");
            }
        }
    }
}
