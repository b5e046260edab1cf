//! Neighbourhoods that change edge by edge, and fast counts of common neighbours.
//!
//! Every vertex has a sorted list of neighbours; a vertex whose list takes longer to look through than a
//! bitset over all vertices has the bitset too. A vertex is that heavy only if its degree exceeds N / 64, so
//! all bitsets together are no larger than a small multiple of the lists, and counting |N(k) and S| costs
//! min(degree, N / 64) steps.

use super::popcount::common_bits;
use crate::Graph;

/// Words of two bitsets that are compared in the time of looking up one neighbour.
const WORDS_A_STEP: usize = 1;

/// A set of vertices as bits.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Bits {
    pub(super) fn new(nodes: usize) -> Self {
        Self { words: vec![0; nodes.div_ceil(64)] }
    }

    #[inline]
    pub(super) fn contains(&self, vertex: u32) -> bool {
        self.words[vertex as usize / 64] >> (vertex % 64) & 1 == 1
    }

    pub(super) fn insert(&mut self, vertex: u32) {
        self.words[vertex as usize / 64] |= 1 << (vertex % 64);
    }

    fn remove(&mut self, vertex: u32) {
        self.words[vertex as usize / 64] &= !(1 << (vertex % 64));
    }

    /// Empties a set that holds no more than `vertices`, in time proportional to their number.
    pub(super) fn clear(&mut self, vertices: &[u32]) {
        for &vertex in vertices {
            self.words[vertex as usize / 64] = 0;
        }
    }

    fn common(&self, other: &Self) -> u32 {
        common_bits(&self.words, &other.words)
    }
}

/// The neighbours of every vertex, without weights.
#[derive(Clone, Debug)]
pub(super) struct Neighbourhoods {
    lists: Vec<Vec<u32>>,
    bits: Vec<Option<Bits>>,
}

impl Neighbourhoods {
    pub(super) fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes();
        let lists: Vec<Vec<u32>> = (0..nodes).map(|vertex| graph.neighbours(vertex).to_vec()).collect();
        let mut result = Self { bits: vec![None; nodes], lists };
        (0..nodes as u32).for_each(|vertex| result.weigh(vertex));
        result
    }

    pub(super) fn nodes(&self) -> usize {
        self.lists.len()
    }

    /// The neighbours of a vertex, ascending.
    #[inline]
    pub(super) fn of(&self, vertex: u32) -> &[u32] {
        &self.lists[vertex as usize]
    }

    pub(super) fn adjacent(&self, a: u32, b: u32) -> bool {
        match &self.bits[a as usize] {
            Some(bits) => bits.contains(b),
            None => self.of(a).binary_search(&b).is_ok(),
        }
    }

    /// |N(vertex) and `set`|.
    #[inline]
    pub(super) fn count_in(&self, vertex: u32, set: &Bits) -> u32 {
        match &self.bits[vertex as usize] {
            Some(bits) => bits.common(set),
            None => self.of(vertex).iter().map(|&other| u32::from(set.contains(other))).sum(),
        }
    }

    /// Whether |N(vertex) and `set`| > `bound`; stops as soon as that is clear.
    pub(super) fn has_more_in(&self, vertex: u32, set: &Bits, bound: u32) -> bool {
        if let Some(bits) = &self.bits[vertex as usize] {
            return bits.common(set) > bound;
        }
        let mut count = 0;
        self.of(vertex).iter().any(|&other| {
            count += u32::from(set.contains(other));
            count > bound
        })
    }

    pub(super) fn connect(&mut self, a: u32, b: u32) {
        for (from, to) in [(a, b), (b, a)] {
            let list = &mut self.lists[from as usize];
            if let Err(place) = list.binary_search(&to) {
                list.insert(place, to);
            }
            match &mut self.bits[from as usize] {
                Some(bits) => bits.insert(to),
                None => self.weigh(from),
            }
        }
    }

    pub(super) fn disconnect(&mut self, a: u32, b: u32) {
        for (from, to) in [(a, b), (b, a)] {
            self.lists[from as usize].retain(|&other| other != to);
            if let Some(bits) = &mut self.bits[from as usize] {
                bits.remove(to);
            }
        }
    }

    /// Every edge once, as (smaller end, larger end), ascending.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.nodes() as u32).flat_map(|low| {
            let list = self.of(low);
            list[list.partition_point(|&other| other <= low)..].iter().map(move |&high| (low, high))
        })
    }

    /// Edges whose curvature may change when a~b is added or removed: those at a or b, and those between a
    /// neighbour of a and a neighbour of b (with a~b they close a square).
    pub(super) fn edges_touched_by(&self, a: u32, b: u32) -> Vec<(u32, u32)> {
        let mut touched: Vec<(u32, u32)> =
            [a, b].into_iter().flat_map(|end| self.of(end).iter().map(move |&other| (end, other))).collect();
        let mut beside_b = Bits::new(self.nodes());
        self.of(b).iter().for_each(|&vertex| beside_b.insert(vertex));
        for &from in self.of(a) {
            touched.extend(self.of(from).iter().filter(|&&to| beside_b.contains(to)).map(|&to| (from, to)));
        }
        for edge in &mut touched {
            *edge = ordered(*edge);
        }
        touched.sort_unstable();
        touched.dedup();
        touched
    }

    /// Gives a vertex its bitset once that is the cheaper one to count in.
    fn weigh(&mut self, vertex: u32) {
        let list = &self.lists[vertex as usize];
        if WORDS_A_STEP * list.len() > self.nodes().div_ceil(64) {
            let mut bits = Bits::new(self.nodes());
            list.iter().for_each(|&other| bits.insert(other));
            self.bits[vertex as usize] = Some(bits);
        }
    }
}

/// The pair with its smaller end first.
pub(super) fn ordered((a, b): (u32, u32)) -> (u32, u32) {
    (a.min(b), a.max(b))
}
