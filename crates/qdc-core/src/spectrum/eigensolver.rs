//! The builder: what to compute, by which route, within which limits.

use std::sync::Arc;

use super::assemble::{Found, assemble};
use super::block::{Outcome, Wanted, everything};
use super::groups::clamp;
use super::plan::{Cost, Method, SMALL, Survey};
use super::structure::{Block, Structure};
use super::{Origin, Pairs, Spectrum, SpectrumReport, filter, lanczos, lobpcg};
use crate::kernel::Accelerator;
use crate::{Error, Route, Transition, Watch};

/// Computes eigenpairs of L.
///
/// ```
/// use qdc_core::spectrum::{Eigensolver, Pairs};
/// use qdc_core::{EdgeRule, Graph, Transition, Watch};
///
/// let path = Graph::from_edges(5, (0..4).map(|i| (i, i + 1)), EdgeRule::Undirected)?;
/// let solver = Eigensolver::new().pairs(Pairs::Nearest(2)).around(0.0);
/// let near_zero = solver.solve(&Transition::new(&path), &Watch::silent())?;
/// assert_eq!(near_zero.pairs(), 2);
/// assert!(near_zero.report().residual_max < 1e-12);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Eigensolver {
    pairs: Pairs,
    around: f64,
    solver: Route,
    method: Option<Method>,
    memory: Option<u64>,
    accelerator: Option<Arc<dyn Accelerator>>,
    seed: u64,
}

