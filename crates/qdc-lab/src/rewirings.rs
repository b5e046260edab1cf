//! The rewirings of one dataset: made when first asked for, the last few kept, within the memory that all
//! runs share.

use std::sync::{Arc, Mutex, MutexGuard};

use qdc_core::homophily::homophily_of;
use qdc_core::kernel::Spectra;
use qdc_core::{Graph, Job, Recipe, Resources, Route, Watch, defaults};
use qdc_data::Dataset;
use qdc_nn::{CheckedFeatures, MatrixShape, Propagation};

use crate::architecture::{FeatureScale, architecture};
use crate::memory::{self, Budget, Needs, Share, Sizing, Spare};
use crate::model::NetworkKind;
use crate::rewiring::{Rewiring, RewiringReport, with_self_loops};
use crate::{Error, GivenKernel, Hyperparameters, Tower};

/// A matrix ready for a network, and the report of how it was made.
#[derive(Clone, Debug)]
pub struct Rewired {
    /// The matrix.
    pub matrix: Arc<Propagation<f32>>,
    /// How it was made.
    pub report: Arc<RewiringReport>,
    /// The recipe of a kernel.
    pub recipe: Option<Recipe>,
    /// The homophily of its pattern.
    pub homophily: f64,
}

/// What runs on one dataset share: rewirings that were made, memory, eigenpairs, and the threads that compute.
pub struct Rewirings<'a> {
    dataset: &'a Dataset,
    resources: Resources,
    budget: Budget,
    pool: Option<&'a rayon::ThreadPool>,
    /// The route of each tower's kernel, where one is to be repeated.
    routes: Vec<Route>,
    /// In the place of every kernel.
    given: Option<GivenKernel>,
    /// Entries that attention may weigh.
    attention_limit: Option<usize>,
    /// The features as networks use them, in each scale that was asked for.
    features: Mutex<Vec<(FeatureScale, CheckedFeatures<f32>)>>,
    kept: Kept,
}

/// The rewiring of a tower, and for whom: attention gets an entry for each vertex itself.
#[derive(Clone, Debug, PartialEq)]
struct Wanted {
    rewiring: Rewiring,
    attention: bool,
    /// For mini-batches, which are cut from its rows.
    rows_only: bool,
}

/// A rewiring to be had, and what is known of its size.
struct Planned {
    wanted: Wanted,
    source: Source,
    shape: MatrixShape,
}

enum Source {
    /// It was made before.
    Made(Rewired),
    /// It is to be made; a kernel is prepared.
    New(Option<Job>),
}

/// The matrices of a model, and the memory that runs over them may take.
pub(crate) struct Made<'a> {
    /// One for each tower.
    pub(crate) rewired: Vec<Rewired>,
    sizing: Sizing<'a>,
    needs: Needs,
}

impl<'a> Made<'a> {
    /// The memory for `wanted` runs at once, or for as many of them as fit.
    pub(crate) fn settle(self, wanted: usize) -> (Share<'a>, usize) {
        self.sizing.settle(&self.needs, wanted)
    }
}

impl<'a> Rewirings<'a> {
    /// Those of `dataset`, without limits.
    pub fn new(dataset: &'a Dataset) -> Self {
        let (resources, kept) = (Resources::default(), Kept::default());
        Self {
            dataset,
            resources,
            budget: Budget::new(None, 0),
            pool: None,
            routes: Vec::new(),
            given: None,
            attention_limit: None,
            features: Mutex::default(),
            kept,
        }
    }

    /// Uses these resources: the memory that the program, the dataset and all runs on it may take together,
    /// the route of kernels, and eigenpairs that are stored or given.
    pub fn with_resources(mut self, resources: Resources) -> Self {
        self.budget = Budget::new(resources.memory, memory::of_dataset(self.dataset));
        self.resources = Resources { memory: self.budget.for_runs(), ..resources };
        let complete = 8 * (self.dataset.graph.nodes() as u64).pow(2);
        if self.budget.for_runs().is_some_and(|bytes| complete > bytes)
            && matches!(self.resources.spectra, Spectra::Stored(_))
        {
            self.resources.spectra = Spectra::Computed; // a stored spectrum would not fit
        }
        self
    }

