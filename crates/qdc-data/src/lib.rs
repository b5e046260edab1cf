//! Data of qdc: files in and out.

mod error;
pub mod npz;
pub mod output;

pub use error::Error;
