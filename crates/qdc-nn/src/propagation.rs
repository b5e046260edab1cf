//! Propagation: Y = M X, the step of a network that looks at the graph.
//!
//! M is any sparse matrix: the transition matrix of the graph, a kernel, a rewired graph. The backward pass
//! needs M^T; a symmetric matrix serves both, any other keeps its transpose. The form in which M is stored is
//! chosen once, by what multiplies fastest (bench/train/RESULTS.md).

use std::sync::OnceLock;

use qdc_core::Csr;

use crate::dense::{View, product};
use crate::sparse::{Tiles, gather};
use crate::{Matrix, Real};

/// Above this share of non-zeros a dense product beats the sparse one.
pub const DENSE_ABOVE: f64 = 0.5;
/// From this many entries in a strip of a row on, tiles beat plain rows.
pub(crate) const ENTRIES_FOR_TILES: f64 = 6.0;

/// A matrix ready to propagate with, forward (M) and backward (M^T).
///
/// ```
/// use qdc_core::Csr;
/// use qdc_nn::{Matrix, Propagation, Width};
///
/// let average = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![0.5, 0.5, 0.5, 0.5])?;
/// let propagation = Propagation::new(average);
/// let x = Matrix::from_dense(2, Width::single(1), &[1.0, 3.0]);
/// let mut y = Matrix::zeros(2, Width::single(1));
/// propagation.apply(&x, &mut y);
/// assert_eq!(y.to_dense(), [2.0, 2.0]);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Propagation<T> {
    matrix: Csr<T>,
    forward: Form<T>,
    /// M^T and its form; absent when M is symmetric.
    backward: Option<(Csr<T>, Form<T>)>,
    /// Whether nothing was made ready for M^T.
    forward_only: bool,
    /// Made when first asked for: only attention needs it.
    by_column: OnceLock<Csr<usize>>,
}

/// How a matrix is stored for multiplication.
#[derive(Clone, Debug)]
enum Form<T> {
    /// Row by row, as it is.
    Rows,
    /// In strips that fit the first-level cache.
    Tiles(Tiles<T>),
    /// With its zeros.
    Dense(Vec<T>),
}

impl<T: Real> Form<T> {
    fn of(matrix: &Csr<T>) -> Self {
        let strips = matrix.columns().div_ceil(Tiles::<T>::COLUMNS);
        let per_cell = matrix.entries() as f64 / (matrix.rows() * strips).max(1) as f64;
        if matrix.density() > DENSE_ABOVE {
            Self::Dense(matrix.to_dense())
        } else if strips > 2 && per_cell >= ENTRIES_FOR_TILES && matrix.entries() < u32::MAX as usize {
            Self::Tiles(Tiles::new(matrix))
        } else {
            Self::Rows
        }
    }

    /// Bytes it takes besides the matrix.
    fn bytes(&self) -> usize {
        match self {
            Self::Rows => 0,
            Self::Tiles(tiles) => tiles.bytes(),
            Self::Dense(values) => size_of_val(values.as_slice()),
        }
    }

    fn apply(&self, matrix: &Csr<T>, x: &Matrix<T>, y: &mut Matrix<T>) {
        assert_eq!(x.width(), y.width(), "propagation keeps the columns");
        assert_eq!((x.rows(), y.rows()), (matrix.columns(), matrix.rows()), "rows of a propagation");
        match self {
            Self::Rows => gather(matrix.into(), x.values(), x.width(), y.values_mut()),
            Self::Tiles(tiles) => tiles.gather(x.values(), x.width(), y.values_mut()),
            Self::Dense(values) => {
                product(View::new(matrix.rows(), matrix.columns(), values), x.into(), y.values_mut());
            }
        }
    }
}