impl Default for Eigensolver {
    fn default() -> Self {
        Self {
            pairs: Pairs::All,
            around: 0.5,
            solver: Route::Auto,
            method: None,
            memory: None,
            accelerator: None,
            seed: 0,
        }
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

    /// The mu of `Pairs::Nearest`: any finite number. Beyond [-1, 1] the pairs at that end of the spectrum
    /// are the nearest.
    pub fn around(mut self, mu: f64) -> Self {
        self.around = mu;
        self
    }

    /// The route.
    pub fn solver(mut self, solver: Route) -> Self {
        self.solver = solver;
        self
    }

    /// The method, where `auto` or `window` would choose by the estimate: to compare methods. Blocks that are
    /// small, or of which most pairs are wanted, are decomposed in full whatever is said here.
    pub fn method(mut self, method: Method) -> Self {
        self.method = Some(method);
        self
    }

    /// Bytes the work may take; `None`: no limit.
    pub fn memory(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory = bytes.into();
        self
    }

    /// A device for full decompositions that are worth it; `None`: the CPU does them.
    pub fn accelerator(mut self, device: impl Into<Option<Arc<dyn Accelerator>>>) -> Self {
        self.accelerator = device.into();
        self
    }

    /// The device, if it decomposes matrices of so many rows.
    fn device(&self, rows: usize) -> Option<&Arc<dyn Accelerator>> {
        self.accelerator.as_ref().filter(|device| device.decomposes(rows))
    }

    /// The seed of the starting vectors of the iterative routes.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Computes the pairs: [`Eigensolver::prepare`], then [`Prepared::solve`].
    ///
    /// # Errors
    /// An iterative route that does not converge, or finds fewer pairs than were counted, is an
    /// [`Error::Unconverged`], which carries what it has. [`Error::Memory`] where the route asked for does
    /// not fit.
    pub fn solve(&self, transition: &Transition, watch: &Watch) -> Result<Spectrum, Error> {
        self.prepare(transition, watch)?.solve(transition, watch)
    }

    /// Decides how the pairs will be computed and what that takes, from the structure of L, an estimate of
    /// its density of eigenvalues and the fill of a factorisation. The same call decides the same way.
    ///
    /// # Errors
    /// [`Error::Parameter`] for a mu that is not finite, [`Error::NoEigenpairs`] for a route without
    /// eigenpairs, [`Error::Memory`] where the full decomposition is the only way and does not fit.
    pub fn prepare(&self, transition: &Transition, watch: &Watch) -> Result<Prepared, Error> {
        if !self.around.is_finite() {
            return Err(Error::Parameter { name: "mu", value: self.around, requirement: "finite" });
        }
        if !matches!(self.solver, Route::Auto | Route::Dense | Route::Lobpcg | Route::Window) {
            return Err(Error::NoEigenpairs);
        }
        let structure = Structure::new(transition);
        let window = match self.pairs {
            Pairs::Nearest(count) if count < structure.nodes() => Some((clamp(self.around), count)),
            _ => None,
        };
        let mut ways = Vec::with_capacity(structure.blocks().len());
        for block in structure.blocks() {
            ways.push(self.way(block, &structure, window, watch)?);
        }
        let prepared =
            Prepared { solver: self.clone(), origin: Origin::of(transition), structure, window, ways };
        prepared.check_memory()?;
        Ok(prepared)
    }

    /// The way to the pairs of one block.
    fn way(
        &self,
        block: &Block,
        structure: &Structure,
        window: Option<(f64, usize)>,
        watch: &Watch,
    ) -> Result<Way, Error> {
        let rows = block.matrix.rows();
        let cost = match self.device(rows) {
            Some(_) => Cost::dense_on_a_device(rows),
            None => Cost::dense(rows),
        };
        let full = Way { cost, survey: None };
        let Some((mu, count)) = window.filter(|_| rows > SMALL && self.solver != Route::Dense) else {
            return Ok(full);
        };
        let known = twin_distances(structure, mu);
        let device = self.device(rows).cloned();
        let wanted = Wanted { mu, count, known, seed: self.seed, memory: self.memory, device };
        let survey = Survey::new(&block.matrix, &wanted, watch)?;
        let mut costs = match self.solver {
            Route::Lobpcg => vec![survey.lobpcg(&block.matrix, &wanted)],
            _ => [Some(survey.filter(&block.matrix, &wanted)), survey.shift_invert(&block.matrix)]
                .into_iter()
                .flatten()
                .collect(),
        };
        // Where most pairs are wanted nothing is left to iterate for.
        if 3 * survey.count > rows {
            return Ok(full);
        }
        if self.solver == Route::Auto {
            costs.push(full.cost);
        }
        if let Some(method) = self.method {
            costs.retain(|cost| cost.method == method);
        }
        costs.retain(|cost| self.memory.is_none_or(|limit| cost.memory <= limit));
        let cheapest = costs.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds));
        Ok(cheapest.map_or(full, |cost| Way { cost, survey: Some(survey) }))
    }
}

/// How one block will be done.
struct Way {
    cost: Cost,
    /// What the decision rests on; absent where the block is decomposed in full anyway.
    survey: Option<Survey>,
}

/// Eigenpairs about to be computed: the way is chosen, nothing expensive has been done.
pub struct Prepared {
    solver: Eigensolver,
    origin: Origin,
    structure: Structure,
    /// mu, clamped to the spectrum, and the number of pairs; `None` for all.
    window: Option<(f64, usize)>,
    /// One for each block.
    ways: Vec<Way>,
}

impl Prepared {
    /// The method that takes most of the work.
    pub fn method(&self) -> Method {
        let largest = self.ways.iter().max_by(|a, b| a.cost.seconds.total_cmp(&b.cost.seconds));
        largest.map_or(Method::Dense, |way| way.cost.method)
    }

    /// The route that method belongs to; never `auto`.
    pub fn route(&self) -> Route {
        match self.method() {
            Method::Dense => Route::Dense,
            Method::Filter | Method::ShiftInvert => Route::Window,
            Method::Lobpcg => Route::Lobpcg,
        }
    }

    /// An estimate of the multiplications and additions.
    pub fn flops(&self) -> f64 {
        self.ways.iter().map(|way| way.cost.flops).sum()
    }

