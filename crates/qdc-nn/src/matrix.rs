//! Dense activations, stored so that loops have no tails.

use crate::Real;
use crate::aligned::Aligned;

/// Columns are padded to a multiple of this; it is one vector of 8 `f32`, or of 8 `f64`.
pub(crate) const LANES: usize = 8;

/// The columns of a layer: `blocks` groups (the heads of an attention; otherwise 1) of `width` numbers each.
///
/// In memory each group is padded to a multiple of 8, and so is the row. **The padding is 0 and stays 0**:
/// weights start with 0 there, gradients are 0 there, so no loop needs to know about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Width {
    blocks: usize,
    width: usize,
}

impl Width {
    /// One group of `width` columns.
    pub fn single(width: usize) -> Self {
        Self { blocks: 1, width }
    }

    /// `blocks` groups of `width` columns.
    pub fn blocks(blocks: usize, width: usize) -> Self {
        Self { blocks, width }
    }

    /// Number of groups.
    pub fn count(self) -> usize {
        self.blocks
    }

    /// Columns of one group.
    pub fn of_block(self) -> usize {
        self.width
    }

    /// Columns, padding not counted.
    pub fn columns(self) -> usize {
        self.blocks * self.width
    }

    /// Columns of one group in memory.
    pub fn block_stride(self) -> usize {
        self.width.next_multiple_of(LANES)
    }

    /// Columns of all groups in memory: what lies beyond them in a row is nothing but padding.
    pub fn occupied(self) -> usize {
        self.blocks * self.block_stride()
    }

    /// Columns in memory. Where rows would begin 1 kB or a multiple of it apart, another cache line is added:
    /// the same block of all rows would otherwise compete for a few sets of the cache.
    pub fn stride(self) -> usize {
        let stride = self.occupied();
        if self.blocks > 1 && stride.is_multiple_of(256) { stride + 2 * LANES } else { stride }
    }

    /// Where column `column` lies in memory.
    pub(crate) fn place(self, column: usize) -> usize {
        column / self.width * self.block_stride() + column % self.width
    }
}

/// A dense matrix, row after row, its columns laid out as a [`Width`] says.
#[derive(Clone, Debug, PartialEq)]
pub struct Matrix<T> {
    rows: usize,
    width: Width,
    values: Aligned<T>,
}

impl<T: Real> Matrix<T> {
    /// All 0.
    pub fn zeros(rows: usize, width: Width) -> Self {
        Self { rows, width, values: Aligned::zeros(rows * width.stride()) }
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The layout of the columns.
    pub fn width(&self) -> Width {
        self.width
    }

    /// Distance between rows in memory.
    pub(crate) fn stride(&self) -> usize {
        self.width.stride()
    }

    /// One row with its padding.
    #[inline(always)]
    pub(crate) fn row(&self, row: usize) -> &[T] {
        let stride = self.width.stride();
        &self.values[row * stride..][..stride]
    }

    /// One row with its padding, to change.
    pub(crate) fn row_mut(&mut self, row: usize) -> &mut [T] {
        let stride = self.width.stride();
        &mut self.values[row * stride..][..stride]
    }

    /// The rows named, in that order.
    pub(crate) fn select_rows(&self, rows: &[u32]) -> Self {
        let mut selected = Self::zeros(rows.len(), self.width);
        for (at, &row) in rows.iter().enumerate() {
            selected.row_mut(at).copy_from_slice(self.row(row as usize));
        }
        selected
    }

    /// Everything, padding included.
    #[inline(always)]
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Everything, to change; the padding must stay 0.
    #[inline(always)]
    pub(crate) fn values_mut(&mut self) -> &mut [T] {
        &mut self.values
    }

    /// The entry at (`row`, `column`).
    pub fn get(&self, row: usize, column: usize) -> T {
        self.row(row)[self.width.place(column)]
    }

    /// All entries without the padding, row after row.
    pub fn to_dense(&self) -> Vec<T> {
        (0..self.rows).flat_map(|i| (0..self.width.columns()).map(move |j| self.get(i, j))).collect()
    }

    /// The matrix of `values`, given row after row without padding.
    ///
    /// # Panics
    /// If their number is not `rows * width.columns()`.
    pub fn from_dense(rows: usize, width: Width, values: &[T]) -> Self {
        assert_eq!(values.len(), rows * width.columns(), "values of a {rows} x {} matrix", width.columns());
        let mut matrix = Self::zeros(rows, width);
        let stride = width.stride();
        for (at, &value) in values.iter().enumerate() {
            let (row, column) = (at / width.columns(), at % width.columns());
            matrix.values[row * stride + width.place(column)] = value;
        }
        matrix
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn padding_is_invisible(rows in 0usize..4, blocks in 1usize..4, width in 1usize..20) {
            let width = Width::blocks(blocks, width);
            let dense: Vec<f64> = (0..rows * width.columns()).map(|i| i as f64 + 1.0).collect();
            let matrix = Matrix::from_dense(rows, width, &dense);
            prop_assert_eq!(matrix.to_dense(), dense.clone());
            prop_assert_eq!(matrix.values().iter().sum::<f64>(), dense.iter().sum::<f64>());
            prop_assert_eq!(matrix.values().len() % LANES, 0);
        }
    }
}
