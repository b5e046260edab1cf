//! A rewiring turns a graph into the matrix a tower propagates with, and a report.

use std::sync::{Arc, Mutex};

use qdc_core::rewire::{Sdrf, SdrfReport, Variant};
use qdc_core::{
    Csr, Filter, Graph, KernelReport, Normalize, Pairs, Recipe, Resources, Sign, Sparsify, Transition, Watch,
    defaults,
};
use qdc_nn::Propagation;
use serde::{Deserialize, Serialize};

use crate::model::{NetworkKind, RewiringKind};
use crate::{Error, Hyperparameters};

/// How a graph becomes a matrix.
#[derive(Clone, Debug, PartialEq)]
pub enum Rewiring {
    /// The transition matrix.
    Plain {
        /// Weight of the self-loops.
        self_loop: f64,
    },
    /// A sparse, normalised kernel.
    Kernel(Recipe),
    /// The transition matrix of the graph after SDRF.
    Sdrf {
        /// The flow.
        flow: Sdrf,
        /// Weight of the self-loops.
        self_loop: f64,
    },
}

/// What a rewiring did.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum RewiringReport {
    /// The transition matrix.
    Plain {
        /// Number of vertices.
        nodes: usize,
        /// Entries of the matrix, self-loops included.
        entries: usize,
    },
    /// A kernel.
    Kernel(KernelReport),
    /// SDRF.
    Sdrf(SdrfReport),
}

/// The filter of a window around mu: Gaussian or band.
#[derive(Deserialize)]
struct Window {
    mu: f64,
    sigma: Option<f64>,
    gamma: Option<f64>,
    pairs: Pairs,
}

/// The two kernels of GDC: heat where `time` is set.
#[derive(Deserialize)]
struct Diffusion {
    alpha: Option<f64>,
    time: Option<f64>,
}

/// What every kernel has.
#[derive(Deserialize)]
struct Entries {
    epsilon: Option<f64>,
    top_k: Option<usize>,
    sign: Sign,
    normalize: Normalize,
}

/// What SDRF has.
#[derive(Deserialize)]
struct Flow {
    iterations: usize,
    tau: f64,
    removal_bound: f64,
    variant: Variant,
}

/// What every rewiring has.
#[derive(Deserialize)]
struct Looped {
    self_loop: f64,
}

/// Below this share of off-diagonal mass a kernel is called the identity.
pub(crate) const NEARLY_NOTHING: f64 = 0.01;

impl RewiringReport {
    /// The share of the diagonal in a kernel's mass.
    pub fn diagonal_share(&self) -> Option<f64> {
        match self {
            Self::Kernel(report) => report.diagonal_share,
            Self::Plain { .. } | Self::Sdrf(_) => None,
        }
    }

    /// Whether it is a kernel with less than 1 % of its mass off the diagonal: a network over it is an MLP.
    pub fn is_nearly_identity(&self) -> bool {
        self.diagonal_share().is_some_and(|share| 1.0 - share < NEARLY_NOTHING)
    }
}

impl Rewiring {
    /// The rewiring of a tower, counting from 0; `seed` is that of the run.
    ///
    /// # Errors
    /// If a value is out of the range of the filter.
    ///
    /// # Panics
    /// If the model has no such tower, or it is an MLP.
    pub fn of_tower(values: &Hyperparameters, tower: usize, seed: u64) -> Result<Self, Error> {
        let Looped { self_loop } = values.of_tower(tower);
        let (filter, pairs) = match values.model().towers()[tower].rewiring {
            RewiringKind::Plain => return Ok(Self::Plain { self_loop }),
            RewiringKind::Sdrf => {
                let Flow { iterations, tau, removal_bound, variant } = values.of_tower(tower);
                let flow = Sdrf::new(iterations).tau(tau).removal_bound(removal_bound).variant(variant);
                return Ok(Self::Sdrf { flow: flow.seed(seed), self_loop });
            }
            RewiringKind::Gdc => {
                let Diffusion { alpha, time } = values.of_tower(tower);
                let filter = match time {
                    Some(time) => Filter::heat(time)?,
                    None => Filter::ppr(alpha.expect("alpha or time is set"))?,
                };
                (filter, Pairs::All)
            }
            RewiringKind::Bpdc => {
                let Window { mu, gamma, pairs, .. } = values.of_tower(tower);
                (Filter::band(mu, gamma.expect("a band has a width"))?, pairs)
            }
            RewiringKind::Qdc => {
                let Window { mu, sigma, pairs, .. } = values.of_tower(tower);
                (Filter::gaussian(mu, sigma.expect("a Gaussian has a width"))?, pairs)
            }
        };
        let Entries { epsilon, top_k, sign, normalize } = values.of_tower(tower);
        let sparsify = match top_k {
            Some(k) => Sparsify::top_k(k)?,
            None => Sparsify::epsilon(epsilon.expect("epsilon or top_k is set"))?,
        };
        let recipe = Recipe::new(filter).pairs(pairs).sparsify(sparsify).sign(sign).normalize(normalize);
        Ok(Self::Kernel(recipe.self_loop(self_loop)))
    }

