//! What can go wrong with data, and what to do about it. Every error names the file.

use std::io;
use std::path::{Path, PathBuf};

use crate::closest::{by_closeness, distance};
use crate::data_dir::NAMES;
use crate::generators::{GENERATORS, is_generator};

/// An error of reading, writing or finding data.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file could not be read.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },

    /// A file could not be written; nothing of it is left behind.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },

    /// A file's content is not what it should be.
    #[error("{}, {place}: {problem}", path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where in it, such as `line 3` or `array 'edges'`.
        place: String,
        /// What is wrong there.
        problem: String,
        /// What to do about it.
        remedy: Option<String>,
    },

    /// An archive lacks an array.
    #[error("{} has no array '{name}', only {}", path.display(), listing(present))]
    MissingArray {
        /// The archive.
        path: PathBuf,
        /// The array looked for.
        name: String,
        /// The arrays it has.
        present: Vec<String>,
    },

    /// A file's name does not tell its format.
    #[error("{}: the name does not tell the format", path.display())]
    UnknownFormat {
        /// The file.
        path: PathBuf,
    },

    /// No dataset has this name.
    #[error("there is no dataset '{name}'")]
    UnknownDataset {
        /// The name.
        name: String,
    },

    /// Nothing a graph could be has this name.
    #[error("'{name}' is no dataset, no generator and no file")]
    UnknownGraph {
        /// The name.
        name: String,
    },

    /// A dataset is not in the folder.
    #[error("the dataset '{name}' is not in {}", folder.display())]
    NotDownloaded {
        /// The dataset.
        name: String,
        /// The folder looked in.
        folder: PathBuf,
    },

    /// A file could not be fetched.
    #[error("cannot fetch {address}: {problem}")]
    Download {
        /// The address of the file.
        address: String,
        /// What happened.
        problem: String,
        /// The files still missing: address, and where each belongs.
        missing: Vec<(String, PathBuf)>,
    },

    /// A generator's name has wrong numbers.
    #[error("{name}: {problem}")]
    Generator {
        /// The name.
        name: String,
        /// What is wrong.
        problem: String,
    },

    /// Reading a file, or making a graph, would take more memory than it may.
    #[error(
        "{}, {what}: {} are asked for{}, {} are allowed",
        path.display(),
        size(*asked),
        if *held > 0 { format!(" beside {} held", size(*held)) } else { String::new() },
        size(*allowed)
    )]
    Memory {
        /// The file, or the name of what was made.
        path: PathBuf,
        /// What asked for memory, such as `array 'edges'`.
        what: String,
        /// Bytes asked for.
        asked: u64,
        /// Bytes held already.
        held: u64,
        /// Bytes allowed in all.
        allowed: u64,
    },

    /// A dataset was asked for, but the graph has no labels.
    #[error("{name} has no labels and features: it is a graph, not a dataset")]
    Unlabelled {
        /// The graph.
        name: String,
    },

    /// The content of a file makes no valid graph, matrix or split.
    #[error("{}: {source}", path.display())]
    Invalid {
        /// The file, or the name of what was made.
        path: PathBuf,
        /// What the core says.
        source: qdc_core::Error,
    },

    /// The core refused.
    #[error(transparent)]
    Core(#[from] qdc_core::Error),
}

impl Error {
    /// A [`Error::Malformed`] without a remedy.
    pub(crate) fn malformed(path: &Path, place: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::Malformed { path: path.into(), place: place.into(), problem: problem.into(), remedy: None }
    }

    /// Adds what to do to a [`Error::Malformed`].
    pub(crate) fn remedy(mut self, text: impl Into<String>) -> Self {
        if let Self::Malformed { remedy, .. } = &mut self {
            *remedy = Some(text.into());
        }
        self
    }

    /// Whether the fault is in what the user typed, not in what was found.
    pub fn is_usage(&self) -> bool {
        match self {
            Self::UnknownFormat { .. }
            | Self::UnknownDataset { .. }
            | Self::UnknownGraph { .. }
            | Self::Generator { .. } => true,
            Self::Unlabelled { name } => is_generator(name),
            _ => false,
        }
    }

