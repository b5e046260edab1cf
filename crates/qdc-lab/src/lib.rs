//! Experiments: models by name, their hyper-parameters, rewirings of a graph, training runs and their records.

mod architecture;
mod bank;
mod config;
mod ensemble;
mod error;
pub mod experiment;
mod filter_file;
pub mod hyperparameters;
mod memory;
mod model;
mod prepared;
mod rewiring;
mod rewirings;
mod run;
mod saved;
mod scores;
pub mod table;
mod tower_report;
pub mod tune;

pub use architecture::architecture;
pub use bank::{ChannelSet, Learned, Preset, STARTS, Share, Window, bank_features};
pub use config::{Config, MOST_SEEDS, ScheduleConfig, TowerConfig};
pub use ensemble::Ensemble;
pub use error::Error;
pub use experiment::{DatasetIdentity, Experiment};
pub use filter_file::{read_filter, save_learned_filter};
pub use hyperparameters::Hyperparameters;
pub use model::{Model, NetworkKind, RewiringKind, Tower};
pub use qdc_data::closest;
pub use qdc_nn::training::Scores;
pub use rewiring::{Diagonal, Rewiring, RewiringReport};
pub use rewirings::{Rewired, Rewirings};
pub use run::{Keep, Patience, Run, RunRecord, Training, train};
pub use saved::{Fit, Prediction, SavedConfiguration, SavedModel, VertexSet, graph_hash, save_best};
pub use scores::Summary;
pub use tower_report::TowerReport;
