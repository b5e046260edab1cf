//! Trained models on disk, and what they predict: on the graph they were trained on, or on another one with
//! the same features.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qdc_core::{Graph, Metric, Recipe, Resources, Split, Watch};
use qdc_data::output::write_file;
use qdc_data::{Budget, Dataset, hexadecimal, read_file};
use qdc_nn::{Cpu, Matrix, Saved, Scorer, defined_on, predicted, probabilities};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::bank::vertex_channel;
use crate::experiment::features_hash;
use crate::hyperparameters::Value;
use crate::prepared::Prepared;
use crate::rewiring::recipes;
use crate::rewirings::Rewirings;
use crate::run::Run;
use crate::{Error, Hyperparameters, Model};

/// What stands beside the weights: all that is needed to build the network again, on its own graph or on
/// another.
///
/// Fields that files of older versions lack are optional.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SavedConfiguration {
    /// The dataset, as it was named.
    pub dataset: String,
    /// The model.
    pub model: Model,
    /// Its hyper-parameters, those of every tower's kernel among them.
    pub hyperparameters: BTreeMap<String, Value>,
    /// The recipe of each tower's kernel; none where a tower has none, and in files of older versions.
    #[serde(default)]
    pub recipes: Vec<Option<Recipe>>,
    /// The seed it was trained with.
    pub seed: u64,
    /// The split the weights come from.
    pub split: usize,
    /// What the scores are measured by.
    #[serde(default)]
    pub metric: Metric,
    /// The score there on validation vertices.
    pub validation: f64,
    /// The score there on test vertices.
    pub test: f64,
    /// Number of classes.
    pub classes: usize,
    /// The names of the classes; their numbers where the dataset has no names.
    #[serde(default)]
    pub class_names: Vec<String>,
    /// Features of a vertex.
    #[serde(default)]
    pub feature_columns: Option<usize>,
    /// The hash of the features.
    #[serde(default)]
    pub features: Option<String>,
    /// The hash of the graph, see [`graph_hash`].
    pub graph: String,
    /// A letter for each vertex: the [`VertexSet`] it was in.
    #[serde(default)]
    pub sets: Option<String>,
}

/// What a vertex was in training.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum VertexSet {
    /// Trained on.
    Train,
    /// It decided when to stop.
    Validation,
    /// Scored.
    Test,
    /// In no set of the split.
    Rest,
}

impl VertexSet {
    const ALL: [Self; 4] = [Self::Train, Self::Validation, Self::Test, Self::Rest];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Validation => "validation",
            Self::Test => "test",
            Self::Rest => "rest",
        }
    }

    fn letter(self) -> char {
        match self {
            Self::Train => 't',
            Self::Validation => 'v',
            Self::Test => 's',
            Self::Rest => '-',
        }
    }

    fn of_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|set| set.letter() == letter)
    }
}

/// The set of each vertex in a split.
fn sets_of(split: &Split, nodes: usize) -> Vec<VertexSet> {
    let mut sets = vec![VertexSet::Rest; nodes];
    for (set, vertices) in [
        (VertexSet::Train, split.train()),
        (VertexSet::Validation, split.validation()),
        (VertexSet::Test, split.test()),
    ] {
        vertices.iter().for_each(|&vertex| sets[vertex as usize] = set);
    }
    sets
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
    hexadecimal(&hash.finalize())
}

