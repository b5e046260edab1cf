//! A study: ask for a point, try it, tell what came of it.
//!
//! **Reproducible whatever the number of workers.** Trial n looks only at trials up to n - batch, and draws
//! from streams of its own. Up to `batch` trials can therefore be under way at once, in any order of
//! completion, and the points asked for are the same; with batch 1 this is Optuna's sequential search.
//!
//! **Interrupted trials come first.** A trial that waits in the queue, or whose worker is gone, is asked for
//! again, with its number and its parameters, before any new one: a study that was killed and resumed ends
//! like one that was not. While a trial is under way, a thread of its own says so every few seconds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use serde_json::Value;

use crate::heartbeat::{self, Heartbeat};
use crate::sampler::{History, Sampler, Streams};
use crate::storage::{NewTrial, Storage, StudyRecord};
use crate::{Asked, Direction, Distribution, Error, Outcome, Pruning, Result, Space, State, Trial};

/// Seconds without a heartbeat after which a worker on another machine counts as gone.
const GRACE: u64 = 60;

/// A search with one goal.
pub struct Study {
    storage: Box<dyn Storage>,
    record: StudyRecord,
    direction: Direction,
    space: Space,
    sampler: Sampler,
    seed: u64,
    batch: u64,
    pruning: Pruning,
    trials: BTreeMap<u64, Trial>,
    latest_id: i64,
    history: History,
    by_parameters: HashMap<Vec<u64>, u64>,
    under_way: BTreeSet<u64>,
    heartbeat: Option<Heartbeat>,
    heartbeat_every: Duration,
}

impl Study {
    /// Opens a study by name, or begins it. The space must be the one it was begun with.
    pub fn open(
        storage: impl Storage + 'static,
        name: &str,
        direction: Direction,
        space: Space,
    ) -> Result<Self> {
        Self::open_boxed(Box::new(storage), name, direction, space)
    }

    /// The same, for a storage whose kind is known at run time only.
    pub fn open_boxed(
        mut storage: Box<dyn Storage>,
        name: &str,
        direction: Direction,
        space: Space,
    ) -> Result<Self> {
        let record = storage.open_study(name, direction)?;
        let problem = match record.directions.as_slice() {
            [own] if *own == direction => None,
            [own] => Some(format!("wants to {own:?}, not to {direction:?}").to_lowercase()),
            several => Some(format!("has {} goals instead of one", several.len())),
        };
        if let Some(problem) = problem {
            return Err(Error::Direction { study: name.to_owned(), problem });
        }
        let history = History::new(&space, direction);
        let mut study = Self {
            storage,
            record,
            direction,
            space,
            sampler: Sampler::default(),
            seed: 0,
            batch: 1,
            pruning: Pruning::Off,
            trials: BTreeMap::new(),
            latest_id: 0,
            history,
            by_parameters: HashMap::new(),
            under_way: BTreeSet::new(),
            heartbeat: None,
            heartbeat_every: heartbeat::EVERY,
        };
        study.synchronise()?;
        study.check_space()?;
        Ok(study)
    }

    /// Chooses who proposes points [default: TPE as Optuna 3.6].
    pub fn sampler(mut self, sampler: Sampler) -> Self {
        self.sampler = sampler;
        self
    }

    /// The seed of all draws [default: 0].
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// How many trials may be under way at once, at least 1 [default: 1].
    pub fn batch(mut self, batch: u64) -> Self {
        self.batch = batch.max(1);
        self
    }

    /// Whether to give trials up early [default: off].
    pub fn pruning(mut self, pruning: Pruning) -> Self {
        self.pruning = pruning;
        self
    }

    /// How often trials under way are said to be worked on; for tests.
    #[doc(hidden)]
    pub fn heartbeat_every(mut self, every: Duration) -> Self {
        self.heartbeat_every = every;
        self
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.record.name
    }

    /// What it searches.
    pub fn space(&self) -> &Space {
        &self.space
    }

    /// Where it is kept.
    pub fn storage(&self) -> String {
        self.storage.name()
    }

    /// What the user attached to it.
    pub fn attributes(&self) -> &BTreeMap<String, Value> {
        &self.record.attributes
    }

    /// Attaches something to it.
    pub fn set_attribute(&mut self, key: &str, value: impl Into<Value>) -> Result<()> {
        let value = value.into();
        self.storage.set_study_attribute(self.record.id, key, &value)?;
        self.record.attributes.insert(key.to_owned(), value);
        Ok(())
    }

    /// All trials known, by number.
    pub fn trials(&self) -> impl ExactSizeIterator<Item = &Trial> {
        self.trials.values()
    }

