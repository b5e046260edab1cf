//! Columns of a polynomial in L on the device: panels of hundreds of columns, and only what may be kept comes
//! back.
//!
//! While the host sparsifies what came of one panel, the device works on the next.

pub(crate) mod arguments;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::{Arc, PoisonError};

use cudarc::driver::CudaStream;
use qdc_core::kernel::{Candidates, ColumnPart, ColumnWork};
use qdc_core::{Precision, Sign};

use crate::error::while_doing;
use crate::grid::THREADS;
use crate::launch::Launch;
use crate::matrices::counted;
use crate::room::{Allocation, Room, clear, read, read_into};
use crate::state::Address;
use crate::{Device, Error};
use arguments::{Select, Start, Step};

/// Columns of a panel are a multiple of this.
const GRAIN: usize = 128;
/// Bytes that one panel should not exceed: larger ones gain nothing.
const PANEL_BYTES: u64 = 1 << 30;
/// Panels that there should be at least, so that device and host work at the same time.
const PANELS: usize = 4;
/// The share of the free memory that the work may take.
const SHARE: f64 = 0.8;
/// Parts into which a column is cut when its entries are counted.
const PARTS: usize = 1024;
/// Rounds in which the smallest of the largest is found, eight bits in each.
const ROUNDS: u32 = 3;
/// A position that no row has.
const NOWHERE: u32 = u32::MAX;

/// What the caller does with the columns made.
type Take<'a> = &'a mut dyn FnMut(Candidates) -> Result<(), qdc_core::Error>;

/// An error of the device, or one that the caller gave.
pub(crate) enum Failure {
    Device(Error),
    Caller(qdc_core::Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Device(error)
    }
}

/// Makes the columns of `work`.
pub(crate) fn columns(device: &Device, work: &ColumnWork<'_>, take: Take<'_>) -> Result<(), Failure> {
    if work.units.is_empty() {
        return Ok(());
    }
    let stream = device.stream()?;
    let shape = Shape::of(device, work)?;
    let allocation = {
        let _planning = device.planning.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = Room::dry();
        Places::new(work, &shape, &mut room)?;
        Allocation::new(device, &stream, room.bytes())?
    };
    let places = Places::new(work, &shape, &mut Room::of(&allocation))?;
    let panels = Panels { device, work, shape, places, stream };
    let starts: Vec<usize> = (0..work.units.len()).step_by(panels.shape.width).collect();
    panels.begin(&allocation, panels.range(starts[0]))?;
    for (number, &start) in starts.iter().enumerate() {
        let range = panels.range(start);
        let candidates = panels.end(range)?;
        if let Some(&next) = starts.get(number + 1) {
            panels.begin(&allocation, panels.range(next))?;
        }
        for some in candidates {
            if let Err(error) = take(some) {
                panels.stream.synchronize().map_err(while_doing("finishing a panel"))?;
                return Err(Failure::Caller(error));
            }
        }
    }
    Ok(())
}

/// The sizes of all that is placed on the device.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    entries: usize,
    /// Columns of a panel.
    width: usize,
    /// Bytes of a number.
    bytes: usize,
    /// Entries of the output at most.
    output: usize,
    parts: usize,
    rows_of_a_part: usize,
}

impl Shape {
    /// The widest panels that make sense and fit.
    fn of(device: &Device, work: &ColumnWork<'_>) -> Result<Self, Error> {
        let rows = work.matrix.rows();
        counted("rows of a matrix", rows as u64)?;
        counted("entries of a matrix", work.matrix.entries() as u64)?;
        let bytes = if work.precision == Precision::F64 { 8 } else { 4 };
        let free = (device.free_memory()? as f64 * SHARE) as u64;
        let most = work.units.len().div_ceil(PANELS).max(GRAIN);
        let wide = (PANEL_BYTES / (rows * bytes) as u64) as usize;
        let mut width = most.min(wide).max(GRAIN).next_multiple_of(GRAIN);
        loop {
            let rows_of_a_part = rows.div_ceil(PARTS).max(16);
            let parts = rows.div_ceil(rows_of_a_part);
            // A column must fit; a quarter of the panel does in most cases.
            let output = (rows * width / 4).max(rows).min(u32::MAX as usize);
            let entries = work.matrix.entries();
            let shape = Self { rows, entries, width, bytes, output, parts, rows_of_a_part };
            let mut room = Room::dry();
            Places::new(work, &shape, &mut room)?;
            match room.bytes() {
                needed if needed <= free => return Ok(shape),
                needed if width == GRAIN => return Err(Error::Memory { needed, free }),
                _ => width = (width / 2).next_multiple_of(GRAIN),
            }
        }
    }
}

