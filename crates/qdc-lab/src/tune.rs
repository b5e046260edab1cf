//! Tuning: search spaces, the search itself, and what came of it.

mod coordinator;
mod ensemble;
pub(crate) mod identity;
mod presets;
pub(crate) mod rescore;
mod search;
mod shared;
mod space;
mod trial;
mod workers;

pub use ensemble::TrialEnsemble;
pub use search::{Best, Search, SearchReport, search, study_name};
pub use shared::Shared;
pub use space::SearchSpace;
pub use workers::{TrialRecord, Workers, run_trial};
