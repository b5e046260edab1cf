//! `qdc predict`: what a saved model says about the graph it was trained on.

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use qdc_lab::SavedModel;
use serde::Serialize;

use crate::failure::Failure;
use crate::graph_arguments::EdgeArguments;
use crate::output::{self, Show};
use crate::session::Session;

/// Predict the class of every vertex with a saved model
#[derive(Debug, Args)]
pub(crate) struct Predict {
    /// A file written by `qdc train --save`
    #[arg(value_name = "MODELFILE")]
    model: PathBuf,
    #[command(flatten)]
    edges: EdgeArguments,
    /// Write a csv with the columns vertex, predicted, label instead of printing it
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

impl Predict {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let model = SavedModel::open(&self.model)?;
        let name = &model.configuration.dataset;
        let dataset = qdc_data::open(name, &session.data_dir(), self.edges.reading())?.into_dataset()?;
        let predicted = model.predict(&dataset, &session.resources(), &session.watch)?;
        let right = predicted.iter().zip(&dataset.labels).filter(|(a, b)| a == b).count();
        let result = Prediction {
            dataset: name.clone(),
            model: model.configuration.model.to_string(),
            split: model.configuration.split,
            nodes: predicted.len(),
            accuracy: right as f64 / predicted.len().max(1) as f64,
            output: self.output.as_ref().map(|path| path.display().to_string()),
            predictions: if self.output.is_none() { Some(predicted.clone()) } else { None },
            labels: dataset.labels.clone(),
        };
        if let Some(path) = &self.output {
            output::write_file(path, csv(&predicted, &dataset.labels).as_bytes())?;
        }
        session.show(&result)
    }
}

fn csv(predicted: &[u32], labels: &[u32]) -> String {
    let mut csv = String::from("vertex,predicted,label\n");
    for (vertex, (predicted, label)) in predicted.iter().zip(labels).enumerate() {
        let _ = writeln!(csv, "{vertex},{predicted},{label}");
    }
    csv
}

#[derive(Serialize)]
struct Prediction {
    dataset: String,
    model: String,
    split: usize,
    nodes: usize,
    /// Over all vertices, those trained on included.
    accuracy: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    predictions: Option<Vec<u32>>,
    #[serde(skip)]
    labels: Vec<u32>,
}

impl Show for Prediction {
    fn text(&self) -> String {
        match (&self.output, &self.predictions) {
            (None, Some(predictions)) => csv(predictions, &self.labels),
            (output, _) => format!(
                "{} vertices of {} classified by {} (split {}): {:.2} % right, training vertices included{}\n",
                self.nodes,
                self.dataset,
                self.model,
                self.split,
                100.0 * self.accuracy,
                output.as_ref().map(|path| format!("; written to {path}")).unwrap_or_default()
            ),
        }
    }
}
