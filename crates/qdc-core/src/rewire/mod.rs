//! Rewiring by curvature: stochastic discrete Ricci flow (SDRF) of Topping et al., the baseline the paper's
//! table calls SDRL.
//!
//! Edges of strongly negative curvature are bottlenecks. Each iteration takes the worst one, x~y, adds the
//! edge near it that raises its curvature most (or draws one by a softmax over the gains), and removes the
//! edge of greatest curvature if that exceeds a bound. Candidates are judged by groups, and curvatures follow
//! the changed edges count by count.

mod candidates;
mod curvature;
mod edges;
mod neighbourhoods;
mod popcount;
mod shifts;
mod squares;
mod tally;

use rand::{RngExt, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

use self::candidates::{Candidate, Candidates};
use self::curvature::Sides;
use self::edges::Edges;
use self::neighbourhoods::ordered;
use crate::{EdgeRule, Error, Graph, Watch, defaults};

pub use self::curvature::{Variant, balanced_forman};

/// Curvatures and gains this close are equal; the choice then goes to the lowest pair of vertices.
const TIE: f64 = 1e-9;

/// Bytes of a vertex: the headers of its lists and its bitset.
const BYTES_PER_NODE: usize = 96;
/// Bytes of an edge: twice in lists with its number, its terms while the vectors of them grow, and twice in
/// the graph that comes out.
const BYTES_PER_EDGE: usize = 2 * 8 + 2 * 48 + 2 * 24;

/// Stochastic discrete Ricci flow: what to do, checked when it runs.
///
/// ```
/// use qdc_core::rewire::Sdrf;
/// use qdc_core::{EdgeRule, Graph, Watch};
///
/// // Two triangles joined by an edge, the bottleneck.
/// let edges = [(0, 1), (1, 2), (2, 0), (2, 3), (3, 4), (4, 5), (5, 3)];
/// let graph = Graph::from_edges(6, edges, EdgeRule::Undirected)?;
/// let (rewired, report) = Sdrf::new(1).run(&graph, &Watch::silent())?;
/// assert_eq!(report.steps[0].edge, (2, 3));
/// assert_eq!(rewired.edges(), graph.edges() + report.added - report.removed);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct Sdrf {
    iterations: usize,
    tau: f64,
    removal_bound: f64,
    variant: Variant,
    seed: u64,
}

/// One iteration.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Step {
    /// The edge of least curvature.
    pub edge: (u32, u32),
    /// Its curvature.
    pub curvature: f64,
    /// The edge that was added, if there was a candidate.
    pub added: Option<(u32, u32)>,
    /// What the added edge does to the curvature of `edge`.
    pub gain: f64,
    /// The edge that was removed, if one lay above the bound.
    pub removed: Option<(u32, u32)>,
    /// The greatest curvature before anything changed.
    pub greatest: f64,
}

/// What SDRF did.
#[derive(Clone, Debug, PartialEq, serde::Serialize)]
pub struct SdrfReport {
    /// The flow that ran.
    pub flow: Sdrf,
    /// Edges added.
    pub added: usize,
    /// Edges removed.
    pub removed: usize,
    /// Whether it stopped early, with no candidate to add and nothing to remove.
    pub exhausted: bool,
    /// The least curvature before the first and after the last iteration.
    pub least_curvature: (f64, f64),
    /// Curvatures computed, the first pass over all edges included.
    pub curvatures: usize,
    /// Every iteration.
    pub steps: Vec<Step>,
}

impl Sdrf {
    /// `iterations` steps that always take the best candidate, with removal above 0.5, by the formula.
    pub fn new(iterations: usize) -> Self {
        Self {
            iterations,
            tau: defaults::TAU,
            removal_bound: defaults::REMOVAL_BOUND,
            variant: Variant::Formula,
            seed: 0,
        }
    }

    /// The most edges it adds.
    pub fn iterations(&self) -> usize {
        self.iterations
    }

