//! Searches over hyper-parameters, kept in Optuna's own files.

use std::time::{Duration, Instant};

use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_data::{Budget, SpectrumCache};
use qdc_lab::tune::{Search, SearchSpace, search, study_name as usual_name};
use qdc_lab::{Model, Patience};
use qdc_tune::storage::{self, Memory, Storage};
use qdc_tune::{Pruning, Sampler};

use crate::datasets::Dataset;
use crate::errors::{Problem, parameter_error};
use crate::kernel::report;
use crate::training::{choice, metric_of};
use crate::watch::Call;

/// Runs or resumes a search and gives its report.
#[pyfunction]
pub(crate) fn tune<'py>(
    py: Python<'py>,
    dataset: Dataset,
    model: &str,
    trials: usize,
    space: &str,
    study: Option<String>,
    jobs: Option<usize>,
    batch: u64,
    seed: u64,
    seeds: u64,
    ensemble: usize,
    splits: Option<Vec<usize>>,
    max_steps: Option<usize>,
    metric: Option<&str>,
    memory: Option<u64>,
    study_name: Option<String>,
    sampler: &str,
    prune: bool,
    budget: Option<f64>,
    device: &str,
    call: Call,
) -> PyResult<Bound<'py, PyAny>> {
    let raise = |error: qdc_lab::Error| Problem::from(error).raise(py);
    let space = SearchSpace::named(space, model.parse::<Model>().map_err(raise)?).map_err(raise)?;
    let sampler = match sampler {
        "tpe" => Sampler::Tpe,
        "tpe-multivariate" => Sampler::TpeMultivariate,
        "random" => Sampler::Random,
        other => {
            let message = format!("sampler = {other:?} is unknown: tpe, tpe-multivariate or random");
            return Err(parameter_error(py, message));
        }
    };
    let budget = match budget.map(Duration::try_from_secs_f64).transpose() {
        Ok(budget) => budget,
        Err(error) => return Err(parameter_error(py, format!("budget: {error}"))),
    };
    let device = choice(py, device)?;
    let dataset = dataset.0;
    let metric = metric_of(py, metric, dataset.usual_metric())?;
    let made = call.run_beside(py, move |pool, watch| -> Result<_, qdc_lab::Error> {
        let jobs = jobs.unwrap_or_else(|| pool.current_num_threads().min(batch as usize));
        let storage: Box<dyn Storage> = match &study {
            Some(address) => storage::open(address, Budget::of_this_machine().limit())?,
            None => Box::new(Memory::new()),
        };
        let splits = splits.unwrap_or_else(|| (0..dataset.splits.len()).collect());
        let mut patience = Patience::of(&space.model);
        patience.max_steps = max_steps.unwrap_or(patience.max_steps);
        let trainer = device.trainer(watch).map_err(qdc_nn::Error::from)?;
        let settings = Search {
            dataset: &dataset,
            source: None,
            splits: &splits,
            space: &space,
            trials: space.trials(trials),
            seed,
            seeds,
            ensemble,
            batch,
            jobs,
            sampler,
            pruning: if prune { Pruning::Median { startup: 10, warm_up: 2 } } else { Pruning::Off },
            memory,
            trial_time: None,
            until: budget.map(|budget| Instant::now() + budget),
            patience,
            metric,
            spectra: SpectrumCache::from_environment(),
            trainer: &*trainer,
            accelerator: device.accelerator_of_training().map_err(qdc_nn::Error::from)?,
            pool: Some(pool),
        };
        let name = study_name.unwrap_or_else(|| usual_name(&dataset.name, &space));
        search(&settings, storage, &name, watch)
    })?;
    report(py, &made)
}