/// The addresses of all that the work needs.
struct Places {
    pointers: Address,
    columns: Address,
    values: Address,
    order: Address,
    last: Address,
    panels: [Address; 2],
    positions: Address,
    shares: Address,
    first: Address,
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
}

impl Places {
    fn new(work: &ColumnWork<'_>, shape: &Shape, room: &mut Room) -> Result<Self, Error> {
        let matrix = work.matrix;
        let (rows, entries, width) = (shape.rows as u64, shape.entries as u64, shape.width as u64);
        let panel = |room: &mut Room| room.reserve::<u8>(rows * width * shape.bytes as u64);
        Ok(Self {
            pointers: room.upload(rows + 1, || matrix.pointers().iter().map(|&at| at as u32).collect())?,
            columns: room.upload(entries, || matrix.indices().to_vec())?,
            values: match work.precision {
                Precision::F64 => room.upload(entries, || matrix.values().to_vec())?,
                _ => room.upload(entries, || matrix.values().iter().map(|&value| value as f32).collect())?,
            },
            order: room.upload(rows, || longest_first(matrix.pointers()))?,
            last: room.upload(rows, || work.last.to_vec())?,
            panels: [panel(room), panel(room)],
            positions: room.reserve::<u32>(width),
            shares: room.reserve::<f64>(width),
            first: room.reserve::<u32>(width),
            histogram: room.reserve::<u32>(256 * width),
            prefix: room.reserve::<u32>(width),
            remaining: room.reserve::<u32>(width),
            floors: room.reserve::<f64>(width),
            counts: room.reserve::<u32>(shape.parts as u64 * width),
            totals: room.reserve::<u32>(width),
            own: room.reserve::<f64>(width),
            offsets: room.reserve::<u32>(width),
            lines: room.reserve::<u32>(shape.output as u64),
            kept: room.reserve::<f64>(shape.output as u64),
        })
    }
}

/// The rows of a matrix, those of most entries first: the longest work begins first.
fn longest_first(pointers: &[usize]) -> Vec<u32> {
    let mut order: Vec<u32> = (0..pointers.len() as u32 - 1).collect();
    order.sort_by_key(|&row| std::cmp::Reverse(pointers[row as usize + 1] - pointers[row as usize]));
    order
}

struct Panels<'a> {
    device: &'a Device,
    work: &'a ColumnWork<'a>,
    shape: Shape,
    places: Places,
    stream: Arc<CudaStream>,
}