    /// An estimate of the seconds on one core of the machine that `bench/spectrum` was recorded on.
    pub fn seconds(&self) -> f64 {
        self.ways.iter().map(|way| way.cost.seconds).sum()
    }

    /// Bytes of working memory, with the pairs that will be kept.
    pub fn memory(&self) -> u64 {
        let nodes = self.structure.nodes() as u64;
        let kept = 8 * nodes * self.window.map_or(nodes, |(_, count)| count as u64);
        let full = |way: &&Way| way.cost.method == Method::Dense;
        let blocks = self.structure.blocks().iter().zip(&self.ways);
        let held: u64 = blocks
            .filter(|(_, way)| full(way))
            .map(|(block, _)| 8 * (block.matrix.rows() as u64).pow(2))
            .sum();
        let largest = self.ways.iter().map(|way| way.cost.memory).max().unwrap_or(0);
        largest.max(held + kept)
    }

    /// Why that method.
    pub fn reason(&self) -> &'static str {
        match (self.solver.solver, self.window, self.method()) {
            (Route::Dense, ..) => "as asked",
            (_, None, _) => "all pairs are wanted",
            (Route::Auto, _, Method::Dense) => "at this size a full decomposition is the fastest way",
            (_, _, Method::Dense) => "the blocks are small, or most pairs are wanted",
            (Route::Lobpcg, ..) => "as asked",
            (_, _, Method::Filter) => "the estimate is least for a polynomial filter",
            (_, _, Method::ShiftInvert) => "the estimate is least for a factorisation and few solves",
            (_, _, Method::Lobpcg) => "as asked",
        }
    }

    /// The device that does most of the work, if one does.
    fn device(&self) -> Option<&Arc<dyn Accelerator>> {
        let largest = self.structure.blocks().iter().map(|block| block.matrix.rows()).max()?;
        self.solver.device(largest).filter(|_| self.method() == Method::Dense)
    }

    /// [`Prepared::reason`], and where the work is done if that is not the CPU.
    fn account(&self) -> String {
        let device = self.device().map_or(String::new(), |device| format!(", on {}", device.name()));
        format!("{}{device}", self.reason())
    }

    fn check_memory(&self) -> Result<(), Error> {
        let (needed, Some(limit)) = (self.memory(), self.solver.memory) else { return Ok(()) };
        if self.method() == Method::Dense && needed > limit {
            return Err(Error::Memory { what: "the full eigendecomposition", needed, limit });
        }
        Ok(())
    }

    /// Computes the pairs.
    ///
    /// # Errors
    /// As [`Eigensolver::solve`]; [`Error::ForeignSpectrum`] if `transition` is not the one that was
    /// prepared.
    pub fn solve(&self, transition: &Transition, watch: &Watch) -> Result<Spectrum, Error> {
        self.origin.check(transition)?;
        let method = self.method();
        watch.note(&format!("eigenpairs by {method}: {}", self.account()));
        let blocks = self.structure.blocks();
        let phase = watch.phase("eigenpairs", blocks.len() as u64);
        let mut known = self.window.map_or(Vec::new(), |(mu, _)| twin_distances(&self.structure, mu));
        let mut outcomes = Vec::with_capacity(blocks.len());
        // The small blocks first: what they hold the large ones need not reach for.
        for (block, way) in blocks.iter().zip(&self.ways).rev() {
            let outcome = self.block(block, way, &mut known, watch)?;
            outcomes.push(outcome);
            phase.advance(1)?;
        }
        outcomes.reverse();
        self.finish(transition, outcomes, watch)
    }

    fn block(&self, block: &Block, way: &Way, known: &mut Vec<f64>, watch: &Watch) -> Result<Outcome, Error> {
        let (mu, count) = self.window.unwrap_or((0.0, self.structure.nodes()));
        known.sort_by(f64::total_cmp);
        let wanted = Wanted {
            mu,
            count,
            known: std::mem::take(known),
            seed: self.solver.seed,
            memory: self.solver.memory,
            device: self.solver.device(block.matrix.rows()).cloned(),
        };
        let matrix = &block.matrix;
        let outcome = match (way.cost.method, &way.survey) {
            (Method::Filter, Some(survey)) => filter::solve(matrix, &wanted, survey, watch)?,
            (Method::ShiftInvert, Some(survey)) => lanczos::solve(matrix, &wanted, survey, watch)?,
            (Method::Lobpcg, Some(survey)) => lobpcg::solve(matrix, &wanted, survey, watch)?,
            _ => everything(matrix, &wanted, watch)?,
        };
        *known = wanted.known;
        known.extend(outcome.found.values.iter().map(|value| (value - mu).abs()));
        Ok(outcome)
    }

    /// Puts the pieces together and says what was done; missing pairs become an error that carries the rest.
    fn finish(
        &self,
        transition: &Transition,
        outcomes: Vec<Outcome>,
        watch: &Watch,
    ) -> Result<Spectrum, Error> {
        let effort = Effort::of(&outcomes, self.window.map_or(0.0, |(mu, _)| mu));
        let found: Vec<Found> = outcomes.into_iter().map(|outcome| outcome.found).collect();
        let assembled = assemble(transition, &self.structure, &found, self.window, effort.interval, watch)?;
        let pairs = assembled.eigenvalues.len();
        let method = self.method();
        let report = SpectrumReport {
            pairs,
            requested: self.solver.pairs,
            around: self.window.map(|_| self.solver.around),
            solver: self.route(),
            method,
            reason: self.account(),
            residual_max: assembled.residual_max,
            orthogonality: assembled.orthogonality,
            operator_applications: effort.applications,
            shift: self.window.map(|_| effort.shift),
            counted: Some(pairs + effort.missing),
            count_exact: effort.interval.is_some() || effort.failed,
            interval: assembled.interval,
            twin_pairs: self.structure.twin_pairs(),
            reduced_nodes: self.structure.reduced_nodes(),
        };
        let spectrum =
            Spectrum::from_parts(self.origin, assembled.eigenvalues, Arc::new(assembled.vectors), report);
        if effort.failed {
            let wanted = self.window.map_or(self.structure.nodes(), |(_, count)| count);
            let expected = (pairs + effort.missing).max(wanted);
            return Err(Error::Unconverged { partial: Box::new(spectrum), found: pairs, expected });
        }
        Ok(spectrum)
    }
}

