//! A sparse vector that spreads over the graph: the vertices reached, what lies on them, and the one loop that
//! takes nearly all the time.
//!
//! The loop waits for memory, not for arithmetic: cells of far vertices are asked for ahead of time, and lists
//! grow without branches, as a wrongly predicted one would wait for its cell. Both together made rows of a
//! million vertices twice as fast (bench/scale/README.md).

use crate::{Csr, cpu, order};

/// How many cells, and how many rows of links, are asked for ahead.
const CELLS_AHEAD: usize = 16;
const ROWS_AHEAD: usize = 12;
const TARGETS_AHEAD: usize = 3;
/// How many times the mean number of links a vertex may have before its row is cut more carefully.
const ORDINARY: f32 = 4.0;

/// L in single precision, its vertices by descending degree: hubs, which most walks meet, lie close together.
#[derive(Debug)]
pub(super) struct Links {
    pointers: Vec<usize>,
    links: Vec<(u32, f32)>,
    names: Vec<u32>,
    positions: Vec<u32>,
    longest: usize,
    growth: f64,
}

impl Links {
    pub(super) fn of(matrix: &Csr<f64>) -> Self {
        let mut names: Vec<u32> = (0..matrix.rows() as u32).collect();
        names.sort_by_key(|&vertex| std::cmp::Reverse(matrix.row(vertex as usize).0.len()));
        let positions = order::inverse(&names);
        let mut pointers = Vec::with_capacity(names.len() + 1);
        let mut links = Vec::with_capacity(matrix.entries());
        pointers.push(0);
        let (mut most, mut least) = (0f64, f64::INFINITY);
        for &vertex in &names {
            let (columns, values) = matrix.row(vertex as usize);
            links
                .extend(columns.iter().zip(values).map(|(&c, &value)| (positions[c as usize], value as f32)));
            pointers.push(links.len());
            let diagonal = matrix.get(vertex as usize, vertex).unwrap_or(0.0);
            most = most.max(columns.len() as f64 * diagonal);
            least = least.min(diagonal);
        }
        let longest = names.first().map_or(0, |&vertex| matrix.row(vertex as usize).0.len());
        let growth = if least > 0.0 { (most / least).sqrt() } else { f64::INFINITY };
        Self { pointers, links, names, positions, longest, growth }
    }

    pub(super) fn nodes(&self) -> usize {
        self.names.len()
    }

    /// The most entries of a row.
    pub(super) fn longest(&self) -> usize {
        self.longest
    }

    /// For r with 0 <= r_u <= sqrt(entries of row u), no entry of L^m r is larger than this, whatever m.
    ///
    /// With D the degrees, D^1/2 1 is an eigenvector of L to the eigenvalue 1, and L has no negative entry: if r is at
    /// most c D^1/2 1, so is L^m r. The self-loops stand on the diagonal as w / D. Infinite where there are none.
    pub(super) fn growth(&self) -> f64 {
        self.growth
    }

    /// What the cut of a row is multiplied by: 1, and for hubs `share` times a `power` of how far they are from
    /// ordinary. Their walks reach most of the graph, and what is held back everywhere adds up in the entries between
    /// hubs.
    pub(super) fn care(&self, position: u32, power: i32, share: f64) -> f32 {
        let caution = self.caution(position);
        if caution < 1.0 { share as f32 * caution.powi(power) } else { 1.0 }
    }

    /// Whether the row of a vertex is cut more carefully than others.
    pub(super) fn is_hub(&self, vertex: u32) -> bool {
        self.caution(self.position(vertex)) < 1.0
    }

    fn caution(&self, position: u32) -> f32 {
        let mean = self.links.len() as f32 / self.nodes().max(1) as f32;
        let own = self.row(position).len().max(1) as f32;
        (ORDINARY * mean / own).sqrt()
    }

    /// Some of the vertices whose rows are cut more carefully: the largest, the smallest, and others whose ranks grow
    /// by equal factors.
    pub(super) fn hubs(&self, most: usize) -> Vec<u32> {
        let all = self.names.partition_point(|&vertex| self.is_hub(vertex));
        let rank = |at: usize| (all as f64).powf(at as f64 / (most.max(2) - 1) as f64) as usize;
        let mut ranks: Vec<usize> = (0..most).map(rank).filter(|&rank| 0 < rank && rank <= all).collect();
        ranks.dedup();
        ranks.into_iter().map(|rank| self.names[rank - 1]).collect()
    }

