//! PostgreSQL: several machines share a study.

use std::error::Error as _;

use postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use postgres::{Client, NoTls};

use super::database::{Cell, Database};
use super::schema;
use super::sql::SqlStorage;
use super::without_password;
use crate::{Error, Result};

/// Studies on a PostgreSQL server.
pub type Postgres = SqlStorage<PostgresDatabase>;

impl Postgres {
    /// Connects to `postgresql://user:password@host:port/database` (or `?host=/socket/folder`).
    pub fn connect(address: &str) -> Result<Self> {
        // SQLAlchemy names its driver in the scheme; it is the same server.
        let plain = match address.split_once("://") {
            Some((scheme, rest)) if scheme.contains('+') => format!("postgresql://{rest}"),
            _ => address.to_owned(),
        };
        let name = without_password(address);
        SqlStorage::prepare(PostgresDatabase::connect(plain, name)?)
    }
}

/// An open connection.
pub struct PostgresDatabase {
    client: Client,
    address: String,
    name: String,
}

impl Database for PostgresDatabase {
    const WORDS: schema::Words = schema::POSTGRES;
    const NOW: &'static str = "(clock_timestamp() AT TIME ZONE 'utc')";
    const LOCK_STUDY: Option<&'static str> =
        Some("SELECT study_id FROM studies WHERE study_id = $1 FOR UPDATE");

    fn name(&self) -> String {
        self.name.clone()
    }

    fn reopen(&self) -> Result<Option<Self>> {
        Self::connect(self.address.clone(), self.name.clone()).map(Some)
    }

    fn has_tables(&mut self) -> Result<(bool, bool)> {
        // Not to_regclass: within a transaction it may remember that there was no such table.
        let mut has = |table: &str| {
            let found =
                "SELECT count(*) FROM pg_catalog.pg_class WHERE relname = $1 AND pg_table_is_visible(oid)";
            let rows = self.query(found, &[Cell::Text(table.to_owned())])?;
            Ok(rows[0][0] != Cell::Integer(0))
        };
        let ours = has("alembic_version")?;
        Ok((ours, ours || has("trials")?))
    }

    fn begin(&mut self) -> Result<()> {
        self.batch("BEGIN")
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        if statements.contains("CREATE TABLE") {
            // Two programs may find an empty database at once; one makes the tables, the other finds them.
            self.client
                .batch_execute("SELECT pg_advisory_xact_lock(7165491)")
                .map_err(|error| problem(&self.name, &error))?;
            if self.has_tables()?.0 {
                return Ok(());
            }
        }
        self.client.batch_execute(statements).map_err(|error| problem(&self.name, &error))
    }

    fn execute(&mut self, statement: &str, cells: &[Cell]) -> Result<u64> {
        self.client.execute(statement, &bound(cells)).map_err(|error| problem(&self.name, &error))
    }

    fn query(&mut self, statement: &str, cells: &[Cell]) -> Result<Vec<Vec<Cell>>> {
        let rows =
            self.client.query(statement, &bound(cells)).map_err(|error| problem(&self.name, &error))?;
        rows.iter().map(|row| (0..row.len()).map(|column| self.cell(row, column)).collect()).collect()
    }

    fn older_than(seconds: u64) -> String {
        format!("CURRENT_TIMESTAMP - interval '{seconds} seconds'")
    }
}

impl PostgresDatabase {
    fn connect(address: String, name: String) -> Result<Self> {
        let client = Client::connect(&address, NoTls).map_err(|error| problem(&name, &error))?;
        Ok(Self { client, address, name })
    }

    fn cell(&self, row: &postgres::Row, column: usize) -> Result<Cell> {
        let failed = |error| problem(&self.name, &error);
        let kind = row.columns()[column].type_().clone();
        let cell = match kind {
            Type::INT2 => {
                row.try_get::<_, Option<i16>>(column).map_err(failed)?.map(|n| Cell::Integer(n.into()))
            }
            Type::INT4 => {
                row.try_get::<_, Option<i32>>(column).map_err(failed)?.map(|n| Cell::Integer(n.into()))
            }
            Type::INT8 => row.try_get::<_, Option<i64>>(column).map_err(failed)?.map(Cell::Integer),
            Type::FLOAT4 => {
                row.try_get::<_, Option<f32>>(column).map_err(failed)?.map(|n| Cell::Real(n.into()))
            }
            Type::FLOAT8 => row.try_get::<_, Option<f64>>(column).map_err(failed)?.map(Cell::Real),
            _ => row.try_get::<_, Option<String>>(column).map_err(failed)?.map(Cell::Text),
        };
        Ok(cell.unwrap_or(Cell::Null))
    }
}

fn bound(cells: &[Cell]) -> Vec<&(dyn ToSql + Sync)> {
    cells.iter().map(|cell| cell as &(dyn ToSql + Sync)).collect()
}

impl ToSql for Cell {
    fn to_sql(
        &self,
        kind: &Type,
        out: &mut postgres::types::private::BytesMut,
    ) -> std::result::Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        match (self, kind) {
            (Self::Null, _) => Ok(IsNull::Yes),
            (Self::Integer(number), &Type::INT4) => i32::try_from(*number)?.to_sql(kind, out),
            (Self::Integer(number), &Type::FLOAT8) => (*number as f64).to_sql(kind, out),
            (Self::Integer(number), _) => number.to_sql(kind, out),
            (Self::Real(number), _) => number.to_sql(kind, out),
            (Self::Text(text), _) => text.to_sql(kind, out),
        }
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

fn problem(name: &str, error: &postgres::Error) -> Error {
    let code = error.code().map(postgres::error::SqlState::code);
    let storage = name.to_owned();
    match code {
        Some("53100") => Error::Full { storage },
        Some("55P03" | "40P01") => Error::Locked { storage },
        Some("25006" | "42501") => Error::ReadOnly { storage },
        _ => {
            let cause = error.source().map_or_else(String::new, |cause| format!(": {cause}"));
            Error::Database { storage, problem: format!("{error}{cause}") }
        }
    }
}
