//! Searches over hyper-parameters, kept in Optuna's own files.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_core::Metric;
use qdc_cuda::Choice;
use qdc_data::{Budget, SpectrumCache};
use qdc_lab::tune::{self, SearchSpace, Shared, Workers, run_trial, search, study_name as usual_name};
use qdc_lab::{Model, Patience};
use qdc_nn::Trainer;
use qdc_tune::storage::{self, Memory, Storage};
use qdc_tune::{Pruning, Sampler};
use rayon::ThreadPool;
use serde_json::Value;

use crate::datasets::Dataset;
use crate::errors::{Problem, parameter_error};
use crate::filter::Raised;
use crate::kernel::report;
use crate::training::{choice, metric_of};
use crate::watch::Call;
use crate::workers::Elsewhere;

/// The keywords of a search, as `qdc._training` collects them.
#[derive(FromPyObject)]
pub(crate) struct Settings {
    /// The name of a space, and the text of the file it stands for.
    #[pyo3(item)]
    space: (String, Option<String>),
    #[pyo3(item)]
    trials: usize,
    #[pyo3(item)]
    batch: u64,
    #[pyo3(item)]
    seed: u64,
    #[pyo3(item)]
    seeds: u64,
    #[pyo3(item)]
    finalists: usize,
    #[pyo3(item)]
    ensemble: usize,
    #[pyo3(item)]
    splits: Option<Vec<usize>>,
    #[pyo3(item)]
    max_steps: Option<usize>,
    #[pyo3(item)]
    batch_nodes: Option<usize>,
    #[pyo3(item)]
    metric: Option<String>,
    #[pyo3(item)]
    memory: Option<u64>,
    #[pyo3(item)]
    sampler: String,
    #[pyo3(item)]
    prune: bool,
    #[pyo3(item)]
    start: Vec<Vec<(String, String)>>,
    #[pyo3(item)]
    budget: Option<f64>,
    #[pyo3(item)]
    device: String,
}

/// The text of the file that the name of a space stands for; None for the spaces that are built in.
#[pyfunction]
pub(crate) fn space_file(py: Python<'_>, name: &str) -> PyResult<Option<String>> {
    SearchSpace::file_text(name).map_err(|error| Problem::from(error).raise(py))
}

/// A search: run in one process, or trial by trial in several.
#[pyclass(frozen, module = "qdc._core")]
pub(crate) struct Search(Arc<Checked>);

/// Settings that were checked, and what trials in this process share.
struct Checked {
    dataset: Arc<qdc_data::Dataset>,
    space: SearchSpace,
    splits: Vec<usize>,
    settings: Settings,
    sampler: Sampler,
    patience: Patience,
    metric: Metric,
    budget: Option<Duration>,
    device: Choice,
    shared: Mutex<Option<Shared>>,
}

#[pymethods]
impl Search {
    /// Checks the settings.
    #[new]
    fn new(py: Python<'_>, dataset: Dataset, model: &str, settings: Settings) -> PyResult<Self> {
        let raise = |error: qdc_lab::Error| Problem::from(error).raise(py);
        let model = model.parse::<Model>().map_err(raise)?;
        let space = match &settings.space {
            (name, Some(text)) => SearchSpace::from_toml(name, text, model),
            (name, None) => SearchSpace::named(name, model),
        };
        let mut space = space.map_err(raise)?;
        settings.start.iter().try_for_each(|point| space.begin_at(point)).map_err(raise)?;
        let sampler = match settings.sampler.as_str() {
            "tpe" => Sampler::Tpe,
            "tpe-multivariate" => Sampler::TpeMultivariate,
            "random" => Sampler::Random,
            other => {
                let message = format!("sampler = {other:?} is unknown: tpe, tpe-multivariate or random");
                return Err(parameter_error(py, message));
            }
        };
        let budget = match settings.budget.map(Duration::try_from_secs_f64).transpose() {
            Ok(budget) => budget,
            Err(error) => return Err(parameter_error(py, format!("budget: {error}"))),
        };
        let device = choice(py, &settings.device)?;
        let dataset = dataset.0;
        let metric = metric_of(py, settings.metric.as_deref(), dataset.usual_metric())?;
        let splits = settings.splits.clone().unwrap_or_else(|| (0..dataset.splits.len()).collect());
        let mut patience = Patience::of(&space.model);
        patience.max_steps = settings.max_steps.unwrap_or(patience.max_steps);
        patience.batch_nodes = settings.batch_nodes;
        let shared = Mutex::default();
        let checked =
            Checked { dataset, space, splits, settings, sampler, patience, metric, budget, device, shared };
        Ok(Self(Arc::new(checked)))
    }

