//! A training run: a model on a dataset, split by split, and the record of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use qdc_core::{Metric, Watch};
use qdc_data::Dataset;
use qdc_nn::training::{Keep, Schedule, Scores, Step, Trained, check_split, train_split, untrained_classes};
use qdc_nn::{Architecture, EarlyStopping};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::architecture::{architecture, inputs};
use crate::rewiring::{RewiringReport, Rewirings};
use crate::{Error, Hyperparameters, Model};

/// How long to train: the published rule by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// The most steps there can be.
    pub max_steps: usize,
    /// When to stop before.
    pub stopping: EarlyStopping,
}

impl Default for Patience {
    fn default() -> Self {
        Self { max_steps: 1000, stopping: EarlyStopping::default() }
    }
}

/// What to train and on what.
#[derive(Clone, Copy, Debug)]
pub struct Experiment<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// The model and its hyper-parameters.
    pub hyperparameters: &'a Hyperparameters,
    /// The seed of the run; split k draws from its own stream, whatever other splits are run.
    pub seed: u64,
    /// The splits to train, by number.
    pub splits: &'a [usize],
    /// How long to train.
    pub patience: Patience,
    /// What decides which step is the best, and what the scores are.
    pub metric: Metric,
    /// What to keep besides the record.
    pub keep: Keep,
}

/// The record of a run: what `qdc train --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// The dataset's name.
    pub dataset: String,
    /// The model.
    pub model: Model,
    /// All hyper-parameters, defaults included.
    pub hyperparameters: Hyperparameters,
    /// The seed.
    pub seed: u64,
    /// What the scores are measured by.
    pub metric: Metric,
    /// Mean test score over the splits.
    pub test_mean: f64,
    /// Its standard deviation (ddof 0).
    pub test_std: f64,
    /// Mean validation score over the splits: what tuning sees.
    pub validation_mean: f64,
    /// Every split trained, in order.
    pub splits: Vec<Scores>,
    /// The report of the kernel, or of SDRF; none on the plain graph.
    pub kernel: Option<RewiringReport>,
    /// Time the rewirings took, before the first split.
    pub rewiring_seconds: f64,
    /// Time of everything.
    pub seconds: f64,
    /// Whether the run was ended before its last split.
    pub stopped: bool,
    /// What is worth knowing about the data.
    pub notes: Vec<String>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The record.
    pub record: RunRecord,
    /// The network's shape.
    pub architecture: Architecture,
    /// The weights of each split in the record's order, where they were to be kept.
    pub weights: Vec<Option<Vec<f32>>>,
    /// The steps of each split in the record's order, where they were to be kept.
    pub curves: Vec<Vec<Step>>,
}

/// What Adam wants to know.
#[derive(Deserialize)]
struct Optimiser {
    learning_rate: f64,
    weight_decay: f64,
}

/// Trains a model on the splits asked for, in parallel on rayon's current pool.
///
/// The rewirings are made (or found in `rewirings`) once and shared. `on_split` hears of each split as it ends, in any
/// order; if it breaks, no further split begins, and the record says that the run was stopped. The result of a split
/// does not depend on the other splits or on the number of threads.
pub fn train(
    experiment: &Experiment<'_>,
    rewirings: &Rewirings<'_>,
    watch: &Watch,
    on_split: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
) -> Result<Run, Error> {
    let start = Instant::now();
    let Experiment { dataset, hyperparameters, seed, splits, patience, metric, keep } = *experiment;
    let absent = |&&split: &&usize| split >= dataset.splits.len();
    let none = (splits.is_empty() && dataset.splits.is_empty()).then_some(&0);
    if let Some(&split) = splits.iter().find(absent).or(none) {
        let (dataset, splits) = (dataset.name.clone(), dataset.splits.len());
        return Err(Error::NoSuchSplit { split, dataset, splits });
    }
    for &number in splits {
        // Before any work is done.
        check_split(&dataset.splits[number], number, &dataset.labels, dataset.classes, metric)?;
    }
    let architecture = architecture(hyperparameters, dataset.classes);
    let rewired = rewirings.of_model(hyperparameters, seed, watch)?;
    let matrices = rewired.iter().map(|made| Arc::clone(&made.matrix)).collect();
    let inputs = inputs(dataset, hyperparameters, matrices)?;
    let rewiring_seconds = start.elapsed().as_secs_f64();
    let notes = notes(dataset, splits);
    notes.iter().for_each(|note| watch.note(note));
    let Optimiser { learning_rate, weight_decay } = hyperparameters.of_model();
    let Patience { max_steps, stopping } = patience;
    let schedule = Schedule { learning_rate, weight_decay, max_steps, stopping, metric };
    let stop = AtomicBool::new(false);
    let finished: Vec<Option<Trained<f32>>> = splits
        .par_iter()
        .with_max_len(1)
        .map(|&number| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let split = &dataset.splits[number];
            let trained = train_split(
                &architecture,
                &inputs,
                &dataset.labels,
                split,
                number,
                &schedule,
                seed,
                keep,
                watch,
            )?;
            if on_split(&trained.scores).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(Some(trained))
        })
        .collect::<Result<_, Error>>()?;
    let (mut scores, mut weights, mut curves) = (Vec::new(), Vec::new(), Vec::new());
    for trained in finished.into_iter().flatten() {
        scores.push(trained.scores);
        weights.push(trained.weights);
        curves.push(trained.curve);
    }
    let (test_mean, test_std) = mean_and_deviation(scores.iter().map(|split| split.test));
    let (validation_mean, _) = mean_and_deviation(scores.iter().map(|split| split.validation));
    let told = |report: &RewiringReport| !matches!(report, RewiringReport::Plain { .. });
    let record = RunRecord {
        dataset: dataset.name.clone(),
        model: hyperparameters.model().clone(),
        hyperparameters: hyperparameters.clone(),
        seed,
        metric,
        test_mean,
        test_std,
        validation_mean,
        stopped: scores.len() < splits.len(),
        splits: scores,
        kernel: rewired.iter().map(|made| (*made.report).clone()).find(told),
        rewiring_seconds,
        seconds: start.elapsed().as_secs_f64(),
        notes,
    };
    Ok(Run { record, architecture, weights, curves })
}

/// Mean and standard deviation (ddof 0), in the order given; 0 of nothing.
fn mean_and_deviation(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let values: Vec<f64> = values.collect();
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}

/// Classes that cannot be learnt, told once for each class.
fn notes(dataset: &Dataset, splits: &[usize]) -> Vec<String> {
    let mut missing: Vec<Vec<usize>> = vec![Vec::new(); dataset.classes];
    for &split in splits {
        for (class, _) in untrained_classes(&dataset.labels, &dataset.splits[split], dataset.classes) {
            missing[class as usize].push(split);
        }
    }
    let told = missing.iter().enumerate().filter(|(_, splits)| !splits.is_empty());
    told.map(|(class, splits)| {
        let list: Vec<String> = splits.iter().map(ToString::to_string).collect();
        format!(
            "class {class} has no training vertex in split {}: it cannot be learnt there",
            list.join(", ")
        )
    })
    .collect()
}
