//! What may be kept of a panel: it is found, counted and written one after the other on the device, then copied.

use std::ops::Range;
use std::sync::mpsc::{Receiver, SyncSender};

use qdc_core::Sign;
use qdc_core::kernel::ColumnPart;

use super::arguments::Select;
use super::{NOWHERE, Panels, Piece, Shape};
use crate::Error;
use crate::grid::THREADS;
use crate::pinned::Pinned;
use crate::room::{Allocation, Room, read, write};
use crate::state::Address;

/// Parts into which a column is cut when its entries are counted.
const PARTS: usize = 1024;
/// Rounds in which the smallest of the largest is found, eight bits in each.
const ROUNDS: u32 = 3;

/// The addresses of counts and output, and how columns are cut.
pub(super) struct Selection {
    histogram: Address,
    prefix: Address,
    remaining: Address,
    floors: Address,
    counts: Address,
    totals: Address,
    own: Address,
    offsets: Address,
    lines: Address,
    kept: Address,
    parts: usize,
    rows_of_a_part: usize,
}

impl Selection {
    pub(super) fn new(shape: &Shape, room: &mut Room) -> Self {
        let width = shape.width as u64;
        let rows_of_a_part = shape.rows.div_ceil(PARTS).max(16);
        let parts = shape.rows.div_ceil(rows_of_a_part);
        Self {
            histogram: room.reserve::<u32>(256 * width),
            prefix: room.reserve::<u32>(width),
            remaining: room.reserve::<u32>(width),
            floors: room.reserve::<f64>(width),
            counts: room.reserve::<u32>(parts as u64 * width),
            totals: room.reserve::<u32>(width),
            own: room.reserve::<f64>(width),
            offsets: room.reserve::<u32>(width),
            lines: room.reserve::<u32>(shape.output as u64),
            kept: room.reserve::<f64>(shape.output as u64),
            parts,
            rows_of_a_part,
        }
    }

    /// What is wanted of each of the next columns.
    pub(super) fn begin(
        &self,
        wanted: ColumnPart,
        width: usize,
        allocation: &Allocation,
    ) -> Result<(), Error> {
        match wanted {
            ColumnPart::AtLeast(floor) => allocation.write(self.floors, &vec![floor; width]),
            ColumnPart::Largest(most) => {
                let most = u32::try_from(most).unwrap_or(NOWHERE);
                allocation.write(self.prefix, &vec![0u32; width])?;
                allocation.write(self.remaining, &vec![most; width])
            }
        }
    }

    fn arguments(&self, panels: &Panels<'_>) -> Select {
        let Self { histogram, prefix, remaining, floors, counts, totals, .. } = *self;
        let Self { own, offsets, lines, kept: values, parts, rows_of_a_part, .. } = *self;
        Select {
            panel: panels.result(),
            positions: panels.places.positions,
            last: panels.places.last,
            first: panels.places.first,
            histogram,
            prefix,
            remaining,
            floors,
            counts,
            totals,
            own,
            offsets,
            lines,
            values,
            rows: panels.shape.rows as u32,
            width: panels.shape.width as u32,
            absolute: u32::from(panels.work.sign == Sign::Absolute),
            parts: parts as u32,
            rows_of_a_part: rows_of_a_part as u32,
            ..Select::default()
        }
    }

    /// Finds the floors of the columns, where they depend on the columns, and counts what lies above them.
    fn count(&self, panels: &Panels<'_>) -> Result<(), Error> {
        let (width, rows) = (panels.shape.width as u32, panels.shape.rows as u32);
        let (columns, select) = (width.div_ceil(THREADS), self.arguments(panels));
        if let ColumnPart::Largest(_) = panels.work.wanted {
            for round in 0..ROUNDS {
                let select = Select { round, ..select };
                let groups = rows.div_ceil(1024).min(64);
                panels.launch(&panels.name("histogram"), (width.div_ceil(32), groups), (32, 8), select)?;
                panels.launch("pick", (columns, 1), (THREADS, 1), select)?;
            }
        }
        let parts = (self.parts as u32).div_ceil(8);
        panels.launch(&panels.name("count"), (width.div_ceil(32), parts), (32, 8), select)?;
        panels.launch(&panels.name("total"), (columns, 1), (THREADS, 1), select)
    }

    /// Sends what may be kept of the panel that was made, in as many pieces as the room for it asks for. `false`
    /// if nobody takes it any more.
    pub(super) fn hand_over(
        &self,
        panels: &Panels<'_>,
        columns: Range<usize>,
        free: &Receiver<Pinned>,
        pieces: &SyncSender<Result<Piece, Error>>,
    ) -> Result<bool, Error> {
        self.count(panels)?;
        let totals: Vec<u32> = read(&panels.stream, self.totals, columns.len())?;
        let own: Vec<f64> = read(&panels.stream, self.own, columns.len())?;
        let mut begin = 0;
        while begin < totals.len() {
            let mut offsets = vec![0usize];
            let mut end = begin;
            while end < totals.len() && offsets[end - begin] + totals[end] as usize <= panels.shape.output {
                offsets.push(offsets[end - begin] + totals[end] as usize);
                end += 1;
            }
            let Ok(mut pinned) = free.recv() else { return Ok(false) };
            self.write(panels, begin..end, &offsets, &mut pinned)?;
            let columns = columns.start + begin..columns.start + end;
            let piece = Piece { columns, offsets, own: own[begin..end].to_vec(), pinned };
            if pieces.send(Ok(piece)).is_err() {
                return Ok(false);
            }
            begin = end;
        }
        Ok(true)
    }

    /// Copies what may be kept of some columns of the panel, each of which begins at its offset.
    fn write(
        &self,
        panels: &Panels<'_>,
        columns: Range<usize>,
        offsets: &[usize],
        to: &mut Pinned,
    ) -> Result<(), Error> {
        let count = *offsets.last().expect("there is a first");
        if count == 0 {
            return Ok(());
        }
        to.make_room(panels.shape.output)?;
        let numbers: Vec<u32> = offsets[..columns.len()].iter().map(|&at| at as u32).collect();
        write(&panels.stream, self.offsets + 4 * columns.start as u64, &numbers)?;
        let (column_begin, column_end) = (columns.start as u32, columns.end as u32);
        let select = Select { column_begin, column_end, ..self.arguments(panels) };
        let grid = ((columns.len() as u32).div_ceil(32), (self.parts as u32).div_ceil(8));
        panels.launch(&panels.name("write"), grid, (32, 8), select)?;
        to.read(&panels.stream, self.kept, self.lines, count)
    }
}
