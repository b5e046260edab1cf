//! Panels of a polynomial in L: Clenshaw's recurrence with L on the device.
//!
//! Where two numbers of every row fit into the shared memory of a block, a block makes a few columns from the first
//! step to the last. Otherwise each step is a launch of its own over panels in the device's memory.

use std::cell::LazyCell;

use qdc_core::{Csr, Precision};

use super::arguments::{Chain, Start, Step};
use super::{Panels, Shape};
use crate::Error;
use crate::grid::THREADS;
use crate::matrices::counted;
use crate::room::{Room, clear};
use crate::state::Address;

/// Bytes of the numbers that a thread has of a row.
const PACK: u64 = 16;
/// Threads of a block that makes columns from the first step to the last.
const CHAINED: u32 = 1024;
/// Such a block has at most 2^this packs of a row.
const MOST_BITS: u32 = 3;

/// L, those of its rows first that have most entries: the longest work begins first.
pub(super) struct Series {
    starts: Address,
    columns: Address,
    values: Address,
    order: Address,
    coefficients: Vec<f64>,
    way: Way,
}

enum Way {
    /// The recurrence goes on in shared memory and leaves its result in a panel.
    Chain { coefficients: Address, panel: Address },
    /// The recurrence goes to and fro between two panels.
    Steps([Address; 2]),
}

impl Series {
    pub(super) fn new(
        matrix: &Csr<f64>,
        coefficients: &[f64],
        precision: Precision,
        shape: &Shape,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let (rows, entries) = (shape.rows as u64, matrix.entries() as u64);
        counted("entries of a matrix", entries)?;
        let order = LazyCell::new(|| longest_first(matrix));
        let starts = || {
            let lengths = order.iter().map(|&row| matrix.row(row as usize).0.len() as u32);
            let ends = lengths.scan(0, |end, length| {
                *end += length;
                Some(*end)
            });
            std::iter::once(0).chain(ends).collect::<Vec<u32>>()
        };
        let values = || order.iter().flat_map(|&row| matrix.row(row as usize).1.iter().copied());
        Ok(Self {
            starts: room.upload(rows + 1, starts)?,
            columns: room.upload(entries, || {
                order.iter().flat_map(|&row| matrix.row(row as usize).0.iter().copied()).collect()
            })?,
            values: match precision {
                Precision::F64 => room.upload(entries, || values().collect())?,
                _ => room.upload(entries, || values().map(|value| value as f32).collect())?,
            },
            order: room.upload(rows, || order.to_vec())?,
            coefficients: coefficients.to_vec(),
            way: match bits(shape) {
                Some(_) => Way::Chain {
                    coefficients: room.copy(coefficients)?,
                    panel: room.reserve::<u8>(shape.panel()),
                },
                None => Way::Steps([room.reserve::<u8>(shape.panel()), room.reserve::<u8>(shape.panel())]),
            },
        })
    }

    /// The panel in which the result of the recurrence lies: each step after the first changes places.
    pub(super) fn result(&self) -> Address {
        match self.way {
            Way::Chain { panel, .. } => panel,
            Way::Steps(panels) => panels[(self.coefficients.len() - 1) % 2],
        }
    }

    /// Clenshaw's recurrence from the highest coefficient down.
    pub(super) fn make(&self, panels: &Panels<'_>) -> Result<(), Error> {
        match self.way {
            Way::Chain { coefficients, panel } => self.chain(panels, coefficients, panel),
            Way::Steps(between) => self.steps(panels, between),
        }
    }

    fn chain(&self, panels: &Panels<'_>, coefficients: Address, panel: Address) -> Result<(), Error> {
        let shape = &panels.shape;
        let bits = bits(shape).expect("a pack of every row fits");
        let packs = packs(shape);
        let chain = Chain {
            starts: self.starts,
            columns: self.columns,
            values: self.values,
            order: self.order,
            positions: panels.places.positions,
            shares: panels.places.shares,
            coefficients,
            panel,
            rows: shape.rows as u32,
            packs,
            terms: self.coefficients.len() as u32,
            bits,
        };
        let (name, grid) = (panels.name("chain"), (packs.div_ceil(1 << bits), 1));
        panels.launch_with(&name, grid, (CHAINED, 1), (held(shape) << bits) as u32, chain)
    }

    fn steps(&self, panels: &Panels<'_>, between: [Address; 2]) -> Result<(), Error> {
        let shape = &panels.shape;
        between.iter().try_for_each(|&panel| clear(&panels.stream, panel, shape.panel() as usize))?;
        let (positions, shares) = (panels.places.positions, panels.places.shares);
        let (rows, width) = (shape.rows as u32, shape.width as u32);
        let (&highest, rest) = self.coefficients.split_last().expect("a series has a term");
        let start = Start { next: between[0], positions, shares, coefficient: highest, rows, width };
        panels.launch(&panels.name("start"), (width.div_ceil(THREADS), 1), (THREADS, 1), start)?;
        let packs = packs(shape);
        let across = packs.min(32);
        let block = (across, THREADS / across);
        let grid = (rows.div_ceil(block.1), packs.div_ceil(across));
        let name = panels.name("step");
        let steps = rest.iter().enumerate().rev().zip([(0, 1), (1, 0)].into_iter().cycle());
        for ((k, &coefficient), (next, after)) in steps {
            let step = Step {
                starts: self.starts,
                columns: self.columns,
                values: self.values,
                order: self.order,
                next: between[next],
                after: between[after],
                positions,
                shares,
                coefficient,
                scale: if k == 0 { 1.0 } else { 2.0 },
                rows,
                packs,
            };
            panels.launch(&name, grid, block, step)?;
        }
        Ok(())
    }
}

/// Packs of a row of a panel.
fn packs(shape: &Shape) -> u32 {
    (shape.width * shape.bytes) as u32 / PACK as u32
}

/// Bytes of shared memory for one pack of every row, twice.
fn held(shape: &Shape) -> u64 {
    2 * PACK * shape.rows as u64
}

/// A block has 2^bits packs of every row: as many as it has room for, if there is work for all multiprocessors then.
/// `None`: it has no room for one; that does not depend on the panel's width.
fn bits(shape: &Shape) -> Option<u32> {
    let fits = |bits: u32| held(shape) << bits <= u64::from(shape.shared);
    let busy = |bits: u32| packs(shape) >> bits >= shape.multiprocessors;
    (0..=MOST_BITS).rev().find(|&bits| fits(bits) && (bits == 0 || busy(bits)))
}

/// The rows of a matrix, those of most entries first.
fn longest_first(matrix: &Csr<f64>) -> Vec<u32> {
    let mut order: Vec<u32> = (0..matrix.rows() as u32).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(matrix.row(row as usize).0.len()));
    order
}
