//! Trained models on disk, and what they predict.

use std::collections::BTreeMap;
use std::path::Path;

use qdc_core::{Graph, Resources, Watch};
use qdc_data::Dataset;
use qdc_nn::training::predictions;
use qdc_nn::{Learner, Network, Saved};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::architecture::{architecture, inputs};
use crate::hyperparameters::Value;
use crate::rewiring::Rewirings;
use crate::run::Run;
use crate::{Error, Hyperparameters, Model};

/// What stands beside the weights: all that is needed to build the network again.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedConfiguration {
    /// The dataset, as it was named.
    pub dataset: String,
    /// The model.
    pub model: Model,
    /// Its hyper-parameters.
    pub hyperparameters: BTreeMap<String, Value>,
    /// The seed of the run.
    pub seed: u64,
    /// The split the weights come from.
    pub split: usize,
    /// Accuracy there on validation and test vertices.
    pub validation: f64,
    /// Accuracy there on test vertices.
    pub test: f64,
    /// Number of classes.
    pub classes: usize,
    /// The hash of the graph, see [`graph_hash`].
    pub graph: String,
}

/// A hash of the graph: its vertices, edges and weights (SHA-256).
pub fn graph_hash(graph: &Graph) -> String {
    let mut hash = Sha256::new();
    hash.update((graph.nodes() as u64).to_le_bytes());
    for (row, column, weight) in graph.adjacency().iter() {
        hash.update((row as u64).to_le_bytes());
        hash.update(column.to_le_bytes());
        hash.update(weight.to_le_bytes());
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Saves the weights of the split that did best on validation (the first of equals); `None` if no split has weights.
///
/// `named` is what the dataset was called, so that it can be found again.
pub fn save_best(
    path: &Path,
    run: &Run,
    dataset: &Dataset,
    named: &str,
    resources: &Resources,
    watch: &Watch,
) -> Result<Option<SavedConfiguration>, Error> {
    let mut best: Option<usize> = None;
    for at in 0..run.weights.len() {
        let better = |other: usize| run.record.splits[at].validation > run.record.splits[other].validation;
        if run.weights[at].is_some() && best.is_none_or(better) {
            best = Some(at);
        }
    }
    let Some(best) = best else { return Ok(None) };
    let record = &run.record;
    let configuration = SavedConfiguration {
        dataset: named.into(),
        model: record.model.clone(),
        hyperparameters: record.hyperparameters.written(),
        seed: record.seed,
        split: record.splits[best].split,
        validation: record.splits[best].validation,
        test: record.splits[best].test,
        classes: dataset.classes,
        graph: graph_hash(&dataset.graph),
    };
    let mut network = build(&record.hyperparameters, dataset, record.seed, resources, watch)?;
    network.weights_mut().copy_from_slice(run.weights[best].as_ref().expect("chosen because it has them"));
    let text = serde_json::to_string(&configuration).expect("plain data");
    qdc_nn::save(path, &network, &text)?;
    Ok(Some(configuration))
}

fn build(
    values: &Hyperparameters,
    dataset: &Dataset,
    seed: u64,
    resources: &Resources,
    watch: &Watch,
) -> Result<Network<f32>, Error> {
    let rewirings = Rewirings::new(&dataset.graph).with_resources(resources.clone());
    let rewired = rewirings.of_model(values, seed, watch)?;
    let matrices = rewired.into_iter().map(|made| made.matrix).collect();
    let inputs = inputs(dataset, values, matrices)?;
    Ok(Network::new(&architecture(values, dataset.classes), &inputs, seed)?)
}

/// A saved model.
#[derive(Debug)]
pub struct SavedModel {
    path: std::path::PathBuf,
    saved: Saved,
    /// What it is.
    pub configuration: SavedConfiguration,
}

impl SavedModel {
    /// Reads a file that [`save_best`] wrote.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let saved = Saved::open(path)?;
        let configuration = serde_json::from_str(&saved.configuration)
            .map_err(|error| Error::Configuration { path: path.into(), problem: error.to_string() })?;
        Ok(Self { path: path.into(), saved, configuration })
    }

    /// The class of every vertex; `dataset` must be the one it was trained on.
    pub fn predict(
        &self,
        dataset: &Dataset,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<Vec<u32>, Error> {
        let configuration = &self.configuration;
        if graph_hash(&dataset.graph) != configuration.graph || dataset.classes != configuration.classes {
            return Err(Error::OtherGraph { model: self.path.clone(), dataset: dataset.name.clone() });
        }
        let mut values = Hyperparameters::new(configuration.model.clone());
        for (name, value) in &configuration.hyperparameters {
            values.set_value(name, value.clone())?;
        }
        let mut network = build(&values, dataset, configuration.seed, resources, watch)?;
        self.saved.fill(&mut network)?;
        Ok(predictions(&mut network))
    }
}