    /// The trial of that number, if there is one.
    pub fn trial(&self, number: u64) -> Option<&Trial> {
        self.trials.get(&number)
    }

    /// How many trials will count in the end: those finished and those that will be retried or are under way.
    pub fn len(&self) -> usize {
        self.trials.len()
    }

    /// Whether there are no trials yet.
    pub fn is_empty(&self) -> bool {
        self.trials.is_empty()
    }

    /// The best complete trial; of equals the oldest.
    pub fn best(&self) -> Option<&Trial> {
        let complete = self.trials.values().filter(|trial| trial.state == State::Complete);
        let goodness =
            |trial: &Trial| trial.value.map_or(f64::NEG_INFINITY, |value| self.direction.goodness(value));
        complete.reduce(|best, trial| if goodness(best) >= goodness(trial) { best } else { trial })
    }

    /// Whether the next trial may be asked for now without looking at trials still under way.
    pub fn may_ask(&self) -> bool {
        let next = self.next_number();
        self.under_way.first().is_none_or(|&oldest| oldest + self.batch > next)
    }

    /// The number of the next new trial: one more than the largest, so that a gap stays a gap.
    fn next_number(&self) -> u64 {
        self.trials.last_key_value().map_or(0, |(number, _)| number + 1)
    }

    /// Reads what other processes have done.
    ///
    /// # Errors
    /// If the storage fails, or holds two trials of one number.
    pub fn synchronise(&mut self) -> Result<()> {
        let unfinished: Vec<i64> =
            self.trials.values().filter(|trial| !trial.state.is_finished()).map(|trial| trial.id).collect();
        let read = self.storage.trials(self.record.id, self.latest_id, &unfinished)?;
        let known = |trial: &Trial| self.trials.get(&trial.number).is_none_or(|known| known.id == trial.id);
        if read.iter().all(known) { self.take(read) } else { self.reload() }
    }

    /// Reads every trial again: another program has deleted or renumbered some.
    fn reload(&mut self) -> Result<()> {
        let read = self.storage.trials(self.record.id, 0, &[])?;
        self.trials.clear();
        self.by_parameters.clear();
        self.history = History::new(&self.space, self.direction);
        self.take(read)
    }

    fn take(&mut self, read: Vec<Trial>) -> Result<()> {
        for trial in read {
            if let Some(other) = self.trials.get(&trial.number).filter(|other| other.id != trial.id) {
                return Err(Error::TrialNumber {
                    study: self.record.name.clone(),
                    storage: self.storage.name(),
                    number: trial.number,
                    keys: (other.id, trial.id),
                });
            }
            self.latest_id = self.latest_id.max(trial.id);
            if trial.state == State::Complete
                && let Some(key) = self.key(&trial)
            {
                self.by_parameters.entry(key).or_insert(trial.number);
            }
            self.trials.insert(trial.number, trial);
        }
        Ok(())
    }

    /// The next point: an interrupted trial if there is one, or a new one.
    pub fn ask(&mut self) -> Result<Asked> {
        match self.ask_again()? {
            Some(asked) => Ok(asked),
            None => self.ask_new(),
        }
    }

    /// A trial that waits in the queue or whose worker is gone, if there is one.
    pub fn ask_again(&mut self) -> Result<Option<Asked>> {
        self.synchronise()?;
        self.start_heartbeat()?;
        let stale: BTreeSet<i64> = self.storage.stale(self.record.id, GRACE)?.into_iter().collect();
        let candidates: Vec<Trial> = self
            .trials
            .values()
            .filter(|trial| !self.under_way.contains(&trial.number))
            .filter(|trial| match trial.state {
                State::Waiting => true,
                State::Running => stale.contains(&trial.id) && self.key(trial).is_some(),
                _ => false,
            })
            .cloned()
            .collect();
        for trial in candidates {
            let values = self.values(&trial);
            if !self.storage.claim(&trial)? {
                continue;
            }
            let missing: BTreeMap<_, _> = self
                .parameters(&values)
                .into_iter()
                .filter(|(name, _)| !trial.parameters.contains_key(name))
                .collect();
            self.storage.add_parameters(trial.id, &missing)?;
            let known = self.trials.get_mut(&trial.number).expect("it was found here");
            known.state = State::Running;
            known.parameters.extend(missing);
            known.intermediate.clear();
            return Ok(Some(self.asked(trial.id, trial.number, &values)));
        }
        Ok(None)
    }

