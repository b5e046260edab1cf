//! Data of qdc: the nine datasets and where they come from, the files graphs and matrices are kept in,
//! generators.
//!
//! [`load`] gives a dataset by name; [`open`] understands whatever a user may call a graph: a dataset, a
//! file, a generator. [`matrix`] and [`npz`] read and write sparse matrices and arrays. Every error names the
//! file and the place; nothing a file contains can cause a panic.
//!
//! ```
//! use qdc_data::{DataDir, EdgeReading};
//!
//! let source = qdc_data::open("csbm:n=100,homophily=0.2", &DataDir::from_environment(), EdgeReading::default())?;
//! assert_eq!(source.graph().nodes(), 100);
//! let dataset = source.into_dataset()?.with_random_splits("48/32/20".parse().unwrap(), 0);
//! assert_eq!(dataset.splits.len(), 10);
//! # Ok::<(), qdc_data::Error>(())
//! ```

mod budget;
pub mod closest;
mod data_dir;
mod dataset;
mod dataset_file;
mod download;
mod error;
#[doc(hidden)]
pub mod fuzzing;
pub mod generators;
mod kernel_file;
mod lines;
mod mapped;
pub mod matrix;
pub mod npz;
pub mod output;
mod random;
mod registry;
mod source;
mod spectrum_cache;
mod splits;

pub use budget::{Budget, kilobytes, read_file, read_text};
pub use data_dir::{Checked, DataDir, NAMES, PUBLISHED, Place, cache_folder};
pub use dataset::{Dataset, Statistics};
pub use dataset_file::{read_dataset, write_dataset};
pub use download::{Downloaded, HOST, download};
pub use error::Error;
pub use kernel_file::KernelFile;
pub use registry::{Entry, REGISTRY};
pub use source::{EdgeReading, Source, open};
pub use spectrum_cache::{SpectrumCache, StoredSpectrum};
pub use splits::{SPLITS, Shares, random_splits};

/// The hexadecimal digits of a hash, two for each byte.
pub fn hexadecimal(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A path in a report: what is no Unicode is replaced, since JSON can hold nothing else.
pub(crate) fn lossy_path<S: serde::Serializer>(path: &std::path::Path, to: S) -> Result<S::Ok, S::Error> {
    to.collect_str(&path.display())
}

/// Loads one of the nine datasets from the folder `QDC_DATA`, or the user's cache folder where that is not
/// set.
pub fn load(name: &str) -> Result<Dataset, Error> {
    DataDir::from_environment().load(name)
}
