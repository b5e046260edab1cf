//! Matrices on the device: by rows and by columns, or with their zeros.

use std::cell::OnceCell;
use std::sync::Arc;

use qdc_core::Csr;
use qdc_nn::Propagation;

use crate::Error;
use crate::room::Room;
use crate::state::{Address, Sparse};

/// Above this share of non-zeros a dense product beats the sparse one on the device.
const DENSE_ABOVE: f64 = 0.1;

/// A sparse matrix and its transpose on the device.
#[derive(Clone, Copy)]
pub(crate) struct Matrices {
    pub(crate) forward: Sparse,
    pub(crate) backward: Sparse,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) entries: u64,
    /// The matrix with its zeros, where that is faster.
    pub(crate) dense: Option<Address>,
    pub(crate) symmetric: bool,
}

impl Matrices {
    pub(crate) fn of(matrix: &Csr<f32>, room: &mut Room) -> Result<Self, Error> {
        let forward = upload(matrix, room)?;
        let backward = transposed(matrix, room)?;
        let (rows, columns) = (matrix.rows() as u32, matrix.columns() as u32);
        let entries = u64::from(counted("entries of the features", matrix.entries() as u64)?);
        Ok(Self { forward, backward, rows, columns, entries, dense: None, symmetric: false })
    }

    /// A symmetric matrix that is written out only where the room is real.
    pub(crate) fn symmetric<'a>(
        nodes: usize,
        entries: usize,
        matrix: impl Fn() -> &'a Csr<f32>,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let entries = u64::from(counted("entries of a matrix", entries as u64)?);
        let pointers = room.upload(nodes as u64 + 1, || {
            matrix().pointers().iter().map(|&at| at as u32).collect::<Vec<u32>>()
        })?;
        let forward = Sparse {
            pointers,
            indices: room.upload(entries, || matrix().indices().to_vec())?,
            values: room.upload(entries, || matrix().values().to_vec())?,
            places: 0,
        };
        let (rows, columns) = (nodes as u32, nodes as u32);
        Ok(Self { forward, backward: forward, rows, columns, entries, dense: None, symmetric: true })
    }

    /// `attends`: with the places of entries by columns.
    pub(crate) fn of_propagation(
        matrix: &Arc<Propagation<f32>>,
        attends: bool,
        room: &mut Room,
    ) -> Result<Self, Error> {
        let (csr, symmetric) = (matrix.matrix(), matrix.is_symmetric());
        let entries = u64::from(counted("entries of a matrix", csr.entries() as u64)?);
        let (rows, columns) = (csr.rows() as u32, csr.columns() as u32);
        if !attends && csr.density() > DENSE_ABOVE {
            let cells = csr.rows() as u64 * csr.columns() as u64;
            let dense = Some(room.upload(cells, || csr.to_dense())?);
            let nothing = Sparse::default();
            return Ok(Self {
                forward: nothing,
                backward: nothing,
                rows,
                columns,
                entries,
                dense,
                symmetric,
            });
        }
        let forward = upload(csr, room)?;
        let backward = if attends {
            let by_column = matrix.entries_by_column();
            let pointers = pointers(by_column.pointers(), room)?;
            let indices = room.upload(entries, || by_column.indices().to_vec())?;
            let places = room.upload(entries, || by_column.values().iter().map(|&at| at as u32).collect())?;
            Sparse { pointers, indices, values: 0, places }
        } else if symmetric {
            forward
        } else {
            transposed(csr, room)?
        };
        Ok(Self { forward, backward, rows, columns, entries, dense: None, symmetric })
    }
}

fn pointers(of: &[usize], room: &mut Room) -> Result<Address, Error> {
    room.upload(of.len() as u64, || of.iter().map(|&at| at as u32).collect())
}

fn upload(matrix: &Csr<f32>, room: &mut Room) -> Result<Sparse, Error> {
    let entries = matrix.entries() as u64;
    Ok(Sparse {
        pointers: pointers(matrix.pointers(), room)?,
        indices: room.upload(entries, || matrix.indices().to_vec())?,
        values: room.upload(entries, || matrix.values().to_vec())?,
        places: 0,
    })
}

/// The transpose, with the places of its entries in `matrix`.
fn transposed(matrix: &Csr<f32>, room: &mut Room) -> Result<Sparse, Error> {
    let entries = matrix.entries() as u64;
    let numbered = OnceCell::new(); // a dry room does not ask for it
    let by_column = || {
        numbered.get_or_init(|| {
            let places = (0..matrix.entries() as u32).collect();
            let (pointers, indices) = (matrix.pointers().to_vec(), matrix.indices().to_vec());
            let numbered = Csr::new(matrix.rows(), matrix.columns(), pointers, indices, places);
            numbered.expect("the pattern of a valid matrix").transpose()
        })
    };
    Ok(Sparse {
        pointers: room.upload(matrix.columns() as u64 + 1, || {
            by_column().pointers().iter().map(|&at| at as u32).collect()
        })?,
        indices: room.upload(entries, || by_column().indices().to_vec())?,
        values: room.upload(entries, || {
            by_column().values().iter().map(|&place| matrix.values()[place as usize]).collect()
        })?,
        places: room.upload(entries, || by_column().values().to_vec())?,
    })
}

/// The number, if kernels can count to it.
pub(crate) fn counted(what: &'static str, count: u64) -> Result<u32, Error> {
    u32::try_from(count).map_err(|_| Error::TooLarge { what, count })
}
