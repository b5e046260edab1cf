//! The terms of all curvatures at once, vertex by vertex.
//!
//! Over an edge i~j the vertex k beside i counts |N(k) and N(j) \ N(i) \ {i}| squares, and that is what j
//! counts over the edge i~k. So the pairs of neighbours of i are looked at once, for both edges, and one set
//! serves all pairs with k. The same holds for the published program with |N(k) and N(j)|, less one if they
//! are neighbours.

use rayon::prelude::*;

use super::curvature::{Terms, Variant};
use super::neighbourhoods::{Bits, Neighbourhoods};
use crate::{Error, Watch};

/// What the curvature of every edge is made of, by the numbers of the edges.
///
/// Costs, for each pair of neighbours of a vertex, min(degree, N / 64) steps. Vertices are spread over the
/// current thread pool.
pub(super) fn all_terms(
    neighbourhoods: &Neighbourhoods,
    variant: Variant,
    watch: &Watch,
) -> Result<Vec<Terms>, Error> {
    let nodes = neighbourhoods.nodes();
    let edges = neighbourhoods.edges().count();
    let phase = watch.phase("curvature", 2 * edges as u64);
    let halves = (0..nodes as u32)
        .into_par_iter()
        .with_max_len(16)
        .map_init(
            || Scratch::new(nodes),
            |scratch, vertex| {
                let halves = scratch.look_around(neighbourhoods, vertex, variant);
                phase.advance(halves.len() as u64)?;
                Ok(halves)
            },
        )
        .collect::<Result<Vec<_>, Error>>()?;
    let mut result = vec![Terms::default(); edges];
    for (vertex, halves) in (0..).zip(&halves) {
        for ((other, number), half) in neighbourhoods.numbered(vertex).zip(halves) {
            let terms = &mut result[number as usize];
            terms.degrees[usize::from(vertex > other)] = halves.len() as u32;
            terms.triangles = half.triangles; // the same seen from both ends
            terms.on_squares += half.on_squares;
            terms.most_squares = terms.most_squares.max(half.most_squares);
        }
    }
    Ok(result)
}

/// Sets that are empty between uses.
struct Scratch {
    around: Bits,
    beside: Bits,
    beyond: Bits,
}

impl Scratch {
    fn new(nodes: usize) -> Self {
        let empty = || Bits::new(nodes);
        Self { around: empty(), beside: empty(), beyond: empty() }
    }

    /// The terms of the edges from `center` to its neighbours, with the counts of the vertices beside it only.
    fn look_around(&mut self, neighbourhoods: &Neighbourhoods, center: u32, variant: Variant) -> Vec<Terms> {
        let list = neighbourhoods.of(center);
        let mut halves = vec![Terms::default(); list.len()];
        self.around.extend(list.iter().copied());
        for (at, &k) in list.iter().enumerate() {
            let of_k = neighbourhoods.of(k);
            let (before, after) = halves.split_at_mut(at + 1);
            let half = &mut before[at];
            half.triangles = of_k.iter().map(|&vertex| u32::from(self.around.contains(vertex))).sum();
            if variant == Variant::Code {
                half.see(of_k.len() as u32); // k itself, beside the center
            } else if half.triangles as usize + 1 == of_k.len() {
                continue; // k has no neighbours beyond those of the center
            }
            self.beside.extend(of_k.iter().copied());
            let counts =
                |&vertex: &u32| variant == Variant::Code || vertex != center && !self.around.contains(vertex);
            self.beyond.extend(of_k.iter().copied().filter(counts));
            for (&j, other) in list[at + 1..].iter().zip(after) {
                let adjacent = self.beside.contains(j);
                if adjacent && variant == Variant::Formula {
                    continue; // a diagonal
                }
                let count = neighbourhoods.count_in(j, &self.beyond) - u32::from(adjacent);
                half.see(count);
                other.see(count);
            }
            self.beside.clear(of_k);
            self.beyond.clear(of_k);
        }
        self.around.clear(list);
        halves
    }
}
