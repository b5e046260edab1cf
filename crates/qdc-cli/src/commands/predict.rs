//! `qdc predict`: what a saved model says about the graph it was trained on, or about another one.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use qdc_core::{Metric, UNLABELLED};
use qdc_lab::{Fit, Prediction, SavedModel};
use serde::Serialize;

use crate::device_argument::DeviceArgument;
use crate::failure::Failure;
use crate::graph_arguments::EdgeArguments;
use crate::output::{self, Show};
use crate::session::Session;
use crate::units;

/// Predict the class of every vertex with a saved model
///
/// Graph and features must be those the model was trained on; --graph names another graph whose vertices have
/// the same features, over which the kernel is built anew by the same recipe. Scores are given for each set
/// of the split apart.
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// A file written by `qdc train --save`
    #[arg(value_name = "MODELFILE")]
    model: PathBuf,
    /// Another graph with the same features: a dataset, a dataset .npz or a labelled generator
    #[arg(long, value_name = "GRAPH")]
    graph: Option<String>,
    #[command(flatten)]
    edges: EdgeArguments,
    /// Give the probability of every class too
    #[arg(long)]
    probabilities: bool,
    #[command(flatten)]
    device: DeviceArgument,
    /// Write a csv with the columns vertex, predicted, label, set instead of printing it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Predict {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let model = SavedModel::open(&self.model, session.budget())?;
        let name = self.graph.as_ref().unwrap_or(&model.configuration.dataset);
        let dataset = qdc_data::open(name, &session.data_dir(), self.edges.reading())?.into_dataset()?;
        let resources = self.device.resources_of_training(None, session)?;
        let predicted = match self.graph {
            None => model.predict(&dataset, &resources, &session.watch)?,
            Some(_) => model.predict_elsewhere(&dataset, &resources, &session.watch)?,
        };
        let fits = predicted.fit(&dataset.labels, model.configuration.metric);
        let csv = csv(&predicted, &dataset.labels, self.probabilities);
        let here = self.output.is_none();
        let result = Predicted {
            dataset: name.clone(),
            model: model.configuration.model.to_string(),
            split: model.configuration.split,
            nodes: dataset.labels.len(),
            class_names: model.configuration.class_names.clone(),
            metric: model.configuration.metric,
            accuracy: fits.iter().map(|(&set, fit)| (set, fit.accuracy)).collect(),
            fits,
            output: self.output.as_ref().map(|path| path.display().to_string()),
            predictions: here.then(|| predicted.classes()),
            probabilities: (here && self.probabilities).then(|| predicted.probabilities()),
            peak_memory_bytes: units::peak_memory(),
            csv: csv.clone(),
        };
        if let Some(path) = &self.output {
            output::write_file(path, csv.as_bytes())?;
        }
        session.show(&result)
    }
}

fn csv(predicted: &Prediction, labels: &[u32], probabilities: bool) -> String {
    let mut csv = String::from("vertex,predicted,label,set");
    let shares = if probabilities { predicted.probabilities() } else { Vec::new() };
    let classes = shares.first().map_or(0, Vec::len);
    (0..classes).for_each(|class| csv.push_str(&format!(",probability_{class}")));
    csv.push('\n');
    for (vertex, (class, &label)) in predicted.classes().iter().zip(labels).enumerate() {
        let label = if label == UNLABELLED { -1 } else { i64::from(label) };
        let set = predicted.sets.as_ref().map_or("", |sets| sets[vertex].name());
        let _ = write!(csv, "{vertex},{class},{label},{set}");
        shares.get(vertex).into_iter().flatten().for_each(|share| csv.push_str(&format!(",{share}")));
        csv.push('\n');
    }
    csv
}

#[derive(Serialize)]
struct Predicted {
    dataset: String,
    model: String,
    split: usize,
    nodes: usize,
    class_names: Vec<String>,
    metric: Metric,
    /// By set: train, validation, test, rest; `all` on a graph the model was not trained on.
    accuracy: BTreeMap<&'static str, Option<f64>>,
    #[serde(rename = "scores")]
    fits: BTreeMap<&'static str, Fit>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<u32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    probabilities: Option<Vec<Vec<f64>>>,
    peak_memory_bytes: Option<u64>,
    #[serde(skip)]
    csv: String,
}

impl Show for Predicted {
    fn text(&self) -> String {
        let Some(output) = &self.output else { return self.csv.clone() };
        let mut text = format!(
            "{} vertices of {} classified by {} (split {}); written to {output}\n",
            self.nodes, self.dataset, self.model, self.split
        );
        for (set, fit) in &self.fits {
            let percent =
                |score: Option<f64>| score.map_or("-".into(), |score| format!("{:.2} %", 100.0 * score));
            let _ =
                write!(text, "  {set:<10} {:>6} vertices, accuracy {}", fit.vertices, percent(fit.accuracy));
            if self.metric != Metric::Accuracy {
                let _ = write!(text, ", {} {}", self.metric.title(), percent(fit.score));
            }
            text.push('\n');
        }
        text
    }
}
