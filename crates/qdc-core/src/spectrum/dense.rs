//! The full symmetric eigendecomposition, by faer or on a device.
//!
//! Time of order n^3 and about five n x n matrices for each block of n classes. faer cannot be stopped half
//! way, so the work runs on a thread of its own: when the watch asks for a stop, that thread is left behind
//! to finish or to die with the process, and its result is dropped.

use std::num::NonZeroUsize;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd, self_adjoint_evd_scratch};
use faer::{Mat, MatRef, Par};

use crate::kernel::Accelerator;
use crate::{Csr, Error, Watch};

/// Eigenvalues and eigenvectors.
type Pairs = (Vec<f64>, Mat<f64>);

/// Below this, a decomposition takes milliseconds and does not ask whether to stop.
const SMALL: usize = 400;

/// The work is always split in the same number of parts, whatever the number of threads, so that results do
/// not depend on it.
pub(super) fn parts() -> Par {
    Par::Rayon(NonZeroUsize::new(4).expect("4 is not 0"))
}

/// Bytes needed for the full decomposition of a matrix of `n` rows.
pub fn memory(n: usize) -> u64 {
    let scratch =
        self_adjoint_evd_scratch::<f64>(n.max(2), ComputeEigenvectors::Yes, parts(), Default::default());
    scratch.unaligned_bytes_required() as u64 + 16 * (n as u64).pow(2)
}

/// Bytes that the host needs where a device does the work: the matrix, and a copy of it in the end.
pub(super) fn memory_beside_a_device(n: usize) -> u64 {
    16 * (n as u64).pow(2)
}

/// All eigenpairs of a symmetric matrix, eigenvalues ascending, by a device. `None` where the device fails and
/// leaves the work to the CPU.
pub(super) fn decompose_on(
    device: &dyn Accelerator,
    matrix: &Csr<f64>,
    watch: &Watch,
) -> Result<Option<Pairs>, Error> {
    watch.check()?;
    let n = matrix.rows();
    let mut full = vec![0.0; n * n];
    for (row, column, value) in matrix.iter() {
        full[column as usize * n + row] = value;
    }
    match device.decompose(n, &mut full) {
        Ok(values) => Ok(Some((values, MatRef::from_column_major_slice(&full, n, n).to_owned()))),
        Err(Error::Device { problem }) if device.yields() => {
            watch.note(&format!("decomposing on the CPU: {problem}"));
            Ok(None)
        }
        Err(error) => Err(error),
    }
}

/// All eigenpairs of a symmetric matrix, eigenvalues ascending.
pub(super) fn decompose(matrix: &Csr<f64>, watch: &Watch) -> Result<Pairs, Error> {
    let n = matrix.rows();
    let mut full = Mat::<f64>::zeros(n, n);
    for (row, column, value) in matrix.iter() {
        full[(row, column as usize)] = value;
    }
    decompose_full(full, watch)
}

/// The same for a matrix already written out; only its lower triangle is read.
pub(super) fn decompose_full(full: Mat<f64>, watch: &Watch) -> Result<Pairs, Error> {
    watch.check()?;
    if full.nrows() <= SMALL {
        return eigen(&full);
    }
    let (sender, receiver) = channel();
    std::thread::spawn(move || {
        let _ = sender.send(eigen(&full)); // nobody listens any more after a stop
    });
    loop {
        // The decomposition runs on the threads of the pool. Where this is one of them, it helps while it
        // waits: if every thread only waited, for decompositions within a parallel loop, none would ever be
        // done.
        let patience = match rayon::yield_now() {
            Some(rayon::Yield::Executed) => Duration::ZERO,
            Some(rayon::Yield::Idle) => Duration::from_millis(1),
            None => Duration::from_millis(50),
        };
        match receiver.recv_timeout(patience) {
            Ok(outcome) => return outcome,
            Err(RecvTimeoutError::Timeout) => watch.check()?,
            Err(RecvTimeoutError::Disconnected) => panic!("the eigendecomposition panicked"),
        }
    }
}

fn eigen(full: &Mat<f64>) -> Result<Pairs, Error> {
    let n = full.nrows();
    if n == 1 {
        return Ok((vec![full[(0, 0)]], Mat::from_fn(1, 1, |_, _| 1.0)));
    }
    let par = if n <= SMALL { Par::Seq } else { parts() };
    let mut values = faer::diag::Diag::<f64>::zeros(n);
    let mut vectors = Mat::<f64>::zeros(n, n);
    let scratch = self_adjoint_evd_scratch::<f64>(n, ComputeEigenvectors::Yes, par, Default::default());
    let mut buffer = MemBuffer::try_new(scratch).map_err(|_| Error::Memory {
        what: "the full eigendecomposition",
        needed: memory(n),
        limit: 0,
    })?;
    let stack = MemStack::new(&mut buffer);
    self_adjoint_evd(full.as_ref(), values.as_mut(), Some(vectors.as_mut()), par, stack, Default::default())
        .map_err(|_| Error::Eigendecomposition { nodes: n })?;
    Ok((values.column_vector().iter().copied().collect(), vectors))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rayon::prelude::*;

    #[test]
    fn decompositions_within_a_parallel_loop_do_not_wait_for_each_other() {
        let n = SMALL + 1;
        let chain = Mat::from_fn(n, n, |i, j| if i.abs_diff(j) == 1 { 1.0 } else { 0.0 });
        let largest = |_| decompose_full(chain.clone(), &Watch::silent()).unwrap().0[n - 1];
        // More than there are threads, so that every thread waits for one.
        let found: Vec<f64> = (0..2 * rayon::current_num_threads()).into_par_iter().map(largest).collect();
        let expected = 2.0 * (std::f64::consts::PI / (n as f64 + 1.0)).cos();
        assert!(found.iter().all(|value| (value - expected).abs() < 1e-12), "{found:?}");
    }
}
