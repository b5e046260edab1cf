//! The edges that could be added around a bottleneck x~y, and what each would do to its curvature.
//!
//! A candidate joins k in N(x) or x to l in N(y) or y. One that joins a neighbour of x to a neighbour of y
//! adds at most one square. What that does depends on k only through its kind (whether it stands beside x~y at
//! all, whether it lies on no square yet, and whether on as many as any vertex), and on l likewise: sixteen
//! gains for what may be millions of pairs. A candidate that starts at x or ends in y adds a triangle and
//! shifts a few counts.

use std::ops::Range;

use super::TIE;
use super::curvature::{Sides, Terms, Variant};
use super::neighbourhoods::{Bits, Neighbourhoods, ordered};
use super::tally::Tally;

/// An edge that could be added, and the gain in curvature of the edge it supports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) ends: (u32, u32),
    pub(super) gain: f64,
}

/// All candidates around x~y: the pairs, k by k and each with ascending l, then x with l, then k with y.
#[derive(Debug)]
pub(super) struct Candidates<'a> {
    neighbourhoods: &'a Neighbourhoods,
    variant: Variant,
    of_x: &'a [u32],
    of_y: &'a [u32],
    beside_y: Bits,
    /// The neighbours of both.
    shared: Vec<u32>,
    /// The kinds of the neighbours of x, and of y.
    kinds: [Vec<u8>; 2],
    /// The kinds among the neighbours of y.
    partners: u8,
    /// By the kinds of both ends.
    gains: [[f64; 16]; 16],
    /// Those that add a triangle.
    triangles: Vec<Candidate>,
}

/// The kinds of a neighbour of x or y, as bits so that a set of kinds is a byte: it has no squares to count,
/// it lies on none, on some, on as many as any.
const KINDS: [u8; 4] = [OUTSIDE, ON_NONE, ON_SOME, ON_MOST];
const OUTSIDE: u8 = 1;
const ON_NONE: u8 = 2;
const ON_SOME: u8 = 4;
const ON_MOST: u8 = 8;

impl<'a> Candidates<'a> {
    /// Those around x~y. Costs about the sum of the degrees of their neighbours.
    pub(super) fn new(
        neighbourhoods: &'a Neighbourhoods,
        (x, y): (u32, u32),
        sides: &mut Sides,
        variant: Variant,
    ) -> Self {
        sides.look_at(neighbourhoods, x, y, variant);
        let terms = sides.count_all(neighbourhoods);
        let before = terms.curvature(variant);
        let (of_x, of_y) = (neighbourhoods.of(x), neighbourhoods.of(y));
        let kind = |side: usize, vertex: u32| match sides.count(side, vertex) {
            None => OUTSIDE,
            Some(0) => ON_NONE,
            Some(count) if count == terms.most_squares => ON_MOST,
            Some(_) => ON_SOME,
        };
        let kinds: [Vec<u8>; 2] =
            [of_x.iter().map(|&k| kind(0, k)).collect(), of_y.iter().map(|&l| kind(1, l)).collect()];
        let mut gains = [[0.0; 16]; 16];
        for (k, l) in KINDS.into_iter().flat_map(|k| KINDS.map(|l| (k, l))) {
            gains[usize::from(k)][usize::from(l)] = with_square(terms, [k, l]).curvature(variant) - before;
        }
        let beside_y = neighbourhoods.set(y);
        let shared = of_x.iter().copied().filter(|&vertex| beside_y.contains(vertex)).collect();

        let mut tally = Tally::new(sides);
        let mut triangles = Vec::with_capacity(of_x.len() + of_y.len());
        for &l in of_y.iter().filter(|&&l| l != x && !neighbourhoods.adjacent(x, l)) {
            let after = tally.with_triangle(neighbourhoods, sides, terms, (0, l), variant);
            triangles.push(Candidate { ends: (x, l), gain: after.curvature(variant) - before });
        }
        for &k in of_x.iter().filter(|&&k| k != y && !beside_y.contains(k)) {
            let after = tally.with_triangle(neighbourhoods, sides, terms, (1, k), variant);
            triangles.push(Candidate { ends: (k, y), gain: after.curvature(variant) - before });
        }
        let partners = kinds_in(&kinds[1]);
        Self { neighbourhoods, variant, of_x, of_y, beside_y, shared, kinds, partners, gains, triangles }
    }

