//! A job: a recipe prepared once for a graph and the resources at hand. It plans, builds, and makes row
//! ranges.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use super::route::{Account, Problem, RowMaker};
use super::sink::Sink;
use super::{
    BuiltKernel, Plan, Recipe, ResidentKernel, Resources, Route, Shard, Spectra, finish, local, shard,
};
use crate::hash::ContentHash;
use crate::sparsify::{Row, Rule};
use crate::{Error, Graph, Pairs, Remedy, Sparsify, Transition, Watch, defaults};

/// Bytes of a kept entry: column and value, twice, as rows are gathered and then joined.
const BYTES_PER_ENTRY: u64 = 2 * 12;
/// Rows made to learn how many entries a threshold keeps, and what is added to their mean.
const SAMPLED_ROWS: usize = 256;
const STANDARD_ERRORS: f64 = 4.0;
/// Operations that one thread does in a second, about, for what is told and never for what is decided: on panels
/// within the cache, on those of more vertices than this, and by the local route.
const PACE: f64 = 1e10;
const CACHED_VERTICES: usize = 40_000;
const UNCACHED_PACE: f64 = 1.5e9;
const LOCAL_PACE: f64 = 4e9;

impl Recipe {
    /// Makes the recipe ready for a graph: checks it, builds L, chooses the route and prepares it.
    ///
    /// Cheap beside building: L is made and twins are found, in time proportional to the edges; for PageRank
    /// the elimination is tried, up to a quarter of the time that another route would take. Eigenpairs are
    /// looked up here and computed when the first row is asked for.
    ///
    /// # Errors
    /// A parameter out of range; a route that cannot make this kernel; eigenpairs given that are not of this
    /// graph.
    pub fn prepare(&self, graph: &Graph, resources: &Resources, watch: &Watch) -> Result<Job, Error> {
        self.check()?;
        let transition = Arc::new(Transition::with_self_loop(graph, self.self_loop)?);
        let problem = Problem {
            recipe: self,
            resources,
            transition,
            route: resources.route,
            rival: None,
            classes: Arc::new(OnceLock::new()),
        };
        let maker = resources.route.offer()(&problem, watch)?;
        Ok(Job::boxed(self.clone(), graph, maker, resources.memory))
    }
}

/// The route that `auto` takes: eigenpairs for a kernel of some pairs or of pairs given; else the one of
/// fewest operations among those that can do it, the first of equals.
pub(super) fn cheapest(problem: &Problem<'_>, watch: &Watch) -> Result<Box<dyn RowMaker>, Error> {
    let given = matches!(problem.resources.spectra, Spectra::Given(_));
    if given || problem.recipe.pairs != Pairs::All {
        return super::eigenpairs::offer(problem, watch);
    }
    let mut best: Option<(f64, Box<dyn RowMaker>)> = None;
    let mut refusal = None;
    for &route in Route::ALL.iter().filter(|&&route| route != Route::Auto) {
        let rival = best.as_ref().map_or(f64::INFINITY, |best| best.0);
        let candidate = Problem {
            route,
            rival: Some(rival),
            transition: Arc::clone(&problem.transition),
            classes: Arc::clone(&problem.classes),
            ..*problem
        };
        match route.offer()(&candidate, watch) {
            Ok(maker) if maker.plan().flops < rival => best = Some((maker.plan().flops, maker)),
            Ok(_) => {}
            Err(error) if error.is_about_the_route() => refusal = refusal.or(Some(error)),
            Err(error) => return Err(error),
        }
    }
    match (best, refusal) {
        (Some((flops, maker)), _) => {
            advise(problem, flops, watch);
            Ok(maker)
        }
        (None, refusal) => Err(refusal.unwrap_or_else(|| problem.unsuited("no route can make this kernel"))),
    }
}

