//! One trial: hyper-parameters in, validation score out, within limits of time and memory.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use qdc_core::Watch;
use qdc_core::watch::{Observer, PhaseId};
use qdc_tune::Outcome;
use serde_json::json;

use super::Search;
use super::identity::HASH;
use crate::{Error, Hyperparameters, Keep, Rewirings, RunRecord, Scores, Training};

/// Why a trial was stopped from outside.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    /// It was not.
    None = 0,
    /// Its running mean is hopeless.
    Hopeless = 1,
    /// Its time is over.
    Time = 2,
    /// The search ends.
    Search = 3,
}

/// The switch by which the search stops one trial.
#[derive(Debug, Clone, Default)]
pub(super) struct Switch(Arc<AtomicU8>);

impl Switch {
    pub(super) fn pull(&self, stop: Stop) {
        self.0.compare_exchange(0, stop as u8, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    fn state(&self) -> Stop {
        match self.0.load(Ordering::Relaxed) {
            1 => Stop::Hopeless,
            2 => Stop::Time,
            3 => Stop::Search,
            _ => Stop::None,
        }
    }
}

/// Stops with the search, with its own switch, and when its time is over; shows nothing.
struct TrialObserver {
    search: Watch,
    switch: Switch,
    end: Option<Instant>,
}

impl Observer for TrialObserver {
    fn begin(&self, _: PhaseId, _: &str, _: u64) {}
    fn advance(&self, _: PhaseId, _: u64) {}
    fn end(&self, _: PhaseId) {}
    fn stop_requested(&self) -> bool {
        if self.end.is_some_and(|end| Instant::now() > end) {
            self.switch.pull(Stop::Time);
        }
        self.switch.state() != Stop::None || self.search.stop_requested()
    }
}

/// What a trial came to.
pub(super) enum Ending {
    /// To be told.
    Told(Outcome),
    /// The search was stopped: to be tried again.
    Interrupted,
    /// The device failed under it: to be tried again, by another search.
    Lost(Error),
}

/// Runs trials.
pub(super) struct Runner<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) rewirings: &'a Rewirings<'a>,
    /// The hash of the experiment.
    pub(super) experiment: &'a str,
    pub(super) watch: &'a Watch,
}

impl Runner<'_> {
    pub(super) fn run(
        &self,
        hyperparameters: &Hyperparameters,
        switch: &Switch,
        on_split: &(dyn Fn(&Scores) + Sync),
    ) -> Ending {
        let end = self.search.trial_time.map(|time| Instant::now() + time);
        let watch = Watch::new(TrialObserver { search: self.watch.clone(), switch: switch.clone(), end });
        match self.train(hyperparameters, &watch, switch, on_split) {
            Ok(record) if !record.stopped => self.told(complete(&record)),
            Err(error) if error.is_lost_device() => Ending::Lost(error),
            Err(error) if !error.is_interruption() => self.told(Outcome::failed(error.to_string())),
            Ok(_) | Err(_) => match switch.state() {
                Stop::Hopeless => self.told(Outcome::pruned().with("seed", self.search.seed)),
                Stop::Time => {
                    let limit = self.search.trial_time.unwrap_or_default().as_secs_f64();
                    self.told(Outcome::failed(format!("over the time limit of {limit} s")))
                }
                Stop::None | Stop::Search => Ending::Interrupted,
            },
        }
    }

    fn told(&self, outcome: Outcome) -> Ending {
        Ending::Told(outcome.with(HASH, self.experiment))
    }

    fn train(
        &self,
        hyperparameters: &Hyperparameters,
        watch: &Watch,
        switch: &Switch,
        on_split: &(dyn Fn(&Scores) + Sync),
    ) -> Result<RunRecord, Error> {
        let Search { dataset, seed, .. } = *self.search;
        let training = Training {
            dataset,
            hyperparameters,
            seeds: &[seed],
            splits: self.search.splits,
            patience: self.search.patience,
            metric: self.search.metric,
            keep: Keep::default(),
        };
        let run = crate::train(&training, self.rewirings, self.search.trainer, watch, &|record| {
            on_split(record);
            if switch.state() == Stop::None { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })?;
        Ok(run.record)
    }
}

fn complete(record: &RunRecord) -> Outcome {
    let per_split =
        |number: fn(&Scores) -> f64| json!(record.splits.iter().map(number).collect::<Vec<f64>>());
    Outcome::complete(record.validation_mean)
        .with("test", per_split(|split| split.test))
        .with("validation", per_split(|split| split.validation))
        .with("scores", json!(record.splits))
        .with("test_mean", record.test_mean)
        .with("test_std", record.test_std)
        .with("seed", record.seed)
        .with("device", record.device.clone())
        .with("kernel", json!(record.kernel))
        .with("towers", json!(record.towers))
        .with("seconds", record.seconds)
}
