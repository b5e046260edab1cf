//! The edges that could be added around a bottleneck x~y, and what each would do to its curvature.
//!
//! A candidate joins k in N(x) or x to l in N(y) or y. One that joins a neighbour of x to a neighbour of y
//! adds one square and is judged in constant time from the counts of both ends; one that starts at x or ends
//! in y adds a triangle and shifts a row of counts.

use super::curvature::{Sides, Terms, Variant};
use super::neighbourhoods::Neighbourhoods;

/// An edge that could be added, and the gain in curvature of the edge it supports.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Candidate {
    pub(super) ends: (u32, u32),
    pub(super) gain: f64,
}

/// The most candidates there are around an edge whose ends have so many neighbours.
pub(super) fn most(of_x: usize, of_y: usize) -> usize {
    of_x * of_y + of_x + of_y
}

/// All candidates around x~y.
pub(super) fn candidates(
    neighbourhoods: &Neighbourhoods,
    x: u32,
    y: u32,
    sides: &mut Sides,
    variant: Variant,
) -> Vec<Candidate> {
    sides.look_at(neighbourhoods, x, y, variant);
    let terms = sides.count_all(neighbourhoods);
    let before = terms.curvature(variant);
    let (of_x, of_y) = (neighbourhoods.of(x), neighbourhoods.of(y));
    let shared = |vertex: u32| neighbourhoods.adjacent(x, vertex) && neighbourhoods.adjacent(y, vertex);
    let shared_y: Vec<bool> = of_y.iter().map(|&l| shared(l)).collect();
    let counts_y: Vec<Option<u32>> = of_y.iter().map(|&l| sides.count(1, l)).collect();
    let mut result = Vec::with_capacity(most(of_x.len(), of_y.len()));
    let mut put = |k, l, after: Terms| {
        result.push(Candidate { ends: (k, l), gain: after.curvature(variant) - before });
    };

    for &k in of_x {
        let (k_shared, k_count) = (shared(k), sides.count(0, k));
        let mut skip = neighbourhoods.of(k).iter().peekable();
        for (at, &l) in of_y.iter().enumerate() {
            while skip.next_if(|&&other| other < l).is_some() {}
            // The formula does not care which way an edge points, so a pair of common neighbours is tried
            // once.
            let twin = variant == Variant::Formula && k > l && k_shared && shared_y[at];
            if k == l || twin || skip.peek() == Some(&&l) {
                continue;
            }
            let mut after = terms;
            if let (Some(k_count), Some(l_count)) = (k_count, counts_y[at]) {
                after.on_squares += usize::from(k_count == 0) + usize::from(l_count == 0);
                after.most_squares = after.most_squares.max(k_count + 1).max(l_count + 1);
            }
            put(k, l, after);
        }
    }
    for &l in of_y.iter().filter(|&&l| l != x && !neighbourhoods.adjacent(l, x)) {
        put(x, l, with_triangle(neighbourhoods, sides, terms, 0, l, variant));
    }
    for &k in of_x.iter().filter(|&&k| k != y && !neighbourhoods.adjacent(k, y)) {
        put(k, y, with_triangle(neighbourhoods, sides, terms, 1, k, variant));
    }
    result
}

/// The terms of x~y once the end on side `side` is joined to `apex`, a neighbour of the other end only.
fn with_triangle(
    neighbourhoods: &Neighbourhoods,
    sides: &Sides,
    before: Terms,
    side: usize,
    apex: u32,
    variant: Variant,
) -> Terms {
    let mut terms = Terms { on_squares: 0, most_squares: 0, triangles: before.triangles + 1, ..before };
    let with_counts = |side: usize| sides.members[side].iter().zip(&sides.counts[side]);
    let beside = |vertex: u32| u32::from(neighbourhoods.adjacent(apex, vertex));
    match variant {
        // The apex is now a common neighbour: it leaves its side, and takes its squares along.
        Variant::Formula => {
            terms.degrees[side] += 1;
            with_counts(side).for_each(|(&vertex, &count)| terms.see(count - beside(vertex)));
            with_counts(1 - side)
                .filter(|&(&vertex, _)| vertex != apex)
                .for_each(|(_, &count)| terms.see(count));
        }
        // The program adds the edge in one direction, which the degrees it reads do not see.
        Variant::Code => {
            with_counts(side).for_each(|(_, &count)| terms.see(count));
            with_counts(1 - side).for_each(|(&vertex, &count)| {
                let loss = u32::from(vertex == apex);
                terms.see((count + beside(vertex)).saturating_sub(loss));
            });
            // The apex joins the near side, with its common neighbours with the far end.
            let common = neighbourhoods.count_in(apex, &sides.bits[1 - side]);
            terms.see(common.saturating_sub(1));
        }
    }
    terms
}
