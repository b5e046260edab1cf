//! What can go wrong in training, and what to do about it.

use std::path::PathBuf;

/// An error of the networks and their training.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A network that cannot be built.
    #[error("this network cannot be built: {problem}")]
    Architecture {
        /// What is wrong.
        problem: String,
    },

    /// A feature is infinite or not a number.
    #[error("feature {feature} of vertex {vertex} is {value}")]
    FeatureNotFinite {
        /// The vertex.
        vertex: usize,
        /// The column.
        feature: usize,
        /// The value.
        value: f32,
    },

    /// The matrix and the features disagree about the number of vertices.
    #[error("a matrix of {matrix} vertices cannot propagate features of {features} vertices")]
    MatrixSize {
        /// Rows of the matrix.
        matrix: usize,
        /// Rows of the features.
        features: usize,
    },

    /// A set of a split has no vertices.
    #[error("the {part} set of split {split} is empty")]
    EmptySet {
        /// The split.
        split: usize,
        /// Training, validation or test.
        part: &'static str,
    },

    /// A vertex of a split has a label that is no class.
    #[error(
        "vertex {vertex} of the {part} set of split {split} has label {label}, but there are {classes} classes"
    )]
    Label {
        /// The vertex.
        vertex: usize,
        /// The split.
        split: usize,
        /// Training, validation or test.
        part: &'static str,
        /// Its label.
        label: u32,
        /// Number of classes.
        classes: usize,
    },

    /// A vertex of a split has no label.
    #[error("vertex {vertex} of the {part} set of split {split} has no label")]
    Unlabelled {
        /// The vertex.
        vertex: usize,
        /// The split.
        split: usize,
        /// Training, validation or test.
        part: &'static str,
    },

    /// A set of a split has vertices of one class only, and the metric compares classes.
    #[error("the {part} set of split {split} has vertices of one class only: {} is not defined there", metric.title())]
    OneClass {
        /// The split.
        split: usize,
        /// Training, validation or test.
        part: &'static str,
        /// The metric.
        metric: qdc_core::Metric,
    },

    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: std::io::Error,
    },

    /// A file is not a saved model.
    #[error("{path} is not a saved model: {problem}")]
    NotAModel {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },

    /// A device cannot do the work; the CPU can.
    #[error("{problem}")]
    Device {
        /// What is wrong.
        problem: String,
        /// What the user can do about it.
        hint: Option<String>,
    },

    /// A device failed on the way: what was under way there has no result, and nothing more is done there.
    #[error("{problem}")]
    DeviceLost {
        /// What it was doing, and what its driver says.
        problem: String,
    },

    /// An error of the core, an interruption among them.
    #[error(transparent)]
    Core(#[from] qdc_core::Error),
}

impl Error {
    /// What the user can do about it, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::FeatureNotFinite { .. } => {
                Some("replace missing values in the dataset, for example by 0".into())
            }
            Self::OneClass { .. } => {
                Some("choose another metric with --metric, or other splits with --splits or --split".into())
            }
            Self::Unlabelled { .. } => Some(
                "take the vertex out of the masks, or give it a label: -1 may stand outside all masks".into(),
            ),
            Self::EmptySet { .. } => {
                Some("choose other splits with --splits, or make new ones with --split".into())
            }
            Self::Device { hint, .. } => hint.clone(),
            Self::DeviceLost { .. } => {
                Some("what was finished is kept: run the command again, or use --device cpu".into())
            }
            Self::NotAModel { .. } => Some("name a file that qdc train --save wrote".into()),
            _ => None,
        }
    }

    /// The error of the core behind this one, whose remedy each front end puts in its own words.
    pub fn core(&self) -> Option<&qdc_core::Error> {
        match self {
            Self::Core(error) => Some(error),
            _ => None,
        }
    }
}