    /// A new trial.
    pub fn ask_new(&mut self) -> Result<Asked> {
        loop {
            if let Some(asked) = self.try_ask_new()? {
                return Ok(asked);
            }
        }
    }

    /// Puts a point into the queue: [`Study::ask`] gives it out before it proposes others, as Optuna's
    /// `enqueue_trial`. Parameters that the point does not name are proposed then.
    pub fn enqueue(&mut self, point: &BTreeMap<String, Value>) -> Result<()> {
        let mut trial = NewTrial::running(BTreeMap::new());
        trial.state = State::Waiting;
        trial.system_attributes.insert("fixed_params".to_owned(), serde_json::json!(point));
        self.storage.add_trial(self.record.id, None, &trial)?;
        self.synchronise()
    }

    /// A new trial, or `None` if another process added trials meanwhile: they are known now, and there may be
    /// enough.
    pub fn try_ask_new(&mut self) -> Result<Option<Asked>> {
        self.start_heartbeat()?;
        let expected = self.next_number();
        let values = self.suggest(expected);
        let trial = NewTrial::running(self.parameters(&values));
        let Some((id, number)) = self.storage.add_trial(self.record.id, Some(expected), &trial)? else {
            self.synchronise()?;
            if self.next_number() == expected {
                self.reload()?; // nothing was added, so something was deleted
            }
            return Ok(None);
        };
        self.latest_id = self.latest_id.max(id);
        self.trials.insert(number, trial.stored(id, number));
        Ok(Some(self.asked(id, number, &values)))
    }

    /// The trial of that number as it was asked for, while it is under way here.
    pub fn asked_of(&self, number: u64) -> Option<Asked> {
        let trial = self.trials.get(&number).filter(|_| self.under_way.contains(&number))?;
        Some(Asked { trial: number, parameters: trial.parameters(), duplicate_of: None, id: trial.id })
    }

    /// Ends a trial. False if somebody else had ended it, after taking it over.
    pub fn tell(&mut self, asked: &Asked, outcome: Outcome) -> Result<bool> {
        let Outcome { mut state, mut value, mut attributes } = outcome;
        if value.is_some_and(f64::is_nan) {
            // As Optuna: what cannot be compared has failed.
            (state, value) = (State::Failed, None);
            attributes.insert("failure".to_owned(), Value::String("the value is not a number".into()));
        }
        if state == State::Pruned {
            value = self
                .trials
                .get(&asked.trial)
                .and_then(|trial| trial.intermediate.last_key_value())
                .map(|(_, v)| *v);
        }
        let told = self.storage.finish(asked.id, state, value, &attributes)?;
        self.no_longer_under_way(asked);
        if !told {
            self.synchronise()?;
            return Ok(false);
        }
        if let Some(trial) = self.trials.get_mut(&asked.trial) {
            trial.state = state;
            trial.value = value;
            trial.user_attributes.extend(attributes);
            let trial = trial.clone();
            if let (State::Complete, Some(key)) = (state, self.key(&trial)) {
                self.by_parameters.entry(key).or_insert(asked.trial);
            }
        }
        Ok(true)
    }

    /// Records a value along the way.
    pub fn report(&mut self, asked: &Asked, step: i64, value: f64) -> Result<()> {
        if let Some(trial) = self.trials.get_mut(&asked.trial) {
            trial.intermediate.insert(step, value);
        }
        self.storage.report(asked.id, step, value)
    }

    /// Whether a trial looks hopeless at its last report.
    pub fn should_prune(&self, asked: &Asked) -> bool {
        let own = self.trials.get(&asked.trial);
        let Some((&step, &value)) = own.and_then(|trial| trial.intermediate.last_key_value()) else {
            return false;
        };
        let others = self.visible(asked.trial).filter(|trial| trial.state == State::Complete);
        let goodness = |value: f64| self.direction.goodness(value);
        let others = others.filter_map(|trial| trial.intermediate.get(&step)).map(|&other| goodness(other));
        self.pruning.gives_up(step, goodness(value), others.collect())
    }

    /// Puts a trial back in the queue, to be asked for again with the same parameters.
    pub fn release(&mut self, asked: &Asked) -> Result<()> {
        self.no_longer_under_way(asked);
        self.storage.release(asked.id)
    }

    /// Starts the thread that says that trials are being worked on, where others can see the storage.
    fn start_heartbeat(&mut self) -> Result<()> {
        if self.heartbeat.is_none()
            && let Some(storage) = self.storage.reopen()?
        {
            self.heartbeat = Some(Heartbeat::start(storage, self.heartbeat_every));
        }
        Ok(())
    }

