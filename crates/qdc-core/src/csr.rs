//! Compressed sparse rows: the one sparse matrix of the project.

use rayon::prelude::*;

use crate::stored::{Shared, Stored};
use crate::{Error, Scalar};

/// The largest number of columns: indices are `u32`.
pub const MAX_COLUMNS: usize = u32::MAX as usize;

/// A sparse matrix in compressed rows, valid by construction.
///
/// Row pointers start at 0, do not decrease and end at the number of entries; within a row the columns ascend
/// strictly and lie in range. Adjacencies, transitions and kernels are all of this type.
///
/// ```
/// use qdc_core::Csr;
///
/// let matrix = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![1.0, 2.0, 3.0])?;
/// assert_eq!(matrix.row(0), (&[0, 2][..], &[1.0, 2.0][..]));
/// assert_eq!(matrix.transpose().row(2), (&[0][..], &[2.0][..]));
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Csr<T> {
    columns: usize,
    pointers: Vec<usize>,
    indices: Stored<u32>,
    values: Stored<T>,
}

impl<T: Copy + Send + Sync> Csr<T> {
    /// Checks the parts and joins them.
    ///
    /// # Errors
    /// [`Error::MalformedMatrix`], which says what is wrong and where.
    pub fn new(
        rows: usize,
        columns: usize,
        pointers: Vec<usize>,
        indices: Vec<u32>,
        values: Vec<T>,
    ) -> Result<Self, Error> {
        check(rows, columns, &pointers, &indices, values.len())?;
        Ok(Self { columns, pointers, indices: indices.into(), values: values.into() })
    }

    /// Checks parts of which columns and values lie elsewhere, as in a mapped file; they must not change.
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn shared(
        rows: usize,
        columns: usize,
        pointers: Vec<usize>,
        indices: Shared<u32>,
        values: Shared<T>,
    ) -> Result<Self, Error> {
        check(rows, columns, &pointers, (*indices).as_ref(), (*values).as_ref().len())?;
        Ok(Self { columns, pointers, indices: Stored::Shared(indices), values: Stored::Shared(values) })
    }

    /// Joins parts that are right by construction; checked in debug builds only.
    pub(crate) fn trusted(columns: usize, pointers: Vec<usize>, indices: Vec<u32>, values: Vec<T>) -> Self {
        debug_assert!(
            Self::new(pointers.len() - 1, columns, pointers.clone(), indices.clone(), values.clone()).is_ok()
        );
        Self { columns, pointers, indices: indices.into(), values: values.into() }
    }

    /// Joins rows, each a list of columns (ascending) and values.
    ///
    /// # Errors
    /// As [`Csr::new`].
    pub fn from_rows(
        columns: usize,
        rows: impl IntoIterator<Item = (Vec<u32>, Vec<T>)>,
    ) -> Result<Self, Error> {
        let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for (row_indices, row_values) in rows {
            indices.extend(row_indices);
            values.extend(row_values);
            pointers.push(indices.len());
        }
        Self::new(pointers.len() - 1, columns, pointers, indices, values)
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.pointers.len() - 1
    }

    /// Number of columns.
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// Number of stored entries.
    pub fn entries(&self) -> usize {
        self.indices.len()
    }

    /// Stored entries as a share of all.
    pub fn density(&self) -> f64 {
        let cells = self.rows() as f64 * self.columns as f64;
        if cells == 0.0 { 0.0 } else { self.entries() as f64 / cells }
    }

    /// Columns and values of one row.
    #[inline]
    pub fn row(&self, row: usize) -> (&[u32], &[T]) {
        let range = self.pointers[row]..self.pointers[row + 1];
        (&self.indices[range.clone()], &self.values[range])
    }

    /// The value stored at (`row`, `column`), if any.
    pub fn get(&self, row: usize, column: u32) -> Option<T> {
        let (indices, values) = self.row(row);
        indices.binary_search(&column).ok().map(|at| values[at])
    }

    /// Row pointers, `rows + 1` of them.
    pub fn pointers(&self) -> &[usize] {
        &self.pointers
    }

    /// Column indices, row after row.
    pub fn indices(&self) -> &[u32] {
        &self.indices
    }

    /// Values along [`Csr::indices`].
    pub fn values(&self) -> &[T] {
        &self.values
    }

