//! Eigenvalues counted without computing them: Sylvester's law of inertia.
//!
//! B - s I = P^T M D M^T P with D of blocks of one and two has as many negative eigenvalues as D, and those are the
//! eigenvalues of B below s. The factorisation is sparse (approximate minimum degree order, supernodes, pivoting
//! inside them), with the fill known before a number is computed.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::lblt::factor::LbltParams;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMat, SymbolicSparseColMat};
use faer::{Par, Side, Spec};

use super::dense::parts;
use crate::{Csr, Error, Watch};

/// The symbolic factorisation of a symmetric matrix, ready to count at any shift.
pub(super) struct Inertia<'a> {
    matrix: &'a Csr<f64>,
    symbolic: SymbolicCholesky<usize>,
}

impl<'a> Inertia<'a> {
    /// `None` where the factors would take more than `limit` bytes, or cannot be ordered.
    pub(super) fn new(matrix: &'a Csr<f64>, limit: Option<u64>) -> Option<Self> {
        let lower = lower_triangle(matrix, 0.0);
        let parameters = CholeskySymbolicParams {
            // The other kind does not pivot.
            supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
            ..Default::default()
        };
        let symbolic =
            factorize_symbolic_cholesky(lower.symbolic(), Side::Lower, SymmetricOrdering::Amd, parameters)
                .ok()?;
        let inertia = Self { matrix, symbolic };
        limit.is_none_or(|limit| inertia.memory() <= limit).then_some(inertia)
    }

    /// Bytes the factors take.
    pub(super) fn memory(&self) -> u64 {
        let scratch = self.symbolic.factorize_numeric_intranode_lblt_scratch::<f64>(parts(), params());
        8 * self.symbolic.len_val() as u64 + scratch.unaligned_bytes_required() as u64
    }

    /// The number of eigenvalues below `shift`, which must not itself be one.
    pub(super) fn below(&self, shift: f64, watch: &Watch) -> Result<Option<usize>, Error> {
        watch.check()?;
        let n = self.matrix.rows();
        let lower = lower_triangle(self.matrix, shift);
        let SymbolicCholeskyRaw::Supernodal(supernodes) = self.symbolic.raw() else {
            // Where nothing is to be eliminated, supernodes cannot be had; the matrix is its own D.
            return Ok(if lower.compute_nnz() == n { negatives(lower.val(), &vec![0.0; n]) } else { None });
        };
        let par: Par = parts();
        let mut values = vec![0.0; self.symbolic.len_val()];
        let mut subdiagonal = vec![0.0; n];
        let (mut forward, mut inverse) = (vec![0usize; n], vec![0usize; n]);
        let scratch = self.symbolic.factorize_numeric_intranode_lblt_scratch::<f64>(par, params());
        let mut buffer = MemBuffer::try_new(scratch).map_err(|_| Error::Memory {
            what: "counting eigenvalues",
            needed: self.memory(),
            limit: 0,
        })?;
        self.symbolic.factorize_numeric_intranode_lblt(
            &mut values,
            &mut subdiagonal,
            &mut forward,
            &mut inverse,
            lower.as_ref(),
            Side::Lower,
            par,
            MemStack::new(&mut buffer),
            params(),
        );
        let mut diagonal = Vec::with_capacity(n);
        for node in 0..supernodes.n_supernodes() {
            let columns = supernodes.supernode_end()[node] - supernodes.supernode_begin()[node];
            let start = supernodes.col_ptr_for_val()[node];
            let stride = (supernodes.col_ptr_for_val()[node + 1] - start) / columns.max(1);
            diagonal.extend((0..columns).map(|column| values[start + column * (stride + 1)]));
        }
        Ok(negatives(&diagonal, &subdiagonal))
    }
}

fn params() -> Spec<LbltParams, f64> {
    Default::default()
}

