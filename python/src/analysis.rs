//! Homophily and the transition matrix.

use std::collections::BTreeMap;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use qdc_core::Transition;

use crate::errors::Problem;
use crate::graph::Graph;
use crate::matrix::{CsrArrays, csr_arrays};

/// Node and edge homophily by name.
#[pyfunction]
pub(crate) fn homophily(
    py: Python<'_>,
    graph: Graph,
    labels: PyReadonlyArray1<'_, u32>,
) -> PyResult<BTreeMap<&'static str, f64>> {
    let labels: Vec<u32> = labels.as_array().to_vec();
    let measured = qdc_core::homophily(&graph.0, &labels).map_err(|error| Problem::from(error).raise(py))?;
    Ok(BTreeMap::from([
        ("node", measured.node),
        ("node_with_neighbours", measured.node_with_neighbours),
        ("edge", measured.edge),
    ]))
}

/// L = D^-1/2 (A + w I) D^-1/2 as (data, indices, indptr).
#[pyfunction]
pub(crate) fn transition<'py>(py: Python<'py>, graph: Graph, self_loop: f64) -> PyResult<CsrArrays<'py>> {
    let transition =
        Transition::with_self_loop(&graph.0, self_loop).map_err(|error| Problem::from(error).raise(py))?;
    Ok(csr_arrays(py, transition.matrix().clone()))
}
