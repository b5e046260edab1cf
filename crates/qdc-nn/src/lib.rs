//! Graph neural networks with explicit gradients.
//!
//! To be read in this order: [`Matrix`] and [`Propagation`] are the operands, [`layers`] the functions with
//! their derivatives, [`Architecture`] what a network looks like, [`Network`] the network itself, [`bank`]
//! networks over banks of windows, [`Learner`] what they have in common, [`Adam`] and [`training`] what
//! teaches them.
//!
//! Everything is generic over the precision: `f32` to train, `f64` for golden files and gradient checks.
//! After the first epoch only the dense products of `gemm` allocate. The crate prints nothing, and reads the
//! clock only to say how long a split took; the same seed gives the same bytes for any number of threads.

mod adam;
mod aligned;
mod architecture;
pub mod bank;
mod batch;
mod builder;
mod chain;
mod dense;
mod early_stopping;
mod error;
mod footprint;
mod hardware;
mod inputs;
pub mod layers;
mod learner;
pub mod loss;
mod matrix;
mod mini_batch;
mod network;
mod once;
mod parallel;
pub mod program;
mod propagation;
pub mod random;
mod real;
mod saved;
mod scorer;
mod sparse;
pub mod training;

pub use adam::Adam;
pub use architecture::{Architecture, Combinator, Kind, Tower};
pub use batch::{Batch, BatchRun, Cpu, Trainee, Trainer};
pub use chain::Placed;
pub use early_stopping::{Criterion, EarlyStopping, Stopping, Validation, Verdict};
pub use error::Error;
pub use footprint::{Footprint, MatrixShape, Shape};
pub use inputs::{CheckedFeatures, Inputs};
pub use layers::{EdgeValues, Pass};
pub use learner::{Group, Learner};
pub use matrix::{Matrix, Width};
pub use mini_batch::MiniBatched;
pub use network::Network;
pub use program::Program;
pub use propagation::{DENSE_ABOVE, Propagation};
pub use qdc_core::Metric;
pub use real::Real;
pub use saved::{Saved, to_bytes};
pub use scorer::{Scorer, defined_on, predicted, probabilities};
