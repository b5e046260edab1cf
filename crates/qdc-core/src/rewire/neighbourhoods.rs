//! Neighbourhoods that change edge by edge, and fast counts of common neighbours.
//!
//! Every vertex has a sorted list of neighbours; a vertex whose list takes longer to look through than a
//! bitset over all vertices has the bitset too. A vertex is that heavy only if its degree exceeds N / 64, so
//! all bitsets together are no larger than a small multiple of the lists, and counting |N(k) and S| costs
//! min(degree, N / 64) steps. Every edge has a number, which stands beside the neighbour in both lists.

use super::popcount::common_bits;
use crate::Graph;

/// Words of two bitsets that are compared in the time of looking up one neighbour.
const WORDS_A_STEP: usize = 1;

/// A set of vertices as bits.
#[derive(Clone, Debug)]
pub(super) struct Bits {
    words: Vec<u64>,
}

impl Extend<u32> for Bits {
    fn extend<T: IntoIterator<Item = u32>>(&mut self, vertices: T) {
        vertices.into_iter().for_each(|vertex| self.insert(vertex));
    }
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

    pub(super) fn remove(&mut self, vertex: u32) {
        self.words[vertex as usize / 64] &= !(1 << (vertex % 64));
    }

    /// Empties a set that holds no more than `vertices`, in time proportional to their number.
    pub(super) fn clear(&mut self, vertices: &[u32]) {
        for &vertex in vertices {
            self.words[vertex as usize / 64] = 0;
        }
    }

    /// Becomes equal to another set over the same vertices.
    pub(super) fn copy(&mut self, other: &Self) {
        self.words.copy_from_slice(&other.words);
    }

    fn common(&self, other: &Self) -> u32 {
        common_bits(&self.words, &other.words)
    }
}

/// The neighbours of every vertex, without weights.
#[derive(Clone, Debug)]
pub(super) struct Neighbourhoods {
    lists: Vec<Vec<u32>>,
    /// The numbers of the edges to them, along `lists`.
    numbers: Vec<Vec<u32>>,
    bits: Vec<Option<Bits>>,
}

impl Neighbourhoods {
    /// The neighbourhoods of a graph; edges are numbered along [`Graph::edge_list`].
    pub(super) fn new(graph: &Graph) -> Self {
        let nodes = graph.nodes();
        let lists: Vec<Vec<u32>> = (0..nodes).map(|vertex| graph.neighbours(vertex).to_vec()).collect();
        let mut result = Self { bits: vec![None; nodes], numbers: vec![Vec::new(); nodes], lists };
        // Both lists fill up in ascending order: a vertex meets its lower neighbours before its turn comes.
        for (number, (low, high, _)) in graph.edge_list().enumerate() {
            result.numbers[low as usize].push(number as u32);
            result.numbers[high as usize].push(number as u32);
        }
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

    /// The neighbours of a vertex, ascending, each with the number of the edge to it.
    pub(super) fn numbered(&self, vertex: u32) -> impl Iterator<Item = (u32, u32)> + '_ {
        self.of(vertex).iter().copied().zip(self.numbers[vertex as usize].iter().copied())
    }

    /// The neighbours of a vertex as bits.
    pub(super) fn set(&self, vertex: u32) -> Bits {
        let build = || {
            let mut bits = Bits::new(self.nodes());
            bits.extend(self.of(vertex).iter().copied());
            bits
        };
        self.bits[vertex as usize].clone().unwrap_or_else(build)
    }

    #[inline]
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

    /// Joins two vertices that are not neighbours by an edge with this number.
    pub(super) fn connect(&mut self, a: u32, b: u32, number: u32) {
        for (from, to) in [(a, b), (b, a)] {
            let place = self.place(from, to);
            self.lists[from as usize].insert(place, to);
            self.numbers[from as usize].insert(place, number);
            match &mut self.bits[from as usize] {
                Some(bits) => bits.insert(to),
                None => self.weigh(from),
            }
        }
    }

    /// Parts two neighbours, and gives the number that their edge had.
    pub(super) fn disconnect(&mut self, a: u32, b: u32) -> u32 {
        let mut number = 0;
        for (from, to) in [(a, b), (b, a)] {
            let place = self.place(from, to);
            self.lists[from as usize].remove(place);
            number = self.numbers[from as usize].remove(place);
            if let Some(bits) = &mut self.bits[from as usize] {
                bits.remove(to);
            }
        }
        number
    }

    /// Gives an edge another number.
    pub(super) fn renumber(&mut self, (a, b): (u32, u32), number: u32) {
        for (from, to) in [(a, b), (b, a)] {
            let place = self.place(from, to);
            self.numbers[from as usize][place] = number;
        }
    }

    /// Where a neighbour stands in a list.
    fn place(&self, from: u32, to: u32) -> usize {
        self.of(from).partition_point(|&other| other < to)
    }

    /// Every edge once, as (smaller end, larger end), ascending.
    pub(super) fn edges(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        (0..self.nodes() as u32).flat_map(|low| {
            let list = self.of(low);
            list[list.partition_point(|&other| other <= low)..].iter().map(move |&high| (low, high))
        })
    }

    /// Gives a vertex its bitset once that is the cheaper one to count in.
    fn weigh(&mut self, vertex: u32) {
        let list = &self.lists[vertex as usize];
        if WORDS_A_STEP * list.len() > self.nodes().div_ceil(64) {
            let mut bits = Bits::new(self.nodes());
            bits.extend(list.iter().copied());
            self.bits[vertex as usize] = Some(bits);
        }
    }
}

/// The pair with its smaller end first.
pub(super) fn ordered((a, b): (u32, u32)) -> (u32, u32) {
    (a.min(b), a.max(b))
}
