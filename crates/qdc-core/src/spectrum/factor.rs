//! Sparse factorisations of B - s I: they count the eigenvalues of B below s, and they solve.
//!
//! B - s I = P^T M D M^T P with D of blocks of one and two. By Sylvester's law of inertia D has as many
//! negative eigenvalues as B has below s. The same factors give (B - s I)^-1 X, the operator of shift-invert
//! Lanczos and the preconditioner of LOBPCG. Order and fill are found once for each matrix (approximate
//! minimum degree, supernodes); the numbers are computed for each shift, with pivoting inside supernodes.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::lblt::factor::LbltParams;
use faer::perm::PermRef;
use faer::sparse::linalg::SupernodalThreshold;
use faer::sparse::linalg::cholesky::supernodal::SymbolicSupernodalCholesky;
use faer::sparse::linalg::cholesky::{
    CholeskySymbolicParams, IntranodeLbltRef, SymbolicCholesky, SymbolicCholeskyRaw, SymmetricOrdering,
    factorize_symbolic_cholesky,
};
use faer::sparse::{SparseColMat, SymbolicSparseColMat};
use faer::{Conj, Mat, MatRef, Par, Side, Spec};
use rayon::prelude::*;

use super::dense::parts;
use super::panels::random;
use crate::{Csr, Error, Watch};

/// Columns solved for at a time: enough for fast dense blocks, few enough to stay in cache.
const COLUMNS: usize = 16;
/// An image this much longer than the vector means that the shift is all but an eigenvalue.
const SINGULAR: f64 = 1e11;

/// The order and the fill of a symmetric matrix, ready to be factorised at any shift.
#[derive(Debug)]
pub(super) struct Symbolic {
    symbolic: SymbolicCholesky<usize>,
}

impl Symbolic {
    /// Orders a connected matrix of at least two rows; `None` if it cannot be ordered.
    ///
    /// Cost: near-linear in the entries of the factor's pattern, no arithmetic.
    pub(super) fn new(matrix: &Csr<f64>) -> Option<Self> {
        let lower = lower_triangle(matrix, 0.0);
        let parameters = CholeskySymbolicParams {
            // The other kind does not pivot.
            supernodal_flop_ratio_threshold: SupernodalThreshold::FORCE_SUPERNODAL,
            ..Default::default()
        };
        let symbolic =
            factorize_symbolic_cholesky(lower.symbolic(), Side::Lower, SymmetricOrdering::Amd, parameters)
                .ok()?;
        matches!(symbolic.raw(), SymbolicCholeskyRaw::Supernodal(_)).then_some(Self { symbolic })
    }

    fn supernodes(&self) -> &SymbolicSupernodalCholesky<usize> {
        match self.symbolic.raw() {
            SymbolicCholeskyRaw::Supernodal(supernodes) => supernodes,
            SymbolicCholeskyRaw::Simplicial(_) => unreachable!("`new` accepts supernodes only"),
        }
    }

    /// Bytes the factors take while they are made.
    pub(super) fn memory(&self) -> u64 {
        let scratch = self.symbolic.factorize_numeric_intranode_lblt_scratch::<f64>(parts(), params());
        8 * self.entries() as u64 + scratch.unaligned_bytes_required() as u64
    }

    /// Numbers in the factors; a solve takes four operations for each.
    pub(super) fn entries(&self) -> usize {
        self.symbolic.len_val()
    }

    /// Multiplications and additions of one factorisation.
    pub(super) fn flops(&self) -> f64 {
        let nodes = self.supernodes();
        (0..nodes.n_supernodes())
            .map(|node| {
                let columns = (nodes.supernode_end()[node] - nodes.supernode_begin()[node]) as f64;
                let rows = nodes.supernode(node).pattern().len() as f64;
                // Each of the columns updates what lies right of and below it.
                columns * rows * rows + columns * columns * rows + columns.powi(3) / 3.0
            })
            .sum()
    }

    /// Factorises `matrix` - `shift`; the pattern must be that of the matrix given to `new`.
    pub(super) fn factorise(
        &self,
        matrix: &Csr<f64>,
        shift: f64,
        watch: &Watch,
    ) -> Result<Factors<'_>, Error> {
        watch.check()?;
        let n = matrix.rows();
        let lower = lower_triangle(matrix, shift);
        let fail = |_| Error::Memory { what: "the factorisation", needed: self.memory(), limit: 0 };
        let mut values = Vec::new();
        values.try_reserve_exact(self.entries()).map_err(|_| fail(()))?;
        values.resize(self.entries(), 0.0);
        let mut factors = Factors {
            symbolic: self,
            values,
            subdiagonal: vec![0.0; n],
            forward: vec![0; n],
            inverse: vec![0; n],
        };
        let scratch = self.symbolic.factorize_numeric_intranode_lblt_scratch::<f64>(parts(), params());
        let mut buffer = MemBuffer::try_new(scratch).map_err(|_| fail(()))?;
        self.symbolic.factorize_numeric_intranode_lblt(
            &mut factors.values,
            &mut factors.subdiagonal,
            &mut factors.forward,
            &mut factors.inverse,
            lower.as_ref(),
            Side::Lower,
            parts(),
            MemStack::new(&mut buffer),
            params(),
        );
        Ok(factors)
    }

    /// The number of eigenvalues of `matrix` below `shift`; `None` if the shift is itself one, as far as the
    /// arithmetic can tell.
    pub(super) fn below(&self, matrix: &Csr<f64>, shift: f64, watch: &Watch) -> Result<Option<usize>, Error> {
        Ok(self.factorise(matrix, shift, watch)?.negatives())
    }
}

