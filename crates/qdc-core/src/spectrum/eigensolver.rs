//! The builder: what to compute, by which route, within which limits.

use std::sync::Arc;

use super::assemble::{Found, assemble};
use super::folded::{Outcome, Wanted};
use super::structure::Structure;
use super::{Pairs, Spectrum, SpectrumReport, dense, lobpcg, window};
use crate::{Error, Route, Transition, Watch};

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
    solver: Route,
    memory: Option<u64>,
    seed: u64,
}

impl Default for Eigensolver {
    fn default() -> Self {
        Self { pairs: Pairs::All, around: 0.5, solver: Route::Auto, memory: None, seed: 0 }
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
    pub fn solver(mut self, solver: Route) -> Self {
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
        let task = Task { transition, structure: &structure, solver, reason };
        match (solver, self.wanted(&structure)) {
            (Route::Dense, _) | (_, Pairs::All) => self.dense(&task, watch),
            (_, Pairs::Nearest(count)) => self.iterative(&task, count, watch),
        }
    }

    /// The pairs asked for, clamped to what there is.
    fn wanted(&self, structure: &Structure) -> Pairs {
        match self.pairs {
            Pairs::Nearest(count) if count < structure.nodes() => Pairs::Nearest(count),
            _ => Pairs::All,
        }
    }

    /// The route to try, and why; `auto` goes on to decide block by block.
    fn route(&self, structure: &Structure) -> Result<(Route, &'static str), Error> {
        match (self.solver, self.wanted(structure)) {
            (Route::Chebyshev | Route::Elimination, _) => Err(Error::NoEigenpairs),
            (Route::Auto, Pairs::All) => Ok((Route::Dense, "all pairs are wanted")),
            (Route::Window | Route::Lobpcg, Pairs::All) => {
                Ok((Route::Dense, "all pairs are wanted, which leaves nothing to iterate for"))
            }
            (solver, _) => Ok((solver, "as asked")),
        }
    }

    fn dense(&self, task: &Task<'_>, watch: &Watch) -> Result<Spectrum, Error> {
        self.check_dense_memory(task.structure)?;
        let phase = watch.phase("eigendecomposition", task.structure.blocks().len() as u64);
        let mut found = Vec::with_capacity(task.structure.blocks().len());
        for block in task.structure.blocks() {
            let (values, vectors) = dense::decompose(&block.matrix, watch)?;
            found.push(Found { values, vectors });
            phase.advance(1)?;
        }
        let effort = Effort { shift: self.around, ..Effort::default() };
        self.finish(task, &found, &effort, watch)
    }

    /// Small blocks in full, then the large ones, each no farther than the pairs already known make necessary.
    fn iterative(&self, task: &Task<'_>, count: usize, watch: &Watch) -> Result<Spectrum, Error> {
        let structure = task.structure;
        let mut known: Vec<f64> = structure
            .twins()
            .iter()
            .flat_map(|twins| {
                std::iter::repeat_n((twins.eigenvalue - self.around).abs(), twins.members.len() - 1)
            })
            .collect();
        let mut effort = Effort { shift: self.around, ..Effort::default() };
        let mut found = Vec::with_capacity(structure.blocks().len());
        for block in structure.blocks().iter().rev() {
            known.sort_by(f64::total_cmp);
            let wanted =
                Wanted { mu: self.around, count, known: known.clone(), seed: self.seed, memory: self.memory };
            let outcome = match task.solver {
                Route::Lobpcg => lobpcg::solve(&block.matrix, &wanted, watch)?,
                solver => window::solve(&block.matrix, &wanted, solver == Route::Auto, watch)?,
            };
            effort.add(&outcome);
            known.extend(outcome.found.values.iter().map(|value| (value - self.around).abs()));
            found.push(outcome.found);
        }
        found.reverse();
        self.finish(task, &found, &effort, watch)
    }

    /// Puts the pieces together and says what was done; missing pairs become an error that carries the rest.
    fn finish(
        &self,
        task: &Task<'_>,
        found: &[Found],
        effort: &Effort,
        watch: &Watch,
    ) -> Result<Spectrum, Error> {
        let window = match self.wanted(task.structure) {
            Pairs::All => None,
            Pairs::Nearest(count) => Some((self.around, count)),
        };
        let (solver, reason) = match (task.solver, effort.applications) {
            (Route::Auto, 0) => (Route::Dense, "at this size a full decomposition is the fastest way"),
            (Route::Auto, _) => (Route::Window, "faster than a full decomposition at this size"),
            (solver, _) => (solver, task.reason),
        };
        watch.note(&format!("eigenpairs by {solver}: {reason}"));
        let outcome = assemble(task.transition, task.structure, found, window, watch)?;
        let pairs = outcome.eigenvalues.len();
        let interval = outcome.interval(window.is_none());
        let report = SpectrumReport {
            pairs,
            requested: self.pairs,
            around: window.map(|(mu, _)| mu),
            solver,
            reason: reason.into(),
            residual_max: outcome.residual_max,
            orthogonality: outcome.orthogonality,
            operator_applications: effort.applications,
            shift: window.map(|_| effort.shift),
            counted: Some(pairs + effort.missing),
            count_exact: !effort.estimated,
            interval,
            twin_pairs: task.structure.twin_pairs(),
            reduced_nodes: task.structure.reduced_nodes(),
        };
        let nodes = task.structure.nodes();
        let spectrum = Spectrum::from_parts(nodes, outcome.eigenvalues, Arc::new(outcome.vectors), report);
        if effort.failed {
            let wanted = window.map_or(nodes, |(_, count)| count);
            let expected = (pairs + effort.missing).max(wanted);
            return Err(Error::Unconverged { partial: Box::new(spectrum), found: pairs, expected });
        }
        Ok(spectrum)
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

/// What is to be done, once the route is known.
struct Task<'a> {
    transition: &'a Transition,
    structure: &'a Structure,
    solver: Route,
    reason: &'static str,
}

/// What the blocks took together.
#[derive(Default)]
struct Effort {
    applications: u64,
    shift: f64,
    missing: usize,
    estimated: bool,
    failed: bool,
}

impl Effort {
    fn add(&mut self, outcome: &Outcome) {
        self.applications += outcome.applications;
        if outcome.applications > 0 {
            self.shift = outcome.shift;
        }
        self.estimated |= !outcome.exact;
        self.failed |= !outcome.converged;
        if let Some(counted) = outcome.counted.filter(|_| outcome.exact || !outcome.converged) {
            self.missing += counted.saturating_sub(outcome.found.values.len());
        }
    }
}
