//! Which experiment a study belongs to, and what stands in its file for readers.

use qdc_tune::Study;
use serde_json::{Value, json};

use super::Search;
use crate::experiment::{DatasetIdentity, Experiment, SearchIdentity, difference};
use crate::{Error, Hyperparameters};

/// The attribute of a study that holds its record.
pub(crate) const RECORD: &str = "experiment";
/// The attribute of a study and of each of its trials that holds the record's hash.
pub(crate) const HASH: &str = "experiment_hash";

/// The record of a search: everything that decides what it finds, but for the number of trials.
pub(super) fn record(search: &Search<'_>) -> Result<Experiment, Error> {
    let space = search.space;
    let mut values = Hyperparameters::new(space.model.clone());
    for (name, value) in &space.fixed {
        values.set_json(name, value)?;
    }
    let mut hyperparameters = values.written();
    hyperparameters.retain(|name, _| space.space.get(name).is_none());
    let searched = space.space.iter().map(|(name, distribution)| (name.to_owned(), distribution.clone()));
    Ok(Experiment {
        version: Experiment::VERSION.to_owned(),
        dataset: DatasetIdentity::of(search.dataset),
        splits: search.splits.to_vec(),
        model: space.model.clone(),
        hyperparameters,
        schedule: search.patience,
        metric: search.metric,
        seeds: vec![search.seed],
        recipes: Vec::new(),
        kernel: None,
        search: Some(SearchIdentity {
            space: searched.collect(),
            sampler: search.sampler,
            batch: search.batch,
            pruning: search.pruning,
            attention_limit: search.attention_limit,
            start: if space.complete { Vec::new() } else { space.points.clone() },
        }),
    })
}

/// Makes the study that of `experiment`, or checks that it is.
///
/// # Errors
/// If the study has trials of another experiment, or trials and no record.
pub(super) fn identify(study: &mut Study, experiment: &Experiment) -> Result<(), Error> {
    let now = experiment.json();
    match study.attributes().get(RECORD).cloned() {
        Some(was) => match difference(&was, &now) {
            None => Ok(()),
            Some(difference) => Err(Error::OtherExperiment {
                study: study.name().to_owned(),
                part: difference.part,
                was: difference.one,
                now: difference.other,
            }),
        },
        None if study.is_empty() => {
            study.set_attribute(HASH, experiment.hash())?;
            Ok(study.set_attribute(RECORD, now)?)
        }
        None => Err(Error::NoRecord { study: study.name().to_owned() }),
    }
}

/// Writes what readers of the study file look for.
pub(super) fn describe(study: &mut Study, search: &Search<'_>) -> Result<(), Error> {
    let statistics = search.dataset.statistics()?;
    let facts = [
        ("dataset", json!(search.dataset.name)),
        ("source", search.source.clone().unwrap_or(Value::Null)),
        ("model", json!(search.space.model)),
        ("space", json!(search.space.name)),
        ("fixed", json!(search.space.fixed)),
        ("seed", json!(search.seed)),
        ("metric", json!(search.metric)),
        ("batch", json!(search.batch)),
        ("sampler", json!(search.sampler)),
        ("trials", json!(search.trials)),
        ("nodes", json!(statistics.nodes)),
        ("edges", json!(statistics.edges)),
        ("homophily", json!(statistics.homophily)),
    ];
    for (key, value) in facts {
        if study.attributes().get(key) != Some(&value) {
            study.set_attribute(key, value)?;
        }
    }
    Ok(())
}
