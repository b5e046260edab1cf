//! Columns of a kernel on the device: panels of hundreds of columns, and only what may be kept comes back.
//!
//! A panel is made by a polynomial in L (`series`) or from eigenpairs (`pairs`), then it is selected what may be
//! kept (`select`). One thread drives the device and copies; the caller takes what came while it goes on. Where all
//! columns fit into one panel, a threshold is applied and the kernel finished there (`whole`).

pub(crate) mod arguments;
mod pairs;
mod select;
mod series;
#[cfg(test)]
mod tests;
mod whole;

use std::ops::Range;
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, channel, sync_channel};
use std::sync::{Arc, PoisonError};

use cudarc::driver::CudaStream;
use qdc_core::Precision;
use qdc_core::kernel::{Candidates, ColumnSource, ColumnWork};

use crate::launch::{Argument, Launch};
use crate::matrices::counted;
use crate::pinned::Pinned;
use crate::room::{Allocation, Room};
use crate::state::Address;
use crate::{Device, Error};
use pairs::Pairs;
use select::Selection;
use series::Series;
pub use whole::ResidentMatrix;
pub(crate) use whole::whole;

/// Columns of a panel are a multiple of this.
const GRAIN: usize = 128;
/// Bytes that one panel should not exceed: larger ones gain nothing.
const PANEL_BYTES: u64 = 1 << 30;
/// Panels that there should be at least, so that device and host work at the same time.
const PANELS: usize = 4;
/// The share of the free memory that the work may take.
const SHARE: f64 = 0.8;
/// Entries that are handed over at a time, or those of one column.
const PIECE: usize = 1 << 20;
/// A position that no row has.
const NOWHERE: u32 = u32::MAX;

/// What the caller does with the columns made.
type Take<'a> = &'a mut dyn FnMut(Candidates<'_>) -> Result<(), qdc_core::Error>;

/// An error of the device, or one that the caller gave.
pub(crate) enum Failure {
    Device(Error),
    Caller(qdc_core::Error),
}

/// Makes the columns of `work`.
pub(crate) fn columns(device: &Device, work: &ColumnWork<'_>, take: Take<'_>) -> Result<(), Failure> {
    if work.units.is_empty() {
        return Ok(());
    }
    let (pieces, filled) = sync_channel(1);
    let (give_back, free) = channel();
    for _ in 0..2 {
        give_back.send(device.pinned()).expect("the receiver is here");
    }
    // Moved in, so that the sender of free memory ends with the loop and the driving thread does not wait for it.
    std::thread::scope(move |scope| {
        let driving = scope.spawn(move || {
            if let Err(error) = make(device, work, &free, &pieces) {
                pieces.send(Err(error)).ok(); // nobody listens once the caller has stopped
            }
            free
        });
        for piece in filled {
            let piece = piece.map_err(Failure::Device)?;
            take(piece.candidates()).map_err(Failure::Caller)?;
            if let Err(unused) = give_back.send(piece.pinned) {
                device.keep_pinned(unused.0);
            }
        }
        let free = driving.join().unwrap_or_else(|panic| resume_unwind(panic));
        free.try_iter().for_each(|pinned| device.keep_pinned(pinned));
        Ok(())
    })
}

/// What may be kept of some columns, on its way to the caller.
struct Piece {
    columns: Range<usize>,
    offsets: Vec<usize>,
    own: Vec<f64>,
    /// Values, then rows.
    pinned: Pinned,
}

impl Piece {
    fn candidates(&self) -> Candidates<'_> {
        let count = *self.offsets.last().expect("there is a first");
        let (values, rows) = self.pinned.split(count);
        Candidates { columns: self.columns.clone(), offsets: &self.offsets, rows, values, own: &self.own }
    }
}

/// Makes the columns panel by panel and sends what may be kept of them, in their order. Ends early when nobody
/// takes it any more.
fn make(
    device: &Device,
    work: &ColumnWork<'_>,
    free: &Receiver<Pinned>,
    pieces: &SyncSender<Result<Piece, Error>>,
) -> Result<(), Error> {
    let stream = device.stream()?;
    let shape = Shape::of(device, work)?;
    let (allocation, (places, selection)) = placed(device, &stream, |room| shape.places(work, room))?;
    let panels = Panels { device, work, shape, places, stream };
    for start in (0..work.units.len()).step_by(panels.shape.width) {
        let columns = start..(start + panels.shape.width).min(work.units.len());
        panels.begin(&allocation, columns.clone())?;
        selection.begin(work.wanted, panels.shape.width, &allocation)?;
        panels.make()?;
        if !selection.hand_over(&panels, columns, free, pieces)? {
            break;
        }
    }
    Ok(())
}

/// Allocates what `place` asks for, and places it.
fn placed<P>(
    device: &Device,
    stream: &Arc<CudaStream>,
    place: impl Fn(&mut Room) -> Result<P, Error>,
) -> Result<(Allocation, P), Error> {
    let allocation = {
        let _planning = device.planning.lock().unwrap_or_else(PoisonError::into_inner);
        let mut room = Room::dry();
        place(&mut room)?;
        Allocation::new(device, stream, room.bytes())?
    };
    let places = place(&mut Room::of(&allocation))?;
    Ok((allocation, places))
}

