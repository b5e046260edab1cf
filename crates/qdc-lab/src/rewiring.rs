//! A rewiring turns a graph into the matrix a tower propagates with, and a report.

use std::sync::{Arc, Mutex};

use qdc_core::kernel::Route;
use qdc_core::rewire::{Sdrf, SdrfReport, Variant};
use qdc_core::{Csr, Filter, Graph, Kernel, KernelReport, Pairs, Sparsify, Spectrum, Transition, Watch};
use qdc_nn::Propagation;
use serde::Serialize;

use crate::model::{NetworkKind, RewiringKind};
use crate::{Error, Hyperparameters};

/// How a graph becomes a matrix.
#[derive(Clone, Debug)]
pub enum Rewiring {
    /// The transition matrix.
    Plain {
        /// Weight of the self-loops.
        self_loop: f64,
    },
    /// A sparse, normalised kernel.
    Kernel(Kernel),
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

impl Rewiring {
    /// What `kind` means under these hyper-parameters; `seed` is that of the run.
    ///
    /// # Panics
    /// If the model of the hyper-parameters does not use `kind`.
    pub fn new(kind: RewiringKind, values: &Hyperparameters, seed: u64) -> Result<Self, Error> {
        let self_loop = values.real("self_loop");
        let filter = match kind {
            RewiringKind::Plain => return Ok(Self::Plain { self_loop }),
            RewiringKind::Sdrf => {
                let flow = Sdrf::new(values.integer("iterations"))
                    .tau(values.real("tau"))
                    .removal_bound(values.real("removal_bound"))
                    .variant(if values.text("variant") == "code" { Variant::Code } else { Variant::Formula })
                    .seed(seed);
                return Ok(Self::Sdrf { flow, self_loop });
            }
            RewiringKind::Gdc => match values.optional_real("time") {
                Some(time) => Filter::heat(time)?,
                None => Filter::ppr(values.real("alpha"))?,
            },
            RewiringKind::Bpdc => Filter::band(values.real("mu"), values.real("gamma"))?,
            RewiringKind::Qdc => Filter::gaussian(values.real("mu"), values.real("sigma"))?,
        };
        let sparsify = match values.optional_integer("top_k") {
            Some(k) => Sparsify::top_k(k)?,
            None => Sparsify::epsilon(values.real("epsilon"))?,
        };
        let kernel = Kernel::new(filter)
            .pairs(values.optional_integer("pairs").map_or(Pairs::All, Pairs::Nearest))
            .sparsify(sparsify)
            .sign(values.text("sign").parse().expect("the table lists the signs"))
            .normalize(values.text("normalize").parse().expect("the table lists the normalisations"))
            .self_loop(self_loop);
        Ok(Self::Kernel(kernel))
    }

    /// The matrix for `graph`; a complete `spectrum` of the graph, where there is one, saves the eigenvalue problem of a
    /// kernel of the nearest pairs.
    pub fn apply(
        &self,
        graph: &Graph,
        spectrum: Option<&Spectrum>,
        watch: &Watch,
    ) -> Result<(Csr<f64>, RewiringReport), Error> {
        Ok(match self {
            Self::Plain { self_loop } => plain(graph, *self_loop)?,
            Self::Sdrf { flow, self_loop } => {
                let (rewired, report) = flow.run(graph, watch)?;
                (plain(&rewired, *self_loop)?.0, RewiringReport::Sdrf(report))
            }
            Self::Kernel(kernel) => {
                let built = match spectrum {
                    Some(spectrum) if kernel.plan(graph)?.route == Route::Spectral => {
                        kernel.build_from(spectrum, graph, watch)?
                    }
                    _ => kernel.build(graph, watch)?,
                };
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

/// The rewirings of one graph: made when first asked for, the last few kept, shared by splits and trials.
pub struct Rewirings<'a> {
    graph: &'a Graph,
    spectrum: Option<Spectrum>,
    kept: Mutex<Vec<(String, Rewired)>>,
}

impl<'a> Rewirings<'a> {
    /// How many are kept; the plain transition matrix and a few kernels.
    const KEPT: usize = 4;

    /// Those of `graph`.
    pub fn new(graph: &'a Graph) -> Self {
        Self { graph, spectrum: None, kept: Mutex::default() }
    }

    /// Uses a complete spectrum of the graph, computed before, for kernels of the nearest pairs.
    pub fn with_spectrum(mut self, spectrum: Spectrum) -> Self {
        self.spectrum = Some(spectrum);
        self
    }

    /// The matrices of the towers of a model.
    pub fn of_model(
        &self,
        values: &Hyperparameters,
        seed: u64,
        watch: &Watch,
    ) -> Result<Vec<Rewired>, Error> {
        let attention = values.model().network() == NetworkKind::Gat;
        let towers = values.model().towers().iter();
        towers.map(|&kind| self.get(&Rewiring::new(kind, values, seed)?, attention, watch)).collect()
    }

    /// One rewiring; with self-loops added where it is for attention.
    pub fn get(&self, rewiring: &Rewiring, attention: bool, watch: &Watch) -> Result<Rewired, Error> {
        let key = format!("{attention} {rewiring:?}");
        let kept = || self.kept.lock().expect("nothing panics while it is held");
        if let Some((_, found)) = kept().iter().find(|(name, _)| *name == key) {
            return Ok(found.clone());
        }
        // Not under the lock: another thread may make the same one at worst, and both get the same bytes.
        let (matrix, report) = rewiring.apply(self.graph, self.spectrum.as_ref(), watch)?;
        let matrix = if attention { with_self_loops(&matrix) } else { matrix };
        let matrix = Arc::new(Propagation::new(matrix.map(|value| value as f32)));
        let made = Rewired { matrix, report: Arc::new(report) };
        let mut kept = kept();
        if kept.len() >= Self::KEPT {
            // The plain matrix is asked for most; of the others the oldest goes.
            let oldest = kept.iter().position(|(name, _)| !name.contains("Plain")).unwrap_or(0);
            kept.remove(oldest);
        }
        kept.push((key, made.clone()));
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
