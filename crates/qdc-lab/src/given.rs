//! A kernel that was made before, in the place of those a model would make.

use qdc_core::Csr;
use qdc_data::hexadecimal;
use sha2::{Digest, Sha256};

use crate::{Error, RewiringReport};

/// A kernel from a file, for every tower that has a kernel; cheap to clone where it lies in a mapped file
/// ([`qdc_data::matrix::map`]).
#[derive(Clone, Debug)]
pub struct GivenKernel {
    matrix: Csr<f32>,
    hash: String,
}

impl GivenKernel {
    /// Takes a matrix as it is; it is not normalised again.
    ///
    /// # Errors
    /// If it is not square, or an entry is not finite.
    pub fn new(matrix: Csr<f32>) -> Result<Self, Error> {
        let (rows, columns) = (matrix.rows(), matrix.columns());
        if rows != columns {
            let problem = format!("it has {rows} rows and {columns} columns");
            return Err(Error::GivenKernel { problem });
        }
        if let Some((row, column, value)) = matrix.iter().find(|entry| !entry.2.is_finite()) {
            let problem = format!("the entry ({row}, {column}) is {value}");
            return Err(Error::GivenKernel { problem });
        }
        let mut digest = Sha256::new();
        digest.update((rows as u64).to_le_bytes());
        for row in 0..rows {
            let (columns, values) = matrix.row(row);
            digest.update((columns.len() as u64).to_le_bytes());
            columns.iter().for_each(|column| digest.update(column.to_le_bytes()));
            values.iter().for_each(|value| digest.update(value.to_bits().to_le_bytes()));
        }
        let hash = hexadecimal(&digest.finalize()[..8]);
        Ok(Self { matrix, hash })
    }

    /// The matrix.
    pub fn matrix(&self) -> &Csr<f32> {
        &self.matrix
    }

    /// The hash of its entries, which is part of an experiment's record.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// What is to be told of it.
    pub(crate) fn report(&self) -> RewiringReport {
        let (nodes, entries) = (self.matrix.rows(), self.matrix.entries());
        let (diagonal_share, kernel) = (self.diagonal_share(), self.hash.clone());
        RewiringReport::Given { nodes, entries, diagonal_share, kernel }
    }

    /// The share of the diagonal in its mass.
    fn diagonal_share(&self) -> Option<f64> {
        let all: f64 = self.matrix.values().iter().map(|value| f64::from(value.abs())).sum();
        let own = |row: usize| f64::from(self.matrix.get(row, row as u32).unwrap_or(0.0).abs());
        let diagonal: f64 = (0..self.matrix.rows()).map(own).sum();
        (all > 0.0).then(|| diagonal / all)
    }
}
