//! One trial: hyper-parameters in, validation score out, within limits of time and memory.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Instant;

use qdc_core::Watch;
use qdc_core::watch::{Observer, PhaseId};
use qdc_tune::Outcome;
use serde_json::Value;

use super::identity::HASH;
use super::workers::Workers;
use super::{Search, workers};
use crate::{Error, Hyperparameters, Rewirings, Scores};

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
    /// The device failed under it, or its worker is gone for good: to be tried again, by another search.
    Lost(Error),
}

/// Where trials are trained.
#[derive(Clone, Copy)]
pub(super) enum Place<'a> {
    /// In this process.
    Here(&'a Rewirings<'a>),
    /// In others.
    Elsewhere(&'a dyn Workers),
}

/// Runs trials.
pub(super) struct Runner<'a> {
    pub(super) search: &'a Search<'a>,
    pub(super) place: Place<'a>,
    /// The hash of the experiment.
    pub(super) experiment: &'a str,
    pub(super) watch: &'a Watch,
}

impl Runner<'_> {
    pub(super) fn run(
        &self,
        point: &BTreeMap<String, Value>,
        hyperparameters: &Hyperparameters,
        switch: &Switch,
        on_split: &(dyn Fn(&Scores) + Sync),
    ) -> Ending {
        let end = self.search.trial_time.map(|time| Instant::now() + time);
        let watch = Watch::new(TrialObserver { search: self.watch.clone(), switch: switch.clone(), end });
        let record = match self.place {
            Place::Here(rewirings) => {
                workers::train(self.search, rewirings, hyperparameters, &watch, &|split| {
                    on_split(split);
                    if switch.state() == Stop::None {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                })
            }
            // What a worker heard on the way is told when it ends.
            Place::Elsewhere(workers) => {
                workers.run(point, &watch).inspect(|record| record.splits().iter().for_each(on_split))
            }
        };
        match record {
            Ok(record) => self.told(record.outcome()),
            Err(error) if !error.is_interruption() => Ending::Lost(error),
            Err(_) => match switch.state() {
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
}
