//! A rewiring turns a graph into the matrix a tower propagates with, and a report.

use qdc_core::rewire::{Sdrf, SdrfReport, Variant};
use qdc_core::{
    BuiltKernel, Csr, Filter, Graph, Job, KernelReport, Normalize, Pairs, Recipe, Resources, Route, Scalar,
    Sign, Sparsify, Transition, Watch,
};
use serde::{Deserialize, Serialize};

use crate::model::{RewiringKind, Tower};
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
    Kernel {
        /// Which one.
        recipe: Recipe,
        /// What becomes of its diagonal.
        diagonal: Diagonal,
    },
    /// A kernel that was made before.
    Given {
        /// The hash of its entries.
        hash: String,
        /// Their number.
        entries: usize,
    },
    /// The transition matrix of the graph after SDRF.
    Sdrf {
        /// The flow.
        flow: Sdrf,
        /// Weight of the self-loops.
        self_loop: f64,
    },
}

/// What becomes of a kernel's diagonal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Diagonal {
    /// It stays.
    Keep,
    /// It goes before the kernel is normalised: for the ablation.
    Drop,
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
    /// A kernel that was made before.
    Given {
        /// Number of vertices.
        nodes: usize,
        /// Entries of the matrix.
        entries: usize,
        /// The share of the diagonal in its mass.
        diagonal_share: Option<f64>,
        /// The hash of its entries.
        kernel: String,
    },
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
    diagonal: Diagonal,
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
            Self::Given { diagonal_share, .. } => *diagonal_share,
            Self::Plain { .. } | Self::Sdrf(_) => None,
        }
    }

    /// The route really taken to a kernel.
    pub fn route(&self) -> Option<Route> {
        match self {
            Self::Kernel(report) => Some(report.solver),
            Self::Plain { .. } | Self::Given { .. } | Self::Sdrf(_) => None,
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
        let Entries { epsilon, top_k, sign, normalize, diagonal } = values.of_tower(tower);
        let sparsify = match top_k {
            Some(k) => Sparsify::top_k(k)?,
            None => Sparsify::epsilon(epsilon.expect("epsilon or top_k is set"))?,
        };
        let recipe = Recipe::new(filter).pairs(pairs).sparsify(sparsify).sign(sign).normalize(normalize);
        Ok(Self::Kernel { recipe: recipe.self_loop(self_loop), diagonal })
    }

    /// Makes ready what can be made ready before there is memory for the matrix: the job of a kernel.
    pub(crate) fn prepare(
        &self,
        graph: &Graph,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<Option<Job>, Error> {
        match self {
            Self::Kernel { recipe, diagonal: Diagonal::Keep } => {
                Ok(Some(recipe.prepare(graph, resources, watch)?))
            }
            Self::Kernel { recipe, diagonal: Diagonal::Drop } => {
                let raw = recipe.clone().normalize(Normalize::None); // normalised without its diagonal
                Ok(Some(raw.prepare(graph, resources, watch)?))
            }
            Self::Plain { .. } | Self::Given { .. } | Self::Sdrf { .. } => Ok(None),
        }
    }

    /// The matrix for `graph`; `job` is what [`Rewiring::prepare`] gave.
    ///
    /// # Panics
    /// If it was made before: there is nothing to apply.
    pub(crate) fn apply(
        &self,
        graph: &Graph,
        job: Option<Job>,
        watch: &Watch,
    ) -> Result<(Csr<f64>, RewiringReport), Error> {
        Ok(match self {
            Self::Plain { self_loop } => plain(graph, *self_loop)?,
            Self::Given { .. } => unreachable!("a given kernel is there already"),
            Self::Sdrf { flow, self_loop } => {
                let (rewired, report) = flow.run(graph, watch)?;
                (plain(&rewired, *self_loop)?.0, RewiringReport::Sdrf(report))
            }
            Self::Kernel { recipe, diagonal } => {
                let mut built = job.expect("a kernel is prepared first").build(watch)?;
                if *diagonal == Diagonal::Drop {
                    drop_diagonal(&mut built, recipe.normalize);
                }
                (built.matrix, RewiringReport::Kernel(built.report))
            }
        })
    }

    /// The most entries its matrix can have, an entry for each vertex itself included.
    pub(crate) fn most_entries(&self, graph: &Graph) -> usize {
        let (nodes, edges) = (graph.nodes(), graph.edges());
        let entries = match self {
            Self::Plain { .. } => nodes.saturating_add(2 * edges),
            Self::Given { entries, .. } => nodes.saturating_add(*entries),
            Self::Sdrf { flow, .. } => nodes.saturating_add(2 * (edges.saturating_add(flow.iterations()))),
            Self::Kernel { recipe, .. } => {
                nodes.saturating_mul(recipe.sparsify.most_in_row(nodes)).saturating_add(nodes)
            }
        };
        entries.min(nodes.saturating_mul(nodes))
    }

    /// Bytes taken while the matrix is made, besides the matrix; a kernel's job knows its own.
    pub(crate) fn working_memory(&self, graph: &Graph) -> u64 {
        match self {
            Self::Plain { .. } | Self::Kernel { .. } | Self::Given { .. } => 0,
            Self::Sdrf { flow, .. } => flow.memory(graph),
        }
    }

    /// The recipe of a kernel.
    pub fn recipe(&self) -> Option<&Recipe> {
        match self {
            Self::Kernel { recipe, .. } => Some(recipe),
            Self::Plain { .. } | Self::Given { .. } | Self::Sdrf { .. } => None,
        }
    }

    /// Whether its matrix is its own transpose.
    pub(crate) fn is_symmetric(&self) -> bool {
        match self {
            Self::Plain { .. } | Self::Sdrf { .. } => true,
            Self::Given { .. } => false, // it may be; that is seen when it is made ready
            Self::Kernel { recipe, .. } => matches!(recipe.normalize, Normalize::Sym | Normalize::None),
        }
    }
}

/// The recipe of each tower's kernel; none where a tower has no kernel.
pub(crate) fn recipes(values: &Hyperparameters) -> Vec<Option<Recipe>> {
    let of = |(number, tower): (usize, &Tower)| {
        let rewiring = tower.rewiring.is_kernel().then(|| Rewiring::of_tower(values, number, 0).ok())?;
        rewiring?.recipe().cloned()
    };
    values.model().towers().iter().enumerate().map(of).collect()
}

/// Drops the diagonal of a kernel that is not normalised yet, and normalises it.
fn drop_diagonal(built: &mut BuiltKernel, normalize: Normalize) {
    let BuiltKernel { matrix, report } = built;
    let (nodes, mut pointers) = (matrix.rows(), vec![0]);
    let (mut indices, mut values) = (Vec::new(), Vec::new());
    for row in 0..nodes {
        let (columns, entries) = matrix.row(row);
        for (&column, &value) in columns.iter().zip(entries).filter(|(column, _)| **column as usize != row) {
            indices.push(column);
            values.push(value);
        }
        pointers.push(indices.len());
    }
    *matrix = Csr::new(nodes, matrix.columns(), pointers, indices, values).expect("columns stay in order");
    normalize.apply(matrix, report.sign);
    report.normalize = normalize;
    report.entries = matrix.entries();
    report.density = matrix.density();
    report.entries_per_row = matrix.entries() as f64 / nodes.max(1) as f64;
    report.diagonal_share = (matrix.entries() > 0).then_some(0.0);
    report.empty_rows = (0..nodes).filter(|&row| matrix.row(row).0.is_empty()).count();
}

fn plain(graph: &Graph, self_loop: f64) -> Result<(Csr<f64>, RewiringReport), Error> {
    let transition = Transition::with_self_loop(graph, self_loop)?;
    let matrix = transition.matrix().clone();
    let report = RewiringReport::Plain { nodes: matrix.rows(), entries: matrix.entries() };
    Ok((matrix, report))
}

/// The matrix in single precision with an entry at every diagonal place, as attention wants it; an added one
/// is the mean of its row, and 1 in an empty row.
pub(crate) fn with_self_loops<T: Scalar>(matrix: &Csr<T>) -> Csr<f32> {
    let (nodes, mut pointers) = (matrix.rows(), vec![0]);
    let mut indices = Vec::with_capacity(matrix.entries() + nodes);
    let mut kept = Vec::with_capacity(matrix.entries() + nodes);
    for row in 0..nodes {
        let (columns, values) = matrix.row(row);
        let own = columns.partition_point(|&column| (column as usize) < row);
        indices.extend_from_slice(&columns[..own]);
        kept.extend(values[..own].iter().map(|value| value.to_f64() as f32));
        if columns.get(own).is_none_or(|&column| column as usize != row) {
            let sum: f64 = values.iter().map(|value| value.to_f64()).sum();
            let mean = if values.is_empty() { 1.0 } else { sum / values.len() as f64 };
            indices.push(row as u32);
            kept.push(mean as f32);
        }
        indices.extend_from_slice(&columns[own..]);
        kept.extend(values[own..].iter().map(|value| value.to_f64() as f32));
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

    #[test]
    fn a_diagonal_is_dropped_before_the_kernel_is_normalised() {
        let star = Graph::from_edges(4, [(0, 1), (0, 2), (0, 3)], qdc_core::EdgeRule::Undirected).unwrap();
        let recipe = Recipe::new(Filter::heat(1.0).unwrap()).sparsify(Sparsify::Epsilon(1e-6));
        let made = |diagonal, normalize| {
            let rewiring = Rewiring::Kernel { recipe: recipe.clone().normalize(normalize), diagonal };
            let watch = Watch::silent();
            let job = rewiring.prepare(&star, &Resources::default(), &watch).unwrap();
            let (matrix, report) = rewiring.apply(&star, job, &watch).unwrap();
            let RewiringReport::Kernel(report) = report else { panic!("{report:?}") };
            (matrix, report)
        };
        let (raw, _) = made(Diagonal::Keep, Normalize::None);
        let off = |row: usize| -> f64 {
            (0..4).filter(|&j| j != row).map(|j| raw.get(row, j as u32).unwrap()).sum()
        };
        let (matrix, report) = made(Diagonal::Drop, Normalize::Sym);
        for row in 0..4 {
            assert_eq!(matrix.get(row, row as u32), None);
            for column in (0..4).filter(|&column| column != row) {
                let expected = raw.get(row, column as u32).unwrap() / (off(row) * off(column)).sqrt();
                assert!((matrix.get(row, column as u32).unwrap() - expected).abs() < 1e-12);
            }
        }
        assert_eq!((report.entries, report.entries_per_row, report.empty_rows), (12, 3.0, 0));
        assert_eq!((report.diagonal_share, report.normalize), (Some(0.0), Normalize::Sym));
    }
}
