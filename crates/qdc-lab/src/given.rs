//! A kernel that was made before, in the place of those a model would make.

use std::sync::Arc;

use qdc_core::Csr;
use qdc_data::hexadecimal;
use sha2::{Digest, Sha256};

use crate::Error;

/// A kernel from a file, for every tower that has a kernel.
#[derive(Clone, Debug)]
pub struct GivenKernel {
    matrix: Arc<Csr<f64>>,
    hash: String,
}

impl GivenKernel {
    /// Takes a matrix as it is; it is not normalised again.
    ///
    /// # Errors
    /// If it is not square, or an entry is not finite.
    pub fn new(matrix: Csr<f64>) -> Result<Self, Error> {
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
        Ok(Self { matrix: Arc::new(matrix), hash })
    }

    /// The matrix.
    pub fn matrix(&self) -> &Csr<f64> {
        &self.matrix
    }

    /// The hash of its entries, which is part of an experiment's record.
    pub fn hash(&self) -> &str {
        &self.hash
    }

    /// The share of the diagonal in its mass.
    pub(crate) fn diagonal_share(&self) -> Option<f64> {
        let all: f64 = self.matrix.values().iter().map(|value| value.abs()).sum();
        let own = |row: usize| self.matrix.get(row, row as u32).unwrap_or(0.0).abs();
        let diagonal: f64 = (0..self.matrix.rows()).map(own).sum();
        (all > 0.0).then(|| diagonal / all)
    }
}
