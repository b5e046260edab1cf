//! Features of the vertices.

use crate::Csr;

/// Features of the vertices, one row for each; sparse where most are 0.
#[derive(Clone, Debug, PartialEq)]
pub enum Features {
    /// Most entries are 0 and not stored.
    Sparse(Csr<f32>),
    /// Every entry, row after row.
    Dense {
        /// Number of columns.
        columns: usize,
        /// `rows * columns` values.
        values: Vec<f32>,
    },
}

impl Features {
    /// Above this share of non-zeros a dense product is faster than a sparse one (bench/README.md).
    pub const SPARSE_BELOW: f64 = 0.25;

    /// Keeps `values` (row after row) in whichever form is cheaper to multiply with.
    ///
    /// # Panics
    /// If the number of values is not a multiple of `columns`.
    pub fn from_dense(columns: usize, values: Vec<f32>) -> Self {
        assert!(columns > 0 && values.len().is_multiple_of(columns), "values must fill whole rows");
        let non_zero = values.iter().filter(|&&value| value != 0.0).count();
        if non_zero as f64 > Self::SPARSE_BELOW * values.len() as f64 {
            return Self::Dense { columns, values };
        }
        let rows = values.chunks_exact(columns).map(|row| {
            row.iter().enumerate().filter(|&(_, &value)| value != 0.0).map(|(j, &v)| (j as u32, v)).unzip()
        });
        Self::Sparse(Csr::from_rows(columns, rows).expect("columns are in order by construction"))
    }

    /// Number of rows: one for each vertex.
    pub fn rows(&self) -> usize {
        match self {
            Self::Sparse(matrix) => matrix.rows(),
            Self::Dense { columns, values } => values.len() / columns,
        }
    }

    /// Number of features of a vertex.
    pub fn columns(&self) -> usize {
        match self {
            Self::Sparse(matrix) => matrix.columns(),
            Self::Dense { columns, .. } => *columns,
        }
    }

    /// The share of entries that are not 0.
    pub fn density(&self) -> f64 {
        match self {
            Self::Sparse(matrix) => matrix.density(),
            Self::Dense { values, .. } => {
                values.iter().filter(|&&value| value != 0.0).count() as f64 / values.len().max(1) as f64
            }
        }
    }

    /// Every entry, row after row.
    pub fn to_dense(&self) -> Vec<f32> {
        match self {
            Self::Sparse(matrix) => matrix.to_dense(),
            Self::Dense { values, .. } => values.clone(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_are_sparse_when_most_are_zero_and_read_back() {
        let mostly_zero = vec![0.0, 0.0, 3.0, 0.0, 0.0, 0.0, 0.0, 1.0];
        let features = Features::from_dense(4, mostly_zero.clone());
        assert!(matches!(features, Features::Sparse(_)));
        assert_eq!((features.rows(), features.columns(), features.density()), (2, 4, 0.25));
        assert_eq!(features.to_dense(), mostly_zero);
        assert!(matches!(Features::from_dense(2, vec![1.0; 6]), Features::Dense { .. }));
    }
}