/// The sizes of all that is placed on the device.
#[derive(Clone, Copy, Debug)]
struct Shape {
    rows: usize,
    /// Columns of a panel.
    width: usize,
    /// Bytes of a number.
    bytes: usize,
    /// Entries of the output at most.
    output: usize,
    /// Bytes of shared memory that a block can have, and how many multiprocessors there are.
    shared: u32,
    multiprocessors: u32,
}

impl Shape {
    /// Panels of at least `width` columns.
    fn new(device: &Device, work: &ColumnWork<'_>, width: usize) -> Result<Self, Error> {
        let rows = work.last.len();
        counted("rows of a matrix", rows as u64)?;
        let bytes = if work.precision == Precision::F64 { 8 } else { 4 };
        let width = width.max(1).next_multiple_of(GRAIN);
        let Device { shared, multiprocessors, .. } = *device;
        Ok(Self { rows, width, bytes, output: PIECE.max(rows), shared, multiprocessors })
    }

    /// The widest panels that make sense and fit.
    fn of(device: &Device, work: &ColumnWork<'_>) -> Result<Self, Error> {
        let free = (device.free_memory()? as f64 * SHARE) as u64;
        let one = Self::new(device, work, 1)?;
        let most = work.units.len().div_ceil(PANELS).max(GRAIN);
        let wide = (PANEL_BYTES / (one.rows * one.bytes) as u64) as usize;
        let mut shape = Self::new(device, work, most.min(wide))?;
        loop {
            let mut room = Room::dry();
            shape.places(work, &mut room)?;
            match room.bytes() {
                needed if needed <= free => return Ok(shape),
                needed if shape.width == GRAIN => return Err(Error::Memory { needed, free }),
                _ => shape = Self::new(device, work, shape.width / 2)?,
            }
        }
    }

    /// Places all that panels need whose entries are handed over.
    fn places(&self, work: &ColumnWork<'_>, room: &mut Room) -> Result<(Places, Selection), Error> {
        Ok((Places::new(work, self, room)?, Selection::new(self, room)))
    }

    /// Bytes of a panel.
    fn panel(&self) -> u64 {
        (self.rows * self.width * self.bytes) as u64
    }
}

/// The addresses of what panels are made of.
struct Places {
    source: Source,
    positions: Address,
    shares: Address,
    last: Address,
    first: Address,
}

/// What panels are made of.
enum Source {
    Series(Series),
    Pairs(Pairs),
}

impl Places {
    fn new(work: &ColumnWork<'_>, shape: &Shape, room: &mut Room) -> Result<Self, Error> {
        let width = shape.width as u64;
        Ok(Self {
            source: match work.source {
                ColumnSource::Series { matrix, coefficients } => {
                    Source::Series(Series::new(matrix, coefficients, work.precision, shape, room)?)
                }
                ColumnSource::Pairs { vectors, weights } => {
                    Source::Pairs(Pairs::new(vectors, weights, shape, room)?)
                }
            },
            positions: room.reserve::<u32>(width),
            shares: room.reserve::<f64>(width),
            last: room.copy(work.last)?,
            first: room.reserve::<u32>(width),
        })
    }
}

struct Panels<'a> {
    device: &'a Device,
    work: &'a ColumnWork<'a>,
    shape: Shape,
    places: Places,
    stream: Arc<CudaStream>,
}

impl Panels<'_> {
    /// The panel in which the columns lie once they are made.
    fn result(&self) -> Address {
        match &self.places.source {
            Source::Series(series) => series.result(),
            Source::Pairs(pairs) => pairs.panel,
        }
    }

    /// Says which columns the next panel holds; the stream has no work now.
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
        allocation.write(places.first, &padded(&mut work.first[columns].iter().copied(), 0))
    }

    /// Makes the columns of the panel.
    fn make(&self) -> Result<(), Error> {
        match &self.places.source {
            Source::Series(series) => series.make(self),
            Source::Pairs(pairs) => pairs.make(self),
        }
    }

    /// The kernel's name for this precision.
    fn name(&self, kernel: &str) -> String {
        format!("{kernel}_{}", if self.work.precision == Precision::F64 { "f64" } else { "f32" })
    }

    fn launch<A: Argument>(
        &self,
        name: &str,
        grid: (u32, u32),
        block: (u32, u32),
        argument: A,
    ) -> Result<(), Error> {
        self.launch_with(name, grid, block, 0, argument)
    }

    /// A launch with so many bytes of shared memory for each block.
    fn launch_with<A: Argument>(
        &self,
        name: &str,
        grid: (u32, u32),
        block: (u32, u32),
        shared: u32,
        argument: A,
    ) -> Result<(), Error> {
        let (grid, block) = ((grid.0, grid.1, 1), (block.0, block.1, 1));
        Launch::new(name, self.device.kernel(name), grid, block, shared, argument).enqueue(&self.stream)
    }
}
