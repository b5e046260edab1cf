//! Every edge with its curvature, kept up to date while edges come and go.
//!
//! An edge keeps the terms of its curvature. When another edge is added or removed, the counts of squares
//! that change are known one by one ([`for_each_shift`]); only where the largest count of an edge falls is it
//! not known what the largest is now, and the edge is looked at anew.

use super::TIE;
use super::curvature::{Terms, Variant, terms};
use super::neighbourhoods::{Neighbourhoods, ordered};
use super::shifts::for_each_shift;
use super::squares::all_terms;
use crate::{Error, Graph, Watch};

/// The edges of a graph that is being rewired; every vector is indexed by the number of the edge.
#[derive(Clone, Debug)]
pub(super) struct Edges {
    pub(super) neighbourhoods: Neighbourhoods,
    variant: Variant,
    ends: Vec<(u32, u32)>,
    terms: Vec<Terms>,
    curvatures: Vec<f64>,
    /// Curvatures computed so far.
    pub(super) computed: usize,
    freshness: Vec<Freshness>,
    /// Those that are not fresh.
    changed: Vec<u32>,
}

/// What is known of an edge while others change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Freshness {
    Fresh,
    /// The terms are right, the curvature is not.
    Changed,
    /// The terms are no longer known.
    Stale,
}

impl Edges {
    /// The edges of a graph. Costs what [`super::balanced_forman`] costs.
    pub(super) fn new(graph: &Graph, variant: Variant, watch: &Watch) -> Result<Self, Error> {
        let neighbourhoods = Neighbourhoods::new(graph);
        let ends: Vec<(u32, u32)> = neighbourhoods.edges().collect();
        let terms = all_terms(&neighbourhoods, variant, watch)?;
        let curvatures: Vec<f64> = terms.iter().map(|terms| terms.curvature(variant)).collect();
        let (computed, freshness) = (ends.len(), vec![Freshness::Fresh; ends.len()]);
        Ok(Self {
            neighbourhoods,
            variant,
            ends,
            terms,
            curvatures,
            computed,
            freshness,
            changed: Vec::new(),
        })
    }

    /// The edge of least curvature, the lowest pair among equals.
    pub(super) fn least(&self) -> Option<((u32, u32), f64)> {
        let bound = self.curvatures.iter().copied().min_by(f64::total_cmp)? + TIE;
        self.lowest(|value| value <= bound)
    }

    /// The edge of greatest curvature, the lowest pair among equals.
    pub(super) fn most(&self) -> Option<((u32, u32), f64)> {
        let bound = self.curvatures.iter().copied().max_by(f64::total_cmp)? - TIE;
        self.lowest(|value| value >= bound)
    }

    fn lowest(&self, wanted: impl Fn(f64) -> bool) -> Option<((u32, u32), f64)> {
        let all = self.ends.iter().copied().zip(self.curvatures.iter().copied());
        all.filter(|&(_, value)| wanted(value)).min_by_key(|&(ends, _)| ends)
    }

    /// Joins two vertices that are not neighbours.
    pub(super) fn add(&mut self, a: u32, b: u32) {
        self.shift(a, b, 1);
        let number = self.ends.len() as u32;
        self.neighbourhoods.connect(a, b, number);
        self.ends.push(ordered((a, b)));
        self.terms.push(Terms::default());
        self.curvatures.push(0.0);
        self.freshness.push(Freshness::Fresh);
        mark(&mut self.freshness, &mut self.changed, number, Freshness::Stale);
        self.refresh();
    }

    /// Parts two neighbours. The last edge takes the number of theirs.
    pub(super) fn remove(&mut self, a: u32, b: u32) {
        let number = self.neighbourhoods.disconnect(a, b);
        let at = number as usize;
        self.ends.swap_remove(at);
        self.terms.swap_remove(at);
        self.curvatures.swap_remove(at);
        self.freshness.swap_remove(at);
        if let Some(&moved) = self.ends.get(at) {
            self.neighbourhoods.renumber(moved, number);
        }
        self.shift(a, b, -1);
        self.refresh();
    }

    /// Changes the terms of all other edges when a~b comes (`sign` 1) or goes (-1), in the graph without it.
    fn shift(&mut self, a: u32, b: u32, sign: i32) {
        let Self { neighbourhoods, variant, terms, freshness, changed, .. } = self;
        let mut mark = |edge: u32, state| mark(freshness, changed, edge, state);
        for (near, far) in [(a, b), (b, a)] {
            for (j, edge) in neighbourhoods.numbered(near) {
                let terms = &mut terms[edge as usize];
                let end = usize::from(near > j);
                terms.degrees[end] = terms.degrees[end].wrapping_add_signed(sign);
                if neighbourhoods.adjacent(far, j) {
                    terms.triangles = terms.triangles.wrapping_add_signed(sign);
                }
                mark(edge, Freshness::Changed);
            }
        }
        for_each_shift(neighbourhoods, (a, b), *variant, |shift| {
            let (from, to) = if sign > 0 { (shift.without, shift.with) } else { (shift.with, shift.without) };
            let terms = &mut terms[shift.edge as usize];
            terms.on_squares = terms.on_squares + u32::from(to > 0) - u32::from(from > 0);
            let falls = to < from && from == terms.most_squares;
            terms.most_squares = terms.most_squares.max(to);
            mark(shift.edge, if falls { Freshness::Stale } else { Freshness::Changed });
        });
    }

