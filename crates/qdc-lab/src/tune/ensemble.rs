//! The best trials of a study asked together.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use qdc_core::Watch;
use qdc_tune::{Study, Trial};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Search;
use super::rescore::leading;
use crate::{Ensemble, Error, Keep, Rewirings, Training};

/// The attribute of a study that holds the scores.
const ENSEMBLE: &str = "ensemble";

/// Trials asked together, and what came of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TrialEnsemble {
    /// Their numbers, the best by validation first.
    #[serde(rename = "ensemble_trials")]
    pub trials: Vec<u64>,
    /// Their scores.
    #[serde(flatten)]
    pub scores: Ensemble,
}

/// Trains the best trials again with the seed of the search and asks them together, unless that is done already.
pub(super) fn ensemble(
    study: &mut Study,
    search: &Search<'_>,
    rewirings: &Rewirings<'_>,
    watch: &Watch,
) -> Result<(), Error> {
    let best: Vec<Trial> = leading(study.trials(), search.ensemble).into_iter().cloned().collect();
    let trials: Vec<u64> = best.iter().map(|trial| trial.number).collect();
    if trials.is_empty() || found(study.attributes()).is_some_and(|known| known.trials == trials) {
        return Ok(());
    }
    let mut runs = Vec::new();
    for trial in &best {
        let hyperparameters = search.space.hyperparameters(&trial.parameters())?;
        let training = Training {
            dataset: search.dataset,
            hyperparameters: &hyperparameters,
            seeds: &[search.seed],
            splits: search.splits,
            patience: search.patience,
            metric: search.metric,
            keep: Keep { probabilities: true, ..Keep::default() },
        };
        let go_on = |_: &crate::Scores| ControlFlow::Continue(());
        runs.push(crate::train(&training, rewirings, search.trainer, watch, &go_on)?);
    }
    let runs: Vec<_> = runs.iter().collect();
    let Some(scores) = Ensemble::of(&runs, search.dataset, search.metric) else { return Ok(()) };
    Ok(study.set_attribute(ENSEMBLE, json!(TrialEnsemble { trials, scores }))?)
}

/// The ensemble of a study, if it has one.
pub(super) fn found(attributes: &BTreeMap<String, Value>) -> Option<TrialEnsemble> {
    serde_json::from_value(attributes.get(ENSEMBLE)?.clone()).ok()
}