/// Saves the weights of the split that did best on validation (the first of equals); `None` if no split has
/// weights.
///
/// `named` is what the dataset was called, so that it can be found again.
///
/// # Errors
/// If the file cannot be written.
pub fn save_best(
    path: &Path,
    run: &Run,
    dataset: &Dataset,
    named: &str,
) -> Result<Option<SavedConfiguration>, Error> {
    let best = run.best_split(|at| run.weights[at].is_some());
    let (Some(best), Some(network)) = (best, &run.network) else { return Ok(None) };
    let (record, scores) = (&run.record, &run.record.splits[best]);
    let sets = sets_of(&dataset.splits[scores.split], dataset.graph.nodes());
    let configuration = SavedConfiguration {
        dataset: named.into(),
        model: record.model.clone(),
        hyperparameters: record.hyperparameters.written(),
        recipes: recipes(&record.hyperparameters),
        seed: scores.seed,
        split: scores.split,
        metric: record.metric,
        validation: scores.validation,
        test: scores.test,
        classes: dataset.classes,
        class_names: (0..dataset.classes).map(|class| class.to_string()).collect(),
        feature_columns: Some(dataset.features.columns()),
        features: Some(features_hash(&dataset.features)),
        graph: graph_hash(&dataset.graph),
        sets: Some(sets.into_iter().map(VertexSet::letter).collect()),
    };
    let weights = run.weights[best].as_ref().expect("chosen because it has them");
    let bytes = network.to_bytes(weights, &serde_json::to_string(&configuration).expect("plain data"))?;
    write_file(path, |file| file.write_all(&bytes))?;
    Ok(Some(configuration))
}

/// What a model says about a graph.
#[derive(Clone, Debug, PartialEq)]
pub struct Prediction {
    logits: Matrix<f32>,
    /// The set of every vertex in the split the model was trained on; nothing on another graph, of which no
    /// vertex was trained on, and for files that do not know.
    pub sets: Option<Vec<VertexSet>>,
}

/// How well a prediction fits the labels of some vertices. A score that is not defined there is missing.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Fit {
    /// Vertices with a label.
    pub vertices: usize,
    /// The share classified rightly.
    pub accuracy: Option<f64>,
    /// The score by the metric of the model.
    pub score: Option<f64>,
}

impl Prediction {
    /// The most probable class of every vertex.
    pub fn classes(&self) -> Vec<u32> {
        (0..self.logits.rows()).map(|vertex| predicted(&self.logits, vertex)).collect()
    }

    /// The probability of every class, vertex by vertex.
    pub fn probabilities(&self) -> Vec<Vec<f64>> {
        (0..self.logits.rows()).map(|vertex| probabilities(&self.logits, vertex)).collect()
    }

    /// How well it fits `labels` in each set that has labelled vertices; on another graph all vertices stand
    /// under `all`.
    pub fn fit(&self, labels: &[u32], metric: Metric) -> BTreeMap<&'static str, Fit> {
        let classes = self.logits.width().columns();
        let set_of = |vertex: usize| self.sets.as_ref().map_or("all", |sets| sets[vertex].name());
        let mut members: BTreeMap<&'static str, Vec<u32>> = BTreeMap::new();
        for vertex in (0..labels.len()).filter(|&vertex| (labels[vertex] as usize) < classes) {
            members.entry(set_of(vertex)).or_default().push(vertex as u32);
        }
        let score = |metric: Metric, vertices: &[u32]| {
            defined_on(metric, labels, vertices)
                .then(|| Scorer::new(metric).score(&self.logits, labels, vertices))
        };
        let fit = |vertices: Vec<u32>| Fit {
            vertices: vertices.len(),
            accuracy: score(Metric::Accuracy, &vertices),
            score: score(metric, &vertices),
        };
        members.into_iter().map(|(set, vertices)| (set, fit(vertices))).collect()
    }
}

/// What a byte of the header may take once it is read: the shortest entry of a tensor has 50 bytes and
/// becomes two entries of tables and three lists.
const HEADER_PARSED: u64 = 16;

/// A saved model.
#[derive(Debug)]
pub struct SavedModel {
    path: PathBuf,
    saved: Saved,
    /// What it is.
    pub configuration: SavedConfiguration,
}

impl SavedModel {
    /// Reads a file that [`save_best`] wrote.
    ///
    /// # Errors
    /// If it cannot be read within `budget`, or is not such a file.
    pub fn open(path: &Path, budget: Budget) -> Result<Self, Error> {
        Self::from_bytes(path, &read_file(path, budget)?, budget)
    }

