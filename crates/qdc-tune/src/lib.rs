//! Hyper-parameter search as Optuna does it, without Python.
//!
//! Four nouns, as in Optuna: a [`Distribution`] says what a parameter may be, a [`Trial`] is one point tried
//! and what came of it, a [`Study`] is a sequence of trials with one goal, and a [`storage::Storage`] keeps
//! studies in Optuna's own file formats. A [`sampler::Sampler`] proposes the next point: at random, or by the
//! tree-structured Parzen estimator (TPE) of Optuna 3.6 (one parameter at a time) or of Optuna 5 (all
//! parameters jointly). From the same history and the same random draws they suggest what Optuna suggests, to
//! 1e-9. Each trial draws from a stream of its own, made of the seed and its number, so that a whole search
//! differs from Optuna's with the same seed. Study files can be opened, continued and shown by Optuna and its
//! dashboard.
//!
//! ```
//! use qdc_tune::{Direction, Distribution, Outcome, Sampler, Space, Study, storage::Memory};
//!
//! let space = Space::new([("x", Distribution::uniform(-10.0, 10.0)?)])?;
//! let mut study = Study::open(Memory::new(), "parabola", Direction::Minimize, space)?
//!     .sampler(Sampler::tpe())
//!     .seed(7);
//! for _ in 0..60 {
//!     let trial = study.ask()?;
//!     let x = trial.number("x").unwrap();
//!     study.tell(&trial, Outcome::complete((x - 2.0).powi(2)))?;
//! }
//! assert!(study.best().unwrap().value.unwrap() < 0.5);
//! # Ok::<(), qdc_tune::Error>(())
//! ```

mod distribution;
mod error;
mod heartbeat;
mod outcome;
mod pruning;
mod random_state;
pub mod sampler;
mod space;
pub mod storage;
mod study;
mod trial;

pub use distribution::{Choice, Distribution};
pub use error::Error;
pub use outcome::{Asked, Outcome};
pub use pruning::Pruning;
pub use random_state::RandomState;
pub use sampler::Sampler;
pub use space::Space;
pub use study::Study;
pub use trial::{Direction, State, Trial};

/// A result of this crate.
pub type Result<T> = std::result::Result<T, Error>;