    /// The candidate of greatest gain, the lowest pair among equals.
    pub(super) fn best(&self) -> Option<Candidate> {
        let bound = self.top()? - TIE;
        let promising = |&(_, kind): &(u32, u8)| self.greatest(kind, self.partners) >= Some(bound);
        let rows = self.rows().filter(promising).filter_map(|(k, kind)| {
            // The lowest partner of k makes the lowest pair with it.
            let mut pairs = self.places(k).into_iter().flatten().map(|place| self.pair(k, kind, place));
            pairs.find(|pair| pair.gain >= bound)
        });
        let triangles = self.triangles.iter().copied().filter(|candidate| candidate.gain >= bound);
        rows.chain(triangles).min_by_key(|candidate| ordered(candidate.ends))
    }

    /// A candidate drawn with probability proportional to exp(tau gain), by a uniform number in [0, 1).
    ///
    /// The weights are added in the order of the candidates: that takes a step for each, but no draw depends
    /// on how they are grouped.
    pub(super) fn draw(&self, tau: f64, uniform: f64) -> Option<Candidate> {
        let top = self.top()?;
        let weight = |gain: f64| (tau * (gain - top)).exp();
        let weights = self.gains.map(|gains| gains.map(weight));

        let mut sum = 0.0;
        for (k, kind) in self.rows() {
            let weights = &weights[usize::from(kind)];
            for run in self.places(k) {
                self.kinds[1][run].iter().for_each(|kind| sum += weights[usize::from(kind & 15)]);
            }
        }
        self.triangles.iter().for_each(|candidate| sum += weight(candidate.gain));

        let mut left = uniform * sum;
        let mut last = None;
        for (k, kind) in self.rows() {
            let weights = &weights[usize::from(kind)];
            for run in self.places(k) {
                last = Some((k, kind, run.end - 1));
                let drawn = self.kinds[1][run.clone()].iter().position(|kind| {
                    left -= weights[usize::from(kind & 15)];
                    left < 0.0
                });
                if let Some(place) = drawn {
                    return Some(self.pair(k, kind, run.start + place));
                }
            }
        }
        let drawn = self.triangles.iter().find(|candidate| {
            left -= weight(candidate.gain);
            left < 0.0
        });
        // Rounding can leave a little after all were passed.
        let last = || last.map(|(k, kind, place)| self.pair(k, kind, place));
        drawn.or(self.triangles.last()).copied().or_else(last)
    }

    /// The greatest gain, if there is a candidate.
    fn top(&self) -> Option<f64> {
        let mut top = self.triangles.iter().map(|candidate| candidate.gain).max_by(f64::total_cmp);
        for (k, kind) in self.rows() {
            // Most rows cannot surpass what was found in the first ones.
            if self.greatest(kind, self.partners) > top {
                let runs = self.places(k).into_iter().map(|run| kinds_in(&self.kinds[1][run]));
                let found = self.greatest(kind, runs.fold(0, |all, run| all | run));
                top = top.into_iter().chain(found).max_by(f64::total_cmp);
            }
        }
        top
    }

    /// The neighbours of x with their kinds.
    fn rows(&self) -> impl Iterator<Item = (u32, u8)> + '_ {
        self.of_x.iter().copied().zip(self.kinds[0].iter().copied())
    }

    /// The greatest gain of a neighbour of x of this kind with one of y of these kinds.
    fn greatest(&self, kind: u8, partners: u8) -> Option<f64> {
        let gain = |&partner: &u8| self.gains[usize::from(kind)][usize::from(partner)];
        KINDS.iter().filter(|&&partner| partners & partner != 0).map(gain).max_by(f64::total_cmp)
    }

    /// The places in N(y) of those that k can be joined to: not itself, and not its neighbours. The formula
    /// does not care which way an edge points, so that a pair of common neighbours is tried once.
    fn places(&self, k: u32) -> Vec<Range<usize>> {
        let place = |l: u32| self.of_y.partition_point(|&other| other < l);
        let neighbours = self.neighbourhoods.of(k).iter().filter(|&&l| self.beside_y.contains(l));
        let mut barred: Vec<usize> = neighbours.map(|&l| place(l)).collect();
        if self.beside_y.contains(k) {
            barred.push(place(k));
            if self.variant == Variant::Formula {
                barred.extend(self.shared.iter().take_while(|&&l| l < k).map(|&l| place(l)));
            }
            barred.sort_unstable();
        }
        let starts = [0].into_iter().chain(barred.iter().map(|barred| barred + 1));
        let ends = barred.iter().copied().chain([self.of_y.len()]);
        starts.zip(ends).map(|(start, end)| start..end).filter(|run| !run.is_empty()).collect()
    }

    fn pair(&self, k: u32, kind: u8, place: usize) -> Candidate {
        let gain = self.gains[usize::from(kind)][usize::from(self.kinds[1][place])];
        Candidate { ends: (k, self.of_y[place]), gain }
    }
}

