//! Sparse elimination of a symmetric positive definite matrix M, stopped where what is left has filled up.
//!
//! Eliminating a vertex v with the pivot d = M_vv changes the rest to M_uw - M_uv M_vw / d and joins all
//! neighbours of v. Always taking a vertex of least degree keeps that fill small for a long time: on Cora
//! 2500 of 2700 vertices cost three entries each. What is left when 30 percent of it is non-zero, the core,
//! is better treated as a full matrix.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use faer::Mat;

use crate::simd::Triangle;
use crate::{Csr, order};

/// The share of non-zeros from which a matrix counts as full.
const FULL: f64 = 0.3;
/// Bytes of an entry while rows are merged.
const BYTES_PER_ENTRY: u64 = 16;

/// The factors of M: multipliers R and pivots D of what was eliminated, and the core.
///
/// Positions count the core first, then the eliminated, the last one first; so a row of R refers only to rows
/// before it. For Z = M^-1 and an eliminated row i: Z_ij = -sum_k R_ik Z_kj if j stands before i.
#[derive(Debug)]
pub(super) struct Elimination {
    names: Vec<u32>,
    positions: Vec<u32>,
    core: Mat<f64>,
    multipliers: Triangle,
    inverse_pivots: Vec<f64>,
}

/// What an elimination may take before it is given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    /// Steps of merging rows.
    pub(super) steps: f64,
    /// Bytes.
    pub(super) memory: u64,
}

impl Budget {
    /// Whether a core of at least this size is too much, after what has been done.
    fn is_spent(&self, front: &Front, core: usize) -> bool {
        let core_steps = (core as f64).powi(3) / 32.0; // of a full factorisation, in time
        let core_memory = 8 * core as u64 * front.gone.len() as u64;
        let memory = core_memory + BYTES_PER_ENTRY * (front.entries + front.fill) as u64;
        front.steps + core_steps > self.steps || memory > self.memory
    }
}

impl Elimination {
    /// `None` as soon as it is clear that the budget does not last.
    pub(super) fn of(matrix: &Csr<f64>, budget: Budget) -> Option<Self> {
        let mut front = Front::new(matrix);
        let mut eliminated = Vec::new();
        while !front.is_full() {
            let (vertex, degree) = front.least_degree();
            // Its neighbours become a clique, which only the core can hold.
            if budget.is_spent(&front, degree) {
                return None;
            }
            eliminated.push(front.eliminate(vertex));
        }
        let mut names: Vec<u32> = (0..matrix.rows() as u32).filter(|&v| !front.gone[v as usize]).collect();
        if budget.is_spent(&front, names.len()) {
            return None;
        }
        let core_size = names.len();
        names.extend(eliminated.iter().rev().map(|one| one.vertex));
        let positions = order::inverse(&names);
        let mut core = Mat::zeros(core_size, core_size);
        for (at, &vertex) in names[..core_size].iter().enumerate() {
            core[(at, at)] = front.diagonal[vertex as usize];
            for &(other, value) in
                front.rows[vertex as usize].iter().filter(|entry| !front.gone[entry.0 as usize])
            {
                core[(at, positions[other as usize] as usize)] = value;
            }
        }
        let empty = std::iter::repeat_n((Vec::new(), Vec::new()), core_size);
        let rows = eliminated.iter().rev().map(|one| {
            let mut row: Vec<(u32, f64)> = one
                .row
                .iter()
                .map(|&(v, value)| (positions[v as usize], value * one.inverse_pivot))
                .collect();
            row.sort_unstable_by_key(|entry| entry.0);
            row.into_iter().unzip()
        });
        let multipliers =
            Csr::from_rows(names.len(), empty.chain(rows)).expect("positions differ and are in range");
        Some(Self {
            positions,
            core,
            multipliers: Triangle::new(multipliers),
            inverse_pivots: eliminated.iter().rev().map(|one| one.inverse_pivot).collect(),
            names,
        })
    }

    /// The number of rows of M.
    pub(super) fn nodes(&self) -> usize {
        self.names.len()
    }

    /// What is left of M, symmetric: the rows of the first positions.
    pub(super) fn core(&self) -> &Mat<f64> {
        &self.core
    }

    /// R.
    pub(super) fn multipliers(&self) -> &Triangle {
        &self.multipliers
    }

    /// 1 / D at a position beyond the core.
    pub(super) fn inverse_pivot(&self, position: usize) -> f64 {
        self.inverse_pivots[position - self.core.nrows()]
    }

    /// The row of M at a position.
    pub(super) fn name(&self, position: usize) -> u32 {
        self.names[position]
    }

