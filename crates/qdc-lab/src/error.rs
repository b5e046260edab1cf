//! What can go wrong in an experiment, and what to do about it.

/// An error of an experiment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No model has this name.
    #[error("there is no model '{name}'")]
    UnknownModel {
        /// What was typed.
        name: String,
        /// The names there are, the closest first.
        known: Vec<String>,
    },

    /// Towers that make no model.
    #[error("this model cannot be built: {problem}")]
    Model {
        /// What is wrong with it.
        problem: String,
    },

    /// No hyper-parameter has this name.
    #[error("there is no hyper-parameter '{name}'")]
    UnknownHyperparameter {
        /// What was typed.
        name: String,
        /// The names there are, the closest first.
        known: Vec<String>,
    },

    /// The hyper-parameter belongs to other models.
    #[error("{model} has no hyper-parameter '{name}'")]
    NotOfThisModel {
        /// The name.
        name: String,
        /// The model.
        model: String,
        /// The names it has, the closest first.
        known: Vec<String>,
    },

    /// A value lies outside its range.
    #[error("{name} = {value}: it must be {requirement}")]
    HyperparameterValue {
        /// The hyper-parameter.
        name: String,
        /// What was given.
        value: String,
        /// What it must be.
        requirement: String,
    },

    /// There is no such split.
    #[error("there is no split {split}: {dataset} has {splits}")]
    NoSuchSplit {
        /// The split.
        split: usize,
        /// The dataset.
        dataset: String,
        /// Number of splits.
        splits: usize,
    },

    /// A saved model was trained on another graph.
    #[error("{model} was trained on another graph than {dataset} is now")]
    OtherGraph {
        /// The saved model's file.
        model: std::path::PathBuf,
        /// The dataset.
        dataset: String,
    },

    /// A saved model was trained with other features.
    #[error("{model} was trained with other features than {dataset} has now")]
    OtherFeatures {
        /// The saved model's file.
        model: std::path::PathBuf,
        /// The dataset.
        dataset: String,
    },

    /// A saved model knows vertices by another number of features.
    #[error("{model} was trained with {expected} features for each vertex; {dataset} has {found}")]
    OtherFeatureColumns {
        /// The saved model's file.
        model: std::path::PathBuf,
        /// The dataset.
        dataset: String,
        /// What it was trained with.
        expected: usize,
        /// What there is.
        found: usize,
    },

    /// A graph has classes that a saved model does not know.
    #[error("{model} knows {known} classes; {dataset} has {found}")]
    MoreClasses {
        /// The saved model's file.
        model: std::path::PathBuf,
        /// The dataset.
        dataset: String,
        /// Classes of the model.
        known: usize,
        /// Classes of the dataset.
        found: usize,
    },

    /// A saved model learnt from what belongs to the vertices of its own graph.
    #[error(
        "{model} learnt from {channel}, which mean something only for the vertices it was trained on: it says nothing \
         about {dataset}"
    )]
    VertexChannel {
        /// The saved model's file.
        model: std::path::PathBuf,
        /// The dataset.
        dataset: String,
        /// The channel.
        channel: String,
    },

    /// A file holds no filter.
    #[error("{path} holds no filter: {problem}")]
    FilterFile {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// A configuration, a saved model's or that of a run, cannot be used.
    #[error("{path} is no configuration of this program: {problem}")]
    Configuration {
        /// The file.
        path: std::path::PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// A trial cannot be trained again.
    #[error("{storage}: {problem}")]
    Trial {
        /// The study.
        storage: String,
        /// Why not.
        problem: String,
    },

    /// The dataset is not the one a study was made with.
    #[error(
        "the {part} of {dataset} are not those the study was made with: they had hash {was}, and now have {now}"
    )]
    OtherData {
        /// The dataset.
        dataset: String,
        /// What differs.
        part: String,
        /// The hash it had.
        was: String,
        /// The hash it has.
        now: String,
    },

    /// A search space cannot be used.
    #[error("search space {name}: {problem}")]
    SearchSpace {
        /// The space's name or file.
        name: String,
        /// What is wrong with it.
        problem: String,
    },

    /// A search cannot begin at a point.
    #[error("a search of the space {space} cannot begin there: {problem}")]
    StartingPoint {
        /// The space's name or file.
        space: String,
        /// What is wrong with the point.
        problem: String,
    },

    /// A study belongs to another experiment.
    #[error("study '{study}' was begun with {part} {was}, and this is {part} {now}")]
    OtherExperiment {
        /// The study.
        study: String,
        /// What differs.
        part: String,
        /// What it was.
        was: String,
        /// What it is now.
        now: String,
    },

    /// A study of an earlier version, which did not write down what decides its results.
    #[error(
        "study '{study}' does not say what it was begun with (hashes of the data, schedule, pruning): it can be listed \
         and tabled, but not continued"
    )]
    NoRecord {
        /// The study.
        study: String,
    },

    /// The model is not trained in mini-batches.
    #[error("{model} is not trained in mini-batches: its channels are made for all vertices at once")]
    NoBatches {
        /// The model.
        model: String,
    },

    /// Attention would weigh more entries of a matrix than the search allows.
    #[error("attention would weigh more than {limit} entries")]
    AttentionLimit {
        /// The most that are allowed.
        limit: usize,
    },

    /// A kernel from a file cannot be used.
    #[error("this kernel cannot be trained over: {problem}")]
    GivenKernel {
        /// Why not.
        problem: String,
    },

    /// A run would take too much memory.
    #[error(
        "this needs {} {} MB of memory, and {} MB are allowed",
        if *at_least { "at least" } else { "about" },
        needed.div_ceil(1_000_000),
        limit / 1_000_000
    )]
    OverMemory {
        /// What it would take, in bytes.
        needed: u64,
        /// What it may take.
        limit: u64,
        /// Whether only a part of it is counted.
        at_least: bool,
    },

    /// The workers of a search cannot go on.
    #[error("{problem}")]
    LostWorker {
        /// What became of them.
        problem: String,
    },

    /// An error of a search or its files.
    #[error(transparent)]
    Tune(#[from] qdc_tune::Error),

    /// An error of a network or its training.
    #[error(transparent)]
    Network(#[from] qdc_nn::Error),

    /// An error of the data.
    #[error(transparent)]
    Data(#[from] qdc_data::Error),

    /// An error of the core, an interruption among them.
    #[error(transparent)]
    Core(#[from] qdc_core::Error),
}

impl Error {
    /// What the user can do about it, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::UnknownModel { known, .. }
            | Self::UnknownHyperparameter { known, .. }
            | Self::NotOfThisModel { known, .. } => Some(format!("known: {}", known.join(", "))),
            Self::NoSuchSplit { splits: 0, .. } => Some("make some with --split 48/32/20".into()),
            Self::NoSuchSplit { splits, .. } => Some(format!("splits count from 0 to {}", splits - 1)),
            Self::OtherGraph { .. } => Some(
                "name the graph with --graph to predict on another one than the model was trained on".into(),
            ),
            Self::OtherFeatures { .. } => {
                Some("restore the features, or train again; --graph predicts without this check".into())
            }
            Self::OtherFeatureColumns { .. } => {
                Some("give vertices the features, in the order, the model was trained with".into())
            }
            Self::MoreClasses { .. } => {
                Some("number the classes as in training; -1 stands for a vertex without a label".into())
            }
            Self::VertexChannel { .. } => {
                Some("train with --preset ends, ends-dropout, ends-knn or plain to predict on other graphs".into())
            }
            Self::FilterFile { .. } => Some(
                "qdc train --model window --save-filter FILE.toml writes one: a table [filter] with name, mu and sigma"
                    .into(),
            ),
            Self::OtherExperiment { .. } | Self::NoRecord { .. } => {
                Some("--study-name NAME keeps another study in the same file".into())
            }
            Self::Trial { .. } => Some("--study-name names one study of the file, --trial one trial".into()),
            Self::OverMemory { at_least: true, .. } => {
                Some("give it more with --memory, or take fewer pairs".into())
            }
            Self::OverMemory { needed, .. } => Some(format!(
                "--memory {}MB allows it; fewer heads, layers or hidden columns, or a larger epsilon, need less",
                needed.div_ceil(1_000_000)
            )),
            Self::GivenKernel { .. } => Some(
                "give a kernel that qdc kernel made of the same graph, and a model with one, such as gcn+qdc".into(),
            ),
            Self::AttentionLimit { .. } => Some("a larger epsilon keeps fewer entries".into()),
            Self::NoBatches { .. } => Some("leave out the number of vertices in a batch, or train a gcn".into()),
            Self::Tune(error) => error.hint(),
            Self::SearchSpace { .. } => {
                Some("qdc space show paper --model gcn+qdc shows one that works".into())
            }
            Self::StartingPoint { space, .. } => {
                Some(format!("qdc space show {space} --model MODEL lists what it searches, and where"))
            }
            Self::Configuration { .. } => Some(
                "name a model that qdc train --save wrote, a cell that qdc table --write wrote, or a file of a run as \
                 docs/guides/train.md shows"
                    .into(),
            ),
            Self::Network(error) => error.hint(),
            Self::Data(error) => error.hint(),
            _ => None,
        }
    }

    /// The error of the core behind this one, whose remedy each front end puts in its own words.
    pub fn core(&self) -> Option<&qdc_core::Error> {
        match self {
            Self::Core(error) => Some(error),
            Self::Data(error) => error.core(),
            Self::Network(error) => error.core(),
            _ => None,
        }
    }

    /// Whether this is a stop that was asked for.
    pub fn is_interruption(&self) -> bool {
        matches!(
            self,
            Self::Core(qdc_core::Error::Interrupted)
                | Self::Network(qdc_nn::Error::Core(qdc_core::Error::Interrupted))
        )
    }

    /// Whether a device failed under the work.
    pub fn is_lost_device(&self) -> bool {
        matches!(self, Self::Network(qdc_nn::Error::DeviceLost { .. }))
    }

    /// Whether the user's words, not the data, are at fault.
    pub fn is_usage(&self) -> bool {
        matches!(
            self,
            Self::UnknownModel { .. }
                | Self::Model { .. }
                | Self::UnknownHyperparameter { .. }
                | Self::NotOfThisModel { .. }
                | Self::HyperparameterValue { .. }
                | Self::NoBatches { .. }
                | Self::StartingPoint { .. }
        )
    }
}
