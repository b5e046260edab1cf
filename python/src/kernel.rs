//! Kernels: options in, sparse arrays and a report out; whole, or in row ranges that are joined.

use std::fmt::Display;
use std::str::FromStr;
use std::sync::Arc;

use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_core::kernel::{Accelerator, ShardManifest, Spectra};
use qdc_core::{Error, Recipe, Resources, Route, Shard, Sparsify};
use qdc_cuda::ColumnDevice;
use qdc_data::SpectrumCache;

use crate::errors::{Problem, parameter_error};
use crate::filter::{Filter, Raised};
use crate::graph::Graph;
use crate::matrix::{CsrArrays, GivenCsr, csr_arrays, given_csr};
use crate::resident::Resident;
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
    #[pyo3(item)]
    resident: bool,
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
        let accelerator = if self.resident {
            // The data lies on a device: there everything is done that can be.
            Some(Arc::new(ColumnDevice::if_there_is_one()) as Arc<dyn Accelerator>)
        } else {
            let device = choice(py, &self.device)?.accelerator();
            device.map_err(|error| Problem::from(qdc_core::Error::from(error)).raise(py))?
        };
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

/// A recipe prepared for a graph: the route is chosen, and the kernel or ranges of its rows can be made.
#[pyclass(frozen, module = "qdc._core")]
pub(crate) struct Job {
    job: Arc<qdc_core::Job>,
    origin: Origin,
}

/// What an error of a job is told with.
#[derive(Clone)]
struct Origin {
    graph: Graph,
    self_loop: f64,
    raised: Raised,
}

impl Origin {
    fn problem(&self, error: Error) -> Problem {
        match Filter::problem(&self.raised, error) {
            Problem::Core(error) => {
                Problem::Eigenpairs { error, graph: Arc::clone(&self.graph.0), self_loop: self.self_loop }
            }
            problem => problem,
        }
    }
}

#[pymethods]
impl Job {
    /// Checks the options and chooses the route.
    #[new]
    fn new(py: Python<'_>, graph: Graph, filter: Filter, options: Options, call: Call) -> PyResult<Self> {
        let (recipe, resources) = (options.recipe(py, &filter)?, options.resources(py)?.beside(&graph.0));
        let raised = Arc::clone(&filter.raised);
        let origin = Origin { graph, self_loop: options.self_loop, raised };
        let told = origin.clone();
        let job = call.run(py, move |watch| {
            recipe.prepare(&told.graph.0, &resources, watch).map_err(|error| told.problem(error))
        })?;
        Ok(Self { job: Arc::new(job), origin })
    }

    /// The route, why, and what it takes: `route`, `reason`, `degree`, `flops`, `memory`.
    #[getter]
    fn plan<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        report(py, self.job.plan())
    }

    /// The kernel and its report.
    fn build<'py>(&self, py: Python<'py>, call: Call) -> PyResult<Built<'py>> {
        let (job, told) = (Arc::clone(&self.job), self.origin.clone());
        let built = call.run(py, move |watch| job.build(watch).map_err(|error| told.problem(error)))?;
        Ok((csr_arrays(py, built.matrix), report(py, &built.report)?))
    }

    /// The kernel where a device makes it whole and it can stay there, else `None`.
    fn build_resident(&self, py: Python<'_>, call: Call) -> PyResult<Option<Resident>> {
        let (job, told) = (Arc::clone(&self.job), self.origin.clone());
        let built =
            call.run(py, move |watch| job.build_resident(watch).map_err(|error| told.problem(error)))?;
        Ok(built.and_then(Resident::of))
    }

    /// The rows `start..stop` before union and normalisation, and their manifest.
    fn rows<'py>(
        &self,
        py: Python<'py>,
        start: usize,
        stop: usize,
        call: Call,
    ) -> PyResult<(CsrArrays<'py>, String)> {
        let (job, told) = (Arc::clone(&self.job), self.origin.clone());
        let shard =
            call.run(py, move |watch| job.rows(start..stop, watch).map_err(|error| told.problem(error)))?;
        let manifest = serde_json::to_string(&shard.manifest);
        let manifest = manifest.map_err(|error| parameter_error(py, error.to_string()))?;
        Ok((csr_arrays(py, shard.matrix), manifest))
    }
}

/// Joins row ranges, as [`Job::rows`] gives them, into the kernel.
#[pyfunction]
pub(crate) fn merge<'py>(
    py: Python<'py>,
    shards: Vec<(GivenCsr<'py>, String)>,
    call: Call,
) -> PyResult<Built<'py>> {
    let read = |(arrays, manifest): (GivenCsr<'_>, String)| -> PyResult<Shard> {
        let manifest: ShardManifest =
            serde_json::from_str(&manifest).map_err(|error| parameter_error(py, error.to_string()))?;
        let matrix = given_csr(&arrays, manifest.report.nodes);
        Ok(Shard { matrix: matrix.map_err(|error| Problem::from(error).raise(py))?, manifest })
    };
    let shards = shards.into_iter().map(read).collect::<PyResult<Vec<Shard>>>()?;
    let built = call.run(py, move |_| Shard::merge(shards))?;
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
    let accelerator = options.resources(py)?.accelerator;
    let resources = Resources { accelerator, ..Resources::given((*spectrum.spectrum).clone()) };
    let raised = Arc::clone(&filter.raised);
    let built = call.run(py, move |watch| {
        let job = recipe.prepare(&spectrum.graph, &resources, watch);
        job.and_then(|job| job.build(watch)).map_err(|error| Filter::problem(&raised, error))
    })?;
    Ok((csr_arrays(py, built.matrix), report(py, &built.report)?))
}
