//! What learning adds to a graph: features on the vertices, and splits into training, validation and test.

use crate::{Csr, Error};

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

/// Which vertices are trained on, which stop the training, and which are scored. Some may be in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    train: Vec<u32>,
    validation: Vec<u32>,
    test: Vec<u32>,
}

impl Split {
    /// Checks that the three lists name vertices below `nodes`, each at most once, and sorts them.
    pub fn new(
        nodes: usize,
        mut train: Vec<u32>,
        mut validation: Vec<u32>,
        mut test: Vec<u32>,
    ) -> Result<Self, Error> {
        let mut part_of = vec![""; nodes];
        for (part, vertices) in
            [("training", &mut train), ("validation", &mut validation), ("test", &mut test)]
        {
            vertices.sort_unstable();
            for &vertex in vertices.iter() {
                let Some(taken) = part_of.get_mut(vertex as usize) else {
                    return Err(Error::SplitVertexOutOfRange { vertex, part, nodes });
                };
                if !taken.is_empty() {
                    return Err(Error::OverlappingSplit { vertex, first: taken, second: part });
                }
                *taken = part;
            }
        }
        Ok(Self { train, validation, test })
    }

    /// Vertices whose labels are trained on, ascending.
    pub fn train(&self) -> &[u32] {
        &self.train
    }

    /// Vertices whose accuracy stops the training, ascending.
    pub fn validation(&self) -> &[u32] {
        &self.validation
    }

    /// Vertices that are scored, ascending.
    pub fn test(&self) -> &[u32] {
        &self.test
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

    #[test]
    fn a_split_that_overlaps_or_overreaches_is_refused() {
        assert!(Split::new(4, vec![1, 0], vec![2], vec![3]).is_ok());
        let overlap = Split::new(4, vec![0, 1], vec![1], vec![3]).unwrap_err();
        assert_eq!(overlap.to_string(), "vertex 1 is in the training and in the validation set");
        assert!(matches!(
            Split::new(4, vec![0], vec![], vec![4]),
            Err(Error::SplitVertexOutOfRange { vertex: 4, .. })
        ));
    }
}
