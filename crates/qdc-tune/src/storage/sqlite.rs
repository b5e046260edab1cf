//! SQLite: one file holds many studies.
//!
//! SQLite's default journal is kept: a transaction cut short by a kill or a power failure is rolled back by
//! whoever opens the file next, and the study stays one file. Writers wait for each other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, Value as Sql, ValueRef};
use rusqlite::{Connection, ErrorCode};

use super::database::{Cell, Database};
use super::schema;
use super::sql::SqlStorage;
use crate::{Error, Result};

/// How long to wait for another writer before giving up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Studies in an SQLite file.
pub type Sqlite = SqlStorage<SqliteDatabase>;

/// Studies that are gone when the program ends; for tests and short searches.
#[derive(Debug, Clone, Copy)]
pub struct Memory;

impl Memory {
    /// An empty storage.
    #[allow(clippy::new_ret_no_self)] // it is a storage like any other, without a file
    pub fn new() -> Sqlite {
        let (path, patience) = (PathBuf::from("memory"), PATIENCE);
        let database = Connection::open_in_memory()
            .map(|connection| SqliteDatabase { connection, path, patience })
            .expect("SQLite needs nothing but memory for this");
        SqlStorage::prepare(database).expect("an empty database takes the schema")
    }
}

impl Sqlite {
    /// Opens a file, or makes one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self> {
        Self::open_with_patience(path, PATIENCE)
    }

    /// Opens a file and waits for other writers no longer than `patience`.
    pub fn open_with_patience(path: impl AsRef<Path>, patience: Duration) -> Result<Self> {
        SqlStorage::prepare(SqliteDatabase::connect(path.as_ref(), patience)?)
    }

    /// Lets the file grow to `pages` pages only, as a full disk would; for tests.
    #[doc(hidden)]
    pub fn limit_pages(&self, pages: u32) -> Result<()> {
        let database = self.database();
        let answer =
            database.connection.query_row(&format!("PRAGMA max_page_count = {pages}"), [], |_| Ok(()));
        answer.map_err(|error| problem(&database.path, &error))
    }
}

impl Sqlite {
    /// Refuses to write, as a file without permission would; for tests.
    #[doc(hidden)]
    pub fn forbid_writing(&self) -> Result<()> {
        let database = self.database();
        database.connection.execute_batch("PRAGMA query_only = ON").map_err(|error| database.problem(&error))
    }
}

/// An open SQLite file.
pub struct SqliteDatabase {
    connection: Connection,
    path: PathBuf,
    patience: Duration,
}

impl Database for SqliteDatabase {
    const WORDS: schema::Words = schema::SQLITE;
    const NOW: &'static str = "(strftime('%Y-%m-%d %H:%M:%f', 'now') || '000')";
    const LOCK_STUDY: Option<&'static str> = None; // BEGIN IMMEDIATE locks everything

    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn reopen(&self) -> Result<Option<Self>> {
        match self.connection.path() {
            Some("") | None => Ok(None), // in memory
            Some(_) => Self::connect(&self.path, self.patience).map(Some),
        }
    }

    fn has_tables(&mut self) -> Result<(bool, bool)> {
        let count = |condition: &str| {
            let query = format!("SELECT count(*) FROM sqlite_master WHERE type = 'table' AND {condition}");
            self.connection
                .query_row(&query, [], |row| row.get::<_, i64>(0))
                .map_err(|error| self.problem(&error))
        };
        Ok((count("name = 'alembic_version'")? > 0, count("true")? > 0))
    }

    fn begin(&mut self) -> Result<()> {
        self.batch("BEGIN IMMEDIATE")
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        self.connection.execute_batch(statements).map_err(|error| self.problem(&error))
    }

    fn execute(&mut self, statement: &str, cells: &[Cell]) -> Result<u64> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(|error| self.problem(&error))?;
        let changed = prepared.execute(rusqlite::params_from_iter(cells));
        changed.map(|rows| rows as u64).map_err(|error| self.problem(&error))
    }

    fn query(&mut self, statement: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        let mut prepared = self.connection.prepare_cached(statement).map_err(|error| self.problem(&error))?;
        let columns = prepared.column_count();
        let rows = prepared.query_map(rusqlite::params_from_iter(cells), |row| {
            (0..columns)
                .map(|column| row.get_ref(column).map(Cell::from))
                .collect::<rusqlite::Result<Vec<Cell>>>()
        });
        rows.and_then(Iterator::collect).map_err(|error| self.problem(&error))
    }

    fn older_than(seconds: u64) -> String {
        format!("datetime('now', '-{seconds} seconds')")
    }
}

impl SqliteDatabase {
    fn connect(path: &Path, patience: Duration) -> Result<Self> {
        let connection = Connection::open(path).map_err(|error| problem(path, &error))?;
        connection.busy_timeout(patience).map_err(|error| problem(path, &error))?;
        Ok(Self { connection, path: path.to_path_buf(), patience })
    }

    fn problem(&self, error: &rusqlite::Error) -> Error {
        problem(&self.path, error)
    }
}

fn problem(path: &Path, error: &rusqlite::Error) -> Error {
    let storage = path.display().to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Locked { storage },
        Some(ErrorCode::DiskFull) => Error::Full { storage },
        Some(ErrorCode::ReadOnly) => Error::ReadOnly { storage },
        Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
            Error::Malformed { storage, problem: error.to_string() }
        }
        _ => Error::Database { storage, problem: error.to_string() },
    }
}

impl rusqlite::ToSql for Cell {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self {
            Self::Null => ToSqlOutput::Owned(Sql::Null),
            Self::Integer(number) => ToSqlOutput::Owned(Sql::Integer(*number)),
            Self::Real(number) => ToSqlOutput::Owned(Sql::Real(*number)),
            Self::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

impl From<ValueRef<'_>> for Cell {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            ValueRef::Text(text) | ValueRef::Blob(text) => {
                Self::Text(String::from_utf8_lossy(text).into_owned())
            }
        }
    }
}