    /// Makes the kernel of each tower by the route given; `auto` and missing ones choose for themselves.
    pub fn by_routes(mut self, routes: &[Route]) -> Self {
        self.routes = routes.to_vec();
        self
    }

    /// Puts a kernel that was made before in the place of every kernel of a model.
    ///
    /// # Errors
    /// If it is not of this number of vertices.
    pub fn with_kernel(mut self, kernel: GivenKernel) -> Result<Self, Error> {
        let (rows, nodes) = (kernel.matrix().rows(), self.dataset.graph.nodes());
        if rows != nodes {
            let problem = format!("it has {rows} rows, and {} has {nodes} vertices", self.dataset.name);
            return Err(Error::GivenKernel { problem });
        }
        self.given = Some(kernel);
        Ok(self)
    }

    /// The hash of the kernel that was given.
    pub(crate) fn given(&self) -> Option<&str> {
        self.given.as_ref().map(GivenKernel::hash)
    }

    /// Counts `bytes` more as taken before any run.
    pub(crate) fn holding(mut self, bytes: u64) -> Self {
        self.budget = self.budget.with_base(bytes);
        self.resources.memory = self.budget.for_runs();
        self
    }

    /// Refuses attention over more entries than these.
    pub(crate) fn weighing_at_most(mut self, entries: Option<usize>) -> Self {
        self.attention_limit = entries;
        self
    }

    /// Computes on the threads of `pool`; `None`: on those of the process.
    pub(crate) fn on(mut self, pool: Option<&'a rayon::ThreadPool>) -> Self {
        self.pool = pool;
        self
    }

    /// Does heavy work where it belongs. Nothing in it may wait for another run: a thread of the pool that
    /// waits for its own work can be given any other.
    pub(crate) fn compute<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// The features of the dataset, checked and scaled when first asked for.
    ///
    /// # Errors
    /// If one is not finite.
    pub(crate) fn features(&self, scale: FeatureScale) -> Result<CheckedFeatures<f32>, Error> {
        let made = || self.features.lock().expect("nothing panics while it is held");
        if let Some((_, features)) = made().iter().find(|(known, _)| *known == scale) {
            return Ok(features.clone());
        }
        let features = match scale {
            FeatureScale::Raw => CheckedFeatures::new(&self.dataset.features)?,
            FeatureScale::Row => CheckedFeatures::new(&scale.scale(&self.dataset.features))?,
        };
        made().push((scale, features.clone()));
        Ok(features)
    }

