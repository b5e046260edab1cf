//! What figures and the report read from study files.

use std::collections::HashSet;
use std::path::Path;

use qdc_core::{Metric, defaults};
use qdc_lab::table::{Filter, Results, Searched, Table};
use qdc_plot::figures::{TrialPoint, chosen};
use qdc_plot::report::Window;

use super::study::open_existing;
use crate::failure::Failure;
use crate::session::Session;

/// Whether an argument is a folder of `qdc table --write`.
pub(super) fn is_results(input: &str) -> bool {
    Path::new(input).join("table.csv").is_file()
}

/// Whether an argument names studies rather than a graph.
fn is_study(input: &str) -> bool {
    input.ends_with(".db")
        || input.starts_with("sqlite:")
        || input.starts_with("postgres")
        || is_results(input)
}

/// Arguments told apart: graphs, then studies and folders of results.
pub(super) fn sort(inputs: &[String]) -> (Vec<&str>, Vec<&str>) {
    inputs.iter().map(String::as_str).partition(|input| !is_study(input))
}

/// Every finished trial of some studies, and the table they make.
pub(super) struct Studies {
    pub(super) trials: Vec<TrialPoint>,
    pub(super) table: Table,
    /// Whether more than one space was searched, so that a model's name alone does not say which study is meant.
    spaces_differ: bool,
    /// Datasets of study files; a folder of results speaks of models, and stands for itself.
    datasets: Vec<String>,
}

impl Studies {
    /// Reads every study of some files, and folders of results.
    pub(super) fn read(inputs: &[&str], session: &Session) -> Result<Self, Failure> {
        let (folders, files): (Vec<&str>, Vec<&str>) = inputs.iter().partition(|input| is_results(input));
        let (mut searched, mut storages, mut datasets) = (Vec::new(), Vec::new(), Vec::new());
        for file in files {
            let mut storage = open_existing(file, session)?;
            let found = Searched::read(storage.as_mut())?;
            if found.is_empty() {
                return Err(Failure::new(format!(
                    "{file} holds no finished trial with a test score (attribute test_mean)"
                ))
                .hint("figures need studies written by qdc tune".to_owned()));
            }
            datasets.extend(found.iter().map(|trial| trial.dataset.clone()));
            searched.extend(found);
            storages.push(storage);
        }
        let mut table = Table::read(&mut storages, &Filter::default())?;
        for folder in folders {
            let results = Results::read(folder.as_ref())?;
            table = table.merged(results.table);
            searched.extend(results.searched);
        }
        let mut seen = HashSet::new();
        datasets.retain(|name| seen.insert(name.clone()));
        let spaces_differ = searched.iter().any(|trial| trial.space != searched[0].space);
        let mut studies = Self { trials: Vec::new(), table, spaces_differ, datasets };
        studies.trials = searched.iter().map(|trial| studies.point(trial)).collect();
        Ok(studies)
    }

    fn point(&self, trial: &Searched) -> TrialPoint {
        TrialPoint {
            dataset: trial.dataset.clone(),
            model: self.label(&trial.model, &trial.space),
            metric: title(&trial.metric),
            validation: trial.validation,
            test: trial.test,
            mu: trial.mu,
            sigma: trial.sigma,
            epsilon: trial.epsilon,
            diagonal_share: trial.diagonal_share,
        }
    }

    /// What figures call the study of a model in a space.
    pub(super) fn label(&self, model: &str, space: &str) -> String {
        if self.spaces_differ { format!("{model} ({space})") } else { model.to_owned() }
    }

    /// The datasets of the study files, in order of first appearance.
    pub(super) fn datasets(&self) -> &[String] {
        &self.datasets
    }

    /// The trial with a kernel that validation chose on a dataset; one whose network sees nothing but the
    /// kernel, where there is one: beside a second tower the best window is another.
    fn best(&self, dataset: &str) -> Option<&TrialPoint> {
        let here = || self.trials.iter().filter(|trial| trial.dataset == dataset && trial.mu.is_some());
        chosen(here().filter(|trial| !trial.model.contains("multiscale"))).or_else(|| chosen(here()))
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
