//! A rewiring turns a graph into the matrix a tower propagates with, and a report.

use qdc_core::rewire::{Sdrf, SdrfReport, Variant};
use qdc_core::{
    Csr, Filter, Graph, Job, KernelReport, Normalize, Pairs, Recipe, Resources, Sign, Sparsify, Transition,
    Watch,
};
use serde::{Deserialize, Serialize};

use crate::model::RewiringKind;
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

    /// Makes ready what can be made ready before there is memory for the matrix: the job of a kernel.
    pub(crate) fn prepare(
        &self,
        graph: &Graph,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<Option<Job>, Error> {
        match self {
            Self::Kernel(recipe) => Ok(Some(recipe.prepare(graph, resources, watch)?)),
            Self::Plain { .. } | Self::Sdrf { .. } => Ok(None),
        }
    }

    /// The matrix for `graph`; `job` is what [`Rewiring::prepare`] gave.
    pub(crate) fn apply(
        &self,
        graph: &Graph,
        job: Option<Job>,
        watch: &Watch,
    ) -> Result<(Csr<f64>, RewiringReport), Error> {
        Ok(match self {
            Self::Plain { self_loop } => plain(graph, *self_loop)?,
            Self::Sdrf { flow, self_loop } => {
                let (rewired, report) = flow.run(graph, watch)?;
                (plain(&rewired, *self_loop)?.0, RewiringReport::Sdrf(report))
            }
            Self::Kernel(_) => {
                let built = job.expect("a kernel is prepared first").build(watch)?;
                (built.matrix, RewiringReport::Kernel(built.report))
            }
        })
    }

    /// The most entries its matrix can have, an entry for each vertex itself included.
    pub(crate) fn most_entries(&self, graph: &Graph) -> usize {
        let (nodes, edges) = (graph.nodes(), graph.edges());
        let entries = match self {
            Self::Plain { .. } => nodes.saturating_add(2 * edges),
            Self::Sdrf { flow, .. } => nodes.saturating_add(2 * (edges.saturating_add(flow.iterations()))),
            Self::Kernel(recipe) => {
                nodes.saturating_mul(recipe.sparsify.most_in_row(nodes)).saturating_add(nodes)
            }
        };
        entries.min(nodes.saturating_mul(nodes))
    }

    /// Whether its matrix is its own transpose.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            Self::Plain { .. } | Self::Sdrf { .. } => true,
            Self::Kernel(recipe) => matches!(recipe.normalize, Normalize::Sym | Normalize::None),
        }
    }
}

fn plain(graph: &Graph, self_loop: f64) -> Result<(Csr<f64>, RewiringReport), Error> {
    let transition = Transition::with_self_loop(graph, self_loop)?;
    let matrix = transition.matrix().clone();
    let report = RewiringReport::Plain { nodes: matrix.rows(), entries: matrix.entries() };
    Ok((matrix, report))
}

/// The matrix in single precision with an entry at every diagonal place, as attention wants it; an added one is the
/// mean of its row, and 1 in an empty row.
pub(crate) fn with_self_loops(matrix: &Csr<f64>) -> Csr<f32> {
    let (nodes, mut pointers) = (matrix.rows(), vec![0]);
    let mut indices = Vec::with_capacity(matrix.entries() + nodes);
    let mut kept = Vec::with_capacity(matrix.entries() + nodes);
    for row in 0..nodes {
        let (columns, values) = matrix.row(row);
        let own = columns.partition_point(|&column| (column as usize) < row);
        indices.extend_from_slice(&columns[..own]);
        kept.extend(values[..own].iter().map(|&value| value as f32));
        if columns.get(own).is_none_or(|&column| column as usize != row) {
            let mean = if values.is_empty() { 1.0 } else { values.iter().sum::<f64>() / values.len() as f64 };
            indices.push(row as u32);
            kept.push(mean as f32);
        }
        indices.extend_from_slice(&columns[own..]);
        kept.extend(values[own..].iter().map(|&value| value as f32));
        pointers.push(indices.len());
    }
    Csr::new(nodes, matrix.columns(), pointers, indices, kept).expect("columns stay in order")
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
        assert_eq!(looped.row(0), (&[0, 1, 2][..], &[0.3, 0.2, 0.4][..]));
    }
}