impl Panels<'_> {
    fn range(&self, start: usize) -> Range<usize> {
        start..(start + self.shape.width).min(self.work.units.len())
    }

    /// The panel in which the result of the recurrence lies: each step after the first changes places.
    fn result(&self) -> Address {
        self.places.panels[(self.work.coefficients.len() - 1) % 2]
    }

    /// Puts all work on a panel up to its counts on the stream; the stream has no other work.
    fn begin(&self, allocation: &Allocation, columns: Range<usize>) -> Result<(), Error> {
        let (work, places, width) = (self.work, &self.places, self.shape.width);
        let padded = |numbers: &mut dyn Iterator<Item = u32>, padding: u32| {
            let mut numbers: Vec<u32> = numbers.collect();
            numbers.resize(width, padding);
            numbers
        };
        let units = &work.units[columns.clone()];
        let positions = padded(&mut units.iter().map(|unit| unit.0), NOWHERE);
        let mut shares: Vec<f64> = units.iter().map(|unit| unit.1).collect();
        shares.resize(width, 0.0);
        allocation.write(places.positions, &positions)?;
        allocation.write(places.shares, &shares)?;
        allocation.write(places.first, &padded(&mut work.first[columns].iter().copied(), 0))?;
        match work.wanted {
            ColumnPart::AtLeast(floor) => allocation.write(places.floors, &vec![floor; width])?,
            ColumnPart::Largest(most) => {
                let most = u32::try_from(most).unwrap_or(NOWHERE);
                allocation.write(places.prefix, &vec![0u32; width])?;
                allocation.write(places.remaining, &vec![most; width])?;
            }
        }
        let bytes = self.shape.rows * width * self.shape.bytes;
        places.panels.iter().try_for_each(|&panel| clear(&self.stream, panel, bytes))?;
        self.recurrence()?;
        self.count()
    }

    /// The kernel's name for this precision.
    fn name(&self, kernel: &str) -> String {
        format!("{kernel}_{}", if self.work.precision == Precision::F64 { "f64" } else { "f32" })
    }

    fn launch<A: crate::launch::Argument>(
        &self,
        name: &str,
        grid: (u32, u32),
        block: (u32, u32),
        argument: A,
    ) -> Result<(), Error> {
        let (grid, block) = ((grid.0, grid.1, 1), (block.0, block.1, 1));
        Launch::new(name, self.device.kernel(name), grid, block, 0, argument).enqueue(&self.stream)
    }

    /// Clenshaw's recurrence from the highest coefficient down.
    fn recurrence(&self) -> Result<(), Error> {
        let Places { panels, positions, shares, .. } = self.places;
        let (rows, width) = (self.shape.rows as u32, self.shape.width as u32);
        let (&highest, rest) = self.work.coefficients.split_last().expect("a series has a term");
        let start = Start { next: panels[0], positions, shares, coefficient: highest, rows, width };
        self.launch(&self.name("start"), (width.div_ceil(THREADS), 1), (THREADS, 1), start)?;
        let packs = width * self.shape.bytes as u32 / 16;
        let across = packs.min(32);
        let block = (across, THREADS / across);
        let grid = (rows.div_ceil(block.1), packs.div_ceil(across));
        let name = self.name("step");
        let steps = rest.iter().enumerate().rev().zip([(0, 1), (1, 0)].into_iter().cycle());
        for ((k, &coefficient), (next, after)) in steps {
            let scale = if k == 0 { 1.0 } else { 2.0 };
            let Places { pointers, columns, values, order, .. } = self.places;
            let (next, after) = (panels[next], panels[after]);
            let step = Step {
                pointers,
                columns,
                values,
                order,
                next,
                after,
                positions,
                shares,
                coefficient,
                scale,
                rows,
                packs,
            };
            self.launch(&name, grid, block, step)?;
        }
        Ok(())
    }

    fn select(&self) -> Select {
        let Places { positions, last, first, histogram, prefix, remaining, floors, .. } = self.places;
        let Places { counts, totals, own, offsets, lines, kept: values, .. } = self.places;
        let Shape { rows, width, parts, rows_of_a_part, .. } = self.shape;
        Select {
            panel: self.result(),
            positions,
            last,
            first,
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
            rows: rows as u32,
            width: width as u32,
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
        let parts = (self.shape.parts as u32).div_ceil(8);
        self.launch(&self.name("count"), (width.div_ceil(32), parts), (32, 8), self.select())?;
        self.launch(&self.name("total"), (columns, 1), (THREADS, 1), self.select())
    }

    /// What may be kept of the panel that was begun, in as many pieces as the room for it asks for.
    fn end(&self, columns: Range<usize>) -> Result<Vec<Candidates>, Error> {
        let totals: Vec<u32> = read(&self.stream, self.places.totals, columns.len())?;
        let own: Vec<f64> = read(&self.stream, self.places.own, columns.len())?;
        let mut pieces = Vec::new();
        let mut begin = 0;
        while begin < totals.len() {
            let mut offsets = vec![0usize];
            let mut end = begin;
            while end < totals.len() && offsets[end - begin] + totals[end] as usize <= self.shape.output {
                offsets.push(offsets[end - begin] + totals[end] as usize);
                end += 1;
            }
            let (rows, values) = self.write(begin..end, &offsets)?;
            let columns = columns.start + begin..columns.start + end;
            pieces.push(Candidates { columns, offsets, rows, values, own: own[begin..end].to_vec() });
            begin = end;
        }
        Ok(pieces)
    }

    fn write(&self, columns: Range<usize>, offsets: &[usize]) -> Result<(Vec<u32>, Vec<f64>), Error> {
        let count = *offsets.last().expect("there is a first");
        let (mut rows, mut values) = (vec![0u32; count], vec![0f64; count]);
        if count > 0 {
            let begins: Vec<u32> = offsets[..columns.len()].iter().map(|&at| at as u32).collect();
            let at = self.places.offsets + 4 * columns.start as u64;
            crate::room::write(&self.stream, at, &begins)?;
            let (column_begin, column_end) = (columns.start as u32, columns.end as u32);
            let select = Select { column_begin, column_end, ..self.select() };
            let grid = ((columns.len() as u32).div_ceil(32), (self.shape.parts as u32).div_ceil(8));
            self.launch(&self.name("write"), grid, (32, 8), select)?;
            read_into(&self.stream, self.places.lines, &mut rows)?;
            read_into(&self.stream, self.places.kept, &mut values)?;
        }
        Ok((rows, values))
    }
}