    /// Values, to change in place; the pattern stays.
    pub fn values_mut(&mut self) -> &mut [T] {
        self.values.owned()
    }

    /// Pointers, indices and values.
    pub fn into_parts(self) -> (Vec<usize>, Vec<u32>, Vec<T>) {
        (self.pointers, self.indices.into_vec(), self.values.into_vec())
    }

    /// Every entry as (row, column, value), row by row.
    pub fn iter(&self) -> impl Iterator<Item = (usize, u32, T)> + '_ {
        (0..self.rows()).flat_map(move |row| {
            let (indices, values) = self.row(row);
            indices.iter().zip(values).map(move |(&column, &value)| (row, column, value))
        })
    }

    /// The same pattern with other values.
    pub fn map<U: Copy + Send + Sync>(&self, f: impl Fn(T) -> U) -> Csr<U> {
        Csr {
            columns: self.columns,
            pointers: self.pointers.clone(),
            indices: self.indices.clone(),
            values: self.values.iter().map(|&value| f(value)).collect::<Vec<U>>().into(),
        }
    }

    /// The transpose, in time proportional to the entries.
    pub fn transpose(&self) -> Self {
        let mut pointers = vec![0; self.columns + 1];
        for &column in self.indices.iter() {
            pointers[column as usize + 1] += 1;
        }
        for column in 0..self.columns {
            pointers[column + 1] += pointers[column];
        }
        let mut next = pointers.clone();
        let mut indices = vec![0; self.entries()];
        let mut values = self.values.to_vec();
        for (row, column, value) in self.iter() {
            let at = &mut next[column as usize];
            indices[*at] = row as u32;
            values[*at] = value;
            *at += 1;
        }
        Self::trusted(self.rows(), pointers, indices, values)
    }

    /// The rows named, in that order.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn select_rows(&self, rows: &[u32]) -> Self {
        let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        for &row in rows {
            let (row_indices, row_values) = self.row(row as usize);
            indices.extend_from_slice(row_indices);
            values.extend_from_slice(row_values);
            pointers.push(indices.len());
        }
        Self::trusted(self.columns, pointers, indices, values)
    }

    /// The matrix with row and column `i` renamed: `order[new] = old`.
    ///
    /// # Panics
    /// If the matrix is not square or `order` is not a permutation of its rows.
    pub fn relabel(&self, order: &[u32]) -> Self {
        assert_eq!(self.rows(), self.columns, "only a square matrix can be relabelled");
        let new_name = crate::order::inverse(order);
        assert_eq!(new_name.len(), self.rows(), "the order must name every row once");
        let rows: Vec<Vec<(u32, T)>> = order
            .par_iter()
            .map(|&old| {
                let (indices, values) = self.row(old as usize);
                let mut row: Vec<(u32, T)> =
                    indices.iter().zip(values).map(|(&j, &v)| (new_name[j as usize], v)).collect();
                row.sort_unstable_by_key(|entry| entry.0);
                row
            })
            .collect();
        let mut pointers = vec![0];
        let (mut indices, mut values) =
            (Vec::with_capacity(self.entries()), Vec::with_capacity(self.entries()));
        for row in rows {
            for (column, value) in row {
                indices.push(column);
                values.push(value);
            }
            pointers.push(indices.len());
        }
        Self::trusted(self.columns, pointers, indices, values)
    }
}

/// What is wrong with the parts of a matrix, if anything; `values` is their number.
fn check(
    rows: usize,
    columns: usize,
    pointers: &[usize],
    indices: &[u32],
    values: usize,
) -> Result<(), Error> {
    let malformed = |problem| Err(Error::MalformedMatrix { problem });
    if columns > MAX_COLUMNS {
        return Err(Error::TooManyVertices { nodes: columns, limit: MAX_COLUMNS });
    }
    if Some(pointers.len()) != rows.checked_add(1) {
        return malformed(format!("{} row pointers for {rows} rows", pointers.len()));
    }
    if pointers[0] != 0 || pointers[rows] != indices.len() || indices.len() != values {
        return malformed(format!(
            "row pointers run from {} to {}, with {} column indices and {} values",
            pointers[0],
            pointers[rows],
            indices.len(),
            values
        ));
    }
    for row in 0..rows {
        let (start, end) = (pointers[row], pointers[row + 1]);
        if end < start || end > indices.len() {
            return malformed(format!("the row pointer decreases after row {row}"));
        }
        let row_indices = &indices[start..end];
        if let Some(pair) = row_indices.windows(2).find(|pair| pair[0] >= pair[1]) {
            return malformed(format!(
                "in row {row} column {} follows column {}: columns must ascend without repeats",
                pair[1], pair[0]
            ));
        }
        if let Some(&last) = row_indices.last()
            && last as usize >= columns
        {
            return malformed(format!("row {row} names column {last} of {columns}"));
        }
    }
    Ok(())
}

