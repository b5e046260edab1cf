//! Where tests find golden files and datasets.
//!
//! Small golden files are committed under `tests/golden`. Larger ones, and the nine datasets, are found through
//! `QDC_GOLDEN` and `QDC_DATA`; a test that needs them says that it was skipped when there are none:
//!
//! ```
//! # fn a_test() {
//! let Some(folder) = qdc_testing::data_dir() else { return };
//! # let _ = folder;
//! # }
//! # a_test();
//! assert!(qdc_testing::golden("kernels_karate.npz").is_file());
//! ```

#![allow(clippy::print_stderr)] // a skipped test must say so

use std::path::PathBuf;

/// A golden file committed with the sources.
///
/// # Panics
/// If there is no such file.
pub fn golden(name: &str) -> PathBuf {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/golden")).join(name);
    assert!(path.is_file(), "no golden file {}", path.display());
    path
}

/// A golden file too large to commit, from the folder `QDC_GOLDEN`; `None`, with a remark, where there is none.
pub fn large_golden(name: &str) -> Option<PathBuf> {
    let path = folder("QDC_GOLDEN")?.join(name);
    if path.is_file() {
        return Some(path);
    }
    eprintln!("SKIPPED: no golden file {}", path.display());
    None
}

/// The folder `QDC_DATA` with the nine datasets; `None`, with a remark, where there is none.
pub fn data_dir() -> Option<PathBuf> {
    folder("QDC_DATA")
}

fn folder(variable: &str) -> Option<PathBuf> {
    let path = std::env::var_os(variable).map(PathBuf::from);
    if let Some(path) = path.filter(|path| path.is_dir()) {
        return Some(path);
    }
    eprintln!("SKIPPED: {variable} names no folder");
    None
}
