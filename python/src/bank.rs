//! The channels of a bank as arrays.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;
use qdc_core::{Features, Resources};
use qdc_lab::Preset;

use crate::graph::Graph;
use crate::kernel::{parse, stored};
use crate::watch::Call;

/// The channels of a preset, each by name and as one row for each vertex.
#[pyfunction]
pub(crate) fn bank_features<'py>(
    py: Python<'py>,
    graph: Graph,
    features: PyReadonlyArray2<'_, f32>,
    preset: &str,
    memory: Option<u64>,
    call: Call,
) -> PyResult<Vec<(String, Bound<'py, PyArray2<f32>>)>> {
    let preset: Preset = parse(py, preset)?;
    let features = Features::from_dense(features.shape()[1], features.as_array().iter().copied().collect());
    let resources = Resources { memory, ..stored() };
    let channels =
        call.run(py, move |watch| qdc_lab::bank_features(preset, &graph.0, &features, &resources, watch))?;
    let array = |(name, matrix): (String, Features)| {
        let shape = (matrix.rows(), matrix.columns());
        let values = Array2::from_shape_vec(shape, matrix.to_dense()).expect("whole rows");
        (name, values.into_pyarray(py))
    };
    Ok(channels.into_iter().map(array).collect())
}

/// The names of the presets.
#[pyfunction]
pub(crate) fn presets() -> [&'static str; 5] {
    Preset::NAMES
}