impl<T: Scalar> Csr<T> {
    /// `out = self * vector`.
    ///
    /// # Panics
    /// If the lengths do not fit.
    pub fn apply(&self, vector: &[T], out: &mut [T]) {
        assert_eq!(vector.len(), self.columns, "vector length");
        assert_eq!(out.len(), self.rows(), "output length");
        for (row, out) in out.iter_mut().enumerate() {
            let (indices, values) = self.row(row);
            *out = indices.iter().zip(values).map(|(&j, &v)| v * vector[j as usize]).sum();
        }
    }

    /// Multiplies every entry by a factor of its row and column.
    pub fn scale(&mut self, factor: impl Fn(usize, usize) -> T + Sync) {
        let Self { pointers, indices, values, .. } = self;
        let mut rest = values.owned().as_mut_slice();
        let mut rows = Vec::with_capacity(pointers.len());
        for row in pointers.windows(2) {
            let (values, after) = rest.split_at_mut(row[1] - row[0]);
            rows.push((&indices[row[0]..row[1]], values));
            rest = after;
        }
        rows.into_par_iter().enumerate().for_each(|(row, (columns, values))| {
            for (&column, value) in columns.iter().zip(values) {
                *value *= factor(row, column as usize);
            }
        });
    }

    /// The sum of each row.
    pub fn row_sums(&self) -> Vec<T> {
        (0..self.rows()).map(|row| self.row(row).1.iter().copied().sum()).collect()
    }

    /// The largest |a_ij - a_ji|; absent entries count 0.
    pub fn asymmetry(&self) -> f64 {
        let transpose = self.transpose();
        let one_way = |a: &Self, b: &Self| {
            a.iter()
                .map(|(i, j, v)| {
                    let other = b.get(i, j).unwrap_or(T::ZERO);
                    (v.to_f64() - other.to_f64()).abs()
                })
                .fold(0.0, f64::max)
        };
        one_way(self, &transpose).max(one_way(&transpose, self))
    }

    /// All entries, row after row, absent ones 0.
    pub fn to_dense(&self) -> Vec<T> {
        let mut dense = vec![T::ZERO; self.rows() * self.columns];
        for (row, column, value) in self.iter() {
            dense[row * self.columns + column as usize] = value;
        }
        dense
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn malformed_parts_are_refused_with_the_place() {
        let message = |pointers: &[usize], indices: &[u32]| {
            let values = vec![1.0; indices.len()];
            Csr::new(2, 3, pointers.to_vec(), indices.to_vec(), values).unwrap_err().to_string()
        };
        assert!(message(&[0, 1], &[0]).contains("2 row pointers for 2 rows"));
        assert!(message(&[0, 2, 1], &[0]).contains("the row pointer decreases after row 0"));
        assert!(message(&[0, 2, 2], &[1, 1]).contains("row 0 column 1 follows column 1"));
        assert!(message(&[0, 0, 1], &[3]).contains("row 1 names column 3 of 3"));
        assert!(message(&[0, 1, 3], &[0]).contains("with 1 column indices"));
    }

    proptest! {
        #[test]
        fn transposing_twice_changes_nothing(cells in proptest::collection::vec(any::<Option<i8>>(), 35)) {
            let rows = cells.chunks(5).map(|row| {
                row.iter().enumerate().filter_map(|(j, v)| v.map(|v| (j as u32, f64::from(v)))).unzip()
            });
            let matrix = Csr::from_rows(5, rows).unwrap();
            prop_assert_eq!(&matrix.transpose().transpose(), &matrix);
            for (i, j, v) in matrix.iter() {
                prop_assert_eq!(matrix.transpose().get(j as usize, i as u32), Some(v));
            }
        }
    }
}
