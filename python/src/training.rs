//! Training runs over the splits of a dataset.

use std::ops::ControlFlow;

use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_core::{Metric, Resources, Transition};
use qdc_cuda::Choice;
use qdc_lab::{Ensemble, Hyperparameters, Keep, Model, Patience, Rewirings, RunRecord, Training};

use crate::datasets::Dataset;
use crate::errors::{Problem, parameter_error};
use crate::kernel::{report, stored};
use crate::spectrum::Spectrum;
use crate::watch::Call;

/// Where to train.
pub(crate) fn choice(py: Python<'_>, device: &str) -> PyResult<Choice> {
    device.parse().map_err(|problem: String| parameter_error(py, format!("device: {problem}")))
}

/// The metric of that name, or a dataset's usual one.
pub(crate) fn metric_of(py: Python<'_>, name: Option<&str>, usual: Metric) -> PyResult<Metric> {
    let named = name.map_or(Ok(usual), str::parse);
    named.map_err(|problem: String| parameter_error(py, format!("metric: {problem}")))
}

/// Hyper-parameters of a model, each given as text.
pub(crate) fn hyperparameters(
    py: Python<'_>,
    model: &str,
    values: Vec<(String, String)>,
) -> PyResult<Hyperparameters> {
    let build = || -> Result<Hyperparameters, qdc_lab::Error> {
        let mut set = Hyperparameters::new(model.parse::<Model>()?);
        for (name, value) in &values {
            set.set(name, value)?;
        }
        Ok(set)
    };
    build().map_err(|error| Problem::from(error).raise(py))
}

/// Trains a model on splits of a dataset and gives the record of the run.
#[pyfunction]
pub(crate) fn train<'py>(
    py: Python<'py>,
    dataset: Dataset,
    model: &str,
    values: Vec<(String, String)>,
    splits: Option<Vec<usize>>,
    seed: u64,
    seeds: u64,
    ensemble: bool,
    max_steps: Option<usize>,
    batch_nodes: Option<usize>,
    metric: Option<&str>,
    memory: Option<u64>,
    spectrum: Option<Spectrum>,
    device: &str,
    call: Call,
) -> PyResult<Bound<'py, PyAny>> {
    let hyperparameters = hyperparameters(py, model, values)?;
    let device = choice(py, device)?;
    let dataset = dataset.0;
    let metric = metric_of(py, metric, dataset.usual_metric())?;
    let splits = splits.unwrap_or_else(|| (0..dataset.splits.len()).collect());
    let run = call.run(py, move |watch| {
        if let Some(spectrum) = &spectrum {
            // Of this graph; a self-loop weight other than the model's is noticed where a kernel is made.
            let transition = Transition::with_self_loop(&dataset.graph, spectrum.self_loop)?;
            spectrum.spectrum.origin().check(&transition)?;
        }
        let accelerator = device.accelerator_of_training().map_err(qdc_nn::Error::from)?;
        let spectra = spectrum.map_or_else(stored, |spectrum| Resources::given((*spectrum.spectrum).clone()));
        let resources = Resources { memory, accelerator, ..spectra };
        let rewirings = Rewirings::new(&dataset).with_resources(resources);
        let seeds: Vec<u64> = (0..seeds).map(|next| seed.wrapping_add(next)).collect();
        let mut patience = Patience::of(hyperparameters.model());
        patience.max_steps = max_steps.unwrap_or(patience.max_steps);
        patience.batch_nodes = batch_nodes;
        let training = Training {
            dataset: &dataset,
            hyperparameters: &hyperparameters,
            seeds: &seeds,
            splits: &splits,
            patience,
            metric,
            keep: Keep { probabilities: ensemble, ..Keep::default() },
        };
        let trainer = device.trainer(watch).map_err(qdc_nn::Error::from)?;
        let run = qdc_lab::train(&training, &rewirings, &*trainer, watch, &|_| ControlFlow::Continue(()))?;
        let together = if ensemble { Ensemble::of(&[&run], &dataset, training.metric) } else { None };
        Ok::<_, qdc_lab::Error>(Trained { record: run.record, ensemble: together })
    })?;
    report(py, &run)
}

/// The record of a run, and the scores of its seeds asked together.
#[derive(serde::Serialize)]
struct Trained {
    #[serde(flatten)]
    record: RunRecord,
    #[serde(flatten)]
    ensemble: Option<Ensemble>,
}

/// The names of the models.
#[pyfunction]
pub(crate) fn models() -> Vec<String> {
    Model::known().iter().map(ToString::to_string).collect()
}
