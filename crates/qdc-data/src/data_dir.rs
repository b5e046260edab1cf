//! The folder where datasets lie or are cached.

use std::env;
use std::path::{Path, PathBuf};

use crate::{Dataset, Entry, Error, REGISTRY, read_dataset};

/// The datasets known by name, in the order of the registry.
pub const NAMES: [&str; REGISTRY.len()] = {
    let mut names = [""; REGISTRY.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = REGISTRY[at].name;
        at += 1;
    }
    names
};

/// The nine datasets of the published table.
pub const PUBLISHED: [&str; 9] =
    ["cornell", "texas", "wisconsin", "chameleon", "squirrel", "actor", "cora", "citeseer", "pubmed"];

/// Where a dataset lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In one `.npz`.
    Archive(PathBuf),
    /// As its original files, below this folder.
    Originals(PathBuf),
}

/// A folder of datasets, each as `NAME.npz` or as its original files.
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

    /// Loads a dataset of the registry.
    pub fn load(&self, name: &str) -> Result<Dataset, Error> {
        let entry = Entry::find(name).ok_or_else(|| Error::UnknownDataset { name: name.into() })?;
        match self.find(name) {
            Some(Place::Archive(file)) => Ok(Dataset { name: entry.name.into(), ..read_dataset(&file)? }),
            Some(Place::Originals(root)) => entry.read(&root),
            None => Err(Error::NotDownloaded { name: name.into(), folder: self.path.clone() }),
        }
    }

    /// Where a dataset lies: as `NAME.npz`, or as its original files; `None` where it is not there whole.
    pub fn find(&self, name: &str) -> Option<Place> {
        let entry = Entry::find(name)?;
        let spellings = [entry.name.to_owned(), entry.stem()];
        let archives = spellings.map(|spelling| self.path.join(format!("{spelling}.npz")));
        if let Some(archive) = archives.into_iter().find(|archive| archive.is_file()) {
            return Some(Place::Archive(archive));
        }
        let files = entry.files();
        self.raw_roots()
            .into_iter()
            .find(|root| files.iter().all(|file| root.join(file.path).is_file()))
            .map(Place::Originals)
    }

    /// Folders below which original files may lie as OWNER/REPOSITORY/COMMIT/PATH.
    pub(crate) fn raw_roots(&self) -> [PathBuf; 2] {
        [self.path.clone(), self.path.join("raw")]
    }
}
