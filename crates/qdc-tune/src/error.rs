//! What can go wrong in a search, and what to do about it.

use std::path::PathBuf;

/// An error of the search or of its files.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A distribution cannot be drawn from.
    #[error("unusable distribution: {problem}")]
    Distribution {
        /// What is wrong with it.
        problem: String,
    },
    /// A space cannot be searched.
    #[error("unusable search space: {problem}")]
    Space {
        /// What is wrong with it.
        problem: String,
    },
    /// The study searched another space before.
    #[error("study '{study}' searches another space: {difference}")]
    SpaceDiffers {
        /// The study.
        study: String,
        /// The first difference.
        difference: String,
    },
    /// The study goes the other way, or has several goals.
    #[error("study '{study}' {problem}")]
    Direction {
        /// The study.
        study: String,
        /// What it does instead.
        problem: String,
    },
    /// There is no study of that name.
    #[error("{storage} holds no study '{study}'")]
    NoStudy {
        /// The name asked for.
        study: String,
        /// Where it was looked for.
        storage: String,
    },
    /// Two trials of a study have one number.
    #[error("study '{study}' in {storage} has two trials with the number {number} (trial_id {} and {})", keys.0, keys.1)]
    TrialNumber {
        /// The study.
        study: String,
        /// The file or database.
        storage: String,
        /// The number.
        number: u64,
        /// The database's keys of both.
        keys: (i64, i64),
    },
    /// The file was written by an older or newer Optuna than we know.
    #[error("{storage} has schema {found}; this program knows {known}")]
    Schema {
        /// The file or database.
        storage: String,
        /// The schema it has.
        found: String,
        /// The one we know.
        known: &'static str,
    },
    /// Someone else holds the file.
    #[error("{storage} is locked by another program")]
    Locked {
        /// The file.
        storage: String,
    },
    /// The disk is full.
    #[error("{storage} cannot grow: the disk is full")]
    Full {
        /// The file.
        storage: String,
    },
    /// The file may not be changed.
    #[error("{storage} cannot be written to")]
    ReadOnly {
        /// The file.
        storage: String,
    },
    /// Not a study file, or a damaged one.
    #[error("{storage} is not a study: {problem}")]
    Malformed {
        /// The file or database.
        storage: String,
        /// What was found.
        problem: String,
    },
    /// Reading it would take too much memory.
    #[error("{storage}: reading it takes more than {allowed} bytes of memory")]
    Memory {
        /// The file.
        storage: String,
        /// What it may take.
        allowed: u64,
    },
    /// A server was named, but this program cannot speak to one.
    #[error("{storage}: this program was built without PostgreSQL")]
    NoPostgres {
        /// The address, without its password.
        storage: String,
    },
    /// The database refused.
    #[error("{storage}: {problem}")]
    Database {
        /// The file or server.
        storage: String,
        /// In its words.
        problem: String,
    },
    /// A file could not be read or written.
    #[error("{path}: {source}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

impl Error {
    /// What the user can do about it, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::SpaceDiffers { .. } => {
                Some("continue with the space it was begun with, or begin another study with --study".into())
            }
            Self::Direction { .. } => Some("begin another study with --study".into()),
            Self::TrialNumber { .. } => Some(
                "another program has changed the file: delete or renumber one of the two, or begin another study with \
                 --study"
                    .into(),
            ),
            Self::Schema { storage, found, known } => Some(match (revision(found), revision(known)) {
                (Some(found), Some(known)) if found < known => format!(
                    "it was written by an older Optuna; `optuna storage upgrade --storage sqlite:///{storage}` brings it \
                     up to date"
                ),
                (Some(_), _) => {
                    "it was written by a newer Optuna; use a newer qdc, or another file with --study".into()
                }
                _ => "name a file written by qdc or Optuna, or another one with --study".into(),
            }),
            Self::ReadOnly { .. } => Some(
                "allow writing to the file and its folder (SQLite keeps a journal beside it), or copy the file and name \
                 the copy"
                    .into(),
            ),
            Self::Locked { .. } => Some("wait until the other program is done, or use another file".into()),
            Self::Full { .. } => Some("free some space and run the same command: it resumes".into()),
            Self::Malformed { .. } => Some("name a file written by qdc or Optuna, or a new one".into()),
            Self::Memory { .. } => Some("allow more with --memory".into()),
            Self::NoPostgres { .. } => {
                Some("build it with the cargo feature `postgres` (make release), or name a file".into())
            }
            _ => None,
        }
    }
}

/// The numbers of a revision such as `v3.2.0.a`, which compare as the revisions do.
fn revision(text: &str) -> Option<(Vec<u64>, &str)> {
    let (version, letter) = text.strip_prefix('v')?.rsplit_once('.')?;
    let numbers: Option<Vec<u64>> = version.split('.').map(|part| part.parse().ok()).collect();
    Some((numbers?, letter))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_older_schema_is_told_from_a_newer_one() {
        let hint = |found: &str| {
            Error::Schema { storage: "s.db".into(), found: found.into(), known: "v3.2.0.a" }.hint().unwrap()
        };
        for older in ["v0.9.0.a", "v2.6.0.a", "v3.0.0.d"] {
            assert!(
                hint(older).contains("older Optuna") && hint(older).contains("sqlite:///s.db"),
                "{older}"
            );
        }
        for newer in ["v3.2.0.b", "v3.10.0.a", "v4.0.0.a"] {
            assert!(hint(newer).contains("newer Optuna"), "{newer}");
        }
        assert!(!hint("none").contains("Optuna;"));
    }
}
