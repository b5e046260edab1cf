//! What a sampler may look at: finished trials by columns, each column also in sorted order.
//!
//! Kept up to date trial by trial, so that a suggestion after ten thousand trials sorts nothing.

use crate::{Direction, Space, State, Trial};

/// How a finished trial compares with others.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Standing {
    /// Larger is better.
    Complete(f64),
    /// Pruned after a number of steps with a last report (larger is better); more steps are better.
    Pruned(i64, f64),
    /// Failed: never among the good ones.
    Failed,
}

/// One parameter over all trials.
#[derive(Debug, Clone, Default)]
pub(super) struct Column {
    /// Internal values in the order of trial numbers; NaN where the trial lacks the parameter.
    pub(super) values: Vec<f64>,
    /// Trials by ascending value (those that have one).
    pub(super) order: Vec<u32>,
    /// Per trial: the bandwidth last used, and the logarithm of its kernel's normaliser.
    pub(super) normalisers: Vec<(f64, f64)>,
}

impl Column {
    fn push(&mut self, value: f64) {
        let index = self.values.len() as u32;
        self.values.push(value);
        self.normalisers.push((f64::NAN, 0.0));
        if !value.is_nan() {
            let place = self.order.partition_point(|&other| self.values[other as usize] <= value);
            self.order.insert(place, index);
        }
    }
}

/// The finished trials of a study, as samplers see them.
#[derive(Debug, Clone)]
pub struct History {
    pub(super) numbers: Vec<u64>,
    pub(super) standings: Vec<Standing>,
    pub(super) columns: Vec<Column>,
    space: Space,
    direction: Direction,
}

impl History {
    /// No trials yet.
    pub fn new(space: &Space, direction: Direction) -> Self {
        let columns = vec![Column::default(); space.len()];
        Self { numbers: Vec::new(), standings: Vec::new(), columns, space: space.clone(), direction }
    }

    /// How many trials there are.
    pub fn len(&self) -> usize {
        self.numbers.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// Adds a finished trial; those that are not finished, or known already, are ignored.
    ///
    /// Costs O(parameters * trials) of memory moves; a trial with a lower number than the last costs a
    /// rebuild.
    pub fn insert(&mut self, trial: &Trial) {
        if self.numbers.binary_search(&trial.number).is_ok() {
            return;
        }
        let Some(standing) = standing(trial, self.direction) else { return };
        let values: Vec<f64> =
            self.space.iter().map(|(name, distribution)| internal(trial, name, distribution)).collect();
        match self.numbers.binary_search(&trial.number) {
            Ok(_) => {}
            Err(place) if place == self.numbers.len() => self.push(trial.number, standing, &values),
            Err(place) => {
                let later: Vec<(u64, Standing, Vec<f64>)> = (place..self.len())
                    .map(|i| {
                        (
                            self.numbers[i],
                            self.standings[i],
                            self.columns.iter().map(|c| c.values[i]).collect(),
                        )
                    })
                    .collect();
                self.truncate(place);
                self.push(trial.number, standing, &values);
                for (number, standing, values) in later {
                    self.push(number, standing, &values);
                }
            }
        }
    }

    fn push(&mut self, number: u64, standing: Standing, values: &[f64]) {
        self.numbers.push(number);
        self.standings.push(standing);
        for (column, &value) in self.columns.iter_mut().zip(values) {
            column.push(value);
        }
    }

    fn truncate(&mut self, length: usize) {
        self.numbers.truncate(length);
        self.standings.truncate(length);
        for column in &mut self.columns {
            column.values.truncate(length);
            column.normalisers.truncate(length);
            column.order.retain(|&index| (index as usize) < length);
        }
    }

    /// Trials that say something about good and bad: complete or pruned ones.
    pub(super) fn informative(&self) -> usize {
        self.standings.iter().filter(|standing| **standing != Standing::Failed).count()
    }

    /// The trials TPE calls good: the best ceil(0.1 n), at most 25, complete ones before pruned ones, of
    /// equals the older; in the order of their numbers.
    pub(super) fn good(&self) -> Vec<u32> {
        let wanted = (0.1 * self.informative() as f64).ceil().min(25.0) as usize;
        let mut candidates: Vec<u32> =
            (0..self.len() as u32).filter(|&i| self.standings[i as usize] != Standing::Failed).collect();
        let wanted = wanted.min(candidates.len());
        let better = |&a: &u32, &b: &u32| {
            let key = |i: u32| match self.standings[i as usize] {
                Standing::Complete(goodness) => (0, 0, -goodness),
                Standing::Pruned(step, goodness) => (1, -step, -goodness),
                Standing::Failed => (2, 0, 0.0),
            };
            let (one, other) = (key(a), key(b));
            (one.0, one.1).cmp(&(other.0, other.1)).then(one.2.total_cmp(&other.2)).then(a.cmp(&b))
        };
        if wanted < candidates.len() {
            candidates.select_nth_unstable_by(wanted, better);
            candidates.truncate(wanted);
        }
        candidates.sort_unstable();
        candidates
    }
}

/// The internal value of a trial's parameter in this study's distribution; NaN if it has none there.
fn internal(trial: &Trial, name: &str, distribution: &crate::Distribution) -> f64 {
    match trial.parameters.get(name) {
        Some((own, value)) if own == distribution => *value,
        Some((own, value)) => distribution.internal(&own.external(*value)).unwrap_or(f64::NAN),
        None => f64::NAN,
    }
}

fn standing(trial: &Trial, direction: Direction) -> Option<Standing> {
    match (trial.state, trial.value) {
        // -0.0 and 0.0 are equal values: adding zero makes them equal bits too
        (State::Complete, Some(value)) => Some(Standing::Complete(direction.goodness(value) + 0.0)),
        (State::Pruned, _) => Some(match trial.intermediate.last_key_value() {
            None => Standing::Pruned(-1, 0.0),
            Some((step, value)) if value.is_nan() => Standing::Pruned(*step, f64::NEG_INFINITY),
            Some((step, value)) => Standing::Pruned(*step, direction.goodness(*value) + 0.0),
        }),
        (State::Failed | State::Complete, _) => Some(Standing::Failed),
        _ => None,
    }
}