/// The factors of a matrix at one shift.
pub(super) struct Factors<'a> {
    symbolic: &'a Symbolic,
    values: Vec<f64>,
    subdiagonal: Vec<f64>,
    forward: Vec<usize>,
    inverse: Vec<usize>,
}

impl Factors<'_> {
    /// The number of negative eigenvalues of the factorised matrix; `None` if a pivot is 0 or not a number.
    pub(super) fn negatives(&self) -> Option<usize> {
        let nodes = self.symbolic.supernodes();
        let mut diagonal = Vec::with_capacity(self.subdiagonal.len());
        for node in 0..nodes.n_supernodes() {
            let columns = nodes.supernode_end()[node] - nodes.supernode_begin()[node];
            let start = nodes.col_ptr_for_val()[node];
            let stride = (nodes.col_ptr_for_val()[node + 1] - start) / columns.max(1);
            diagonal.extend((0..columns).map(|column| self.values[start + column * (stride + 1)]));
        }
        negatives(&diagonal, &self.subdiagonal)
    }

    /// (B - s I)^-1 X.
    ///
    /// Cost: four operations for each entry of the factors and each column.
    pub(super) fn solve(&self, block: MatRef<'_, f64>) -> Mat<f64> {
        let n = self.subdiagonal.len();
        let permutation = PermRef::new_checked(&self.forward, &self.inverse, n);
        let factors =
            IntranodeLbltRef::new(&self.symbolic.symbolic, &self.values, &self.subdiagonal, permutation);
        let scratch = self.symbolic.symbolic.solve_in_place_scratch::<f64>(COLUMNS, Par::Seq);
        let mut out = block.to_owned();
        out.as_mut().par_col_chunks_mut(COLUMNS).for_each_init(
            || MemBuffer::new(scratch),
            |buffer, columns| {
                factors.solve_in_place_with_conj(Conj::No, columns, Par::Seq, MemStack::new(buffer));
            },
        );
        out
    }
}

/// (B - s)^-1 for an s in the window around mu.
pub(super) struct Inverse<'a> {
    shift: f64,
    mu: f64,
    pub(super) factors: Factors<'a>,
}

impl<'a> Inverse<'a> {
    /// At a thousandth of the radius beside the centre; farther if that happens to be an eigenvalue.
    /// Distances are measured from mu.
    pub(super) fn beside(
        matrix: &Csr<f64>,
        mu: f64,
        (centre, radius): (f64, f64),
        symbolic: &'a Symbolic,
        watch: &Watch,
    ) -> Result<Self, Error> {
        let step = 1e-3 * radius.clamp(1e-4, 1.0);
        let mut at = 1.0;
        loop {
            let shift = centre + at * step;
            let inverse = Self { shift, mu, factors: symbolic.factorise(matrix, shift, watch)? };
            let probe = random(matrix.rows(), 1, 0);
            let growth = inverse.factors.solve(probe.as_ref()).col(0).norm_l2() / probe.col(0).norm_l2();
            if growth < SINGULAR || at > 8.0 {
                return Ok(inverse);
            }
            at *= 1.7;
        }
    }

    /// The distance from mu of the eigenvalue of B that belongs to one of the inverse.
    pub(super) fn distance(&self, theta: f64) -> f64 {
        (self.shift + 1.0 / theta - self.mu).abs()
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
            let Some(symbolic) = Symbolic::new(transition.matrix()) else { return Ok(()) };
            let counted = symbolic.below(transition.matrix(), shift, &Watch::silent()).unwrap();
            // A pivot of exactly 0 gives no count; a count that is given must be right.
            let expected = values.iter().filter(|value| **value < shift).count();
            prop_assert_eq!(counted.unwrap_or(expected), expected);
        }
    }

    #[test]
    fn a_ring_is_counted_at_every_shift() {
        let graph = Graph::from_edges(31, (0..31).map(|i| (i, (i + 1) % 31)), EdgeRule::Undirected).unwrap();
        let transition = Transition::new(&graph);
        let symbolic = Symbolic::new(transition.matrix()).unwrap();
        // The eigenvalues are (1 + 2 cos(2 pi k / 31)) / 3.
        for shift in [-0.3, -0.11, 0.27, 0.64, 0.93] {
            let below =
                |k: &i32| (1.0 + 2.0 * (std::f64::consts::TAU * f64::from(*k) / 31.0).cos()) / 3.0 < shift;
            let expected = (0..31).filter(below).count();
            let counted = symbolic.below(transition.matrix(), shift, &Watch::silent()).unwrap();
            assert_eq!(counted, Some(expected), "below {shift}");
        }
    }
}
