//! Tuning: search spaces, the search itself, and what came of it.

mod coordinator;
mod ensemble;
pub(crate) mod identity;
mod presets;
pub(crate) mod rescore;
mod search;
mod space;
mod trial;

pub use ensemble::TrialEnsemble;
pub use search::{Best, Search, SearchReport, search, study_name};
pub use space::SearchSpace;