    /// Makes every edge fresh.
    fn refresh(&mut self) {
        let stale = |&&edge: &&u32| self.freshness[edge as usize] == Freshness::Stale;
        let stale: Vec<usize> = self.changed.iter().filter(stale).map(|&edge| edge as usize).collect();
        let ends: Vec<(u32, u32)> = stale.iter().map(|&edge| self.ends[edge]).collect();
        let anew = terms(&self.neighbourhoods, &ends, self.variant);
        for (edge, terms) in stale.into_iter().zip(anew) {
            self.terms[edge] = terms;
        }
        self.computed += self.changed.len();
        for edge in self.changed.drain(..) {
            let edge = edge as usize;
            self.curvatures[edge] = self.terms[edge].curvature(self.variant);
            self.freshness[edge] = Freshness::Fresh;
        }
    }
}

/// Notes that an edge is no longer fresh; what is stale stays so.
fn mark(freshness: &mut [Freshness], changed: &mut Vec<u32>, edge: u32, state: Freshness) {
    let known = &mut freshness[edge as usize];
    if *known == Freshness::Fresh {
        changed.push(edge);
    }
    if *known != Freshness::Stale {
        *known = state;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EdgeRule;
    use proptest::prelude::*;

    fn assert_right(edges: &Edges, nodes: usize) {
        let pairs = edges.neighbourhoods.edges().map(|(a, b)| (u64::from(a), u64::from(b)));
        let graph = Graph::from_edges(nodes, pairs, EdgeRule::Undirected).unwrap();
        let fresh = Edges::new(&graph, edges.variant, &Watch::silent()).unwrap();
        let sorted = |edges: &Edges| {
            let mut all: Vec<_> = (0..edges.ends.len())
                .map(|at| (edges.ends[at], edges.terms[at], edges.curvatures[at].to_bits()))
                .collect();
            all.sort_unstable_by_key(|edge| edge.0);
            all
        };
        assert_eq!(sorted(edges), sorted(&fresh));
        assert_eq!(fresh.terms, terms(&fresh.neighbourhoods, &fresh.ends, fresh.variant), "edge by edge");
        assert_eq!((edges.least(), edges.most()), (fresh.least(), fresh.most()));
        for (number, &(a, b)) in edges.ends.iter().enumerate() {
            let number = number as u32;
            for (from, to) in [(a, b), (b, a)] {
                assert!(edges.neighbourhoods.numbered(from).any(|found| found == (to, number)));
            }
        }
    }

    #[test]
    fn an_edge_that_comes_and_goes_leaves_nothing_behind() {
        // Two stars of five leaves, joined: the centres' counts jump when leaves are joined crosswise.
        let stars = (1..6).map(|leaf| (0, leaf)).chain((7..12).map(|leaf| (6, leaf))).chain([(0, 6)]);
        let graph = Graph::from_edges(12, stars, EdgeRule::Undirected).unwrap();
        for variant in [Variant::Formula, Variant::Code] {
            let start = Edges::new(&graph, variant, &Watch::silent()).unwrap();
            let mut edges = start.clone();
            edges.add(1, 7);
            assert!(edges.curvatures != start.curvatures, "a square raises the curvature of 0~6");
            edges.remove(7, 1);
            assert_eq!((&edges.terms, &edges.curvatures), (&start.terms, &start.curvatures));
            assert!(edges.computed > start.computed);
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(96))]

        /// Sparse and dense graphs, with and without hubs, small enough that every vertex has a list only and
        /// large enough that some have bits.
        #[test]
        fn terms_follow_the_edges_as_if_computed_anew(
            nodes in prop_oneof![Just(12u64), Just(70u64)],
            edges in proptest::collection::vec((0u64..70, 0u64..70), 4..120),
            hubs in 0u64..3,
            changes in proptest::collection::vec((0u32..70, 0u32..70), 1..12),
            code in any::<bool>(),
        ) {
            let variant = if code { Variant::Code } else { Variant::Formula };
            let spokes = (0..hubs).flat_map(|hub| (hub + 1..nodes).map(move |other| (hub, other)));
            let pairs = edges.into_iter().map(|(a, b)| (a % nodes, b % nodes)).chain(spokes);
            let nodes = nodes as usize;
            let graph = Graph::from_edges(nodes, pairs, EdgeRule::Undirected).unwrap();
            let mut edges = Edges::new(&graph, variant, &Watch::silent()).unwrap();
            for (a, b) in changes {
                let (a, b) = (a % nodes as u32, b % nodes as u32);
                if a != b {
                    if edges.neighbourhoods.adjacent(a, b) {
                        edges.remove(a, b);
                    } else {
                        edges.add(a, b);
                    }
                    assert_right(&edges, nodes);
                }
            }
        }
    }
}