/// Negative eigenvalues of a block diagonal matrix; `None` if one of them is 0 or not a number.
fn negatives(diagonal: &[f64], subdiagonal: &[f64]) -> Option<usize> {
    let (mut count, mut at) = (0, 0);
    while at < diagonal.len() {
        if subdiagonal[at] == 0.0 {
            if diagonal[at] == 0.0 || !diagonal[at].is_finite() {
                return None;
            }
            count += usize::from(diagonal[at] < 0.0);
            at += 1;
        } else {
            let (a, b, c) = (diagonal[at], subdiagonal[at], *diagonal.get(at + 1)?);
            let determinant = a * c - b * b;
            if determinant == 0.0 || !determinant.is_finite() {
                return None;
            }
            count += if determinant < 0.0 { 1 } else { 2 * usize::from(a < 0.0) };
            at += 2;
        }
    }
    Some(count)
}

/// The lower triangle of matrix - shift I, column by column; the diagonal is always stored.
fn lower_triangle(matrix: &Csr<f64>, shift: f64) -> SparseColMat<usize, f64> {
    let n = matrix.rows();
    let (mut pointers, mut rows, mut values) = (vec![0], Vec::new(), Vec::new());
    for column in 0..n {
        // The matrix is symmetric: a row is a column.
        let (indices, entries) = matrix.row(column);
        rows.push(column);
        values.push(matrix.get(column, column as u32).unwrap_or(0.0) - shift);
        for (&row, &value) in indices.iter().zip(entries).filter(|(row, _)| **row as usize > column) {
            rows.push(row as usize);
            values.push(value);
        }
        pointers.push(rows.len());
    }
    SparseColMat::new(SymbolicSparseColMat::new_checked(n, n, pointers, None, rows), values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::spectrum::dense;
    use crate::{EdgeRule, Graph, Transition};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn counts_by_inertia_equal_counts_of_computed_eigenvalues(
            edges in proptest::collection::vec((0u64..60, 0u64..60), 0..150), shift in -1.0f64..1.0
        ) {
            let graph = Graph::from_edges(60, edges, EdgeRule::Undirected).unwrap();
            let transition = Transition::new(&graph);
            let (values, _) = dense::decompose(transition.matrix(), &Watch::silent()).unwrap();
            prop_assume!(values.iter().all(|value| (value - shift).abs() > 1e-9));
            let inertia = Inertia::new(transition.matrix(), None).unwrap();
            let counted = inertia.below(shift, &Watch::silent()).unwrap();
            // A pivot of exactly 0 gives no count; a count that is given must be right.
            let expected = values.iter().filter(|value| **value < shift).count();
            prop_assert_eq!(counted.unwrap_or(expected), expected);
        }
    }

    #[test]
    fn isolated_vertices_are_counted() {
        // L is the identity.
        for nodes in [1, 2, 60] {
            let transition = Transition::new(&Graph::from_edges(nodes, [], EdgeRule::Undirected).unwrap());
            let inertia = Inertia::new(transition.matrix(), Some(1 << 20)).unwrap();
            for (shift, expected) in [(-0.5, 0), (0.0, 0), (0.5, 0), (1.5, nodes)] {
                assert_eq!(
                    inertia.below(shift, &Watch::silent()).unwrap(),
                    Some(expected),
                    "{nodes}, {shift}"
                );
            }
        }
    }

    #[test]
    fn a_ring_is_counted_at_every_shift() {
        let graph = Graph::from_edges(31, (0..31).map(|i| (i, (i + 1) % 31)), EdgeRule::Undirected).unwrap();
        let transition = Transition::new(&graph);
        let inertia = Inertia::new(transition.matrix(), None).unwrap();
        // The eigenvalues are (1 + 2 cos(2 pi k / 31)) / 3.
        for shift in [-0.3, -0.11, 0.27, 0.64, 0.93] {
            let below =
                |k: &i32| (1.0 + 2.0 * (std::f64::consts::TAU * f64::from(*k) / 31.0).cos()) / 3.0 < shift;
            let expected = (0..31).filter(below).count();
            assert_eq!(inertia.below(shift, &Watch::silent()).unwrap(), Some(expected), "below {shift}");
        }
    }
}
