//! The best trials scored again with several seeds, and which of them is the best.
//!
//! One seed alone moves the mean over ten splits by a point and more, so the trial of the highest validation score
//! is often a lucky one. Finalists are trained with every seed, and the highest mean over splits and seeds decides.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use qdc_core::Watch;
use qdc_tune::{State, Study, Trial};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Search;
use crate::{Error, Keep, Rewirings, Scores, Summary, Training};

/// The attribute of a study that holds the scores.
const RESCORED: &str = "rescored";

/// A finalist: a trial and its scores over splits and seeds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Finalist {
    trial: u64,
    scores: Vec<Scores>,
}

/// Trains the best trials with every seed, one by one, leaving out those that were; each is kept when it is done.
pub(super) fn rescore(
    study: &mut Study,
    search: &Search<'_>,
    rewirings: &Rewirings<'_>,
    watch: &Watch,
) -> Result<(), Error> {
    let wanted = search.seeds as usize * search.splits.len();
    let seeds: Vec<u64> = (0..search.seeds).map(|next| search.seed.wrapping_add(next)).collect();
    let best: Vec<Trial> = leading(study.trials(), search.finalists.max(1)).into_iter().cloned().collect();
    let mut done = finalists(study.attributes());
    let still = |known: &Finalist| {
        known.scores.len() == wanted && best.iter().any(|trial| trial.number == known.trial)
    };
    done.retain(still);
    for trial in &best {
        if done.iter().any(|known| known.trial == trial.number) {
            continue;
        }
        let hyperparameters = search.space.hyperparameters(&trial.parameters())?;
        let training = Training {
            dataset: search.dataset,
            hyperparameters: &hyperparameters,
            seeds: &seeds,
            splits: search.splits,
            patience: search.patience,
            metric: search.metric,
            keep: Keep::default(),
        };
        let run = crate::train(&training, rewirings, search.trainer, watch, &|_| ControlFlow::Continue(()))?;
        done.push(Finalist { trial: trial.number, scores: run.record.splits });
        study.set_attribute(RESCORED, json!(done))?;
    }
    Ok(())
}

/// The complete trials of highest validation, the older of equals first; of trials at the same point only one.
pub(super) fn leading<'a>(trials: impl Iterator<Item = &'a Trial>, count: usize) -> Vec<&'a Trial> {
    let mut trials: Vec<&Trial> = trials.filter(|trial| trial.state == State::Complete).collect();
    let value = |trial: &Trial| trial.value.unwrap_or(f64::NEG_INFINITY);
    trials.sort_by(|one, other| value(other).total_cmp(&value(one)).then(one.number.cmp(&other.number)));
    let mut chosen: Vec<&Trial> = Vec::new();
    for trial in trials {
        if chosen.len() == count {
            break;
        }
        if chosen.iter().all(|known| known.parameters() != trial.parameters()) {
            chosen.push(trial);
        }
    }
    chosen
}

/// The best trial of a study: of its finalists that of the highest mean validation over seeds, and without finalists
/// that of the highest validation. Finalists count only while the leader is one of them.
pub(crate) fn best<'a>(
    attributes: &BTreeMap<String, Value>,
    trials: impl Iterator<Item = &'a Trial>,
) -> Option<&'a Trial> {
    let trials: Vec<&Trial> = trials.collect();
    let leader = *leading(trials.iter().copied(), 1).first()?;
    let finalists = finalists(attributes);
    if finalists.iter().all(|finalist| finalist.trial != leader.number) {
        return Some(leader);
    }
    let mean = |finalist: &Finalist| Summary::of(&finalist.scores).validation_mean;
    // Of equals the first, which had the higher score in the search.
    let chosen = finalists.iter().reduce(|best, next| if mean(next) > mean(best) { next } else { best })?;
    trials.into_iter().find(|trial| trial.number == chosen.trial)
}

/// The scores of a trial with several seeds, if it has them.
pub(crate) fn scores(attributes: &BTreeMap<String, Value>, trial: u64) -> Option<Vec<Scores>> {
    finalists(attributes).into_iter().find(|finalist| finalist.trial == trial).map(|finalist| finalist.scores)
}

/// How many trials were scored with several seeds.
pub(crate) fn count(attributes: &BTreeMap<String, Value>) -> usize {
    finalists(attributes).len()
}

/// What the attribute holds: a list, or in earlier files the one trial there was.
fn finalists(attributes: &BTreeMap<String, Value>) -> Vec<Finalist> {
    let Some(rescored) = attributes.get(RESCORED) else { return Vec::new() };
    let one = || serde_json::from_value(rescored.clone()).map(|finalist| vec![finalist]);
    serde_json::from_value(rescored.clone()).or_else(|_| one()).unwrap_or_default()
}