    /// The matrix for `graph`, made with the resources at hand.
    pub fn apply(
        &self,
        graph: &Graph,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<(Csr<f64>, RewiringReport), Error> {
        Ok(match self {
            Self::Plain { self_loop } => plain(graph, *self_loop)?,
            Self::Sdrf { flow, self_loop } => {
                let (rewired, report) = flow.run(graph, watch)?;
                (plain(&rewired, *self_loop)?.0, RewiringReport::Sdrf(report))
            }
            Self::Kernel(recipe) => {
                let built = recipe.prepare(graph, resources, watch)?.build(watch)?;
                (built.matrix, RewiringReport::Kernel(built.report))
            }
        })
    }
}

fn plain(graph: &Graph, self_loop: f64) -> Result<(Csr<f64>, RewiringReport), Error> {
    let transition = Transition::with_self_loop(graph, self_loop)?;
    let matrix = transition.matrix().clone();
    let report = RewiringReport::Plain { nodes: matrix.rows(), entries: matrix.entries() };
    Ok((matrix, report))
}

/// The matrix with an entry at every diagonal place, as attention wants it; an added one is the mean of its row, and
/// 1 in an empty row.
fn with_self_loops(matrix: &Csr<f64>) -> Csr<f64> {
    let rows = (0..matrix.rows()).map(|row| {
        let (indices, values) = matrix.row(row);
        let (mut indices, mut values) = (indices.to_vec(), values.to_vec());
        if let Err(at) = indices.binary_search(&(row as u32)) {
            let mean = if values.is_empty() { 1.0 } else { values.iter().sum::<f64>() / values.len() as f64 };
            indices.insert(at, row as u32);
            values.insert(at, mean);
        }
        (indices, values)
    });
    Csr::from_rows(matrix.columns(), rows).expect("columns stay in order")
}

/// A matrix ready for a network, and the report of how it was made.
#[derive(Clone, Debug)]
pub struct Rewired {
    /// The matrix.
    pub matrix: Arc<Propagation<f32>>,
    /// How it was made.
    pub report: Arc<RewiringReport>,
}

/// A rewiring that was made before.
struct Kept {
    rewiring: Rewiring,
    attention: bool,
    made: Rewired,
}

/// The rewirings of one graph: made when first asked for, the last few kept, shared by splits and trials.
pub struct Rewirings<'a> {
    graph: &'a Graph,
    resources: Resources,
    kept: Mutex<Vec<Kept>>,
}

impl<'a> Rewirings<'a> {
    /// How many are kept; the plain transition matrix and a few kernels.
    const KEPT: usize = 4;

    /// Those of `graph`.
    pub fn new(graph: &'a Graph) -> Self {
        Self { graph, resources: Resources::default(), kept: Mutex::default() }
    }

    /// Uses these resources for kernels: memory, and eigenpairs that are stored or given.
    pub fn with_resources(mut self, resources: Resources) -> Self {
        self.resources = resources;
        self
    }

    /// The resources at hand.
    pub(crate) fn resources(&self) -> &Resources {
        &self.resources
    }