    /// Runs or resumes the search and gives its report. `train` is a function of (point, stopped) that runs a
    /// trial elsewhere: see [`Elsewhere`].
    fn run<'py>(
        &self,
        py: Python<'py>,
        study: Option<String>,
        study_name: Option<String>,
        jobs: Option<usize>,
        train: Option<Py<PyAny>>,
        call: Call,
    ) -> PyResult<Bound<'py, PyAny>> {
        let checked = Arc::clone(&self.0);
        let raised = Raised::default();
        let elsewhere = train.map(|train| Elsewhere { train, raised: Arc::clone(&raised) });
        let made = call.run_beside(py, move |pool, watch| {
            let storage: Box<dyn Storage> = match &study {
                Some(address) => storage::open(address, Budget::of_this_machine().limit())
                    .map_err(|error| Problem::from(qdc_lab::Error::from(error)))?,
                None => Box::new(Memory::new()),
            };
            let trainer = checked.device.trainer(watch).map_err(lost_network)?;
            let workers = elsewhere.as_ref().map(|workers| workers as &dyn Workers);
            let mut settings = checked.search(&*trainer, pool, workers).map_err(Problem::from)?;
            settings.jobs = jobs.unwrap_or(settings.jobs);
            settings.until = checked.budget.map(|budget| Instant::now() + budget);
            let name = study_name.unwrap_or_else(|| usual_name(&checked.dataset.name, &checked.space));
            search(&settings, storage, &name, watch).map_err(|error| {
                let raised = raised.lock().expect("nothing panics while it is held").take();
                raised.map_or_else(|| Problem::from(error), Problem::Raised)
            })
        })?;
        report(py, &made)
    }

    /// Runs the trial at a point in this process; point and record are JSON.
    fn trial(&self, py: Python<'_>, point: &str, call: Call) -> PyResult<String> {
        let checked = Arc::clone(&self.0);
        let point: BTreeMap<String, Value> =
            serde_json::from_str(point).map_err(|error| parameter_error(py, error.to_string()))?;
        let record = call.run_beside(py, move |pool, watch| -> Result<_, qdc_lab::Error> {
            let trainer = checked.device.trainer(watch).map_err(qdc_nn::Error::from)?;
            let search = checked.search(&*trainer, pool, None)?;
            let mut shared = checked.shared.lock().expect("nothing panics while it is held");
            if shared.is_none() {
                *shared = Some(Shared::prepare(&search, watch)?);
            }
            let prepared = shared.clone().expect("it was prepared just now");
            drop(shared);
            run_trial(&search, &prepared, &point, watch)
        })?;
        serde_json::to_string(&record).map_err(|error| parameter_error(py, error.to_string()))
    }
}

fn lost_network(error: qdc_cuda::Error) -> Problem {
    qdc_lab::Error::from(qdc_nn::Error::from(error)).into()
}

impl Checked {
    /// The search that these settings describe, on the threads of a pool.
    fn search<'a>(
        &'a self,
        trainer: &'a dyn Trainer,
        pool: &'a ThreadPool,
        workers: Option<&'a dyn Workers>,
    ) -> Result<tune::Search<'a>, qdc_lab::Error> {
        let Settings { trials, batch, seed, seeds, finalists, ensemble, memory, prune, .. } = self.settings;
        Ok(tune::Search {
            dataset: &self.dataset,
            source: None,
            splits: &self.splits,
            space: &self.space,
            trials: self.space.trials(trials),
            seed,
            seeds,
            finalists,
            ensemble,
            batch,
            jobs: pool.current_num_threads().min(batch as usize),
            sampler: self.sampler,
            pruning: if prune { Pruning::Median { startup: 10, warm_up: 2 } } else { Pruning::Off },
            memory,
            trial_time: None,
            attention_limit: None,
            until: None,
            patience: self.patience,
            metric: self.metric,
            spectra: SpectrumCache::from_environment(),
            trainer,
            accelerator: self.device.accelerator_of_training().map_err(qdc_nn::Error::from)?,
            pool: Some(pool),
            workers,
        })
    }
}