    /// The resources at hand; their memory is what runs may take together.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// The right to learn how large a run is, see [`Budget::size`].
    pub(crate) fn size(&self) -> Sizing<'_> {
        self.budget.size(&self.kept)
    }

    /// A matrix for each tower of a model; none if no tower looks at the graph. An MLP among others gets the
    /// transition matrix and leaves it alone.
    ///
    /// The memory for it and for one run is taken first: by the most entries there can be, or, where that
    /// would be too much, by some rows of each kernel; then again when the sizes are known. The weights of
    /// `results` runs are to be kept.
    ///
    /// # Errors
    /// More memory needed than allowed, with the figure; whatever a rewiring refuses; a stop asked for.
    pub(crate) fn of_model(
        &self,
        values: &Hyperparameters,
        classes: usize,
        seed: u64,
        batch_nodes: Option<usize>,
        results: usize,
        watch: &Watch,
    ) -> Result<Made<'_>, Error> {
        let network = architecture(values, classes);
        let needs = |planned: &[Planned]| {
            let shape = memory::shape(self.dataset, planned.iter().map(|planned| planned.shape).collect());
            Needs::of(&network, &shape, batch_nodes, making(planned, &self.dataset.graph), results)
        };
        let mut sizing = self.size();
        let mut planned = self.compute(|| self.planned(values, seed, batch_nodes.is_some(), watch))?;
        if self.budget.check(&needs(&planned)).is_err() {
            self.compute(|| self.look_closer(&mut planned, watch))?;
        }
        sizing.take(&needs(&planned), watch)?;
        let rewired = self.compute(|| self.make(planned, watch))?;
        let shapes = rewired.iter().map(|made| MatrixShape {
            entries: made.matrix.matrix().entries(),
            symmetric: made.matrix.is_symmetric(),
            mapped: matches!(*made.report, RewiringReport::Given { .. }),
        });
        let shape = memory::shape(self.dataset, shapes.collect());
        let needs = Needs::of(&network, &shape, batch_nodes, 0, results);
        sizing.take(&needs, watch)?;
        Ok(Made { rewired, sizing, needs })
    }

    /// Finds what was made before, and prepares the rest.
    fn planned(
        &self,
        values: &Hyperparameters,
        seed: u64,
        rows_only: bool,
        watch: &Watch,
    ) -> Result<Vec<Planned>, Error> {
        let graph = &self.dataset.graph;
        let plan = |(number, wanted): (usize, Wanted)| {
            let symmetric = wanted.rewiring.is_symmetric();
            let mapped = matches!(wanted.rewiring, Rewiring::Given { .. });
            Ok(match self.kept.find(&wanted) {
                Some(made) => {
                    let shape = MatrixShape { entries: made.matrix.matrix().entries(), symmetric, mapped };
                    Planned { wanted, source: Source::Made(made), shape }
                }
                None => {
                    let route = self.routes.get(number).copied().filter(|&route| route != Route::Auto);
                    let route = route.unwrap_or(self.resources.route);
                    let resources = Resources { route, ..self.resources.clone() };
                    let job = wanted.rewiring.prepare(graph, &resources, watch)?;
                    let shape =
                        MatrixShape { entries: wanted.rewiring.most_entries(graph), symmetric, mapped };
                    Planned { wanted, source: Source::New(job), shape }
                }
            })
        };
        let mut wanted = wanted(values, seed, rows_only)?;
        if let Some(given) = &self.given {
            let kernels =
                wanted.iter_mut().filter(|wanted| matches!(wanted.rewiring, Rewiring::Kernel { .. }));
            let (hash, entries) = (given.hash().to_owned(), given.matrix().entries());
            kernels.for_each(|wanted| wanted.rewiring = Rewiring::Given { hash: hash.clone(), entries });
        }
        wanted.into_iter().enumerate().map(plan).collect()
    }

    /// Puts what is to be expected of each kernel in the place of the most it could have.
    fn look_closer(&self, planned: &mut [Planned], watch: &Watch) -> Result<(), Error> {
        let nodes = self.dataset.graph.nodes();
        for Planned { source, shape, .. } in planned {
            if let Source::New(Some(job)) = source {
                // Where eigenpairs alone are too large, no row can be made to learn the rest.
                self.budget.check_part(job.memory_with(0))?;
                let entries = job.expected_entries(watch)?.saturating_add(nodes);
                shape.entries = shape.entries.min(entries);
            }
        }
        Ok(())
    }

    /// Makes what is not there yet; of two towers that want the same, one.
    fn make(&self, planned: Vec<Planned>, watch: &Watch) -> Result<Vec<Rewired>, Error> {
        let make = |Planned { wanted, source, .. }: Planned| {
            let job = match source {
                Source::Made(made) => return Ok(made),
                Source::New(job) => job,
            };
            if let Some(made) = self.kept.find(&wanted) {
                return Ok(made);
            }
            let labels = &self.dataset.labels;
            let (single, homophily, report) = match (&wanted.rewiring, &self.given) {
                (Rewiring::Given { .. }, Some(given)) => {
                    let matrix = given.matrix();
                    let single = if wanted.attention { with_self_loops(matrix) } else { matrix.clone() };
                    (single, homophily_of(matrix, labels)?, given.report())
                }
                (rewiring, _) => {
                    let (matrix, report) = rewiring.apply(&self.dataset.graph, job, watch)?;
                    if let Some(limit) = self.attention_limit.filter(|&limit| matrix.entries() > limit)
                        && wanted.attention
                    {
                        return Err(Error::AttentionLimit { limit });
                    }
                    let homophily = homophily_of(&matrix, labels)?;
                    let single = if wanted.attention {
                        with_self_loops(&matrix)
                    } else {
                        matrix.map(|value| value as f32)
                    };
                    (single, homophily, report)
                }
            };
            let made = Rewired {
                matrix: Arc::new(if wanted.rows_only {
                    Propagation::forward_only(single)
                } else {
                    Propagation::new(single)
                }),
                report: Arc::new(report),
                recipe: wanted.rewiring.recipe().cloned(),
                homophily: homophily.node,
            };
            self.kept.keep(wanted, made.clone());
            Ok(made)
        };
        planned.into_iter().map(make).collect()
    }
}