/// Where an exact kernel takes more than an hour, says what one of a stated accuracy would take.
fn advise(problem: &Problem<'_>, flops: f64, watch: &Watch) {
    let pace = if problem.transition.nodes() > CACHED_VERTICES { UNCACHED_PACE } else { PACE };
    let threads = rayon::current_num_threads() as f64;
    let hours = flops / (pace * threads) / 3600.0;
    let on_device = problem.resources.accelerator.as_ref().is_some_and(|device| device.takes(flops));
    if hours < 1.0 || on_device || problem.recipe.accuracy.is_some() {
        return;
    }
    if let Some(local) = local::estimate(problem, defaults::ACCURACY).filter(|&local| local < flops) {
        let minutes = (local / (LOCAL_PACE * threads) / 60.0).ceil();
        let message = format!(
            "this takes about {hours:.0} hours; the large entries alone, right to about {:e}, take about {minutes:.0} \
             minutes",
            defaults::ACCURACY
        );
        watch.advise(&message, Remedy::LargeEntries);
    }
}

/// A recipe prepared for a graph.
///
/// ```
/// use qdc_core::{EdgeRule, Filter, Graph, Recipe, Resources, Route, Watch};
///
/// let ring = Graph::from_edges(400, (0..400).map(|i| (i, (i + 1) % 400)), EdgeRule::Undirected)?;
/// let watch = Watch::silent();
/// let job = Recipe::new(Filter::heat(3.0)?).prepare(&ring, &Resources::default(), &watch)?;
/// assert_eq!(job.plan().route, Route::Chebyshev);
/// let part = job.rows(0..100, &watch)?;
/// assert_eq!(part.matrix.rows(), 100);
/// # Ok::<(), qdc_core::Error>(())
/// ```
pub struct Job {
    recipe: Recipe,
    graph: ContentHash,
    nodes: usize,
    memory: Option<u64>,
    maker: Box<dyn RowMaker>,
    plan: Plan,
}

impl Job {
    /// A job by a route of one's own.
    pub fn by(recipe: Recipe, graph: &Graph, maker: impl RowMaker + 'static) -> Self {
        Self::boxed(recipe, graph, Box::new(maker), None)
    }

    fn boxed(recipe: Recipe, graph: &Graph, maker: Box<dyn RowMaker>, memory: Option<u64>) -> Self {
        let nodes = graph.nodes();
        let mut plan = maker.plan();
        plan.memory = plan.memory.saturating_add(kept_bytes(recipe.sparsify, nodes, nodes));
        Self { recipe, graph: graph.hash(), nodes, memory, maker, plan }
    }

    /// The route, why it was chosen, and what it takes.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The kernel.
    ///
    /// # Errors
    /// More memory needed than allowed; a solver that did not converge; a filter that is not finite; a stop
    /// asked for.
    pub fn build(&self, watch: &Watch) -> Result<BuiltKernel, Error> {
        if let Some(kernel) = self.build_resident(watch)? {
            return kernel.read();
        }
        let every: Vec<u32> = (0..self.nodes as u32).collect();
        let rule = self.recipe.rule();
        let (rows, account) = self.make(rule, every, watch)?;
        let report = finish::report(&self.recipe, self.nodes, account);
        let sample = |rule: &Rule, rows: &[u32]| Ok(self.make(*rule, rows.to_vec(), watch)?.0);
        finish::finish(rule.assemble(rows), report, Some(sample))
    }

    /// The kernel where a device makes it whole and it can stay there: under a threshold, if all columns fit.
    /// `None`: [`Job::build`] makes it otherwise.
    ///
    /// # Errors
    /// As [`Job::build`].
    pub fn build_resident(&self, watch: &Watch) -> Result<Option<ResidentKernel>, Error> {
        self.check_memory(self.nodes)?;
        watch.note(&self.plan.to_string());
        if let Sparsify::TopK(_) = self.recipe.sparsify {
            return Ok(None); // what ties among the largest, and the union, are the CPU's to decide
        }
        let Some((matrix, account)) = self.maker.resident(&self.recipe, watch)? else { return Ok(None) };
        ResidentKernel::finish(matrix, finish::report(&self.recipe, self.nodes, account)).map(Some)
    }

