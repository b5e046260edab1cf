//! The spectrum of the transition matrix: pairs (E_a, phi_a) with L phi_a = E_a phi_a, all of them or those
//! nearest to mu.
//!
//! [`Eigensolver`] computes a [`Spectrum`]. Every route goes through [`structure`]: vertices with the same
//! neighbourhood give eigenpairs that can be written down, components give independent blocks, and only what
//! remains is handed to an algorithm: `dense`, `window` or `lobpcg`.

mod assemble;
mod dense;
mod density;
mod eigensolver;
mod folded;
mod groups;
mod inertia;
mod lobpcg;
mod options;
mod panels;
mod ranks;
mod report;
pub mod structure;
mod window;

use std::ops::Range;
use std::sync::Arc;

pub use dense::memory as dense_memory;
pub use eigensolver::Eigensolver;
pub use groups::{GROUP_TOLERANCE, groups};
pub use options::Pairs;
pub use ranks::rank_windows;
pub use report::SpectrumReport;

/// Eigenvectors, column after column; owned, or mapped from a file.
pub type Vectors = Arc<dyn AsRef<[f64]> + Send + Sync>;

/// Eigenpairs of L, eigenvalues ascending, eigenvectors orthonormal.
///
/// Signs follow a rule: of the entries that are largest in magnitude (within one part in a million) the first is
/// positive. Inside a group of equal eigenvalues the basis is the solver's choice; only sums over whole groups
/// mean anything, so [`Spectrum::nearest`] never cuts one. A clone shares the vectors.
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
    nodes: usize,
    eigenvalues: Vec<f64>,
    vectors: Vectors,
    report: SpectrumReport,
}

impl Spectrum {
    /// Joins eigenvalues (ascending) and eigenvectors (column after column) computed elsewhere.
    ///
    /// # Panics
    /// If the lengths do not match or the eigenvalues do not ascend.
    pub fn from_parts(nodes: usize, eigenvalues: Vec<f64>, vectors: Vectors, report: SpectrumReport) -> Self {
        assert_eq!((*vectors).as_ref().len(), nodes * eigenvalues.len(), "one vector for each eigenvalue");
        assert!(eigenvalues.is_sorted(), "eigenvalues must ascend");
        Self { nodes, eigenvalues, vectors, report }
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of eigenpairs held.
    pub fn pairs(&self) -> usize {
        self.eigenvalues.len()
    }

    /// Whether every eigenpair is here.
    pub fn is_complete(&self) -> bool {
        self.pairs() == self.nodes
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
        &self.vectors()[a * self.nodes..(a + 1) * self.nodes]
    }

    /// What was really done.
    pub fn report(&self) -> &SpectrumReport {
        &self.report
    }

    /// The positions of the `k` pairs nearest to `mu`, and of the whole of every group they touch.
    ///
    /// The window is every pair no farther from mu than the k-th nearest (ties within [`GROUP_TOLERANCE`]
    /// included), widened until no group of equal eigenvalues is cut; so it may hold more than `k`. `k` above the
    /// number of pairs gives all of them.
    pub fn nearest(&self, mu: f64, k: usize) -> Range<usize> {
        groups::nearest(&self.eigenvalues, mu, k)
    }

    /// The pairs in a range of positions as a spectrum of their own; the vectors are copied.
    pub fn restrict(&self, range: Range<usize>) -> Self {
        let vectors = self.vectors()[range.start * self.nodes..range.end * self.nodes].to_vec();
        let eigenvalues = self.eigenvalues[range].to_vec();
        let report = SpectrumReport { pairs: eigenvalues.len(), ..self.report.clone() };
        Self::from_parts(self.nodes, eigenvalues, Arc::new(vectors), report)
    }
}

impl std::fmt::Debug for Spectrum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Spectrum")
            .field("nodes", &self.nodes)
            .field("pairs", &self.pairs())
            .field("report", &self.report)
            .finish_non_exhaustive()
    }
}