impl<T: Real> Propagation<T> {
    /// Prepares `matrix`; it is copied into the form that multiplies fastest.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn new(matrix: Csr<T>) -> Self {
        assert_eq!(matrix.rows(), matrix.columns(), "a propagation matrix is square");
        let transpose = matrix.transpose();
        let forward = Form::of(&matrix);
        let backward = (transpose != matrix).then(|| {
            let form = Form::of(&transpose);
            (transpose, form)
        });
        Self { matrix, forward, backward, forward_only: false, by_column: OnceLock::new() }
    }

    /// The matrix as it is, for mini-batches: rows are cut from it, and Y = M X is computed, but not
    /// Y = M^T X. Takes no memory besides.
    ///
    /// # Panics
    /// If the matrix is not square.
    pub fn forward_only(matrix: Csr<T>) -> Self {
        assert_eq!(matrix.rows(), matrix.columns(), "a propagation matrix is square");
        Self { matrix, forward: Form::Rows, backward: None, forward_only: true, by_column: OnceLock::new() }
    }

    /// M.
    pub fn matrix(&self) -> &Csr<T> {
        &self.matrix
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.matrix.rows()
    }

    /// Whether M is its own transpose.
    pub fn is_symmetric(&self) -> bool {
        self.backward.is_none()
    }

    /// Bytes of memory it holds now.
    pub fn bytes(&self) -> u64 {
        fn rows<T: Copy + Send + Sync>(matrix: &Csr<T>) -> usize {
            size_of_val(matrix.pointers()) + size_of_val(matrix.indices()) + size_of_val(matrix.values())
        }
        let forward = rows(&self.matrix) + self.forward.bytes();
        let backward = self.backward.as_ref().map_or(0, |(matrix, form)| rows(matrix) + form.bytes());
        (forward + backward + self.by_column.get().map_or(0, rows)) as u64
    }

    /// The form chosen: `rows`, `tiles` or `dense`.
    pub fn form(&self) -> &'static str {
        match self.forward {
            Form::Rows => "rows",
            Form::Tiles(_) => "tiles",
            Form::Dense(_) => "dense",
        }
    }

    /// The entries of M column by column: row j lists the rows i that have an entry (i, j), and where it lies
    /// among the entries of M.
    pub fn entries_by_column(&self) -> &Csr<usize> {
        self.by_column.get_or_init(|| {
            let matrix = &self.matrix;
            let places = (0..matrix.entries()).collect();
            let (pointers, indices) = (matrix.pointers().to_vec(), matrix.indices().to_vec());
            let numbered = Csr::new(matrix.rows(), matrix.columns(), pointers, indices, places);
            numbered.expect("the pattern of a valid matrix").transpose()
        })
    }

    /// Y = M X.
    pub fn apply(&self, x: &Matrix<T>, y: &mut Matrix<T>) {
        T::propagate(self, x, y);
    }

    pub(crate) fn compiled_apply(&self, x: &Matrix<T>, y: &mut Matrix<T>) {
        self.forward.apply(&self.matrix, x, y);
    }

    /// Y = M^T X.
    ///
    /// # Panics
    /// If it was made for the way forward only.
    pub fn apply_transposed(&self, x: &Matrix<T>, y: &mut Matrix<T>) {
        assert!(!self.forward_only, "nothing was made ready for M^T");
        match &self.backward {
            Some((transpose, form)) => form.apply(transpose, x, y),
            None => self.apply(x, y),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;
    use crate::random::uniform;

    fn random_matrix(nodes: usize, density: f64, seed: u64) -> Csr<f64> {
        let rows = (0..nodes).map(|i| {
            (0..nodes)
                .filter(|j| uniform(seed, (i * nodes + j) as u64) < density)
                .map(|j| (j as u32, uniform(seed + 1, (i * nodes + j) as u64) - 0.5))
                .unzip()
        });
        Csr::from_rows(nodes, rows).unwrap()
    }

    #[test]
    fn every_form_computes_the_same_product_and_its_transpose() {
        for (nodes, density, form) in [(40, 0.1, "rows"), (600, 0.1, "tiles"), (60, 0.8, "dense")] {
            let matrix = random_matrix(nodes, density, 3);
            let dense = matrix.to_dense();
            let propagation = Propagation::new(matrix);
            assert_eq!(propagation.form(), form);
            let width = Width::single(93); // tiles of 64, 16, 8 and 8 columns
            let x: Vec<f64> = (0..nodes * 93).map(|i| uniform(9, i as u64)).collect();
            let (x_matrix, mut y) = (Matrix::from_dense(nodes, width, &x), Matrix::zeros(nodes, width));
            for transposed in [false, true] {
                if transposed {
                    propagation.apply_transposed(&x_matrix, &mut y);
                } else {
                    propagation.apply(&x_matrix, &mut y);
                }
                for i in 0..nodes {
                    for k in 0..93 {
                        let entry = |j| if transposed { dense[j * nodes + i] } else { dense[i * nodes + j] };
                        let expected: f64 = (0..nodes).map(|j| entry(j) * x[j * 93 + k]).sum();
                        assert!((y.get(i, k) - expected).abs() < 1e-12, "{form} {transposed} ({i}, {k})");
                    }
                }
            }
        }
    }
}
