//! `qdc study`: what a study file holds, and its way to and from Optuna's journal file.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use qdc_data::output::write_file;
use qdc_tune::State;
use qdc_tune::storage::{self, Storage, StudyRecord, journal};
use serde::Serialize;
use serde_json::Value;

use crate::failure::Failure;
use crate::output::Show;
use crate::session::Session;
use crate::units::Bytes;

/// List, export or import studies
///
/// Study files are Optuna's SQLite files; the journal file is Optuna's other format, one line an event, good
/// for network folders and for copies.
#[derive(Debug, Args)]
pub(crate) struct StudyCommand {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the studies of a file: how far they are, and their best
    List {
        /// The study file, or postgresql://user@host/database
        #[arg(value_name = "STUDY")]
        study: String,
    },
    /// Write studies as a journal that optuna.storages.JournalStorage opens
    Export {
        /// The study file, or postgresql://user@host/database
        #[arg(value_name = "STUDY")]
        study: String,
        /// The journal to write
        #[arg(short, long, value_name = "FILE")]
        output: PathBuf,
        /// Only the study of this name
        #[arg(long, value_name = "NAME")]
        name: Option<String>,
    },
    /// Read a journal into a study file
    Import {
        /// The journal
        #[arg(value_name = "JOURNAL")]
        journal: PathBuf,
        /// The study file, or postgresql://user@host/database
        #[arg(long, value_name = "STUDY", default_value = "studies.db")]
        study: String,
    },
}

impl StudyCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        match self.action {
            Action::List { study } => {
                let mut storage = open_existing(&study, session)?;
                let studies = storage.studies()?;
                let studies = studies
                    .into_iter()
                    .map(|study| Summary::of(study, storage.as_mut()))
                    .collect::<Result<_, _>>()?;
                session.show(&Listing { storage: storage.name(), studies })
            }
            Action::Export { study, output, name } => {
                let mut storage = open_existing(&study, session)?;
                let mut studies = storage.studies()?;
                if let Some(name) = &name {
                    studies.retain(|study| &study.name == name);
                    if studies.is_empty() {
                        return Err(Failure::new(format!("{study} holds no study '{name}'"))
                            .hint(format!("qdc study list {study} shows what it holds")));
                    }
                }
                let journal = journal::export(storage.as_mut(), &studies)?;
                write_file(&output, |file| journal.write(file))?;
                let studies = studies.into_iter().map(|study| study.name).collect();
                session.show(&Moved {
                    from: storage.name(),
                    to: output.display().to_string(),
                    studies,
                    trials: journal.trials,
                    torn_line: None,
                })
            }
            Action::Import { journal, study } => {
                let bytes = qdc_data::read_file(&journal, session.budget())?;
                let Bytes(memory) = session.memory;
                let name = journal.display().to_string();
                let recorded = journal::read(&name, &bytes, memory)?;
                let mut storage = storage::open(&study, memory)?;
                let imported = journal::import(storage.as_mut(), recorded)?;
                if let Some(line) = imported.torn_line {
                    session.watch.note(&format!(
                        "{} breaks off in line {line}: what stood there is left out",
                        journal.display()
                    ));
                }
                let trials = imported.studies.iter().map(|(_, trials)| trials).sum();
                let studies = imported.studies.into_iter().map(|(name, _)| name).collect();
                session.show(&Moved {
                    from: journal.display().to_string(),
                    to: storage.name(),
                    studies,
                    trials,
                    torn_line: imported.torn_line,
                })
            }
        }
    }
}

/// Opens studies that are there already: a reader must not make an empty file of a mistyped name.
pub(super) fn open_existing(address: &str, session: &Session) -> Result<Box<dyn Storage>, Failure> {
    let path = address.strip_prefix("sqlite:///").unwrap_or(address);
    if !path.contains("://") && !Path::new(path).exists() {
        return Err(
            Failure::new(format!("there is no study file {path}")).hint("qdc tune makes one".to_owned())
        );
    }
    Ok(storage::open(address, session.memory.0)?)
}

/// One study in a line.
#[derive(Serialize)]
struct Summary {
    name: String,
    finished: usize,
    failed: usize,
    pruned: usize,
    /// How many trials were asked for, where `qdc tune` wrote it down.
    wanted: Option<u64>,
    best: Option<f64>,
    test_mean: Option<f64>,
    test_std: Option<f64>,
}

impl Summary {
    fn of(study: StudyRecord, storage: &mut dyn Storage) -> Result<Self, Failure> {
        let trials = storage.trials(study.id, 0, &[])?;
        let count = |state: State| trials.iter().filter(|trial| trial.state == state).count();
        let sign = study.directions.first().map_or(1.0, |direction| direction.goodness(1.0));
        let best =
            trials.iter().filter(|trial| trial.state == State::Complete && trial.value.is_some()).max_by(
                |a, b| (sign * a.value.unwrap_or(f64::NAN)).total_cmp(&(sign * b.value.unwrap_or(f64::NAN))),
            );
        let attribute =
            |key: &str| best.and_then(|best| best.user_attributes.get(key)).and_then(Value::as_f64);
        Ok(Self {
            finished: trials.iter().filter(|trial| trial.state.is_finished()).count(),
            failed: count(State::Failed),
            pruned: count(State::Pruned),
            wanted: study.attributes.get("trials").and_then(Value::as_u64),
            best: best.and_then(|best| best.value),
            test_mean: attribute("test_mean"),
            test_std: attribute("test_std"),
            name: study.name,
        })
    }
}

#[derive(Serialize)]
struct Listing {
    storage: String,
    studies: Vec<Summary>,
}

impl Show for Listing {
    fn text(&self) -> String {
        let width = self.studies.iter().map(|study| study.name.chars().count()).max().unwrap_or(0);
        let mut text = String::new();
        for study in &self.studies {
            let wanted = study.wanted.map_or(String::new(), |wanted| format!("/{wanted}"));
            let _ =
                write!(text, "{:<width$}  {:>9} trials", study.name, format!("{}{wanted}", study.finished));
            if study.failed > 0 {
                let _ = write!(text, ", {} failed", study.failed);
            }
            if study.pruned > 0 {
                let _ = write!(text, ", {} given up", study.pruned);
            }
            match (study.best, study.test_mean, study.test_std) {
                (Some(best), Some(mean), Some(std)) => {
                    let [best, mean, std] = [best, mean, std].map(|share| 100.0 * share);
                    let _ = write!(text, ", best validation {best:.2} %, test {mean:.2} ± {std:.2} %");
                }
                (Some(best), ..) => {
                    let _ = write!(text, ", best value {best}");
                }
                _ => {}
            }
            text.push('\n');
        }
        let _ = writeln!(text, "{} studies in {}", self.studies.len(), self.storage);
        text
    }
}

#[derive(Serialize)]
struct Moved {
    from: String,
    to: String,
    studies: Vec<String>,
    trials: usize,
    /// The line of the journal at which it breaks off.
    #[serde(skip_serializing_if = "Option::is_none")]
    torn_line: Option<usize>,
}

impl Show for Moved {
    fn text(&self) -> String {
        format!("{} trials of {} studies: {} -> {}\n", self.trials, self.studies.len(), self.from, self.to)
    }
}
