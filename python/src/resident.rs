//! Kernels that stay on a CUDA device, as arrays that torch and CuPy read in place.

use std::any::Any;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyDict;
use qdc_core::kernel::{Resident as _, ResidentKernel};
use qdc_cuda::ResidentMatrix;

/// A kernel in compressed rows on the first CUDA device.
#[pyclass(frozen, module = "qdc._core")]
pub(crate) struct Resident(Arc<ResidentMatrix>);

impl Resident {
    /// `None` if it is of another device than CUDA's.
    pub(crate) fn of(kernel: ResidentKernel) -> Option<Self> {
        let matrix: Box<dyn Any> = kernel.matrix;
        matrix.downcast::<ResidentMatrix>().ok().map(|matrix| Self(Arc::from(matrix)))
    }

    fn array(&self, address: u64, count: usize, kind: &'static str) -> DeviceArray {
        DeviceArray { owner: Arc::clone(&self.0), address, count, kind }
    }
}

#[pymethods]
impl Resident {
    /// Row pointers.
    #[getter]
    fn indptr(&self) -> DeviceArray {
        self.array(self.0.address_of_pointers(), self.0.pointers().len(), "<i8")
    }

    /// Columns, ascending in each row.
    #[getter]
    fn indices(&self) -> DeviceArray {
        self.array(self.0.address_of_columns(), self.0.entries(), "<i4") // below 2^31 where all columns fit
    }

    /// Values.
    #[getter]
    fn data(&self) -> DeviceArray {
        self.array(self.0.address_of_values(), self.0.entries(), "<f8")
    }
}

/// Numbers in a device's memory, which live as long as this does.
#[pyclass(frozen, module = "qdc._core")]
pub(crate) struct DeviceArray {
    #[allow(dead_code)] // keeps the memory
    owner: Arc<ResidentMatrix>,
    address: u64,
    count: usize,
    kind: &'static str,
}

#[pymethods]
impl DeviceArray {
    /// Where the numbers lie. All work on them is done: there is no stream to wait for.
    #[getter(__cuda_array_interface__)]
    fn interface<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let fields = PyDict::new(py);
        fields.set_item("shape", (self.count,))?;
        fields.set_item("typestr", self.kind)?;
        fields.set_item("data", (self.address, false))?;
        fields.set_item("version", 3)?;
        fields.set_item("stream", py.None())?;
        Ok(fields)
    }
}
