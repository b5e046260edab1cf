//! SQLite: one file holds many studies.
//!
//! SQLite's default journal is kept: a transaction cut short by a kill or a power failure is rolled back by
//! whoever opens the file next, and the study stays one file. Writers wait for each other.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::types::{ToSqlOutput, Value as Sql, ValueRef};
use rusqlite::{Connection, ErrorCode};

use super::database::{Cell, Database};
use super::sql::SqlStorage;
use super::{parsed_size, schema};
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
            .map(|connection| SqliteDatabase { connection, path, patience, rows: u64::MAX })
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

    /// The same; reading takes at most `memory` bytes: an eighth of them for SQLite itself, which counts for
    /// the whole process, and an eighth for the rows of one query, of which a reading holds up to six.
    ///
    /// # Errors
    /// If SQLite refuses the limit.
    pub fn within(mut self, memory: u64) -> Result<Self> {
        let database = self.database_mut();
        database.rows = memory / 8;
        let heap = format!("PRAGMA hard_heap_limit = {}", (memory / 8).min(i64::MAX as u64));
        let set = database.connection.query_row(&heap, [], |_| Ok(()));
        set.map_err(|error| problem(&database.path, &error))?;
        Ok(self)
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
    /// The most bytes that the rows of one query may take, parsed.
    rows: u64,
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
            Some(_) => Ok(Some(Self { rows: self.rows, ..Self::connect(&self.path, self.patience)? })),
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
        let (mut found, mut held) = (Vec::new(), 0);
        for row in rows.map_err(|error| self.problem(&error))? {
            let row = row.map_err(|error| self.problem(&error))?;
            held += row.iter().map(size).sum::<u64>();
            if held > self.rows {
                return Err(Error::Memory { storage: self.name(), allowed: self.rows });
            }
            found.push(row);
        }
        Ok(found)
    }

    fn older_than(seconds: u64) -> String {
        format!("datetime('now', '-{seconds} seconds')")
    }
}

impl SqliteDatabase {
    fn connect(path: &Path, patience: Duration) -> Result<Self> {
        let connection = Connection::open(path).map_err(|error| problem(path, &error))?;
        connection.busy_timeout(patience).map_err(|error| problem(path, &error))?;
        // A view can make rows without end of a file of one page, and a trigger more of each row written.
        let query = "SELECT type || ' ' || name FROM sqlite_master WHERE type IN ('view', 'trigger') LIMIT 1";
        match connection.query_row(query, [], |row| row.get::<_, String>(0)) {
            Err(rusqlite::Error::QueryReturnedNoRows) => {}
            Err(error) => return Err(problem(path, &error)),
            Ok(found) => {
                let problem = format!("it holds the {found}, and a study consists of tables");
                return Err(Error::Malformed { storage: path.display().to_string(), problem });
            }
        }
        Ok(Self { connection, path: path.to_path_buf(), patience, rows: u64::MAX })
    }

    fn problem(&self, error: &rusqlite::Error) -> Error {
        problem(&self.path, error)
    }
}

/// What a cell takes, with its share of the row, and parsed if it is a text: it may be JSON.
fn size(cell: &Cell) -> u64 {
    64 + cell.text().map_or(0, |text| parsed_size(text.as_bytes()))
}

fn problem(path: &Path, error: &rusqlite::Error) -> Error {
    let storage = path.display().to_string();
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Error::Locked { storage },
        Some(ErrorCode::DiskFull) => Error::Full { storage },
        Some(ErrorCode::OutOfMemory) => {
            Error::Database { storage, problem: "SQLite needs more memory than it is allowed".into() }
        }
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
