//! Balanced Forman curvature of an edge (Topping et al., "Understanding over-squashing and bottlenecks on
//! graphs via curvature", definition 1).
//!
//! With d the degrees of i and j, t their common neighbours, s the vertices on squares over i~j without a
//! diagonal, and g the most such squares through one of them,
//!
//! curvature(i, j) = 2/d_i + 2/d_j - 2 + 2 t / max(d) + t / min(d) + s / (g max(d)),
//!
//! and 0 if an end has degree 1. A square over i~j is an edge k~l from I = N(i) \ N(j) \ {j} to J = N(j) \
//! N(i) \ {i}; so s counts the vertices of I and J that such edges touch, and g is the largest number of them
//! at one vertex. Both come from one count per vertex, |N(k) and J| or |N(l) and I|.

use rayon::prelude::*;

use super::neighbourhoods::{Bits, Neighbourhoods};
use super::squares::all_terms;
use crate::{Error, Graph, Watch};

/// Which curvature is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// The published formula.
    #[default]
    Formula,
    /// What the authors' published program computes: squares with diagonals, the paths through the edge
    /// itself and its ends count too, degree 1 is no exception, and a candidate edge is tried in one
    /// direction only. Published SDRF results come from it.
    Code,
}

/// The balanced Forman curvature of every edge, along [`Graph::edge_list`]; weights are ignored.
///
/// Costs, for each pair of neighbours of a vertex, min(degree, N / 64) steps. Vertices are spread over the
/// current thread pool; the result does not depend on the number of threads.
///
/// ```
/// use qdc_core::rewire::{Variant, balanced_forman};
/// use qdc_core::{EdgeRule, Graph, Watch};
///
/// let square = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3), (3, 0)], EdgeRule::Undirected)?;
/// let curvature = balanced_forman(&square, Variant::Formula, &Watch::silent())?;
/// assert_eq!(curvature, [1.0; 4]); // each edge lies on one square: s = 2, g = 1
/// # Ok::<(), qdc_core::Error>(())
/// ```
///
/// # Errors
/// If the watch asks to stop.
pub fn balanced_forman(graph: &Graph, variant: Variant, watch: &Watch) -> Result<Vec<f64>, Error> {
    let neighbourhoods = Neighbourhoods::new(graph);
    let terms = all_terms(&neighbourhoods, variant, watch)?;
    Ok(terms.iter().map(|terms| terms.curvature(variant)).collect())
}

/// What the curvatures of some edges are made of.
pub(super) fn terms(neighbourhoods: &Neighbourhoods, edges: &[(u32, u32)], variant: Variant) -> Vec<Terms> {
    const CHUNK: usize = 64;
    let look_at = |sides: &mut Sides, &(x, y): &(u32, u32)| {
        sides.look_at(neighbourhoods, x, y, variant);
        sides.terms(neighbourhoods)
    };
    let edges = edges.par_iter().with_min_len(CHUNK);
    edges.map_init(|| Sides::new(neighbourhoods.nodes()), look_at).collect()
}

/// What the curvature of an edge is made of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Terms {
    pub(super) degrees: [u32; 2],
    pub(super) triangles: u32,
    /// Vertices with a positive count of squares.
    pub(super) on_squares: u32,
    /// The largest count.
    pub(super) most_squares: u32,
}

impl Terms {
    pub(super) fn curvature(&self, variant: Variant) -> f64 {
        let [a, b] = self.degrees;
        if variant == Variant::Formula && a.min(b) == 1 {
            return 0.0;
        }
        let (most, least) = (f64::from(a.max(b)), f64::from(a.min(b)));
        let squares = match self.most_squares {
            0 => 0.0,
            largest => f64::from(self.on_squares) / (f64::from(largest) * most),
        };
        let triangles = f64::from(self.triangles);
        2.0 / most + 2.0 / least - 2.0 + 2.0 * triangles / most + triangles / least + squares
    }

    /// Enters one more vertex with its count of squares.
    #[inline]
    pub(super) fn see(&mut self, count: u32) {
        self.on_squares += u32::from(count > 0);
        self.most_squares = self.most_squares.max(count);
    }
}