    /// Draws candidates with probability proportional to exp(tau gain); infinite: the best one. Default
    /// infinite.
    pub fn tau(self, tau: f64) -> Self {
        Self { tau, ..self }
    }

    /// Removes the edge of greatest curvature where that exceeds `bound`; infinite: never. Default 0.5.
    pub fn removal_bound(self, bound: f64) -> Self {
        Self { removal_bound: bound, ..self }
    }

    /// Which curvature; default the formula.
    pub fn variant(self, variant: Variant) -> Self {
        Self { variant, ..self }
    }

    /// The seed of the draws; it plays no part when `tau` is infinite.
    pub fn seed(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Bytes that rewiring a graph takes, an estimate: lists and bitsets of neighbours, and the curvature of
    /// each edge with its terms.
    pub fn memory(&self, graph: &Graph) -> u64 {
        let (nodes, edges) = (graph.nodes(), graph.edges() + self.iterations);
        let neighbours = |vertex: u32| graph.neighbours(vertex as usize).len();
        let bitsets = (0..nodes as u32).filter(|&vertex| neighbours(vertex) > nodes.div_ceil(64)).count();
        let parts = [(BYTES_PER_NODE, nodes), (BYTES_PER_EDGE, edges), (nodes / 8, bitsets)];
        parts.iter().map(|&(bytes, count)| bytes as u64 * count as u64).sum()
    }

    /// Rewires a graph. Weights play no part in the choices; edges keep theirs, and added ones weigh 1.
    ///
    /// Same graph, same flow, same seed: the same result, for any number of threads.
    ///
    /// # Errors
    /// If tau or the removal bound is out of range, or the watch asks to stop.
    pub fn run(&self, graph: &Graph, watch: &Watch) -> Result<(Graph, SdrfReport), Error> {
        self.check()?;
        let mut edges = Edges::new(graph, self.variant, watch)?;
        let mut report = SdrfReport {
            flow: self.clone(),
            added: 0,
            removed: 0,
            exhausted: false,
            least_curvature: (edges.least().map_or(0.0, |edge| edge.1), 0.0),
            curvatures: 0,
            steps: Vec::new(),
        };
        let mut random = Xoshiro256PlusPlus::seed_from_u64(self.seed);
        let mut sides = Sides::new(graph.nodes());

        let phase = watch.phase("rewiring", self.iterations as u64);
        for _ in 0..self.iterations {
            let (Some((edge, curvature)), Some((flattest, greatest))) = (edges.least(), edges.most()) else {
                report.exhausted = true;
                break;
            };
            let choices = Candidates::new(&edges.neighbourhoods, edge, &mut sides, self.variant);
            let chosen = if self.tau == f64::INFINITY {
                choices.best()
            } else {
                choices.draw(self.tau, random.random())
            };
            let removed = (greatest > self.removal_bound).then_some(flattest);
            if chosen.is_none() && removed.is_none() {
                report.exhausted = true;
                break;
            }
            if let Some(Candidate { ends: (k, l), .. }) = chosen {
                edges.add(k, l);
            }
            if let Some((a, b)) = removed {
                edges.remove(a, b);
            }

            let added = chosen.map(|candidate| ordered(candidate.ends));
            report.added += usize::from(added.is_some());
            report.removed += usize::from(removed.is_some());
            let gain = chosen.map_or(0.0, |candidate| candidate.gain);
            report.steps.push(Step { edge, curvature, added, gain, removed, greatest });
            phase.advance(1)?;
        }

        report.curvatures = edges.computed;
        report.least_curvature.1 = edges.least().map_or(0.0, |edge| edge.1);
        let weight = |(a, b): (u32, u32)| graph.adjacency().get(a as usize, b).unwrap_or(1.0);
        let rewired = edges.neighbourhoods.edges();
        let rewired = rewired.map(|(a, b)| (u64::from(a), u64::from(b), weight((a, b))));
        Ok((Graph::from_weighted_edges(graph.nodes(), rewired, EdgeRule::Undirected)?, report))
    }

    fn check(&self) -> Result<(), Error> {
        let wrong = |name, value, requirement| Err(Error::Parameter { name, value, requirement });
        if self.tau.is_nan() || self.tau < 0.0 {
            return wrong("tau", self.tau, "0 or more; infinite takes the best candidate");
        }
        if self.removal_bound.is_nan() {
            return wrong("removal_bound", self.removal_bound, "a number; infinite removes nothing");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn graph(nodes: usize, edges: &[(u64, u64)]) -> Graph {
        Graph::from_edges(nodes, edges.iter().copied(), EdgeRule::Undirected).unwrap()
    }

    fn run(graph: &Graph, flow: &Sdrf) -> (Graph, SdrfReport) {
        flow.run(graph, &Watch::silent()).unwrap()
    }

    #[test]
    fn a_graph_without_edges_has_nothing_to_rewire() {
        let (rewired, report) = run(&graph(3, &[]), &Sdrf::new(5));
        assert_eq!((rewired.edges(), report.steps.len(), report.exhausted), (0, 0, true));
    }

    #[test]
    fn a_complete_graph_only_loses_edges_above_the_bound() {
        let triangle = graph(3, &[(0, 1), (1, 2), (0, 2)]);
        let (same, report) = run(&triangle, &Sdrf::new(5).removal_bound(f64::INFINITY));
        assert_eq!((&same, report.exhausted), (&triangle, true));
        let (less, report) = run(&triangle, &Sdrf::new(1));
        assert_eq!((less.edges(), report.steps[0].removed), (2, Some((0, 1))));
    }

    #[test]
    fn tau_and_the_bound_must_be_numbers() {
        let flows =
            [Sdrf::new(1).tau(f64::NAN), Sdrf::new(1).tau(-1.0), Sdrf::new(1).removal_bound(f64::NAN)];
        for flow in flows {
            let outcome = flow.run(&graph(2, &[(0, 1)]), &Watch::silent());
            assert!(matches!(outcome, Err(Error::Parameter { .. })), "{flow:?}");
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]

        /// What the increments keep track of equals a computation from scratch, and gains are what they
        /// promise.
        #[test]
        fn increments_agree_with_a_computation_from_scratch(
            edges in proptest::collection::vec((0u64..14, 0u64..14), 5..50),
            code in any::<bool>(),
            tau in prop_oneof![Just(f64::INFINITY), Just(5.0)],
            seed in any::<u64>(),
        ) {
            let start = graph(14, &edges);
            let variant = if code { Variant::Code } else { Variant::Formula };
            let flow = |steps| Sdrf::new(steps).variant(variant).tau(tau).seed(seed).removal_bound(0.8);
            for steps in 0..6 {
                let (rewired, report) = run(&start, &flow(steps));
                let fresh = balanced_forman(&rewired, variant, &Watch::silent()).unwrap();
                let least = fresh.iter().copied().fold(f64::INFINITY, f64::min);
                if rewired.edges() > 0 {
                    prop_assert!((report.least_curvature.1 - least).abs() <= TIE);
                }
                let next = run(&start, &flow(steps + 1)).1;
                if let (Variant::Formula, Some(step)) = (variant, next.steps.get(steps)) {
                    let (a, b) = step.added.unwrap_or(step.edge);
                    let with: Vec<_> = rewired.edge_list().map(|(i, j, _)| (u64::from(i), u64::from(j)))
                        .chain([(u64::from(a), u64::from(b))]).collect();
                    let with = graph(14, &with);
                    let at = with.edge_list().position(|(i, j, _)| (i, j) == step.edge).unwrap();
                    let after = balanced_forman(&with, variant, &Watch::silent()).unwrap()[at];
                    prop_assert!((after - step.curvature - step.gain).abs() < 1e-12);
                }
            }
        }
    }
}
