//! Panels of a polynomial in L: Clenshaw's recurrence with L on the device.

use qdc_core::{Csr, Precision};

use super::arguments::{Start, Step};
use super::{Panels, Shape};
use crate::Error;
use crate::grid::THREADS;
use crate::matrices::counted;
use crate::room::{Room, clear};
use crate::state::Address;

/// L, and the two panels between which the recurrence goes to and fro.
pub(super) struct Series {
    pointers: Address,
    columns: Address,
    values: Address,
    order: Address,
    panels: [Address; 2],
    coefficients: Vec<f64>,
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
        Ok(Self {
            pointers: room.upload(rows + 1, || matrix.pointers().iter().map(|&at| at as u32).collect())?,
            columns: room.copy(matrix.indices())?,
            values: match precision {
                Precision::F64 => room.copy(matrix.values())?,
                _ => room.upload(entries, || matrix.values().iter().map(|&value| value as f32).collect())?,
            },
            order: room.upload(rows, || longest_first(matrix.pointers()))?,
            panels: [room.reserve::<u8>(shape.panel()), room.reserve::<u8>(shape.panel())],
            coefficients: coefficients.to_vec(),
        })
    }

    /// The panel in which the result of the recurrence lies: each step after the first changes places.
    pub(super) fn result(&self) -> Address {
        self.panels[(self.coefficients.len() - 1) % 2]
    }

    /// Clenshaw's recurrence from the highest coefficient down.
    pub(super) fn make(&self, panels: &Panels<'_>) -> Result<(), Error> {
        let shape = &panels.shape;
        self.panels.iter().try_for_each(|&panel| clear(&panels.stream, panel, shape.panel() as usize))?;
        let (positions, shares) = (panels.places.positions, panels.places.shares);
        let (rows, width) = (shape.rows as u32, shape.width as u32);
        let (&highest, rest) = self.coefficients.split_last().expect("a series has a term");
        let start = Start { next: self.panels[0], positions, shares, coefficient: highest, rows, width };
        panels.launch(&panels.name("start"), (width.div_ceil(THREADS), 1), (THREADS, 1), start)?;
        let packs = width * shape.bytes as u32 / 16;
        let across = packs.min(32);
        let block = (across, THREADS / across);
        let grid = (rows.div_ceil(block.1), packs.div_ceil(across));
        let name = panels.name("step");
        let steps = rest.iter().enumerate().rev().zip([(0, 1), (1, 0)].into_iter().cycle());
        for ((k, &coefficient), (next, after)) in steps {
            let step = Step {
                pointers: self.pointers,
                columns: self.columns,
                values: self.values,
                order: self.order,
                next: self.panels[next],
                after: self.panels[after],
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

/// The rows of a matrix, those of most entries first: the longest work begins first.
fn longest_first(pointers: &[usize]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..pointers.len() as u32 - 1).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(pointers[row as usize + 1] - pointers[row as usize]));
    order
}
