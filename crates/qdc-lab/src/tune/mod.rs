//! Tuning: search spaces, the search itself, and what came of it.

mod coordinator;
mod presets;
mod search;
mod space;
mod trial;

pub use search::{Best, Search, SearchReport, search, study_name};
pub use space::SearchSpace;
