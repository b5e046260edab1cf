//! The folder where datasets lie or are cached.

use std::env;
use std::path::{Path, PathBuf};

use crate::budget::read_file;
use crate::{Budget, Dataset, Entry, Error, REGISTRY, read_dataset};

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

/// The folder for what can be computed again: `QDC_CACHE`, or the user's cache folder where that is not set.
pub fn cache_folder() -> PathBuf {
    set("QDC_CACHE").unwrap_or_else(user_folder)
}

/// `qdc` in the user's cache folder. Where the system knows no home, `.qdc` in the working folder: a folder
/// in the shared temporary directory could be prepared by somebody else.
fn user_folder() -> PathBuf {
    let home_cache = if cfg!(target_os = "macos") { "Library/Caches" } else { ".cache" };
    let cache = set("XDG_CACHE_HOME")
        .or_else(|| set("LOCALAPPDATA"))
        .or_else(|| Some(env::home_dir().filter(|home| home.is_absolute())?.join(home_cache)));
    cache.map_or_else(|| PathBuf::from(".qdc"), |cache| cache.join("qdc"))
}

/// The value of an environment variable, unless it is empty.
fn set(name: &str) -> Option<PathBuf> {
    env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

/// Where a dataset lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In one `.npz`.
    Archive(PathBuf),
    /// As its original files, below this folder.
    Originals(PathBuf),
}

/// What [`DataDir::check`] verified.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Checked {
    /// The dataset.
    pub name: String,
    /// Files looked at.
    pub files: usize,
    /// `checksums` of original files; the `content` of a one-file archive, whose bytes depend on the program
    /// that wrote it; its `counts` of vertices, edges, features and classes where no hash of the content is
    /// known.
    pub by: &'static str,
}

/// A folder of datasets, each as `NAME.npz` or as its original files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataDir {
    path: PathBuf,
    budget: Budget,
}

impl DataDir {
    /// The folder `path`; it need not exist yet.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: path.into(), budget: Budget::of_this_machine() }
    }

    /// The same folder; whatever is read or made through it may hold so much memory.
    pub fn within(self, budget: Budget) -> Self {
        Self { budget, ..self }
    }

    /// What reading or making may hold.
    pub fn budget(&self) -> Budget {
        self.budget
    }

    /// The folder `QDC_DATA`, or the user's cache folder where that is not set.
    pub fn from_environment() -> Self {
        Self::new(set("QDC_DATA").unwrap_or_else(user_folder))
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Loads a dataset of the registry.
    pub fn load(&self, name: &str) -> Result<Dataset, Error> {
        let entry = Entry::find(name).ok_or_else(|| Error::UnknownDataset { name: name.into() })?;
        match self.find(name) {
            Some(Place::Archive(file)) => {
                Ok(Dataset { name: entry.name.into(), ..read_dataset(&file, self.budget)? })
            }
            Some(Place::Originals(root)) => entry.read(&root, self.budget),
            None => Err(Error::NotDownloaded { name: name.into(), folder: self.path.clone() }),
        }
    }

    /// Verifies the files of a dataset.
    ///
    /// # Errors
    /// [`Error::Malformed`] with both checksums (or counts) where a file is another than it should be;
    /// [`Error::NotDownloaded`], [`Error::UnknownDataset`], and those of reading.
    pub fn check(&self, name: &str) -> Result<Checked, Error> {
        let entry = Entry::find(name).ok_or_else(|| Error::UnknownDataset { name: name.into() })?;
        let (files, by) = match self.find(name) {
            None => return Err(Error::NotDownloaded { name: name.into(), folder: self.path.clone() }),
            Some(Place::Originals(root)) => {
                let files = entry.files();
                for file in &files {
                    let path = root.join(file.path);
                    file.check(&path, &read_file(&path, self.budget)?)?;
                }
                (files.len(), "checksums")
            }
            Some(Place::Archive(path)) => {
                let dataset = read_dataset(&path, self.budget)?;
                let found = dataset.statistics()?;
                let found = [found.nodes, found.edges, found.features, found.classes];
                let expected = [entry.nodes, entry.edges, entry.features, entry.classes];
                if found != expected {
                    let problem =
                        format!("vertices, edges, features, classes are {found:?}, should be {expected:?}");
                    return Err(Error::malformed(&path, "the dataset", problem)
                        .remedy("it holds another dataset; remove it and run `qdc data get`"));
                }
                let hash = dataset.hash().to_string();
                match entry.content() {
                    Some(expected) if expected != hash => {
                        let problem = format!("the hash of its content is {hash}, should be {expected}");
                        return Err(Error::malformed(&path, "the dataset", problem).remedy(
                            "graph, features, labels or splits are others; remove it and run `qdc data get`",
                        ));
                    }
                    Some(_) => (1, "content"),
                    None => (1, "counts"),
                }
            }
        };
        Ok(Checked { name: name.into(), files, by })
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
