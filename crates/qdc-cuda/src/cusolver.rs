//! The full symmetric eigendecomposition on the device, by NVIDIA's cuSOLVER where it is installed.
//!
//! The library is no part of the driver: it is looked for when the first decomposition is asked for, among the
//! system's libraries, in `LD_LIBRARY_PATH` and in the folders of Python's packages (`pip install
//! nvidia-cusolver-cu12`, or what PyTorch brings). Where it is missing the CPU decomposes.

mod library;

use std::sync::{OnceLock, PoisonError};

use crate::room::{Allocation, Room, read_into};
use crate::{Device, Error};
use library::{Handle, Library};

/// The library, or why it cannot be used; looked for once.
fn library() -> Result<&'static Library, Error> {
    static LIBRARY: OnceLock<Result<Library, String>> = OnceLock::new();
    let found = LIBRARY.get_or_init(Library::open);
    found.as_ref().map_err(|problem| Error::NoSolver { problem: problem.clone() })
}

/// Whether cuSOLVER is there.
pub(crate) fn is_there() -> bool {
    library().is_ok()
}

/// All eigenvalues of a symmetric matrix of `n` rows, ascending. The matrix, of which the lower triangle is read
/// (columns one after the other), becomes the eigenvectors, column by column.
///
/// # Errors
/// If there is no library, the device lacks memory or fails, or the decomposition does not converge.
pub(crate) fn decompose(device: &Device, n: usize, matrix: &mut [f64]) -> Result<Vec<f64>, Error> {
    assert_eq!(matrix.len(), n * n, "a square matrix");
    let library = library()?;
    let stream = device.stream()?;
    let handle = Handle::new(library, &stream)?;
    let planning = device.planning.lock().unwrap_or_else(PoisonError::into_inner);
    let (on_device, on_host) = handle.workspace(n)?;
    let cells = (n * n) as u64;
    let place = |room: &mut Room| {
        let matrix = room.reserve::<f64>(cells);
        (matrix, room.reserve::<f64>(n as u64), room.reserve::<i32>(1), room.reserve::<u8>(on_device as u64))
    };
    let mut counted = Room::dry();
    place(&mut counted);
    let free = device.free_memory()?;
    if counted.bytes() > free {
        return Err(Error::Memory { needed: counted.bytes(), free });
    }
    let allocation = Allocation::new(device, &stream, counted.bytes())?;
    drop(planning);
    let (on_the_device, values_at, info, work) = place(&mut Room::of(&allocation));
    allocation.write(on_the_device, matrix)?;
    let mut host_work = vec![0u8; on_host];
    handle.solve(n, on_the_device, values_at, (work, on_device), &mut host_work, info)?;
    let mut status = [0i32];
    read_into(&stream, info, &mut status)?;
    if status[0] != 0 {
        let problem = format!("its eigensolver ended with status {}", status[0]);
        return Err(Error::Driver { doing: "decomposing a matrix", problem });
    }
    let mut values = vec![0.0; n];
    read_into(&stream, values_at, &mut values)?;
    read_into(&stream, on_the_device, matrix)?;
    Ok(values)
}
