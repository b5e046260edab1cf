//! The spectrum of the transition matrix: pairs (E_a, phi_a) with L phi_a = E_a phi_a, all of them or those
//! nearest to mu.
//!
//! [`Eigensolver`] computes a [`Spectrum`]. Every route goes through [`structure`]: vertices with the same
//! neighbourhood give eigenpairs that can be written down, components give independent blocks, and only what
//! remains is handed to an algorithm: the full decomposition (`dense`), a polynomial filter (`filter`),
//! shift-invert Lanczos (`lanczos`) or `lobpcg`. `plan` chooses.

mod assemble;
mod block;
mod dense;
mod density;
mod eigensolver;
mod factor;
mod filter;
mod folded;
mod groups;
mod lanczos;
mod lobpcg;
mod options;
mod origin;
mod panels;
mod plan;
mod ranks;
mod report;
mod search;
pub mod structure;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;

pub use dense::memory as dense_memory;
pub use eigensolver::{Eigensolver, Prepared};
pub use groups::{GROUP_TOLERANCE, groups};
pub use options::Pairs;
pub use origin::Origin;
pub use plan::Method;
pub use ranks::rank_windows;
pub use report::SpectrumReport;

/// Eigenvectors, column after column; owned, or mapped from a file.
pub type Vectors = Arc<dyn AsRef<[f64]> + Send + Sync>;

/// Eigenpairs of L, eigenvalues ascending, eigenvectors orthonormal.
///
/// Signs follow a rule: of the entries that are largest in magnitude (within one part in a million) the first
/// is positive. Inside a group of equal eigenvalues the basis is the solver's choice; only sums over whole
/// groups mean anything, so [`Spectrum::nearest`] never cuts one. A clone shares the vectors.
///
/// ```
/// use qdc_core::spectrum::{Eigensolver, Pairs};
/// use qdc_core::{EdgeRule, Graph, Transition, Watch};
///
/// let star = Graph::from_edges(4, [(0, 1), (0, 2), (0, 3)], EdgeRule::Undirected)?;
/// let spectrum = Eigensolver::new().solve(&Transition::new(&star), &Watch::silent())?;
/// assert!((spectrum.eigenvalues()[3] - 1.0).abs() < 1e-14);
/// // The leaves have the same neighbourhood, so 1/2 is twofold, and asking for one pair gives both.
/// assert_eq!(spectrum.nearest(0.5, 1), 1..3);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone)]
pub struct Spectrum {
    origin: Origin,
    eigenvalues: Vec<f64>,
    vectors: Vectors,
    report: Arc<SpectrumReport>,
}

impl Spectrum {
    /// Joins eigenvalues (ascending) and eigenvectors (column after column) computed elsewhere.
    ///
    /// # Panics
    /// If the lengths do not match or the eigenvalues do not ascend.
    pub fn from_parts(
        origin: Origin,
        eigenvalues: Vec<f64>,
        vectors: Vectors,
        report: SpectrumReport,
    ) -> Self {
        let numbers = origin.nodes * eigenvalues.len();
        assert_eq!((*vectors).as_ref().len(), numbers, "one vector for each eigenvalue");
        assert!(eigenvalues.is_sorted(), "eigenvalues must ascend");
        Self { origin, eigenvalues, vectors, report: Arc::new(report) }
    }

    /// The matrix the pairs belong to. `spectrum.origin().check(&transition)?` refuses eigenpairs of another
    /// one.
    pub fn origin(&self) -> &Origin {
        &self.origin
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.origin.nodes
    }

    /// Number of eigenpairs held.
    pub fn pairs(&self) -> usize {
        self.eigenvalues.len()
    }

    /// Whether every eigenpair is here.
    pub fn is_complete(&self) -> bool {
        self.pairs() == self.nodes()
    }

    /// The eigenvalues, ascending.
    pub fn eigenvalues(&self) -> &[f64] {
        &self.eigenvalues
    }

    /// The eigenvectors, column after column: entry `i` of vector `a` stands at `a * nodes + i`.
    pub fn vectors(&self) -> &[f64] {
        (*self.vectors).as_ref()
    }

    /// The eigenvector that belongs to eigenvalue `a`.
    pub fn vector(&self, a: usize) -> &[f64] {
        &self.vectors()[a * self.nodes()..(a + 1) * self.nodes()]
    }

    /// What was really done.
    pub fn report(&self) -> &SpectrumReport {
        &self.report
    }

    /// The positions of the `k` pairs nearest to `mu`, and of the whole of every group they touch.
    ///
    /// The window is every pair no farther from mu than the k-th nearest (ties within [`GROUP_TOLERANCE`]
    /// included), widened until no group of equal eigenvalues is cut; so it may hold more than `k`. `k` above
    /// the number of pairs gives all of them.
    pub fn nearest(&self, mu: f64, k: usize) -> Range<usize> {
        groups::nearest(&self.eigenvalues, mu, k)
    }

    /// How far the eigenvalues of L below a range of pairs are at least: a lower bound on the distance from
    /// the computed `eigenvalues()[range.start]` to the next eigenvalue of L below it.
    ///
    /// Proved as far as arithmetic in double precision proves anything: the neighbour is known from its own
    /// pair (its eigenvalue lies within the norm of all residuals), or no eigenvalue lies between the window
    /// and a shift at which they were counted. Infinite where no eigenvalue lies below; `None` where nothing
    /// is proved, because the factorisation that counts did not fit in memory.
    ///
    /// # Panics
    /// If the range is empty or reaches beyond the pairs.
    pub fn gap_below(&self, range: &Range<usize>) -> Option<f64> {
        let edge = self.eigenvalues[range.clone()][0];
        let [low, _] = self.report.interval?;
        let next = range.start.checked_sub(1).map_or(low, |at| self.eigenvalues[at] + self.uncertainty());
        Some(if next == f64::MIN { f64::INFINITY } else { (edge - next).max(0.0) })
    }

    /// The same above: a lower bound on the distance from the last eigenvalue of the range to the next one of
    /// L.
    ///
    /// # Panics
    /// As [`Spectrum::gap_below`].
    pub fn gap_above(&self, range: &Range<usize>) -> Option<f64> {
        let edge = *self.eigenvalues[range.clone()].last().expect("a range of at least one pair");
        let [_, high] = self.report.interval?;
        let next = self.eigenvalues.get(range.end).map_or(high, |value| value - self.uncertainty());
        Some(if next == f64::MAX { f64::INFINITY } else { (next - edge).max(0.0) })
    }

    /// How far a computed eigenvalue can lie from the true one: the norm of all residuals, and rounding.
    pub(crate) fn uncertainty(&self) -> f64 {
        self.report.residual_max * (self.pairs() as f64).sqrt() + 4.0 * f64::EPSILON
    }

    /// The pairs in a range of positions as a spectrum of their own; the vectors are copied.
    pub fn restrict(&self, range: Range<usize>) -> Self {
        let nodes = self.nodes();
        let vectors = self.vectors()[range.start * nodes..range.end * nodes].to_vec();
        let eigenvalues = self.eigenvalues[range.clone()].to_vec();
        let interval =
            self.report.interval.map(|interval| groups::narrow(interval, &self.eigenvalues, &range));
        let report = SpectrumReport { pairs: eigenvalues.len(), interval, ..(*self.report).clone() };
        Self::from_parts(self.origin, eigenvalues, Arc::new(vectors), report)
    }
}

impl std::fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spectrum")
            .field("origin", &self.origin)
            .field("pairs", &self.pairs())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
