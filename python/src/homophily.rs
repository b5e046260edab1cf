//! Homophily: of the graph, of each distinct eigenvalue, and of windows on the spectrum.

use std::collections::BTreeMap;

use numpy::{PyReadonlyArray1, PyUntypedArrayMethods};
use pyo3::prelude::*;
use pyo3::types::PyAny;

use crate::errors::Problem;
use crate::graph::Graph;
use crate::kernel::report;
use crate::spectrum::Spectrum;
use crate::watch::Call;

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

/// Homophily at each distinct eigenvalue, as records.
#[pyfunction]
pub(crate) fn spectral_homophily<'py>(
    py: Python<'py>,
    spectrum: Spectrum,
    labels: PyReadonlyArray1<'py, u32>,
    call: Call,
) -> PyResult<Bound<'py, PyAny>> {
    let labels = labels.as_array().to_vec();
    let points = call
        .run(py, move |watch| qdc_core::homophily::spectral_homophily(&spectrum.spectrum, &labels, watch))?;
    report(py, &points)
}

/// Estimates of the homophily of windows (mu, sigma), as records.
#[pyfunction]
pub(crate) fn window_homophily<'py>(
    py: Python<'py>,
    graph: Graph,
    labels: Labels<'py>,
    windows: Vec<(f64, f64)>,
    probes: usize,
    seed: u64,
    call: Call,
) -> PyResult<Bound<'py, PyAny>> {
    let labels = known(&labels);
    let estimates = call.run(py, move |watch| {
        qdc_core::homophily::window_homophily(&graph.0, &labels, &windows, probes, seed, watch)
    })?;
    report(py, &estimates)
}

/// A suggestion for mu and sigma from the known labels, and what it rests on.
#[pyfunction]
pub(crate) fn suggest<'py>(
    py: Python<'py>,
    graph: Graph,
    labels: Labels<'py>,
    seed: u64,
    call: Call,
) -> PyResult<Bound<'py, PyAny>> {
    let labels = known(&labels);
    let suggestion =
        call.run(py, move |watch| qdc_core::homophily::suggest(&graph.0, &labels, seed, watch))?;
    report(py, &suggestion)
}

/// Labels, and which of them are known.
type Labels<'py> = (PyReadonlyArray1<'py, u32>, PyReadonlyArray1<'py, bool>);

fn known((labels, mask): &Labels<'_>) -> Vec<Option<u32>> {
    assert_eq!(labels.len(), mask.len(), "qdc._homophily checks the lengths");
    let pairs = labels.as_array().into_iter().zip(mask.as_array());
    pairs.map(|(&label, &known)| known.then_some(label)).collect()
}