    /// A matrix for each tower of a model; none if no tower looks at the graph. An MLP among others gets the transition
    /// matrix and leaves it alone.
    pub fn of_model(
        &self,
        values: &Hyperparameters,
        seed: u64,
        watch: &Watch,
    ) -> Result<Vec<Rewired>, Error> {
        if !values.model().sees_graph() {
            return Ok(Vec::new());
        }
        let towers = values.model().towers().iter().enumerate();
        towers
            .map(|(number, tower)| {
                let rewiring = match tower.network {
                    NetworkKind::Mlp => Rewiring::Plain { self_loop: defaults::SELF_LOOP },
                    NetworkKind::Gcn | NetworkKind::Gat => Rewiring::of_tower(values, number, seed)?,
                    NetworkKind::Bank | NetworkKind::Window => {
                        unreachable!("banks have channels, not rewirings")
                    }
                };
                self.get(&rewiring, tower.network == NetworkKind::Gat, watch)
            })
            .collect()
    }

    /// One rewiring; with self-loops added where it is for attention.
    pub fn get(&self, rewiring: &Rewiring, attention: bool, watch: &Watch) -> Result<Rewired, Error> {
        let kept = || self.kept.lock().expect("nothing panics while it is held");
        let same = |kept: &&Kept| kept.attention == attention && kept.rewiring == *rewiring;
        if let Some(found) = kept().iter().find(same) {
            return Ok(found.made.clone());
        }
        // Not under the lock: another thread may make the same one at worst, and both get the same bytes.
        let (matrix, report) = rewiring.apply(self.graph, &self.resources, watch)?;
        let matrix = if attention { with_self_loops(&matrix) } else { matrix };
        let matrix = Arc::new(Propagation::new(matrix.map(|value| value as f32)));
        let made = Rewired { matrix, report: Arc::new(report) };
        let mut kept = kept();
        if kept.len() >= Self::KEPT {
            // The plain matrix is asked for most; of the others the oldest goes.
            let plain = |kept: &Kept| matches!(kept.rewiring, Rewiring::Plain { .. });
            let oldest = kept.iter().position(|kept| !plain(kept)).unwrap_or(0);
            kept.remove(oldest);
        }
        kept.push(Kept { rewiring: rewiring.clone(), attention, made: made.clone() });
        Ok(made)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attention_sees_every_vertex_itself() {
        let matrix = Csr::new(3, 3, vec![0, 2, 2, 3], vec![1, 2, 2], vec![0.2, 0.4, 0.5]).unwrap();
        let looped = with_self_loops(&matrix);
        assert_eq!(looped.row(1), (&[1][..], &[1.0][..]));
        assert_eq!(looped.row(2), (&[2][..], &[0.5][..]));
        assert_eq!(looped.row(0).0, &[0, 1, 2]);
        assert!((looped.row(0).1[0] - 0.3).abs() < 1e-15);
    }
    #[test]
    fn sdrf_widens_the_bridge_of_a_barbell_for_both_networks() {
        let clique =
            |first: u64| (first..first + 4).flat_map(move |a| (a + 1..first + 4).map(move |b| (a, b)));
        let edges: Vec<(u64, u64)> = clique(0).chain(clique(4)).chain([(3, 4)]).collect();
        let graph = Graph::from_edges(8, edges, qdc_core::EdgeRule::Undirected).unwrap();
        let rewirings = Rewirings::new(&graph);
        for name in ["gcn+sdrf", "gat+sdrf"] {
            let mut values = Hyperparameters::new(name.parse().unwrap());
            values.set("iterations", "2").unwrap();
            values.set("removal_bound", "inf").unwrap();
            let made = rewirings.of_model(&values, 0, &Watch::silent()).unwrap();
            let RewiringReport::Sdrf(report) = &*made[0].report else { panic!("{:?}", made[0].report) };
            assert_eq!((report.added, report.removed), (2, 0));
            assert_eq!(made[0].matrix.matrix().entries(), 2 * (graph.edges() + 2) + 8);
        }
    }
}