    /// What the user can do about it, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Malformed { remedy, .. } => Some(remedy.clone().unwrap_or_else(|| {
                "the file is damaged, or not what its name says; correct it, or write or fetch it again".into()
            })),
            Self::MissingArray { .. } => Some(
                "a dataset has node_features, node_labels, edges and perhaps masks; a matrix is what \
                 scipy.sparse.save_npz writes"
                    .into(),
            ),
            Self::Read { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Some("check the path; a relative one starts at the folder you are in".into()),
                io::ErrorKind::IsADirectory => Some("it is a folder; name a file in it".into()),
                io::ErrorKind::PermissionDenied => Some("you may not read it; see its permissions".into()),
                _ => None,
            },
            Self::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull => {
                Some("the disk is full; nothing was left behind".into())
            }
            Self::Write { source, .. } => match source.kind() {
                io::ErrorKind::NotFound => Some("the folder does not exist; create it first".into()),
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    Some("you may not write there; choose another place, or change the permissions".into())
                }
                io::ErrorKind::IsADirectory => Some("it is a folder; name a file in it".into()),
                io::ErrorKind::FileTooLarge => {
                    Some("files may not grow that large here (ulimit -f); nothing was left behind".into())
                }
                _ => Some("choose another place".into()),
            },
            Self::UnknownFormat { .. } => Some(
                "use .npz (SciPy), .mtx (Matrix Market), .csv or .tsv (edge list); text formats may end in .gz".into(),
            ),
            Self::UnknownDataset { name } => {
                Some(format!("{}the datasets are {}", did_you_mean(name, &NAMES), NAMES.join(", ")))
            }
            Self::UnknownGraph { name } => Some(format!(
                "{}a graph is a dataset ({}), a generator ({}), or a file (.npz, .mtx, .csv, .tsv)",
                did_you_mean(family(name), &[&NAMES[..], &GENERATORS.map(family)].concat()),
                NAMES.join(", "),
                GENERATORS.join(", ")
            )),
            Self::NotDownloaded { name, .. } => Some(format!(
                "fetch it with `qdc data get {name}`, or name the folder it lies in with --data-dir or QDC_DATA"
            )),
            Self::Download { missing, .. } => {
                let mut hint = String::from(
                    "check the connection (proxies are read from HTTPS_PROXY), name another source with --mirror URL, \
                     or put these files in place by hand:",
                );
                for (address, place) in missing {
                    hint.push_str(&format!("\n  {address}\n    -> {}", place.display()));
                }
                Some(hint)
            }
            Self::Generator { name, .. } => {
                let example = GENERATORS.iter().find(|example| family(example) == family(name))?;
                Some(format!("for example: {example}"))
            }
            Self::Memory { path, .. } => {
                let generated = path.to_str().is_some_and(|name| GENERATORS.map(family).contains(&family(name)));
                let way = "raise --memory if it is meant to be that large; otherwise the file is damaged or malicious";
                Some(if generated { "raise --memory, or ask for a smaller graph" } else { way }.into())
            }
            Self::Unlabelled { .. } => Some(format!(
                "give a dataset ({}), a dataset .npz, or a labelled generator (karate, sbm, csbm)",
                NAMES.join(", ")
            )),
            _ => None,
        }
    }

    /// The error of the core behind this one, whose remedy each front end puts in its own words.
    pub fn core(&self) -> Option<&qdc_core::Error> {
        match self {
            Self::Invalid { source, .. } | Self::Core(source) => Some(source),
            _ => None,
        }
    }
}

/// A number of bytes for people.
fn size(bytes: u64) -> String {
    match bytes {
        0..10_000 => format!("{bytes} bytes"),
        10_000..10_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        10_000_000..10_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

/// What comes before the numbers of a generator.
fn family(name: &str) -> &str {
    name.split_once(':').map_or(name, |(family, _)| family)
}

/// "did you mean ...?" where a known name is a few letters away.
fn did_you_mean(name: &str, known: &[&str]) -> String {
    match by_closeness(name, known.iter().map(|&known| known.to_owned()).collect()).first() {
        Some(closest) if distance(name, closest) <= 1 + closest.len() / 4 => {
            format!("did you mean {closest}? ")
        }
        _ => String::new(),
    }
}

/// Names for an error, not more than a few lines of them.
fn listing(names: &[String]) -> String {
    const SHOWN: usize = 20;
    match names.len() {
        0 => "nothing".into(),
        count if count <= SHOWN => names.join(", "),
        count => format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN),
    }
}
