//! What figures of studies draw: finished trials.

use std::fmt::Write;

use crate::numbers::field;

/// One finished trial of a study.
#[derive(Clone, Debug, serde::Serialize)]
pub struct TrialPoint {
    /// The dataset.
    pub dataset: String,
    /// The model.
    pub model: String,
    /// What was measured, as an axis names it: `accuracy`, `ROC-AUC`.
    pub metric: String,
    /// What the search saw and chose by: the mean score on validation vertices.
    pub validation: f64,
    /// The mean score on test vertices over the splits, a fraction.
    pub test: f64,
    /// Centre of the filter, for models that have one.
    pub mu: Option<f64>,
    /// Width of the filter, for models that have one.
    pub sigma: Option<f64>,
    /// Threshold of the kernel, for models that have one.
    pub epsilon: Option<f64>,
    /// The share of the diagonal in what the kernel keeps, where it was recorded.
    pub diagonal_share: Option<f64>,
}

/// The trial a search would choose: the best on validation, of equals the first.
pub fn chosen<'a>(trials: impl IntoIterator<Item = &'a TrialPoint>) -> Option<&'a TrialPoint> {
    trials.into_iter().fold(None, |best: Option<&TrialPoint>, trial| match best {
        Some(best) if best.validation >= trial.validation => Some(best),
        _ => Some(trial),
    })
}

/// Names in order of first appearance.
pub(super) fn names<'a>(items: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    for name in items {
        if !found.iter().any(|known| known == name) {
            found.push(name.to_owned());
        }
    }
    found
}

/// The range of some values, with a margin.
pub(super) fn range(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (low, high) = values.fold((f64::MAX, f64::MIN), |(a, b), v| (a.min(v), b.max(v)));
    let pad = if high > low { 0.06 * (high - low) } else { 0.05 };
    (low - pad, high + pad)
}

/// What the axis of the test scores says; trials that are shown together are of one study, and have one
/// metric.
pub(super) fn test_axis(trials: &[&TrialPoint]) -> String {
    format!("test {} (%)", trials.first().map_or("score", |trial| &trial.metric))
}

/// The trials as csv.
pub(super) fn csv<'a>(trials: impl IntoIterator<Item = &'a TrialPoint>) -> String {
    let mut text = String::from("dataset,model,metric,validation,test,mu,sigma,epsilon,diagonal_share\n");
    let number = |value: Option<f64>| value.map_or(String::new(), |value| value.to_string());
    for trial in trials {
        let TrialPoint { dataset, model, validation, test, .. } = trial;
        let [mu, sigma, epsilon] = [trial.mu, trial.sigma, trial.epsilon].map(number);
        let diagonal = number(trial.diagonal_share);
        let [dataset, model, metric] = [dataset, model, &trial.metric].map(|text| field(text));
        let _ = writeln!(
            text,
            "{dataset},{model},{metric},{validation},{test},{mu},{sigma},{epsilon},{diagonal}"
        );
    }
    text
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// A trial whose validation is 1 - test.
    pub(crate) fn trial(model: &str, test: f64, mu: Option<f64>) -> TrialPoint {
        let sigma = mu.map(|_| 0.2);
        let (dataset, model) = ("cornell".into(), model.into());
        TrialPoint {
            dataset,
            model,
            metric: "accuracy".into(),
            validation: 1.0 - test,
            test,
            mu,
            sigma,
            epsilon: None,
            diagonal_share: None,
        }
    }

    #[test]
    fn the_chosen_trial_is_the_best_on_validation_not_on_test() {
        let trials = [trial("gcn", 0.9, None), trial("gcn", 0.5, None), trial("gcn", 0.7, None)];
        assert_eq!(chosen(&trials).unwrap().test, 0.5);
        assert!(chosen(&[]).is_none());
    }

    #[test]
    fn a_dataset_whose_name_has_commas_is_one_column_of_the_csv() {
        let named = TrialPoint { dataset: "csbm:n=60,seed=1".into(), ..trial("gcn", 0.5, None) };
        assert!(csv(&[named]).contains("\n\"csbm:n=60,seed=1\",gcn,accuracy,0.5,0.5,,,,\n"));
    }
}