    /// Reads the content of such a file; `path` names it in errors.
    ///
    /// # Errors
    /// If it is not such a file, or would take more memory than `budget`.
    pub fn from_bytes(path: &Path, bytes: &[u8], budget: Budget) -> Result<Self, Error> {
        let header = bytes.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
        let header = header.min(bytes.len() as u64);
        // The file, its weights once more, and its header as names, shapes and values.
        budget.allow(path, "the model", 2 * bytes.len() as u64 + HEADER_PARSED * header)?;
        let saved = Saved::from_bytes(path, bytes)?;
        let wrong = |problem: String| Error::Configuration { path: path.into(), problem };
        let configuration: SavedConfiguration =
            serde_json::from_str(&saved.configuration).map_err(|error| wrong(error.to_string()))?;
        if u32::try_from(configuration.classes).is_err() {
            return Err(wrong(format!("{} are no number of classes", configuration.classes)));
        }
        Ok(Self { path: path.into(), saved, configuration })
    }

    /// What the model says about the dataset it was trained on.
    ///
    /// # Errors
    /// If graph, features or classes are others now.
    pub fn predict(
        &self,
        dataset: &Dataset,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<Prediction, Error> {
        let configuration = &self.configuration;
        let (model, name) = (self.path.clone(), dataset.name.clone());
        if graph_hash(&dataset.graph) != configuration.graph || dataset.classes != configuration.classes {
            return Err(Error::OtherGraph { model, dataset: name });
        }
        if configuration.features.as_ref().is_some_and(|hash| *hash != features_hash(&dataset.features)) {
            return Err(Error::OtherFeatures { model, dataset: name });
        }
        let sets = match &configuration.sets {
            Some(letters) => letters.chars().map(VertexSet::of_letter).collect(),
            None => {
                dataset.splits.get(configuration.split).map(|split| sets_of(split, dataset.graph.nodes()))
            }
        };
        let sets = sets.filter(|sets: &Vec<VertexSet>| sets.len() == dataset.graph.nodes());
        Ok(Prediction { sets, ..self.run(dataset, resources, watch)? })
    }

    /// What the model says about another graph whose vertices have the same features: every tower's matrix, and
    /// every channel of a bank, is made anew by the same recipe.
    ///
    /// # Errors
    /// If vertices have another number of features there, there are more classes than the model knows, or the
    /// model learnt from something that belongs to the vertices of its own graph, such as adjacency rows.
    pub fn predict_elsewhere(
        &self,
        dataset: &Dataset,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<Prediction, Error> {
        let (model, name) = (self.path.clone(), dataset.name.clone());
        let found = dataset.features.columns();
        match self.configuration.feature_columns {
            Some(expected) if expected != found => {
                return Err(Error::OtherFeatureColumns { model, dataset: name, expected, found });
            }
            _ => {}
        }
        if dataset.classes > self.configuration.classes {
            let (known, found) = (self.configuration.classes, dataset.classes);
            return Err(Error::MoreClasses { model, dataset: name, known, found });
        }
        if let Some(channel) = vertex_channel(&self.hyperparameters()?)? {
            return Err(Error::VertexChannel { model, dataset: name, channel: channel.to_string() });
        }
        self.run(dataset, resources, watch)
    }

    fn hyperparameters(&self) -> Result<Hyperparameters, Error> {
        let mut values = Hyperparameters::new(self.configuration.model.clone());
        for (name, value) in &self.configuration.hyperparameters {
            // What is wrong stands in the file; nobody typed it.
            values.set_value(name, value.clone()).map_err(|error| Error::Configuration {
                path: self.path.clone(),
                problem: error.to_string(),
            })?;
        }
        Ok(values)
    }

    fn run(&self, dataset: &Dataset, resources: &Resources, watch: &Watch) -> Result<Prediction, Error> {
        let values = self.hyperparameters()?;
        let stored = &self.configuration.recipes;
        if !stored.is_empty() && *stored != recipes(&values) {
            let problem = "its kernels are not those of its hyper-parameters".to_owned();
            return Err(Error::Configuration { path: self.path.clone(), problem });
        }
        let rewirings = Rewirings::new(dataset).with_resources(resources.clone());
        let SavedConfiguration { classes, seed, .. } = self.configuration;
        let ready = Prepared::ready(&values, dataset, classes, &rewirings, seed, None, 1, 0, &Cpu, watch)?;
        Ok(Prediction { logits: ready.prepared.predict(&self.saved)?, sets: None })
    }
}