/// The vertices on both sides of an edge x~y, and how many squares over the edge each lies on.
///
/// `formula`: the sides are I and J, the neighbours of one end only. `code`: all neighbours of x, and of y.
/// In both the count of a vertex k beside x is |N(k) and (side of y)|, less one if k itself stands there.
#[derive(Clone, Debug)]
pub(super) struct Sides {
    pub(super) members: [Vec<u32>; 2],
    /// Along `members`, once they were counted.
    pub(super) counts: [Vec<u32>; 2],
    /// `members` as bits.
    pub(super) bits: [Bits; 2],
    degrees: [u32; 2],
    triangles: u32,
}

impl Sides {
    pub(super) fn new(nodes: usize) -> Self {
        Self {
            members: Default::default(),
            counts: Default::default(),
            bits: [Bits::new(nodes), Bits::new(nodes)],
            degrees: [0; 2],
            triangles: 0,
        }
    }

    /// Turns to the edge x~y.
    pub(super) fn look_at(&mut self, neighbourhoods: &Neighbourhoods, x: u32, y: u32, variant: Variant) {
        for side in 0..2 {
            self.bits[side].clear(&self.members[side]);
            self.members[side].clear();
            self.counts[side].clear();
        }
        let (of_x, of_y) = (neighbourhoods.of(x), neighbourhoods.of(y));
        self.degrees = [of_x.len() as u32, of_y.len() as u32];
        self.triangles = 0;
        for_each_in_union(of_x, of_y, |vertex, in_x, in_y| {
            let shared = in_x && in_y;
            self.triangles += u32::from(shared);
            let is_end = vertex == x || vertex == y;
            if variant == Variant::Formula && (shared || is_end) {
                return;
            }
            for (side, inside) in [in_x, in_y].into_iter().enumerate() {
                if inside {
                    self.members[side].push(vertex);
                    self.bits[side].insert(vertex);
                }
            }
        });
    }

    /// The terms of the curvature, without the counts.
    ///
    /// A vertex whose degree does not exceed the largest count so far cannot raise it: whether it lies on a
    /// square at all is then enough, and known after a few steps. On graphs with hubs this saves most of the
    /// work.
    pub(super) fn terms(&self, neighbourhoods: &Neighbourhoods) -> Terms {
        let mut terms = self.terms_without_squares();
        for side in 0..2 {
            let opposite = &self.bits[1 - side];
            for &vertex in &self.members[side] {
                let own = u32::from(opposite.contains(vertex));
                if neighbourhoods.of(vertex).len() <= terms.most_squares as usize {
                    terms.on_squares += u32::from(neighbourhoods.has_more_in(vertex, opposite, own));
                } else {
                    terms.see(neighbourhoods.count_in(vertex, opposite) - own);
                }
            }
        }
        terms
    }

    /// Fills in the counts, and gives the terms.
    pub(super) fn count_all(&mut self, neighbourhoods: &Neighbourhoods) -> Terms {
        let mut terms = self.terms_without_squares();
        for side in 0..2 {
            let opposite = &self.bits[1 - side];
            for &vertex in &self.members[side] {
                let own = u32::from(opposite.contains(vertex));
                let count = neighbourhoods.count_in(vertex, opposite) - own;
                self.counts[side].push(count);
                terms.see(count);
            }
        }
        terms
    }

    fn terms_without_squares(&self) -> Terms {
        Terms { degrees: self.degrees, triangles: self.triangles, ..Terms::default() }
    }

    /// The count of a vertex on a side, if it stands there.
    pub(super) fn count(&self, side: usize, vertex: u32) -> Option<u32> {
        self.members[side].binary_search(&vertex).ok().map(|at| self.counts[side][at])
    }
}

/// Calls `visit(vertex, in a, in b)` for each vertex of two ascending lists, in ascending order.
fn for_each_in_union(a: &[u32], b: &[u32], mut visit: impl FnMut(u32, bool, bool)) {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    while let Some(&vertex) = match (a.peek(), b.peek()) {
        (Some(&x), Some(&y)) => Some(x.min(y)),
        (x, y) => x.copied().or(y.copied()),
    } {
        visit(vertex, a.next_if_eq(&&vertex).is_some(), b.next_if_eq(&&vertex).is_some());
    }
}
