//! Kernels: options in, sparse arrays and a report out.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_core::kernel::Spectra;
use qdc_core::{Recipe, Resources, Route, Sparsify};
use qdc_data::SpectrumCache;

use crate::errors::{Problem, parameter_error};
use crate::filter::Filter;
use crate::graph::Graph;
use crate::matrix::{CsrArrays, csr_arrays};
use crate::spectrum::Spectrum;
use crate::training::choice;
use crate::watch::Call;

/// The keywords of a kernel, as `qdc._kernel` collects them.
#[derive(FromPyObject)]
pub(crate) struct Options {
    #[pyo3(item)]
    pairs: String,
    #[pyo3(item)]
    solver: String,
    #[pyo3(item)]
    sparsify: (String, f64),
    #[pyo3(item)]
    sign: String,
    #[pyo3(item)]
    normalize: String,
    #[pyo3(item)]
    self_loop: f64,
    #[pyo3(item)]
    tolerance: f64,
    #[pyo3(item)]
    precision: String,
    #[pyo3(item)]
    accuracy: Option<f64>,
    #[pyo3(item)]
    memory: Option<u64>,
    #[pyo3(item)]
    device: String,
}

impl Options {
    fn recipe(&self, py: Python<'_>, filter: &Filter) -> PyResult<Recipe> {
        let (rule, value) = &self.sparsify;
        Ok(Recipe::new(filter.filter.clone())
            .pairs(parse(py, &self.pairs)?)
            .sparsify(sparsify(py, rule, *value)?)
            .sign(parse(py, &self.sign)?)
            .normalize(parse(py, &self.normalize)?)
            .self_loop(self.self_loop)
            .tolerance(self.tolerance)
            .accuracy(self.accuracy)
            .precision(parse(py, &self.precision)?))
    }

    /// The memory allowed, the route and the device asked for, and the spectra stored by earlier calls and by
    /// the command line.
    fn resources(&self, py: Python<'_>) -> PyResult<Resources> {
        let route: Route = parse(py, &self.solver)?;
        let device = choice(py, &self.device)?.accelerator();
        let accelerator = device.map_err(|error| {
            Problem::from(qdc_core::Error::Device { problem: error.to_string() }).raise(py)
        })?;
        Ok(Resources { route, memory: self.memory, accelerator, ..stored() })
    }
}

/// Resources with the stored spectra.
pub(crate) fn stored() -> Resources {
    let cache = SpectrumCache::from_environment();
    Resources { spectra: Spectra::Stored(Arc::new(cache)), ..Resources::default() }
}

/// Reads a choice that Python gave by name.
pub(crate) fn parse<T: FromStr<Err: Display>>(py: Python<'_>, text: &str) -> PyResult<T> {
    text.parse().map_err(|error: T::Err| parameter_error(py, error.to_string()))
}

fn sparsify(py: Python<'_>, rule: &str, value: f64) -> PyResult<Sparsify> {
    let checked = match rule {
        "epsilon" => Sparsify::epsilon(value),
        "top_k" => Sparsify::top_k(value as usize),
        _ => Ok(Sparsify::None),
    };
    checked.map_err(|error| Problem::from(error).raise(py))
}

/// Checks a rule of sparsification.
#[pyfunction]
pub(crate) fn check_sparsify(py: Python<'_>, rule: &str, value: f64) -> PyResult<()> {
    sparsify(py, rule, value).map(|_| ())
}

/// What a report says, as plain Python values.
pub(crate) fn report<'py>(py: Python<'py>, report: &impl serde::Serialize) -> PyResult<Bound<'py, PyAny>> {
    let text = serde_json::to_string(report).map_err(|error| parameter_error(py, error.to_string()))?;
    py.import("json")?.call_method1("loads", (text,))
}

type Built<'py> = (CsrArrays<'py>, Bound<'py, PyAny>);

/// The kernel of a graph.
#[pyfunction]
pub(crate) fn kernel<'py>(
    py: Python<'py>,
    graph: Graph,
    filter: Filter,
    options: Options,
    call: Call,
) -> PyResult<Built<'py>> {
    let (recipe, resources) = (options.recipe(py, &filter)?, options.resources(py)?);
    let raised = Arc::clone(&filter.raised);
    let self_loop = options.self_loop;
    let built = call.run(py, move |watch| {
        let job = recipe.prepare(&graph.0, &resources, watch);
        job.and_then(|job| job.build(watch)).map_err(|error| match Filter::problem(&raised, error) {
            Problem::Core(error) => Problem::Eigenpairs { error, graph: Arc::clone(&graph.0), self_loop },
            problem => problem,
        })
    })?;
    Ok((csr_arrays(py, built.matrix), report(py, &built.report)?))
}

/// The kernel of a graph from its eigenpairs.
#[pyfunction]
pub(crate) fn kernel_from<'py>(
    py: Python<'py>,
    spectrum: Spectrum,
    filter: Filter,
    options: Options,
    call: Call,
) -> PyResult<Built<'py>> {
    let recipe = options.recipe(py, &filter)?.self_loop(spectrum.self_loop);
    let resources = Resources::given((*spectrum.spectrum).clone());
    let raised = Arc::clone(&filter.raised);
    let built = call.run(py, move |watch| {
        let job = recipe.prepare(&spectrum.graph, &resources, watch);
        job.and_then(|job| job.build(watch)).map_err(|error| Filter::problem(&raised, error))
    })?;
    Ok((csr_arrays(py, built.matrix), report(py, &built.report)?))
}

/// The rows `start..stop` of a kernel, before union and normalisation.
#[pyfunction]
pub(crate) fn build_rows<'py>(
    py: Python<'py>,
    graph: Graph,
    rows: (usize, usize),
    filter: Filter,
    options: Options,
    call: Call,
) -> PyResult<Built<'py>> {
    let (recipe, resources) = (options.recipe(py, &filter)?, options.resources(py)?);
    let raised = Arc::clone(&filter.raised);
    let shard = call.run(py, move |watch| {
        let job = recipe.prepare(&graph.0, &resources, watch);
        job.and_then(|job| job.rows(rows.0..rows.1, watch)).map_err(|error| Filter::problem(&raised, error))
    })?;
    Ok((csr_arrays(py, shard.matrix), report(py, &shard.manifest.report)?))
}
