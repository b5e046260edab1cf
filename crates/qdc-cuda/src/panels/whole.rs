//! A whole kernel on the device: all columns in one panel, what is kept of them by rows, and its normalisation.

use std::sync::Arc;

use cudarc::driver::CudaStream;
use qdc_core::Sign;
use qdc_core::kernel::{ColumnPart, Resident, RowSums, WholeWork};
use rayon::prelude::*;

use super::arguments::Whole;
use super::{PIECE, Panels, Places, SHARE, Shape, placed};
use crate::grid::THREADS;
use crate::launch::{Argument, Launch};
use crate::room::{Allocation, Room, read};
use crate::state::Address;
use crate::{Device, Error};

/// Bytes that the panel of all columns should not exceed: the work cannot be stopped meanwhile.
const WHOLE_BYTES: u64 = 1 << 32;
/// Parts into which a row is cut when its entries are counted.
const PARTS: usize = 1024;
/// Entries that one thread copies at a time.
const CHUNK: usize = 1 << 15;

/// Makes a whole kernel; `None` where there is no room for all of its columns or for what is kept.
pub(crate) fn whole(device: &Device, work: &WholeWork<'_>) -> Result<Option<ResidentMatrix>, Error> {
    let columns = &work.columns;
    let (true, ColumnPart::AtLeast(floor)) = (!columns.units.is_empty(), columns.wanted) else {
        return Ok(None);
    };
    let shape = Shape::new(device, columns, columns.units.len())?;
    let mut room = Room::dry();
    Counting::new(work, &shape, &mut room)?;
    if shape.panel() > WHOLE_BYTES || room.bytes() as f64 > device.free_memory()? as f64 * SHARE {
        return Ok(None);
    }
    match make(device, work, shape, floor) {
        Err(Error::Memory { .. }) => Ok(None),
        made => made.map(Some),
    }
}

fn make(device: &Device, work: &WholeWork<'_>, shape: Shape, floor: f64) -> Result<ResidentMatrix, Error> {
    let stream = device.stream()?;
    let (allocation, counting) = placed(device, &stream, |room| Counting::new(work, &shape, room))?;
    let Counting { places, class_of, apart, shares, counts, totals } = counting;
    let panels = Panels { device, work: &work.columns, shape, places, stream: Arc::clone(&stream) };
    panels.begin(&allocation, 0..work.columns.units.len())?;
    panels.make()?;
    let vertices = work.class_of.len();
    let of_a_part = of_a_part(vertices);
    let parts = vertices.div_ceil(of_a_part);
    let argument = Whole {
        panel: panels.result(),
        class_of,
        apart,
        shares,
        counts,
        totals,
        floor,
        vertices: vertices as u32,
        width: shape.width as u32,
        absolute: u32::from(work.columns.sign == Sign::Absolute),
        parts: parts as u32,
        of_a_part: of_a_part as u32,
        ..Whole::default()
    };
    let grid = ((vertices as u32).div_ceil(32), (parts as u32).div_ceil(8));
    panels.launch(&panels.name("whole_count"), grid, (32, 8), argument)?;
    panels.launch("whole_total", ((vertices as u32).div_ceil(THREADS), 1), (THREADS, 1), argument)?;
    let mut pointers = vec![0];
    let mut end = 0;
    for total in read::<u32>(&stream, totals, vertices)? {
        end += total as usize;
        pointers.push(end);
    }
    let (kept, places) = placed(device, &stream, |room| Kept::new(&pointers, room))?;
    let Kept { begins, columns, values, degrees, magnitudes, diagonal, left, right } = places;
    let argument =
        Whole { pointers: begins, columns, values, degrees, magnitudes, diagonal, left, right, ..argument };
    panels.launch(&panels.name("whole_write"), grid, (32, 8), argument)?;
    panels.launch("whole_sums", ((vertices as u32).div_ceil(32), 1), (32, 1), argument)?;
    let sums = RowSums {
        degrees: read(&stream, degrees, vertices)?,
        magnitudes: read(&stream, magnitudes, vertices)?,
        diagonal: read(&stream, diagonal, vertices)?,
    };
    Ok(ResidentMatrix { device: device.clone(), stream, allocation: kept, argument, pointers, sums })
}

/// Columns of a row that are one part.
fn of_a_part(vertices: usize) -> usize {
    vertices.div_ceil(PARTS).max(16)
}

/// What is needed until all that is kept is counted.
struct Counting {
    places: Places,
    class_of: Address,
    apart: Address,
    shares: Address,
    counts: Address,
    totals: Address,
}