/// The distances of the twins' eigenvalues from mu.
fn twin_distances(structure: &Structure, mu: f64) -> Vec<f64> {
    let twins = structure.twins().iter();
    let mut distances: Vec<f64> = twins
        .flat_map(|twins| std::iter::repeat_n((twins.eigenvalue - mu).abs(), twins.members.len() - 1))
        .collect();
    distances.sort_by(f64::total_cmp);
    distances
}

/// What the blocks took together.
struct Effort {
    applications: u64,
    shift: f64,
    missing: usize,
    /// The open interval in which nothing is missing, where every block proved its own.
    interval: Option<[f64; 2]>,
    failed: bool,
}

impl Effort {
    fn of(outcomes: &[Outcome], mu: f64) -> Self {
        let common = |a: [f64; 2], b: [f64; 2]| [a[0].max(b[0]), a[1].min(b[1])];
        let iterated = outcomes.iter().find(|outcome| outcome.applications > 0);
        Self {
            applications: outcomes.iter().map(|outcome| outcome.applications).sum(),
            shift: iterated.map_or(mu, |outcome| outcome.shift),
            missing: outcomes.iter().filter(|outcome| !outcome.converged).map(Outcome::missing).sum(),
            interval: outcomes
                .iter()
                .try_fold([f64::MIN, f64::MAX], |all, outcome| outcome.interval.map(|own| common(all, own))),
            failed: outcomes.iter().any(|outcome| !outcome.converged),
        }
    }
}
