//! What figures and the report read from study files.

use qdc_plot::figures::TrialPoint;
use qdc_tune::State;
use serde_json::Value;

use super::study::open_existing;
use crate::failure::Failure;

/// Whether an argument names a study rather than a graph.
pub(super) fn is_study(input: &str) -> bool {
    input.ends_with(".db") || input.starts_with("sqlite:") || input.starts_with("postgres")
}

/// Every finished trial with a test accuracy, of all studies of the files; a study is named `dataset/model`.
pub(super) fn trials<'a>(files: impl Iterator<Item = &'a String>) -> Result<Vec<TrialPoint>, Failure> {
    let mut points = Vec::new();
    for file in files {
        let mut storage = open_existing(file)?;
        let found = points.len();
        for study in storage.studies()? {
            let attribute = |key: &str| study.attributes.get(key).and_then(Value::as_str).map(str::to_owned);
            let (dataset, model) = study.name.split_once('/').unwrap_or((&study.name, "model"));
            let dataset = attribute("dataset").unwrap_or_else(|| dataset.to_owned());
            let model = attribute("model").unwrap_or_else(|| model.to_owned());
            for trial in storage.trials(study.id, -1, &[])? {
                let test = trial.user_attributes.get("test_mean").and_then(Value::as_f64);
                let number = |name: &str| trial.parameter(name).as_ref().and_then(Value::as_f64);
                if let (State::Complete, Some(validation), Some(test)) = (trial.state, trial.value, test) {
                    let (mu, sigma) = (number("mu"), number("sigma"));
                    let (dataset, model) = (dataset.clone(), model.clone());
                    points.push(TrialPoint { dataset, model, validation, test, mu, sigma });
                }
            }
        }
        if points.len() == found {
            return Err(Failure::new(format!(
                "{file} holds no finished trial with a test accuracy (test_mean)"
            ))
            .hint("figures need studies written by qdc tune".to_owned()));
        }
    }
    Ok(points)
}