    /// The vertex at a position.
    pub(super) fn name(&self, position: u32) -> u32 {
        self.names[position as usize]
    }

    /// The position of a vertex.
    pub(super) fn position(&self, vertex: u32) -> u32 {
        self.positions[vertex as usize]
    }

    /// The positions that a position is joined to, itself included, with the entries of L.
    pub(super) fn row(&self, position: u32) -> &[(u32, f32)] {
        &self.links[self.pointers[position as usize]..self.pointers[position as usize + 1]]
    }

    /// Bytes of the links, and of the field of one thread.
    pub(super) fn memory(matrix: &Csr<f64>) -> (u64, u64) {
        let (nodes, entries) = (matrix.rows() as u64, matrix.entries() as u64);
        (8 * entries + 16 * nodes, (size_of::<Cell>() as u64 + 4 * 4) * nodes)
    }
}

/// What lies on a vertex; half a line of the cache.
///
/// What arrives in a step is summed with compensation (Kahan), and added to what lies there only when all of it has
/// come. A hub gets many small numbers from its neighbours: added to its entry one by one they were rounded off, and
/// the entry of a hub of 20,000 neighbours was off by 1e-3.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(32))]
pub(super) struct Cell {
    /// The vectors of even and of odd steps, without what has arrived.
    pub(super) value: [f32; 2],
    /// What arrived in this step.
    pub(super) arrived: f32,
    /// What `arrived` is too large by.
    excess: f32,
    /// The entry of the result.
    pub(super) sum: f32,
    /// What passing on the held parts would add to each neighbour's entry, but for the entry of L.
    pub(super) owed: f32,
    /// 1 / sqrt(entries of the row): passing on costs that many and gives each neighbour so little.
    pub(super) reach: f32,
    /// The last step in which something arrived, counted from 1 (0: never reached), times 4; bits 0 and 1 say
    /// whether the values of even and odd steps are held, that is, were not passed on.
    state: u32,
}

impl Cell {
    fn step(&self) -> u32 {
        self.state >> 2
    }

    #[inline(always)]
    fn receive(&mut self, share: f32, step: u32) {
        let exact = share - self.excess;
        let sum = self.arrived + exact;
        self.excess = (sum - self.arrived) - exact;
        self.arrived = sum;
        self.state = (step << 2) | (self.state & 3);
    }

    /// Adds what arrived to one of the values; gives what that was before, and what arrived.
    #[inline(always)]
    pub(super) fn collect(&mut self, slot: usize) -> (f32, f32) {
        let (before, arrived) = (self.value[slot], self.arrived);
        self.value[slot] += arrived;
        (self.arrived, self.excess) = (0.0, 0.0);
        (before, arrived)
    }

    /// Notes whether a value is held from now on, and says whether it was.
    #[inline(always)]
    pub(super) fn hold(&mut self, slot: usize, holds: bool) -> bool {
        let held = (self.state >> slot) & 1 == 1;
        self.state = (self.state & !(1 << slot)) | (u32::from(holds) << slot);
        held
    }
}

/// What a vertex passes on to its neighbours.
#[derive(Clone, Copy, Debug)]
struct Push {
    start: usize,
    end: usize,
    amount: f32,
}

/// The memory of one worker: a cell for each vertex, and lists of vertices.
#[derive(Debug)]
pub(super) struct Field {
    pub(super) cells: Vec<Cell>,
    /// The vertices reached, in the order they were; the first `count` hold.
    touched: Vec<u32>,
    count: usize,
    /// The vertices at which something arrived in this step, and in the next.
    receivers: Vec<u32>,
    arriving: Vec<u32>,
    received: usize,
    pushes: Vec<Push>,
    stamp: u32,
    /// Links followed and cells looked at, for one row.
    pub(super) work: usize,
}

impl Field {
    pub(super) fn new(links: &Links) -> Self {
        let nodes = links.nodes();
        let reach = |position: usize| 1.0 / (links.row(position as u32).len().max(1) as f32).sqrt();
        Self {
            cells: (0..nodes).map(|position| Cell { reach: reach(position), ..Cell::default() }).collect(),
            touched: vec![0; nodes + 1],
            count: 0,
            receivers: vec![0; nodes + 1],
            arriving: vec![0; nodes + 1],
            received: 0,
            pushes: Vec::new(),
            stamp: 0,
            work: 0,
        }
    }