impl Counting {
    fn new(work: &WholeWork<'_>, shape: &Shape, room: &mut Room) -> Result<Self, Error> {
        let vertices = work.class_of.len();
        let parts = vertices.div_ceil(of_a_part(vertices));
        Ok(Self {
            places: Places::new(&work.columns, shape, room)?,
            class_of: room.copy(work.class_of)?,
            apart: room.copy(work.apart)?,
            shares: room.copy(work.shares)?,
            counts: room.reserve::<u32>((parts * vertices) as u64),
            totals: room.reserve::<u32>(vertices as u64),
        })
    }
}

/// What is kept, and the sums and factors of its rows.
struct Kept {
    begins: Address,
    columns: Address,
    values: Address,
    degrees: Address,
    magnitudes: Address,
    diagonal: Address,
    left: Address,
    right: Address,
}

impl Kept {
    fn new(pointers: &[usize], room: &mut Room) -> Result<Self, Error> {
        let (vertices, entries) = (pointers.len() as u64 - 1, pointers[pointers.len() - 1] as u64);
        Ok(Self {
            begins: room.upload(pointers.len() as u64, || pointers.iter().map(|&at| at as u64).collect())?,
            columns: room.reserve::<u32>(entries),
            values: room.reserve::<f64>(entries),
            degrees: room.reserve::<f64>(vertices),
            magnitudes: room.reserve::<f64>(vertices),
            diagonal: room.reserve::<f64>(vertices),
            left: room.reserve::<f64>(vertices),
            right: room.reserve::<f64>(vertices),
        })
    }
}

/// A kernel that lies on the device.
pub struct ResidentMatrix {
    device: Device,
    stream: Arc<CudaStream>,
    allocation: Allocation,
    argument: Whole,
    pointers: Vec<usize>,
    sums: RowSums,
}

impl ResidentMatrix {
    /// Where the row pointers lie, 64 bits each, one more than there are rows.
    pub fn address_of_pointers(&self) -> u64 {
        self.argument.pointers
    }

    /// Where the columns lie, 32 bits each.
    pub fn address_of_columns(&self) -> u64 {
        self.argument.columns
    }

    /// Where the values lie, in double precision.
    pub fn address_of_values(&self) -> u64 {
        self.argument.values
    }

    /// The number of entries.
    pub fn entries(&self) -> usize {
        self.pointers[self.pointers.len() - 1]
    }

    fn launch<A: Argument>(
        &self,
        name: &str,
        grid: u32,
        block: (u32, u32),
        argument: A,
    ) -> Result<(), Error> {
        let (grid, block) = ((grid, 1, 1), (block.0, block.1, 1));
        Launch::new(name, self.device.kernel(name), grid, block, 0, argument).enqueue(&self.stream)
    }
}

impl std::fmt::Debug for ResidentMatrix {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rows = self.pointers.len() - 1;
        formatter.debug_struct("ResidentMatrix").field("rows", &rows).finish_non_exhaustive()
    }
}

impl Drop for ResidentMatrix {
    fn drop(&mut self) {
        self.device.bind().ok(); // memory is freed by a thread that is bound to the device, and this may be another one
    }
}

impl Resident for ResidentMatrix {
    fn pointers(&self) -> &[usize] {
        &self.pointers
    }

    fn sums(&self) -> &RowSums {
        &self.sums
    }

    fn scale(&mut self, left: &[f64], right: &[f64]) -> Result<(), qdc_core::Error> {
        self.device.bind()?;
        self.allocation.write(self.argument.left, left)?;
        self.allocation.write(self.argument.right, right)?;
        self.launch("whole_scale", self.argument.vertices.div_ceil(8), (32, 8), self.argument)?;
        Ok(crate::room::wait(&self.stream)?)
    }

    fn read(&self) -> Result<(Vec<u32>, Vec<f64>), qdc_core::Error> {
        self.device.bind()?;
        let (mut columns, mut values) = (vec![0u32; self.entries()], vec![0f64; self.entries()]);
        let mut pinned = self.device.pinned();
        pinned.make_room(PIECE.min(self.entries()))?;
        let pieces = columns.chunks_mut(PIECE).zip(values.chunks_mut(PIECE)).enumerate();
        for (at, (columns, values)) in pieces {
            let (begin, count) = ((at * PIECE) as u64, columns.len());
            let (from, of) = (self.argument.values + 8 * begin, self.argument.columns + 4 * begin);
            pinned.read(&self.stream, from, of, count)?;
            let (from, of) = pinned.split(count);
            // In parallel, as memory that nobody has touched yet is slow.
            let to = values.par_chunks_mut(CHUNK).zip(columns.par_chunks_mut(CHUNK));
            to.zip(from.par_chunks(CHUNK).zip(of.par_chunks(CHUNK))).for_each(|(to, from)| {
                to.0.copy_from_slice(from.0);
                to.1.copy_from_slice(from.1);
            });
        }
        self.device.keep_pinned(pinned);
        Ok((columns, values))
    }
}
