//! What the relational storages need of a database: values, statements, transactions.

use serde_json::Value;

use super::schema;
use crate::Result;

/// A value in a database.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell {
    /// Nothing.
    Null,
    /// A whole number.
    Integer(i64),
    /// A real number.
    Real(f64),
    /// A text.
    Text(String),
}

impl Cell {
    pub(super) fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    pub(super) fn real(&self) -> Option<f64> {
        match self {
            Self::Real(number) => Some(*number),
            Self::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    pub(super) fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<&Value> for Cell {
    fn from(value: &Value) -> Self {
        Self::Text(value.to_string())
    }
}

/// Runs statements; parameters are `$1`, `$2`, ... in the order of their first use.
pub trait Database: Send {
    /// The dialect's names of types.
    #[doc(hidden)]
    const WORDS: schema::Words;
    /// The present moment, in UTC with microseconds.
    const NOW: &'static str;
    /// Locks the row of study `$1` until the transaction ends, where a transaction alone does not lock.
    const LOCK_STUDY: Option<&'static str>;

    /// What users call it.
    fn name(&self) -> String;
    /// Another connection to it; `None` where it belongs to this connection alone.
    fn reopen(&self) -> Result<Option<Self>>
    where
        Self: Sized;
    /// Whether Optuna's tables are there, and whether any are.
    fn has_tables(&mut self) -> Result<(bool, bool)>;
    /// Begins a transaction that writes.
    fn begin(&mut self) -> Result<()>;
    /// Runs several statements.
    fn batch(&mut self, statements: &str) -> Result<()>;
    /// Runs one statement and counts the rows it changed.
    fn execute(&mut self, statement: &str, cells: &[Cell]) -> Result<u64>;
    /// Runs one statement and gives the rows it answers.
    fn query(&mut self, statement: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>>;
    /// The heartbeat of `seconds` ago.
    fn older_than(seconds: u64) -> String;

    /// Does all of `work` or nothing of it.
    fn transaction<T>(&mut self, work: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.begin()?;
        let done = work(self).and_then(|value| self.batch("COMMIT").map(|()| value));
        if done.is_err() {
            self.batch("ROLLBACK").ok(); // the error that matters is the first
        }
        done
    }
}