    /// Clears the field and puts 1 on one vertex, whose entry begins as `own`.
    pub(super) fn start(&mut self, origin: u32, own: f32) {
        self.for_touched(|_, cell| *cell = Cell { reach: cell.reach, ..Cell::default() });
        (self.stamp, self.count, self.received, self.work) = (1, 1, 1, 0);
        self.touched[0] = origin;
        self.receivers[0] = origin;
        let cell = &mut self.cells[origin as usize];
        (cell.value[0], cell.sum, cell.state) = (1.0, own, self.stamp << 2);
    }

    /// How many vertices were reached.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Calls `visit` with each vertex reached and its cell.
    #[inline(always)]
    pub(super) fn for_touched(&mut self, mut visit: impl FnMut(u32, &mut Cell)) {
        let touched = &self.touched[..self.count];
        for (at, &vertex) in touched.iter().enumerate() {
            if let Some(&ahead) = touched.get(at + CELLS_AHEAD) {
                cpu::prefetch(&self.cells, ahead as usize);
            }
            visit(vertex, &mut self.cells[vertex as usize]);
        }
    }

    /// Adds vertices to those that are looked at in this step, if they are not among them.
    pub(super) fn look_also_at(&mut self, vertices: &[u32]) {
        for &vertex in vertices {
            self.receivers[self.received] = vertex;
            self.received += usize::from(self.cells[vertex as usize].step() != self.stamp);
        }
    }

    /// Looks at the cells in which something arrived; those for which `passes_on` says so become `pushers`.
    #[inline(always)]
    pub(super) fn look(&mut self, pushers: &mut Vec<u32>, mut passes_on: impl FnMut(&mut Cell) -> bool) {
        let receivers = &self.receivers[..self.received];
        pushers.clear();
        pushers.resize(self.received + 1, 0);
        let mut count = 0;
        for (at, &vertex) in receivers.iter().enumerate() {
            if let Some(&ahead) = receivers.get(at + CELLS_AHEAD) {
                cpu::prefetch(&self.cells, ahead as usize);
            }
            pushers[count] = vertex;
            count += usize::from(passes_on(&mut self.cells[vertex as usize]));
        }
        pushers.truncate(count);
        self.work += self.received;
    }

    /// Passes on an `amount` from each of the pushers: L times that arrives in the cells. Ends the step.
    pub(super) fn spread(&mut self, links: &Links, pushers: &[u32], amount: impl Fn(&mut Cell) -> f32) {
        self.pushes.clear();
        for &vertex in pushers {
            let (start, end) = (links.pointers[vertex as usize], links.pointers[vertex as usize + 1]);
            self.pushes.push(Push { start, end, amount: amount(&mut self.cells[vertex as usize]) });
        }
        self.stamp += 1;
        let (mut arrived, mut count) = (0, self.count);
        let cells = &mut self.cells[..];
        for (at, &Push { start, end, amount }) in self.pushes.iter().enumerate() {
            if let Some(ahead) = self.pushes.get(at + ROWS_AHEAD) {
                cpu::prefetch(&links.links, ahead.start);
            }
            if let Some(ahead) = self.pushes.get(at + TARGETS_AHEAD) {
                for &(target, _) in &links.links[ahead.start..ahead.end] {
                    cpu::prefetch(cells, target as usize);
                }
            }
            for &(target, entry) in &links.links[start..end] {
                let cell = &mut cells[target as usize];
                let step = cell.step();
                self.arriving[arrived] = target;
                arrived += usize::from(step != self.stamp);
                self.touched[count] = target;
                count += usize::from(step == 0);
                cell.receive(amount * entry, self.stamp);
            }
            self.work += end - start;
        }
        self.count = count;
        self.received = arrived;
        std::mem::swap(&mut self.receivers, &mut self.arriving);
    }

    /// The entry at a vertex with what its neighbours owe it.
    pub(super) fn settled(&self, links: &Links, position: u32) -> f64 {
        let owed = links
            .row(position)
            .iter()
            .map(|&(other, entry)| f64::from(entry) * f64::from(self.cells[other as usize].owed));
        f64::from(self.cells[position as usize].sum) + owed.sum::<f64>()
    }
}
