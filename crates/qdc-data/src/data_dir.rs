//! The folder where datasets lie or are cached.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Dataset, Error, read_dataset};

/// The nine datasets.
pub const NAMES: [&str; 9] =
    ["cornell", "texas", "wisconsin", "chameleon", "squirrel", "actor", "cora", "citeseer", "pubmed"];

/// A folder of datasets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    path: PathBuf,
}

impl DataDir {
    /// The folder `path`; it need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into() }
    }

    /// The folder `QDC_DATA`, or the user's cache folder where that is not set.
    pub fn from_environment() -> Self {
        let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let cache = || {
            set("XDG_CACHE_HOME")
                .or_else(|| set("LOCALAPPDATA"))
                .or_else(|| {
                    Some(set("HOME")?.join(if cfg!(target_os = "macos") {
                        "Library/Caches"
                    } else {
                        ".cache"
                    }))
                })
                .unwrap_or_else(env::temp_dir)
                .join("qdc")
        };
        Self::new(set("QDC_DATA").unwrap_or_else(cache))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Loads one of the nine datasets.
    pub fn load(&self, name: &str) -> Result<Dataset, Error> {
        if !NAMES.contains(&name) {
            return Err(Error::UnknownDataset { name: name.into() });
        }
        let file = self.path.join(format!("{name}.npz"));
        if !file.is_file() {
            return Err(Error::NotDownloaded { name: name.into(), folder: self.path.clone() });
        }
        Ok(Dataset { name: name.into(), ..read_dataset(&file)? })
    }
}