    /// The position of a row of M.
    pub(super) fn position(&self, row: usize) -> u32 {
        self.positions[row]
    }
}

/// A vertex as it was eliminated.
struct Eliminated {
    vertex: u32,
    /// What it was joined to.
    row: Vec<(u32, f64)>,
    inverse_pivot: f64,
}

/// What is left of M while vertices are eliminated.
struct Front {
    /// Off the diagonal, columns ascending; may still name vertices that are gone.
    rows: Vec<Vec<(u32, f64)>>,
    diagonal: Vec<f64>,
    /// Neighbours that are not gone.
    degrees: Vec<usize>,
    gone: Vec<bool>,
    /// (degree, vertex), some out of date.
    queue: BinaryHeap<Reverse<(usize, u32)>>,
    remaining: usize,
    /// Off the diagonal, of what is left.
    entries: usize,
    /// Multipliers of what is gone.
    fill: usize,
    steps: f64,
    merged: Vec<(u32, f64)>,
}

impl Front {
    fn new(matrix: &Csr<f64>) -> Self {
        let nodes = matrix.rows();
        let rows: Vec<Vec<(u32, f64)>> = (0..nodes)
            .map(|row| {
                let (columns, values) = matrix.row(row);
                let entries = columns.iter().copied().zip(values.iter().copied());
                entries.filter(|entry| entry.0 as usize != row).collect()
            })
            .collect();
        let degrees: Vec<usize> = rows.iter().map(Vec::len).collect();
        Self {
            diagonal: (0..nodes).map(|row| matrix.get(row, row as u32).unwrap_or(0.0)).collect(),
            gone: vec![false; nodes],
            queue: degrees.iter().enumerate().map(|(v, &degree)| Reverse((degree, v as u32))).collect(),
            remaining: nodes,
            entries: degrees.iter().sum(),
            fill: 0,
            steps: 0.0,
            merged: Vec::new(),
            degrees,
            rows,
        }
    }

    fn is_full(&self) -> bool {
        (self.entries + self.remaining) as f64 >= FULL * (self.remaining as f64).powi(2)
    }

    /// The vertex of least degree, ties to the lowest, with its degree.
    fn least_degree(&mut self) -> (u32, usize) {
        loop {
            let Reverse((degree, vertex)) =
                self.queue.pop().expect("some vertex is left, as the rest is not full");
            if !self.gone[vertex as usize] && self.degrees[vertex as usize] == degree {
                return (vertex, degree);
            }
        }
    }

    fn eliminate(&mut self, vertex: u32) -> Eliminated {
        let mut row = std::mem::take(&mut self.rows[vertex as usize]);
        row.retain(|entry| !self.gone[entry.0 as usize]);
        self.gone[vertex as usize] = true;
        self.remaining -= 1;
        self.entries -= row.len();
        self.fill += row.len();
        let inverse_pivot = 1.0 / self.diagonal[vertex as usize];
        for &(neighbour, value) in &row {
            let at = neighbour as usize;
            self.diagonal[at] -= value * value * inverse_pivot;
            let before = self.degrees[at];
            // A leaf joins nobody: its neighbour forgets it when it is next merged.
            self.degrees[at] =
                if row.len() == 1 { before - 1 } else { self.merge(neighbour, value, &row, inverse_pivot) };
            self.entries = self.entries + self.degrees[at] - before;
            self.queue.push(Reverse((self.degrees[at], neighbour)));
        }
        self.steps += 1.0;
        Eliminated { vertex, row, inverse_pivot }
    }

    /// M_uw <- M_uw - M_uv M_vw / d for all w, u the neighbour; the new degree of u.
    fn merge(&mut self, neighbour: u32, value: f64, row: &[(u32, f64)], inverse_pivot: f64) -> usize {
        let own = &mut self.rows[neighbour as usize];
        self.steps += (own.len() + row.len()) as f64;
        let merged = &mut self.merged;
        merged.clear();
        let mut others = row.iter().filter(|entry| entry.0 != neighbour).peekable();
        // The order of the factors is the same seen from u and from w, so that M stays exactly symmetric.
        let change = |other: f64| value * other * inverse_pivot;
        for &(column, entry) in own.iter().filter(|entry| !self.gone[entry.0 as usize]) {
            while let Some(&(fresh, other)) = others.next_if(|other| other.0 < column) {
                merged.push((fresh, -change(other)));
            }
            match others.next_if(|other| other.0 == column) {
                Some(&(_, other)) => merged.push((column, entry - change(other))),
                None => merged.push((column, entry)),
            }
        }
        merged.extend(others.map(|&(fresh, other)| (fresh, -change(other))));
        std::mem::swap(own, merged);
        own.len()
    }
}