/// The set of some kinds.
fn kinds_in(kinds: &[u8]) -> u8 {
    kinds.iter().fold(0, |all, kind| all | kind)
}

/// The terms of x~y once a neighbour of x and one of y, of these kinds, are joined.
fn with_square(mut terms: Terms, kinds: [u8; 2]) -> Terms {
    if kinds.contains(&OUTSIDE) {
        return terms;
    }
    for kind in kinds {
        terms.on_squares += u32::from(kind == ON_NONE);
    }
    // A first square makes 1 the most; another one at a vertex that lies on the most makes one more.
    if terms.most_squares == 0 || kinds.contains(&ON_MOST) {
        terms.most_squares += 1;
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Graph};
    use proptest::prelude::*;

    /// The curvature of x~y by its definition, from a table of who points to whom. The degrees are those of
    /// the table for the formula, and given for the program.
    fn by_definition(arcs: &[Vec<bool>], (x, y): (usize, usize), degrees: [u32; 2], variant: Variant) -> f64 {
        let nodes = 0..arcs.len();
        let paths = |from: usize, to: usize| nodes.clone().filter(|&m| arcs[from][m] && arcs[m][to]).count();
        let mut counts = Vec::new();
        for v in nodes.clone() {
            match variant {
                Variant::Formula => {
                    let side = |v: usize, near: usize, far: usize| v != far && arcs[v][near] && !arcs[v][far];
                    for (near, far) in [(x, y), (y, x)] {
                        if side(v, near, far) {
                            let partners = nodes.clone().filter(|&w| side(w, far, near) && arcs[v][w]);
                            counts.push(partners.count());
                        }
                    }
                }
                Variant::Code => {
                    if arcs[x][v] {
                        counts.push(paths(v, y).saturating_sub(usize::from(arcs[v][y])));
                    }
                    if arcs[v][y] {
                        counts.push(paths(x, v).saturating_sub(usize::from(arcs[x][v])));
                    }
                }
            }
        }
        let terms = Terms {
            degrees,
            triangles: paths(x, y) as u32,
            on_squares: counts.iter().filter(|&&count| count > 0).count() as u32,
            most_squares: counts.iter().copied().max().unwrap_or(0) as u32,
        };
        terms.curvature(variant)
    }

    /// Every candidate around x~y in its order, each judged on its own.
    fn one_by_one(graph: &Graph, (x, y): (u32, u32), variant: Variant) -> Vec<Candidate> {
        let mut arcs = vec![vec![false; graph.nodes()]; graph.nodes()];
        for (a, b, _) in graph.edge_list() {
            arcs[a as usize][b as usize] = true;
            arcs[b as usize][a as usize] = true;
        }
        let degree = |arcs: &[Vec<bool>], v: u32| arcs[v as usize].iter().filter(|&&arc| arc).count() as u32;
        let known = [degree(&arcs, x), degree(&arcs, y)];
        let at = (x as usize, y as usize);
        let before = by_definition(&arcs, at, known, variant);
        let (of_x, of_y) = (graph.neighbours(x as usize), graph.neighbours(y as usize));
        let pairs = of_x.iter().flat_map(|&k| of_y.iter().map(move |&l| (k, l)));
        let ends = pairs.chain(of_y.iter().map(|&l| (x, l))).chain(of_x.iter().map(|&k| (k, y)));
        let mut result: Vec<Candidate> = Vec::new();
        for (k, l) in ends {
            let twin = variant == Variant::Formula && result.iter().any(|other| other.ends == (l, k));
            if k == l || arcs[k as usize][l as usize] || twin {
                continue;
            }
            let mut with = arcs.clone();
            with[k as usize][l as usize] = true;
            let mut degrees = known;
            if variant == Variant::Formula {
                with[l as usize][k as usize] = true;
                degrees = [degree(&with, x), degree(&with, y)];
            }
            let gain = by_definition(&with, at, degrees, variant) - before;
            result.push(Candidate { ends: (k, l), gain });
        }
        result
    }

    /// The choices by their definitions, from a list of all candidates.
    fn best_of(choices: &[Candidate]) -> Option<Candidate> {
        let bound = choices.iter().map(|choice| choice.gain).max_by(f64::total_cmp)? - TIE;
        choices
            .iter()
            .filter(|choice| choice.gain >= bound)
            .min_by_key(|choice| ordered(choice.ends))
            .copied()
    }

    fn drawn_of(choices: &[Candidate], tau: f64, uniform: f64) -> Option<Candidate> {
        let top = choices.iter().map(|choice| choice.gain).max_by(f64::total_cmp)?;
        let weight = |choice: &Candidate| (tau * (choice.gain - top)).exp();
        let mut left = uniform * choices.iter().map(weight).sum::<f64>();
        let drawn = choices.iter().find(|choice| {
            left -= weight(choice);
            left < 0.0
        });
        drawn.or(choices.last()).copied()
    }

    /// Compares the groups with the list around every edge of a graph, to the last bit.
    fn compare(graph: &Graph, variant: Variant, tau: f64, uniforms: &[f64]) {
        let neighbourhoods = Neighbourhoods::new(graph);
        let mut sides = Sides::new(graph.nodes());
        for (x, y, _) in graph.edge_list() {
            let listed = one_by_one(graph, (x, y), variant);
            let grouped = Candidates::new(&neighbourhoods, (x, y), &mut sides, variant);
            assert_eq!(grouped.best(), best_of(&listed), "{x}~{y} {variant:?}");
            for &uniform in uniforms {
                let found = grouped.draw(tau, uniform);
                assert_eq!(found, drawn_of(&listed, tau, uniform), "{x}~{y} {variant:?} {uniform}");
            }
            // Draws that walk through all candidates meet each with its gain.
            let count = listed.len();
            for (number, &candidate) in listed.iter().enumerate() {
                let middle = (number as f64 + 0.5) / count as f64;
                assert_eq!(grouped.draw(0.0, middle), Some(candidate), "{x}~{y} {variant:?} {number}");
            }
        }
    }

    #[test]
    fn an_edge_of_a_complete_graph_has_no_candidates() {
        let triangle = Graph::from_edges(3, [(0, 1), (1, 2), (0, 2)], EdgeRule::Undirected).unwrap();
        let neighbourhoods = Neighbourhoods::new(&triangle);
        let candidates = Candidates::new(&neighbourhoods, (0, 1), &mut Sides::new(3), Variant::Formula);
        assert_eq!((candidates.best(), candidates.draw(1.0, 0.5)), (None, None));
    }

    #[test]
    fn a_draw_follows_the_softmax() {
        // A path: the candidates around its middle are 0~3 (a square, gain 1), and 1~3 and 0~2.
        let path = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3)], EdgeRule::Undirected).unwrap();
        let neighbourhoods = Neighbourhoods::new(&path);
        let candidates = Candidates::new(&neighbourhoods, (1, 2), &mut Sides::new(4), Variant::Formula);
        let listed = one_by_one(&path, (1, 2), Variant::Formula);
        assert_eq!(listed.iter().map(|choice| choice.ends).collect::<Vec<_>>(), [(0, 3), (1, 3), (0, 2)]);
        let weights: Vec<f64> = listed.iter().map(|choice| (2.0 * choice.gain).exp()).collect();
        let share = weights[0] / weights.iter().sum::<f64>();
        assert_eq!(candidates.draw(2.0, share - 1e-6).unwrap().ends, (0, 3));
        assert_eq!(candidates.draw(2.0, share + 1e-6).unwrap().ends, (1, 3));
        assert_eq!(candidates.draw(0.0, 0.34).unwrap().ends, (1, 3), "tau 0 is uniform");
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        /// Sparse and dense graphs, with and without a hub.
        #[test]
        fn groups_choose_as_a_list_of_all_candidates_does(
            edges in proptest::collection::vec((0u64..13, 0u64..13), 4..60),
            hub in any::<bool>(),
            code in any::<bool>(),
            tau in prop_oneof![Just(0.0), Just(3.0), Just(200.0)],
            uniforms in proptest::collection::vec(0.0..1.0, 4),
        ) {
            let spokes = (1..13u64).filter(|_| hub).map(|other| (0, other));
            let graph = Graph::from_edges(13, edges.into_iter().chain(spokes), EdgeRule::Undirected).unwrap();
            compare(&graph, if code { Variant::Code } else { Variant::Formula }, tau, &uniforms);
        }
    }
}
