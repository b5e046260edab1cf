//! The best trial scored again with several seeds: one seed alone moves the mean by a point and more.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use qdc_core::Watch;
use qdc_tune::Study;
use serde_json::{Value, json};

use super::Search;
use crate::{Error, Keep, Rewirings, Scores, Training};

/// The attribute of a study that holds the scores.
const RESCORED: &str = "rescored";

/// Trains the best trial with every seed, unless that is done already.
pub(super) fn rescore(
    study: &mut Study,
    search: &Search<'_>,
    rewirings: &Rewirings<'_>,
    watch: &Watch,
) -> Result<(), Error> {
    let Some(best) = study.best().cloned() else { return Ok(()) };
    let wanted = search.seeds as usize * search.splits.len();
    if scores(study.attributes(), best.number).is_some_and(|scores| scores.len() == wanted) {
        return Ok(());
    }
    let hyperparameters = search.space.hyperparameters(&best.parameters())?;
    let seeds: Vec<u64> = (0..search.seeds).map(|next| search.seed.wrapping_add(next)).collect();
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
    let value = json!({ "trial": best.number, "scores": run.record.splits });
    Ok(study.set_attribute(RESCORED, value)?)
}

/// The scores of a trial with several seeds, if it has them.
pub(crate) fn scores(attributes: &BTreeMap<String, Value>, trial: u64) -> Option<Vec<Scores>> {
    let rescored = attributes.get(RESCORED).filter(|rescored| rescored["trial"] == json!(trial))?;
    serde_json::from_value(rescored["scores"].clone()).ok()
}
