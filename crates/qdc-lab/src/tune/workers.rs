//! Trials in other processes: who runs them, what travels there and back, and what is done there.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;

use qdc_core::Watch;
use qdc_tune::Outcome;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Search;
use super::shared::Shared;
use crate::{Error, Hyperparameters, Keep, Rewirings, RunRecord, Scores, Training};

/// Runs trials in other processes.
pub trait Workers: fmt::Debug + Sync {
    /// Has [`run_trial`] run at a point in another process, and waits for it.
    ///
    /// # Errors
    /// A stop that the watch asked for. Any other error ends the search and puts the trial back in the queue.
    fn run(&self, point: &BTreeMap<String, Value>, watch: &Watch) -> Result<TrialRecord, Error>;
}

/// What came of a trial, as it travels between processes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TrialRecord {
    /// It was trained on every split.
    Trained {
        /// The mean validation score; none where that is not a number.
        value: Option<f64>,
        /// The scores of each split.
        splits: Vec<Scores>,
        /// What the study keeps of it besides.
        attributes: BTreeMap<String, Value>,
    },
    /// It could not be trained.
    Failed {
        /// Why not.
        reason: String,
    },
}

impl TrialRecord {
    fn trained(record: &RunRecord) -> Self {
        let per_split =
            |number: fn(&Scores) -> f64| json!(record.splits.iter().map(number).collect::<Vec<f64>>());
        let attributes = [
            ("test", per_split(|split| split.test)),
            ("validation", per_split(|split| split.validation)),
            ("scores", json!(record.splits)),
            ("test_mean", json!(record.test_mean)),
            ("test_std", json!(record.test_std)),
            ("seed", json!(record.seed)),
            ("device", json!(record.device)),
            ("kernel", json!(record.kernel)),
            ("towers", json!(record.towers)),
            ("seconds", json!(record.seconds)),
        ];
        Self::Trained {
            value: Some(record.validation_mean),
            splits: record.splits.clone(),
            attributes: attributes.into_iter().map(|(key, value)| (key.to_owned(), value)).collect(),
        }
    }

    /// The splits that were trained.
    pub(super) fn splits(&self) -> &[Scores] {
        match self {
            Self::Trained { splits, .. } => splits,
            Self::Failed { .. } => &[],
        }
    }

    /// What the study is told.
    pub(super) fn outcome(self) -> Outcome {
        match self {
            Self::Trained { value, attributes, .. } => {
                let outcome = Outcome::complete(value.unwrap_or(f64::NAN));
                attributes.into_iter().fold(outcome, |outcome, (key, value)| outcome.with(&key, value))
            }
            Self::Failed { reason } => Outcome::failed(reason),
        }
    }
}

/// Runs the trial at a point, in the process of a worker: what a search does that has no workers.
///
/// `shared` is prepared once in each process.
///
/// # Errors
/// A stop asked for; the loss of the device. Whatever else goes wrong is a [`TrialRecord::Failed`].
pub fn run_trial(
    search: &Search<'_>,
    shared: &Shared,
    point: &BTreeMap<String, Value>,
    watch: &Watch,
) -> Result<TrialRecord, Error> {
    let go_on = |_: &Scores| ControlFlow::Continue(());
    match search.space.hyperparameters(point) {
        Ok(hyperparameters) => train(search, &shared.rewirings(search), &hyperparameters, watch, &go_on),
        Err(error) => Ok(TrialRecord::Failed { reason: error.to_string() }),
    }
}

/// Trains the splits of a trial in this process.
pub(super) fn train(
    search: &Search<'_>,
    rewirings: &Rewirings<'_>,
    hyperparameters: &Hyperparameters,
    watch: &Watch,
    on_split: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
) -> Result<TrialRecord, Error> {
    let training = Training {
        dataset: search.dataset,
        hyperparameters,
        seeds: &[search.seed],
        splits: search.splits,
        patience: search.patience,
        metric: search.metric,
        keep: Keep::default(),
    };
    match crate::train(&training, rewirings, search.trainer, watch, on_split) {
        Ok(run) if run.record.stopped => Err(qdc_core::Error::Interrupted.into()),
        Ok(run) => Ok(TrialRecord::trained(&run.record)),
        Err(error) if error.is_interruption() || error.is_lost_device() => Err(error),
        Err(error) => Ok(TrialRecord::Failed { reason: error.to_string() }),
    }
}
