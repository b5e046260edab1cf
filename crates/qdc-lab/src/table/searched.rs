//! What the trials of a search came to: the points of the figures.

use qdc_tune::storage::{Storage, StudyRecord};
use qdc_tune::{State, Trial};
use serde_json::Value;

use crate::Error;

/// A finished trial with a test score.
#[derive(Debug, Clone, PartialEq)]
pub struct Searched {
    /// The dataset.
    pub dataset: String,
    /// The model.
    pub model: String,
    /// The search space.
    pub space: String,
    /// What the scores are measured by.
    pub metric: String,
    /// Mean validation score.
    pub validation: f64,
    /// Mean test score.
    pub test: f64,
    /// The centre of its window, if it has one.
    pub mu: Option<f64>,
    /// The width of its window.
    pub sigma: Option<f64>,
    /// The threshold of its kernel.
    pub epsilon: Option<f64>,
    /// The share of the diagonal in its kernel.
    pub diagonal_share: Option<f64>,
}

impl Searched {
    /// The finished trials of every study of a storage.
    ///
    /// # Errors
    /// If the storage cannot be read.
    pub fn read(storage: &mut dyn Storage) -> Result<Vec<Self>, Error> {
        let mut found = Vec::new();
        for study in storage.studies()? {
            let trials = storage.trials(study.id, -1, &[])?;
            found.extend(Self::of_study(&study, &trials));
        }
        Ok(found)
    }

    /// Those of one study; a study of another program, without our attributes, is named `dataset/model`.
    pub(super) fn of_study(study: &StudyRecord, trials: &[Trial]) -> Vec<Self> {
        let attribute = |key: &str| study.attributes.get(key).and_then(Value::as_str).map(str::to_owned);
        let (dataset, model) = study.name.split_once('/').unwrap_or((&study.name, "model"));
        let dataset = attribute("dataset").unwrap_or_else(|| dataset.to_owned());
        let model = attribute("model").unwrap_or_else(|| model.to_owned());
        let (space, metric) =
            (attribute("space").unwrap_or_default(), attribute("metric").unwrap_or_default());
        let point = |trial: &Trial| {
            let test = trial.user_attributes.get("test_mean").and_then(Value::as_f64);
            let (State::Complete, Some(validation), Some(test)) = (trial.state, trial.value, test) else {
                return None;
            };
            let number = |name: &str| trial.parameter(name).as_ref().and_then(Value::as_f64);
            let kernel = trial.user_attributes.get("kernel");
            Some(Self {
                dataset: dataset.clone(),
                model: model.clone(),
                space: space.clone(),
                metric: metric.clone(),
                validation,
                test,
                mu: number("mu"),
                sigma: number("sigma"),
                epsilon: number("epsilon"),
                diagonal_share: kernel.and_then(|kernel| kernel["diagonal_share"].as_f64()),
            })
        };
        trials.iter().filter_map(point).collect()
    }
}
