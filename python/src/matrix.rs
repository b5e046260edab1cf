//! Sparse matrices out, as the three arrays of a `scipy.sparse.csr_array`, without copying entries.

use numpy::{IntoPyArray, PyArray1, PyArrayMethods, PyUntypedArray};
use pyo3::prelude::*;
use qdc_core::Csr;

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
