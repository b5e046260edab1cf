//! Eigenpairs, computed once and kept for many kernels.

use std::sync::Arc;

use numpy::ndarray::{ArrayView1, ArrayView2, ShapeBuilder};
use numpy::{PyArray1, PyArray2};
use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_core::{Eigensolver, Transition};

use crate::errors::Problem;
use crate::graph::Graph;
use crate::kernel::{parse, report};
use crate::watch::Call;

/// The eigenpairs behind `qdc.Spectrum`; a clone shares them.
#[pyclass(frozen, module = "qdc._core", from_py_object)]
#[derive(Clone)]
pub(crate) struct Spectrum {
    pub(crate) spectrum: Arc<qdc_core::Spectrum>,
    pub(crate) graph: Arc<qdc_core::Graph>,
    pub(crate) self_loop: f64,
}

#[pymethods]
impl Spectrum {
    /// Computes eigenpairs of the transition matrix of a graph.
    #[new]
    #[pyo3(signature = (graph, pairs, around, solver, self_loop, memory, seed, call))]
    fn new(
        py: Python<'_>,
        graph: Graph,
        pairs: &str,
        around: f64,
        solver: &str,
        self_loop: f64,
        memory: Option<u64>,
        seed: u64,
        call: Call,
    ) -> PyResult<Self> {
        let solver = Eigensolver::new()
            .pairs(parse(py, pairs)?)
            .around(around)
            .solver(parse(py, solver)?)
            .memory(memory)
            .seed(seed);
        let transition = Transition::with_self_loop(&graph.0, self_loop)
            .map_err(|error| Problem::from(error).raise(py))?;
        let graph = graph.0;
        let kept = Arc::clone(&graph);
        let solved = call.run(py, move |watch| {
            solver.solve(&transition, watch).map_err(|error| Problem::Eigenpairs { error, graph, self_loop })
        });
        Ok(Self { spectrum: Arc::new(solved?), graph: kept, self_loop })
    }

    /// Number of vertices.
    #[getter]
    fn nodes(&self) -> usize {
        self.spectrum.nodes()
    }

    /// Number of eigenpairs.
    #[getter]
    fn pairs(&self) -> usize {
        self.spectrum.pairs()
    }

    /// Whether every eigenpair is here.
    #[getter]
    fn is_complete(&self) -> bool {
        self.spectrum.is_complete()
    }

    /// What the solver did.
    #[getter]
    fn report<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        report(py, self.spectrum.report())
    }

    /// The eigenvalues, ascending; read-only, without a copy.
    #[getter]
    fn eigenvalues<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray1<f64>> {
        shared::vector(slf.get().spectrum.eigenvalues(), slf.as_any())
    }

    /// The eigenvectors as columns of an (N, k) array in Fortran order; read-only, without a copy.
    #[getter]
    fn eigenvectors<'py>(slf: &Bound<'py, Self>) -> Bound<'py, PyArray2<f64>> {
        let spectrum = &slf.get().spectrum;
        shared::columns(spectrum.vectors(), spectrum.nodes(), spectrum.pairs(), slf.as_any())
    }

    /// The positions (start, stop) of the `count` pairs nearest to mu, whole groups only.
    fn nearest(&self, mu: f64, count: usize) -> (usize, usize) {
        let range = self.spectrum.nearest(mu, count);
        (range.start, range.end)
    }

    /// The graph the eigenpairs belong to, as (data, indices, indptr).
    fn arrays<'py>(&self, py: Python<'py>) -> crate::matrix::CsrArrays<'py> {
        crate::matrix::csr_arrays(py, self.graph.adjacency().clone())
    }
}

/// Arrays over memory that a Python object owns.
#[allow(unsafe_code)]
mod shared {
    use super::*;
    use numpy::PyArrayMethods;

    /// A read-only array over `values`, which must live in `owner`.
    pub(super) fn vector<'py>(values: &[f64], owner: &Bound<'py, PyAny>) -> Bound<'py, PyArray1<f64>> {
        // SAFETY: the values lie behind an `Arc` in `owner`, a frozen object: they neither move nor change
        // while it lives, and the array holds a reference to it.
        let array = unsafe { PyArray1::borrow_from_array(&ArrayView1::from(values), owner.clone()) };
        array.readwrite().make_nonwriteable();
        array
    }

    /// A read-only array of `columns` columns over `values`, which must live in `owner`.
    pub(super) fn columns<'py>(
        values: &[f64],
        rows: usize,
        columns: usize,
        owner: &Bound<'py, PyAny>,
    ) -> Bound<'py, PyArray2<f64>> {
        let view = ArrayView2::from_shape((rows, columns).f(), values).expect("one column for each pair");
        // SAFETY: as in `vector`.
        let array = unsafe { PyArray2::borrow_from_array(&view, owner.clone()) };
        array.readwrite().make_nonwriteable();
        array
    }
}