    /// The rows `rows` of the kernel as each keeps them by its own values, before union and normalisation.
    ///
    /// [`Shard::merge`] joins shards into what [`Job::build`] gives, bit for bit. Eigenpairs and an
    /// elimination are computed whole for any rows; the polynomial route takes time for the rows asked for
    /// only.
    ///
    /// # Errors
    /// As [`Job::build`], and a range that is empty or reaches beyond the last row.
    pub fn rows(&self, rows: Range<usize>, watch: &Watch) -> Result<Shard, Error> {
        if rows.start >= rows.end || rows.end > self.nodes {
            return Err(Error::RowRange { start: rows.start, end: rows.end, nodes: self.nodes });
        }
        self.check_memory(rows.len())?;
        watch.note(&self.plan.to_string());
        let names: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
        let (kept, account) = self.make(Rule { upper: false, ..self.recipe.rule() }, names, watch)?;
        let report = finish::report(&self.recipe, self.nodes, account);
        shard::label(self.graph, self.recipe.clone(), rows, kept, report)
    }

    /// About how many entries the kernel will keep, and seldom fewer than that.
    ///
    /// Under a threshold 256 rows spread over the graph are made, and four standard errors of their mean are
    /// added; otherwise the rule itself says how many there can be. Takes the time of those rows, and for a
    /// route by eigenpairs that of the pairs, which [`Job::build`] then finds.
    ///
    /// # Errors
    /// As [`Job::build`].
    pub fn expected_entries(&self, watch: &Watch) -> Result<usize, Error> {
        let most = self.nodes.saturating_mul(self.recipe.sparsify.most_in_row(self.nodes));
        let count = SAMPLED_ROWS.min(self.nodes);
        if count == 0 || !matches!(self.recipe.sparsify, Sparsify::Epsilon(_)) {
            return Ok(most);
        }
        let names = (0..count).map(|at| (at * self.nodes / count) as u32).collect();
        let (rows, _) = self.make(Rule { upper: false, ..self.recipe.rule() }, names, watch)?;
        let lengths = || rows.iter().map(|row| row.columns.len() as f64);
        let mean = lengths().sum::<f64>() / count as f64;
        let spread = lengths().map(|length| (length - mean).powi(2)).sum::<f64>() / count as f64;
        // A sample of every row is the truth.
        let error = if count == self.nodes { 0.0 } else { (spread / count as f64).sqrt() };
        let expected = ((mean + STANDARD_ERRORS * error) * self.nodes as f64).ceil();
        Ok((expected as usize).min(most))
    }

    /// The bytes that the job may take; `None`: no limit.
    pub fn memory(&self) -> Option<u64> {
        self.memory
    }

    /// Whether [`Job::build`] stays within the memory allowed if so many entries are kept.
    pub fn fits(&self, entries: usize) -> bool {
        self.memory.is_none_or(|limit| self.memory_with(entries) <= limit)
    }

    /// The bytes that [`Job::build`] takes if so many entries are kept.
    pub fn memory_with(&self, entries: usize) -> u64 {
        let known = kept_bytes(self.recipe.sparsify, self.nodes, self.nodes);
        (self.plan.memory - known).saturating_add(bytes_of(entries))
    }

    fn make(&self, rule: Rule, rows: Vec<u32>, watch: &Watch) -> Result<(Vec<Row>, Account), Error> {
        let sink = Sink::new(rule, self.nodes, rows);
        let account = self.maker.make(&sink, watch)?;
        Ok((sink.into_rows(), account))
    }

    /// Refuses before the work begins what cannot fit.
    fn check_memory(&self, rows: usize) -> Result<(), Error> {
        let all = kept_bytes(self.recipe.sparsify, self.nodes, self.nodes);
        let needed = self.plan.memory - all + kept_bytes(self.recipe.sparsify, rows, self.nodes);
        match self.memory {
            Some(limit) if needed > limit => Err(Error::KernelMemory { needed, limit }),
            _ => Ok(()),
        }
    }
}

impl std::fmt::Debug for Job {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Job").field("recipe", &self.recipe).field("plan", &self.plan).finish_non_exhaustive()
    }
}

/// Bytes of what some rows keep, where that is known beforehand.
fn kept_bytes(sparsify: Sparsify, rows: usize, nodes: usize) -> u64 {
    match sparsify {
        Sparsify::Epsilon(_) => 0,
        Sparsify::TopK(_) | Sparsify::None => bytes_of(rows.saturating_mul(sparsify.most_in_row(nodes))),
    }
}

/// Bytes of so many entries while they are kept.
fn bytes_of(entries: usize) -> u64 {
    (entries as u64).saturating_mul(BYTES_PER_ENTRY)
}
