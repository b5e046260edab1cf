//! What figures and the report read from study files.

use qdc_core::{Metric, defaults};
use qdc_lab::table::{Filter, Table};
use qdc_plot::figures::{TrialPoint, chosen};
use qdc_plot::report::Window;
use qdc_tune::State;
use qdc_tune::storage::Storage;
use serde_json::Value;

use super::study::open_existing;
use crate::failure::Failure;
use crate::session::Session;

/// Whether an argument names a study rather than a graph.
pub(super) fn is_study(input: &str) -> bool {
    input.ends_with(".db") || input.starts_with("sqlite:") || input.starts_with("postgres")
}

/// Arguments told apart: graphs, then studies.
pub(super) fn sort(inputs: &[String]) -> (Vec<&str>, Vec<&str>) {
    inputs.iter().map(String::as_str).partition(|input| !is_study(input))
}

/// Every finished trial of some study files, and the table they make.
pub(super) struct Studies {
    pub(super) trials: Vec<TrialPoint>,
    pub(super) table: Table,
}

impl Studies {
    /// Reads every study of the files; a study without attributes of ours is named `dataset/model`.
    pub(super) fn read(files: &[&str], session: &Session) -> Result<Self, Failure> {
        let mut trials = Vec::new();
        let mut storages = Vec::new();
        for file in files {
            let mut storage = open_existing(file, session)?;
            let found = read_trials(storage.as_mut())?;
            if found.is_empty() {
                return Err(Failure::new(format!(
                    "{file} holds no finished trial with a test score (attribute test_mean)"
                ))
                .hint("figures need studies written by qdc tune".to_owned()));
            }
            trials.extend(found);
            storages.push(storage);
        }
        Ok(Self { trials, table: Table::read(&mut storages, &Filter::default())? })
    }

    /// The datasets, in order of first appearance.
    pub(super) fn datasets(&self) -> Vec<&str> {
        let mut names: Vec<&str> = Vec::new();
        for trial in &self.trials {
            if !names.contains(&trial.dataset.as_str()) {
                names.push(&trial.dataset);
            }
        }
        names
    }

    /// The trial with a kernel that validation chose on a dataset; one whose network sees nothing but the
    /// kernel, where there is one: beside a second tower the best window is another.
    fn best(&self, dataset: &str) -> Option<&TrialPoint> {
        let here = || self.trials.iter().filter(|trial| trial.dataset == dataset && trial.mu.is_some());
        chosen(here().filter(|trial| !trial.model.ends_with("multiscale"))).or_else(|| chosen(here()))
    }

    /// The centre of the window that validation chose.
    pub(super) fn best_mu(&self, dataset: &str) -> Option<f64> {
        self.best(dataset).and_then(|trial| trial.mu)
    }

    /// The kernel that validation chose.
    pub(super) fn best_window(&self, dataset: &str) -> Option<Window> {
        let TrialPoint { mu: Some(mu), sigma: Some(sigma), epsilon, .. } = *self.best(dataset)? else {
            return None;
        };
        Some(Window { mu, sigma, epsilon: epsilon.unwrap_or(defaults::EPSILON) })
    }
}

/// What an axis calls the metric of this name; studies of other programs do not name theirs, which is the
/// accuracy.
pub(super) fn title(metric: &str) -> String {
    metric.parse().unwrap_or(Metric::Accuracy).title().to_owned()
}

/// Finished trials with a test score.
fn read_trials(storage: &mut dyn Storage) -> Result<Vec<TrialPoint>, Failure> {
    let mut points = Vec::new();
    for study in storage.studies()? {
        let attribute = |key: &str| study.attributes.get(key).and_then(Value::as_str).map(str::to_owned);
        let (dataset, model) = study.name.split_once('/').unwrap_or((&study.name, "model"));
        let dataset = attribute("dataset").unwrap_or_else(|| dataset.to_owned());
        let model = attribute("model").unwrap_or_else(|| model.to_owned());
        let metric = title(&attribute("metric").unwrap_or_default());
        for trial in storage.trials(study.id, -1, &[])? {
            let test = trial.user_attributes.get("test_mean").and_then(Value::as_f64);
            let (State::Complete, Some(validation), Some(test)) = (trial.state, trial.value, test) else {
                continue;
            };
            let number = |name: &str| trial.parameter(name).as_ref().and_then(Value::as_f64);
            let kernel = trial.user_attributes.get("kernel");
            points.push(TrialPoint {
                dataset: dataset.clone(),
                model: model.clone(),
                metric: metric.clone(),
                validation,
                test,
                mu: number("mu"),
                sigma: number("sigma"),
                epsilon: number("epsilon"),
                diagonal_share: kernel
                    .and_then(|kernel| kernel.get("diagonal_share"))
                    .and_then(Value::as_f64),
            });
        }
    }
    Ok(points)
}