/// What the rewirings take while they are made: those of all towers, and the one that is being made.
fn making(planned: &[Planned], graph: &Graph) -> u64 {
    let of = |planned: &Planned| {
        if planned.shape.mapped {
            return (0, 0); // it is there already
        }
        let kept = 8 * planned.shape.entries as u64;
        let now = match &planned.source {
            Source::Made(_) => 0,
            Source::New(Some(job)) => job.memory_with(planned.shape.entries),
            Source::New(None) => {
                let working = planned.wanted.rewiring.working_memory(graph);
                memory::of_matrix(planned.shape.entries).saturating_add(working)
            }
        };
        (kept, now)
    };
    let all: u64 = planned.iter().map(|planned| of(planned).0).fold(0, u64::saturating_add);
    let largest = planned.iter().map(|planned| of(planned).1).max().unwrap_or(0);
    all.saturating_add(largest)
}

/// The rewiring of each tower of a model; none if no tower looks at the graph.
fn wanted(values: &Hyperparameters, seed: u64, rows_only: bool) -> Result<Vec<Wanted>, Error> {
    if !values.model().sees_graph() {
        return Ok(Vec::new());
    }
    let of = |(number, tower): (usize, &Tower)| {
        let rewiring = match tower.network {
            NetworkKind::Mlp => Rewiring::Plain { self_loop: defaults::SELF_LOOP },
            NetworkKind::Gcn | NetworkKind::Gat => Rewiring::of_tower(values, number, seed)?,
            NetworkKind::Bank | NetworkKind::Window => unreachable!("banks have channels, not rewirings"),
        };
        Ok(Wanted { rewiring, attention: tower.network == NetworkKind::Gat, rows_only })
    };
    values.model().towers().iter().enumerate().map(of).collect()
}

/// The last few rewirings that were made.
#[derive(Default)]
struct Kept(Mutex<Vec<(Wanted, Rewired)>>);

impl Kept {
    /// How many are kept; the plain transition matrix and a few kernels.
    const MOST: usize = 4;

    fn list(&self) -> MutexGuard<'_, Vec<(Wanted, Rewired)>> {
        self.0.lock().expect("nothing panics while it is held")
    }

    fn find(&self, wanted: &Wanted) -> Option<Rewired> {
        self.list().iter().find(|(kept, _)| kept == wanted).map(|(_, made)| made.clone())
    }

    fn keep(&self, wanted: Wanted, made: Rewired) {
        let mut list = self.list();
        if list.len() >= Self::MOST {
            let at = oldest(&list);
            list.remove(at);
        }
        list.push((wanted, made));
    }
}

/// The plain matrix is asked for most; of the others the oldest goes.
fn oldest(list: &[(Wanted, Rewired)]) -> usize {
    list.iter().position(|(kept, _)| !matches!(kept.rewiring, Rewiring::Plain { .. })).unwrap_or(0)
}

impl Spare for Kept {
    /// Bytes of those that no run uses; a run counts those it uses.
    fn held(&self) -> u64 {
        let unused = |(_, made): &&(Wanted, Rewired)| Arc::strong_count(&made.matrix) == 1;
        self.list().iter().filter(unused).map(|(_, made)| made.matrix.bytes()).sum()
    }

    fn give_up(&self) -> u64 {
        let mut list = self.list();
        if list.is_empty() {
            return 0;
        }
        let at = oldest(&list);
        let (_, made) = list.remove(at);
        made.matrix.bytes().max(1)
    }
}
