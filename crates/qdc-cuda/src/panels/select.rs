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
}

impl Panels<'_> {
    fn select(&self) -> Select {
        let Selection { histogram, prefix, remaining, floors, counts, totals, .. } = self.places.selection;
        let Selection { own, offsets, lines, kept: values, parts, rows_of_a_part, .. } =
            self.places.selection;
        Select {
            panel: self.result(),
            positions: self.places.positions,
            last: self.places.last,
            first: self.places.first,
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
            rows: self.shape.rows as u32,
            width: self.shape.width as u32,
            absolute: u32::from(self.work.sign == Sign::Absolute),
            parts: parts as u32,
            rows_of_a_part: rows_of_a_part as u32,
            ..Select::default()
        }
    }

    /// Finds the floors of the columns, where they depend on the columns, and counts what lies above them.
    fn count(&self) -> Result<(), Error> {
        let (width, rows) = (self.shape.width as u32, self.shape.rows as u32);
        let columns = width.div_ceil(THREADS);
        if let ColumnPart::Largest(_) = self.work.wanted {
            for round in 0..ROUNDS {
                let select = Select { round, ..self.select() };
                let groups = rows.div_ceil(1024).min(64);
                self.launch(&self.name("histogram"), (width.div_ceil(32), groups), (32, 8), select)?;
                self.launch("pick", (columns, 1), (THREADS, 1), select)?;
            }
        }
        let parts = (self.places.selection.parts as u32).div_ceil(8);
        self.launch(&self.name("count"), (width.div_ceil(32), parts), (32, 8), self.select())?;
        self.launch(&self.name("total"), (columns, 1), (THREADS, 1), self.select())
    }

    /// Sends what may be kept of the panel that was made, in as many pieces as the room for it asks for. `false`
    /// if nobody takes it any more.
    pub(super) fn hand_over(
        &self,
        columns: Range<usize>,
        free: &Receiver<Pinned>,
        pieces: &SyncSender<Result<Piece, Error>>,
    ) -> Result<bool, Error> {
        self.count()?;
        let totals: Vec<u32> = read(&self.stream, self.places.selection.totals, columns.len())?;
        let own: Vec<f64> = read(&self.stream, self.places.selection.own, columns.len())?;
        let mut begin = 0;
        while begin < totals.len() {
            let mut offsets = vec![0usize];
            let mut end = begin;
            while end < totals.len() && offsets[end - begin] + totals[end] as usize <= self.shape.output {
                offsets.push(offsets[end - begin] + totals[end] as usize);
                end += 1;
            }
            let Ok(mut pinned) = free.recv() else { return Ok(false) };
            self.write(begin..end, &offsets, &mut pinned)?;
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
    fn write(&self, columns: Range<usize>, offsets: &[usize], to: &mut Pinned) -> Result<(), Error> {
        let count = *offsets.last().expect("there is a first");
        if count == 0 {
            return Ok(());
        }
        to.make_room(self.shape.output)?;
        let Selection { offsets: begins, lines, kept, parts, .. } = self.places.selection;
        let numbers: Vec<u32> = offsets[..columns.len()].iter().map(|&at| at as u32).collect();
        write(&self.stream, begins + 4 * columns.start as u64, &numbers)?;
        let (column_begin, column_end) = (columns.start as u32, columns.end as u32);
        let select = Select { column_begin, column_end, ..self.select() };
        let grid = ((columns.len() as u32).div_ceil(32), (parts as u32).div_ceil(8));
        self.launch(&self.name("write"), grid, (32, 8), select)?;
        to.read(&self.stream, kept, lines, count)
    }
}
