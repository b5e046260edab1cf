//! The builder: what to compute, by which route, within which limits.

use super::assemble::{Found, assemble};
use super::structure::Structure;
use super::{Pairs, Solver, Spectrum, SpectrumReport, dense};
use crate::{Error, Transition, Watch};

/// Computes eigenpairs of L.
///
/// ```
/// use qdc_core::spectrum::{Eigensolver, Pairs};
/// use qdc_core::{EdgeRule, Graph, Transition, Watch};
///
/// let path = Graph::from_edges(5, (0..4).map(|i| (i, i + 1)), EdgeRule::Undirected)?;
/// let near_zero =
///     Eigensolver::new().pairs(Pairs::Nearest(2)).around(0.0).solve(&Transition::new(&path), &Watch::silent())?;
/// assert_eq!(near_zero.pairs(), 2);
/// assert!(near_zero.report().residual_max < 1e-12);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Eigensolver {
    pairs: Pairs,
    around: f64,
    solver: Solver,
    memory: Option<u64>,
    seed: u64,
}

impl Default for Eigensolver {
    fn default() -> Self {
        Self { pairs: Pairs::All, around: 0.5, solver: Solver::Auto, memory: None, seed: 0 }
    }
}

impl Eigensolver {
    /// All pairs, route picked automatically.
    pub fn new() -> Self {
        Self::default()
    }

    /// Which pairs; `Nearest(k)` with k above the number of vertices means all.
    pub fn pairs(mut self, pairs: Pairs) -> Self {
        self.pairs = pairs;
        self
    }

    /// The mu of `Pairs::Nearest`.
    pub fn around(mut self, mu: f64) -> Self {
        self.around = mu;
        self
    }

    /// The route.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// Bytes the work may take; `None` does not ask.
    pub fn memory(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory = bytes.into();
        self
    }

    /// The seed of the starting vectors of the iterative routes.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Computes the pairs.
    ///
    /// An iterative route that does not converge, or finds fewer pairs than were counted, is an
    /// [`Error::Unconverged`], which carries what it has.
    pub fn solve(&self, transition: &Transition, watch: &Watch) -> Result<Spectrum, Error> {
        if !self.around.is_finite() {
            return Err(Error::Parameter { name: "mu", value: self.around, requirement: "finite" });
        }
        let structure = Structure::new(transition);
        let (solver, reason) = self.route(&structure)?;
        watch.note(&format!("eigenpairs by {solver}: {reason}"));
        self.dense(transition, &structure, reason, watch)
    }

    /// The pairs asked for, clamped to what there is.
    fn wanted(&self, structure: &Structure) -> Pairs {
        match self.pairs {
            Pairs::Nearest(count) if count < structure.nodes() => Pairs::Nearest(count),
            _ => Pairs::All,
        }
    }

    /// The route really taken, and why.
    fn route(&self, structure: &Structure) -> Result<(Solver, String), Error> {
        match self.solver {
            Solver::Chebyshev => Err(Error::NoEigenpairs),
            Solver::Auto => Ok((Solver::Dense, format!("{} vertices", structure.nodes()))),
            _ => Ok((Solver::Dense, "as asked".into())),
        }
    }

    fn dense(
        &self,
        transition: &Transition,
        structure: &Structure,
        reason: String,
        watch: &Watch,
    ) -> Result<Spectrum, Error> {
        self.check_dense_memory(structure)?;
        let phase = watch.phase("eigendecomposition", structure.blocks().len() as u64);
        let mut found = Vec::with_capacity(structure.blocks().len());
        for block in structure.blocks() {
            let (values, vectors) = dense::decompose(&block.matrix, watch)?;
            found.push(Found { values, vectors });
            phase.advance(1)?;
        }
        let window = match self.wanted(structure) {
            Pairs::All => None,
            Pairs::Nearest(count) => Some((self.around, count)),
        };
        let outcome = assemble(transition, structure, &found, window, watch)?;
        let report = SpectrumReport {
            pairs: outcome.eigenvalues.len(),
            requested: self.pairs,
            around: window.map(|(mu, _)| mu),
            solver: Solver::Dense,
            reason,
            residual_max: outcome.residual_max,
            orthogonality: outcome.orthogonality,
            operator_applications: 0,
            shift: window.map(|(mu, _)| mu),
            counted: Some(outcome.eigenvalues.len()),
            count_exact: true,
            interval: outcome.interval(window.is_none()),
            twin_pairs: structure.twin_pairs(),
            reduced_nodes: structure.reduced_nodes(),
        };
        Ok(Spectrum::from_parts(
            structure.nodes(),
            outcome.eigenvalues,
            std::sync::Arc::new(outcome.vectors),
            report,
        ))
    }

    fn check_dense_memory(&self, structure: &Structure) -> Result<(), Error> {
        let Some(limit) = self.memory else { return Ok(()) };
        let nodes = structure.nodes() as u64;
        let kept = match self.wanted(structure) {
            Pairs::All => 8 * nodes * nodes,
            Pairs::Nearest(count) => 8 * nodes * count as u64,
        };
        let blocks: u64 =
            structure.blocks().iter().map(|block| 8 * (block.matrix.rows() as u64).pow(2)).sum();
        let largest = structure.blocks().first().map_or(0, |block| dense::memory(block.matrix.rows()));
        let needed = largest.max(blocks + kept);
        if needed > limit {
            return Err(Error::Memory { what: "the full eigendecomposition", needed, limit });
        }
        Ok(())
    }
}
