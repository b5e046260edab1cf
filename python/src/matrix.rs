//! Sparse matrices as the three arrays of a `scipy.sparse.csr_array`: out without copying entries, and back
//! in.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyReadonlyArray1, PyUntypedArray};
use pyo3::prelude::*;
use qdc_core::{Csr, Error};

use crate::graph::Integers;

type Untyped<'py> = Bound<'py, PyUntypedArray>;

/// (data, indices, indptr), as `csr_array` takes them; both index arrays of one type, so that SciPy copies
/// neither.
pub(crate) type CsrArrays<'py> = (Bound<'py, PyArray1<f64>>, Untyped<'py>, Untyped<'py>);

/// Gives the parts of a matrix to NumPy.
pub(crate) fn csr_arrays(py: Python<'_>, matrix: Csr<f64>) -> CsrArrays<'_> {
    let columns = matrix.columns();
    let (pointers, indices, values) = matrix.into_parts();
    let (indices, pointers) = index_arrays(py, pointers, indices, columns);
    (values.into_pyarray(py), indices, pointers)
}

/// (indices, indptr), 32 bits wide where everything fits.
pub(crate) fn index_arrays(
    py: Python<'_>,
    pointers: Vec<usize>,
    indices: Vec<u32>,
    columns: usize,
) -> (Untyped<'_>, Untyped<'_>) {
    if indices.len() <= i32::MAX as usize && columns <= i32::MAX as usize {
        let pointers: Vec<i32> = pointers.into_iter().map(|pointer| pointer as i32).collect();
        (
            untyped(bytemuck::cast_vec::<u32, i32>(indices).into_pyarray(py)),
            untyped(pointers.into_pyarray(py)),
        )
    } else {
        let indices: Vec<i64> = indices.into_iter().map(i64::from).collect();
        let pointers: Vec<i64> = pointers.into_iter().map(|pointer| pointer as i64).collect();
        (untyped(indices.into_pyarray(py)), untyped(pointers.into_pyarray(py)))
    }
}

fn untyped<'py, T: numpy::Element>(array: Bound<'py, PyArray1<T>>) -> Untyped<'py> {
    array.as_untyped().clone()
}

/// (data, indices, indptr) as [`csr_arrays`] gave them.
pub(crate) type GivenCsr<'py> = (PyReadonlyArray1<'py, f64>, Integers<'py>, Integers<'py>);

/// The matrix of arrays that were given out before.
pub(crate) fn given_csr(arrays: &GivenCsr<'_>, columns: usize) -> Result<Csr<f64>, Error> {
    let (data, indices, pointers) = arrays;
    // What is out of range is found out by the checks of a matrix.
    let pointers: Vec<usize> = (0..pointers.len()).map(|at| pointers.get(at) as usize).collect();
    let indices = (0..indices.len()).map(|at| u32::try_from(indices.get(at)).unwrap_or(u32::MAX)).collect();
    Csr::new(pointers.len().saturating_sub(1), columns, pointers, indices, data.as_array().to_vec())
}