    fn no_longer_under_way(&mut self, asked: &Asked) {
        self.under_way.remove(&asked.trial);
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.remove(asked.id);
        }
    }

    /// Finished trials that trial `number` may look at.
    fn visible(&self, number: u64) -> impl Iterator<Item = &Trial> {
        let end = (number + 1).saturating_sub(self.batch);
        self.trials.range(..end).map(|(_, trial)| trial).filter(|trial| trial.state.is_finished())
    }

    fn suggest(&mut self, number: u64) -> Vec<f64> {
        let mut history = std::mem::replace(&mut self.history, History::new(&self.space, self.direction));
        if history.len() > self.visible(number).count() {
            history = History::new(&self.space, self.direction); // another batch than before
        }
        for trial in self.visible(number) {
            history.insert(trial);
        }
        let running: Vec<Vec<f64>> = self
            .trials
            .range((number + 1).saturating_sub(self.batch)..number)
            .map(|(_, trial)| trial)
            .filter_map(|trial| {
                self.space.iter().map(|(name, _)| trial.parameters.get(name).map(|p| p.1)).collect()
            })
            .collect();
        let mut streams = Streams::of_trial(self.seed, number);
        let values = self.sampler.suggest(&self.space, &mut history, &running, &mut streams);
        self.history = history;
        values
    }

    fn asked(&mut self, id: i64, number: u64, values: &[f64]) -> Asked {
        self.under_way.insert(number);
        if let Some(heartbeat) = &self.heartbeat {
            heartbeat.add(id);
        }
        let parameters = self
            .space
            .iter()
            .zip(values)
            .map(|((name, distribution), value)| (name.to_owned(), distribution.external(*value)))
            .collect();
        let duplicate_of = self.by_parameters.get(&bits(values)).copied();
        Asked { trial: number, parameters, duplicate_of, id }
    }

    fn parameters(&self, values: &[f64]) -> BTreeMap<String, (Distribution, f64)> {
        self.space
            .iter()
            .zip(values)
            .map(|((name, distribution), value)| (name.to_owned(), (distribution.clone(), *value)))
            .collect()
    }

    /// The internal values of a queued trial: its own, those fixed by whoever queued it, and suggestions for
    /// the rest.
    fn values(&mut self, trial: &Trial) -> Vec<f64> {
        let fixed = trial.system_attributes.get("fixed_params").cloned().unwrap_or(Value::Null);
        let mut values =
            if self.key(trial).is_some() { vec![0.0; self.space.len()] } else { self.suggest(trial.number) };
        for (index, (name, distribution)) in self.space.iter().enumerate() {
            let own = trial.parameters.get(name).map(|(_, value)| *value);
            let wanted = fixed.get(name).and_then(|value| distribution.internal(value));
            if let Some(value) = own.or(wanted) {
                values[index] = value;
            }
        }
        values
    }

    /// All parameters of a trial as bits; `None` if it lacks one.
    fn key(&self, trial: &Trial) -> Option<Vec<u64>> {
        let values: Option<Vec<f64>> =
            self.space.iter().map(|(name, _)| trial.parameters.get(name).map(|(_, value)| *value)).collect();
        values.map(|values| bits(&values))
    }

    /// The space must be that of the trials there are.
    fn check_space(&self) -> Result<()> {
        let Some(trial) = self.trials.values().find(|trial| !trial.parameters.is_empty()) else {
            return Ok(());
        };
        let begun =
            trial.parameters.iter().map(|(name, (distribution, _))| (name.clone(), distribution.clone()));
        let complete = trial.state == State::Complete;
        match self.space.difference(&Space::new(begun)?) {
            // A trial under way elsewhere may not have all its parameters yet.
            Some(difference) if complete || !difference.ends_with("is new") => {
                Err(Error::SpaceDiffers { study: self.record.name.clone(), difference })
            }
            _ => Ok(()),
        }
    }
}

impl Drop for Study {
    /// Puts trials still under way back in the queue: their process lives on, so that nobody else may take
    /// them over.
    fn drop(&mut self) {
        self.heartbeat.take();
        for number in &self.under_way {
            if let Some(trial) = self.trials.get(number) {
                self.storage.release(trial.id).ok(); // whoever finds this process gone takes them over
            }
        }
    }
}

impl std::fmt::Debug for Study {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Study({} in {}, {} trials)", self.record.name, self.storage.name(), self.trials.len())
    }
}

/// Zero has two bit patterns and one meaning.
fn bits(values: &[f64]) -> Vec<u64> {
    values.iter().map(|value| (value + 0.0).to_bits()).collect()
}
