//! Between the study and the trials under way: asks, hears and tells.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Instant;

use qdc_core::Watch;
use qdc_tune::{Asked, Outcome, State, Study};
use serde_json::Value;

use super::search::Search;
use super::trial::{Ending, Stop, Switch};
use crate::{Error, Hyperparameters, Scores};

/// The first error of the study, or the loss of the device, ends the search: no trial is begun after it, and
/// those under way are stopped and put back in the queue, as far as the storage still allows.
pub(super) struct Coordinator<'a> {
    study: &'a mut Study,
    switches: BTreeMap<u64, Switch>,
    reports: BTreeMap<u64, BTreeMap<usize, f64>>,
    hopeless: BTreeSet<u64>,
    duplicates: usize,
    told: usize,
    start: Instant,
    watch: &'a Watch,
    failure: Option<Error>,
}

/// What is to be done next.
pub(super) enum Next {
    /// This trial.
    Run(Asked, Hyperparameters),
    /// Nothing for this trial: it is told already.
    Settled,
    /// Nothing now.
    Nothing,
}

impl<'a> Coordinator<'a> {
    pub(super) fn new(study: &'a mut Study, watch: &'a Watch) -> Self {
        Self {
            study,
            switches: BTreeMap::new(),
            reports: BTreeMap::new(),
            hopeless: BTreeSet::new(),
            duplicates: 0,
            told: 0,
            start: Instant::now(),
            watch,
            failure: None,
        }
    }

    /// An interrupted trial, or a new one if there is to be one and it may be asked for now.
    pub(super) fn next(&mut self, search: &Search<'_>) -> Next {
        if self.failure.is_some() {
            return Next::Nothing;
        }
        let next = self.try_next(search);
        self.keep(next).unwrap_or(Next::Nothing)
    }

    fn try_next(&mut self, search: &Search<'_>) -> Result<Next, Error> {
        let mut asked = self.study.ask_again()?;
        while asked.is_none() && self.study.len() < search.trials && self.study.may_ask() {
            asked = self.study.try_ask_new()?;
        }
        let Some(asked) = asked else { return Ok(Next::Nothing) };
        if let Some(outcome) = self.copy_of_equal(&asked) {
            self.tell(&asked, outcome)?;
            self.duplicates += 1;
            return Ok(Next::Settled);
        }
        match search.space.hyperparameters(&asked.parameters) {
            Ok(values) => Ok(Next::Run(asked, values)),
            Err(error) => {
                self.tell(&asked, Outcome::failed(error.to_string()))?;
                Ok(Next::Settled)
            }
        }
    }

    /// The outcome of a finished trial at the same point, if there is one: the same point gives the same result.
    fn copy_of_equal(&self, asked: &Asked) -> Option<Outcome> {
        let original = self.study.trial(asked.duplicate_of?)?;
        let attributes = original.user_attributes.iter();
        let copy = attributes.fold(Outcome::complete(original.value?), |outcome, (key, value)| {
            outcome.with(key, value.clone())
        });
        Some(copy.with("duplicate_of", original.number))
    }

    /// The switch that stops a trial.
    pub(super) fn switch(&mut self, asked: &Asked) -> Switch {
        self.switches.entry(asked.trial).or_default().clone()
    }

    /// Records running means in the order of splits, whatever the order they end in.
    pub(super) fn hear(&mut self, number: u64, split: &Scores) {
        let heard = self.try_hear(number, split);
        self.keep(heard);
    }

    fn try_hear(&mut self, number: u64, split: &Scores) -> Result<(), Error> {
        let running = self.study.trial(number).is_some_and(|trial| trial.state == State::Running);
        let Some(asked) = self.study.asked_of(number).filter(|_| running && !self.hopeless.contains(&number))
        else {
            return Ok(());
        };
        let heard = self.reports.entry(number).or_default();
        let before = (0..).take_while(|step| heard.contains_key(step)).count();
        heard.insert(split.split, split.validation);
        let known: Vec<f64> = (0..).map_while(|step| heard.get(&step).copied()).collect();
        for step in before..known.len() {
            let mean = known[..=step].iter().sum::<f64>() / (step + 1) as f64;
            self.study.report(&asked, step as i64, mean)?;
            if self.study.should_prune(&asked) {
                self.hopeless.insert(number);
                if let Some(switch) = self.switches.get(&number) {
                    switch.pull(Stop::Hopeless);
                }
                break;
            }
        }
        Ok(())
    }

    /// Tells what became of a trial.
    pub(super) fn finish(&mut self, asked: &Asked, ending: Ending) {
        let told = self.try_finish(asked, ending);
        self.keep(told);
    }

    fn try_finish(&mut self, asked: &Asked, ending: Ending) -> Result<(), Error> {
        self.switches.remove(&asked.trial);
        self.reports.remove(&asked.trial);
        match ending {
            Ending::Interrupted => Ok(self.study.release(asked)?),
            Ending::Lost(error) => {
                self.study.release(asked)?;
                Err(error)
            }
            // It may have finished before the switch was pulled; the rule is what counts.
            Ending::Told(_) if self.hopeless.contains(&asked.trial) => self.tell(asked, Outcome::pruned()),
            Ending::Told(outcome) => self.tell(asked, outcome),
        }
    }

    /// Tells, and notes a new best.
    fn tell(&mut self, asked: &Asked, outcome: Outcome) -> Result<(), Error> {
        let before = self.study.best().map(|trial| trial.number);
        self.study.tell(asked, outcome)?;
        self.told += 1;
        if let Some(best) = self.study.best().filter(|best| Some(best.number) != before) {
            let percent =
                |key: &str| 100.0 * best.user_attributes.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
            let done = self.study.trials().filter(|trial| trial.state.is_finished()).count();
            let pace = 60.0 * self.told as f64 / self.start.elapsed().as_secs_f64();
            self.watch.note(&format!(
                "trial {}: validation {:.2} %, test {:.2} ± {:.2} % ({done} trials, {pace:.0} a minute)",
                best.number,
                100.0 * best.value.unwrap_or(f64::NAN),
                percent("test_mean"),
                percent("test_std"),
            ));
        }
        Ok(())
    }

    /// Reads what other processes have done.
    pub(super) fn synchronise(&mut self) {
        let read = self.study.synchronise().map_err(Error::from);
        self.keep(read);
    }

    /// Whether there will be no more to do: the study has `trials` trials, or it has failed.
    pub(super) fn is_done(&self, trials: usize) -> bool {
        self.failure.is_some() || self.study.len() >= trials
    }

    /// How many trials were copied, or the error that ended the search.
    pub(super) fn end(self) -> Result<usize, Error> {
        self.failure.map_or(Ok(self.duplicates), Err)
    }

    /// The value; after the first error every trial under way is stopped.
    fn keep<T>(&mut self, result: Result<T, Error>) -> Option<T> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.failure.get_or_insert(error);
                self.switches.values().for_each(|switch| switch.pull(Stop::Search));
                None
            }
        }
    }
}
