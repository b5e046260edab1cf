//! Where studies are kept: Optuna's own formats behind one small trait.
//!
//! SQLite (one file, many studies) and PostgreSQL (several machines) share Optuna's relational schema,
//! unchanged since Optuna 3.2; the [`journal`] file is an export and import format. Every change is one
//! transaction: a process killed at any moment leaves each trial either as it was or as it should be.

mod database;
pub mod journal;
mod owner;
#[cfg(feature = "postgres")]
mod postgres;
mod rows;
mod schema;
mod sql;
mod sqlite;

use std::collections::BTreeMap;

use serde_json::Value;

use crate::{Direction, Distribution, Result, State, Trial};

#[cfg(feature = "postgres")]
pub use postgres::Postgres;
pub use sqlite::{Memory, Sqlite};

/// A study as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyRecord {
    /// The database's key.
    pub id: i64,
    /// Its name.
    pub name: String,
    /// Its goals; studies of ours have one.
    pub directions: Vec<Direction>,
    /// What the user attached.
    pub attributes: BTreeMap<String, Value>,
}

/// A trial to be stored.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTrial {
    /// Where it stands.
    pub state: State,
    /// Its value, if it has one.
    pub value: Option<f64>,
    /// Names, distributions and internal values.
    pub parameters: BTreeMap<String, (Distribution, f64)>,
    /// Reports by step.
    pub intermediate: BTreeMap<i64, f64>,
    /// What the user attached.
    pub user_attributes: BTreeMap<String, Value>,
    /// What the machinery attached.
    pub system_attributes: BTreeMap<String, Value>,
}

impl NewTrial {
    /// A trial about to run.
    pub fn running(parameters: BTreeMap<String, (Distribution, f64)>) -> Self {
        Self {
            state: State::Running,
            value: None,
            parameters,
            intermediate: BTreeMap::new(),
            user_attributes: BTreeMap::new(),
            system_attributes: BTreeMap::new(),
        }
    }

    /// The trial as it is known once it is stored.
    pub(crate) fn stored(self, id: i64, number: u64) -> Trial {
        Trial {
            id,
            number,
            state: self.state,
            value: self.value,
            parameters: self.parameters,
            intermediate: self.intermediate,
            user_attributes: self.user_attributes,
            system_attributes: self.system_attributes,
            times: (None, None),
        }
    }
}

/// Keeps studies. All methods are single transactions.
pub trait Storage: Send {
    /// What users call it: a path, or an address without its password.
    fn name(&self) -> String;

    /// Another connection to the same studies; `None` where no other connection could see them.
    fn reopen(&self) -> Result<Option<Box<dyn Storage>>>;

    /// All studies, oldest first.
    fn studies(&mut self) -> Result<Vec<StudyRecord>>;

    /// Makes a study, or finds the one that has the name already.
    fn open_study(&mut self, name: &str, direction: Direction) -> Result<StudyRecord>;

    /// Attaches something to a study.
    fn set_study_attribute(&mut self, study: i64, key: &str, value: &Value) -> Result<()>;

    /// Trials with a key above `after`, and those named in `also`; in the order of their numbers.
    fn trials(&mut self, study: i64, after: i64, also: &[i64]) -> Result<Vec<Trial>>;

    /// Adds a trial if it gets the number `expected` (`None`: any); gives its key and number, or `None`.
    fn add_trial(
        &mut self,
        study: i64,
        expected: Option<u64>,
        trial: &NewTrial,
    ) -> Result<Option<(i64, u64)>>;

    /// Takes over a trial that waits, or whose worker is gone; false if somebody else was faster.
    fn claim(&mut self, trial: &Trial) -> Result<bool>;

    /// Adds parameters to a trial that lacks them.
    fn add_parameters(
        &mut self,
        trial: i64,
        parameters: &BTreeMap<String, (Distribution, f64)>,
    ) -> Result<()>;

    /// Ends a running trial; false if it had ended before.
    fn finish(
        &mut self,
        trial: i64,
        state: State,
        value: Option<f64>,
        attributes: &BTreeMap<String, Value>,
    ) -> Result<bool>;

    /// Puts a running trial back in the queue, to be run again with the same parameters.
    fn release(&mut self, trial: i64) -> Result<()>;

    /// Records a report.
    fn report(&mut self, trial: i64, step: i64, value: f64) -> Result<()>;

    /// Says that these trials are being worked on.
    fn heartbeat(&mut self, trials: &[i64]) -> Result<()>;

    /// Running trials whose worker is gone: its process on this machine has ended, or, where that cannot be
    /// known, its heartbeat is older than `grace` seconds. A worker whose process lives on this machine is
    /// never gone.
    fn stale(&mut self, study: i64, grace: u64) -> Result<Vec<i64>>;
}

/// Opens `FILE.db`, `sqlite:///FILE.db` or `postgresql://...`, making the schema where there is none. Reading
/// a file takes at most `memory` bytes; a server is trusted.
///
/// # Errors
/// If there is no such place, or what lies there is no study.
pub fn open(address: &str, memory: u64) -> Result<Box<dyn Storage>> {
    if address.starts_with("postgres") && address.contains("://") {
        #[cfg(feature = "postgres")]
        return Ok(Box::new(Postgres::connect(address)?));
        #[cfg(not(feature = "postgres"))]
        return Err(crate::Error::NoPostgres { storage: without_password(address) });
    }
    let path = address.strip_prefix("sqlite:///").unwrap_or(address);
    Ok(Box::new(Sqlite::open(path)?.within(memory)?))
}

/// The most memory a JSON text takes once it is parsed: an object brings a node of a tree with room for
/// eleven pairs, and lists grow by doubling.
fn parsed_size(text: &[u8]) -> u64 {
    let size = |byte: &u8| match byte {
        b'{' => 800,
        b'[' => 160,
        b',' => 128,
        _ => 2,
    };
    text.iter().map(size).sum()
}

/// The address without its password, fit to be shown.
pub fn without_password(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let (place, options) = rest.split_once('?').unwrap_or((rest, ""));
    let place = match place.rsplit_once('@') {
        Some((user, host)) => format!("{}@{host}", user.split(':').next().unwrap_or_default()),
        None => place.to_owned(),
    };
    let shown: Vec<&str> = options.split('&').filter(|option| !option.starts_with("password=")).collect();
    let mark = if shown.concat().is_empty() { "" } else { "?" };
    format!("{scheme}://{place}{mark}{}", shown.join("&"))
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_password_is_never_shown() {
        for (address, shown) in [
            (
                "postgresql+psycopg2://ann:secret@host:5432/studies",
                "postgresql+psycopg2://ann@host:5432/studies",
            ),
            ("postgresql://ann:s@cret@host/studies", "postgresql://ann@host/studies"),
            ("postgresql://ann@/studies?host=/run&password=secret", "postgresql://ann@/studies?host=/run"),
            ("postgresql://ann@host/studies?password=secret", "postgresql://ann@host/studies"),
        ] {
            assert_eq!(super::without_password(address), shown);
        }
    }
}
