//! Tuning: search spaces, the search itself, and what came of it.

mod coordinator;
pub(crate) mod identity;
mod presets;
pub(crate) mod rescore;
mod search;
mod space;
mod trial;

pub use search::{Best, Search, SearchReport, search, study_name};
pub use space::SearchSpace;
