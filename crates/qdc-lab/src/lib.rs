//! Experiments: models by name, their hyper-parameters, rewirings of a graph, training runs and their records.

mod architecture;
pub mod closest;
mod error;
pub mod hyperparameters;
mod model;
mod rewiring;
mod run;
mod saved;
pub mod table;
pub mod tune;

pub use architecture::architecture;
pub use error::Error;
pub use hyperparameters::Hyperparameters;
pub use model::{Model, NetworkKind, RewiringKind, Tower};
pub use qdc_nn::training::{Keep, Scores};
pub use rewiring::{Rewired, Rewiring, RewiringReport, Rewirings};
pub use run::{Experiment, Patience, Run, RunRecord, train};
pub use saved::{SavedConfiguration, SavedModel, graph_hash, save_best};
