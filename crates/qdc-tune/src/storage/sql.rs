//! Optuna's relational schema, read and written the same way on every database.
//!
//! A [`Database`] runs statements; [`SqlStorage`] knows what they mean. States are written into the statements (they
//! are words of ours), everything else is bound.

use std::collections::BTreeMap;

use serde_json::Value;

use super::{NewTrial, Storage, StudyRecord, owner, schema};
use crate::{Direction, Distribution, Error, Result, State, Trial};

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
    fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(number) => Some(*number),
            _ => None,
        }
    }

    fn real(&self) -> Option<f64> {
        match self {
            Self::Real(number) => Some(*number),
            Self::Integer(number) => Some(*number as f64),
            _ => None,
        }
    }

    fn text(&self) -> Option<&str> {
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
}

/// Studies in a relational database.
pub struct SqlStorage<D> {
    database: D,
}

impl<D: Database> SqlStorage<D> {
    /// Checks the schema, or makes it where there is none.
    pub(super) fn prepare(database: D) -> Result<Self> {
        let mut storage = Self { database };
        if !storage.database.has_tables()?.0 {
            storage.transaction(|database| match database.has_tables()? {
                (true, _) => Ok(()), // somebody else was faster
                (false, true) => Err(Error::Malformed {
                    storage: database.name(),
                    problem: "it holds tables, but not Optuna's".into(),
                }),
                (false, false) => database.batch(&schema::script(&D::WORDS)),
            })?;
        }
        let revisions = storage.database.query("SELECT version_num FROM alembic_version", &[])?;
        match revisions.first().and_then(|row| row[0].text()) {
            Some(schema::REVISION) => Ok(storage),
            found => Err(Error::Schema {
                storage: storage.database.name(),
                found: found.unwrap_or("none").to_owned(),
                known: schema::REVISION,
            }),
        }
    }

    pub(super) fn database(&self) -> &D {
        &self.database
    }

    /// All of it or nothing.
    fn transaction<T>(&mut self, work: impl FnOnce(&mut D) -> Result<T>) -> Result<T> {
        self.database.begin()?;
        match work(&mut self.database) {
            Ok(value) => {
                if let Err(error) = self.database.batch("COMMIT") {
                    self.database.batch("ROLLBACK").ok(); // the error that matters is the first
                    return Err(error);
                }
                Ok(value)
            }
            Err(error) => {
                self.database.batch("ROLLBACK").ok();
                Err(error)
            }
        }
    }

    fn malformed(&self, problem: impl Into<String>) -> Error {
        Error::Malformed { storage: self.database.name(), problem: problem.into() }
    }

    fn attributes(
        &mut self,
        table: &str,
        parent: &str,
        keys: &str,
    ) -> Result<BTreeMap<i64, BTreeMap<String, Value>>> {
        let query = format!("SELECT {parent}, \"key\", value_json FROM {table} WHERE {parent} IN ({keys})");
        let mut all: BTreeMap<i64, BTreeMap<String, Value>> = BTreeMap::new();
        for row in self.database.query(&query, &[])? {
            if let (Some(id), Some(key), Some(text)) = (row[0].integer(), row[1].text(), row[2].text()) {
                let value = serde_json::from_str(text)
                    .map_err(|error| self.malformed(format!("attribute {key} of {id}: {error}")))?;
                all.entry(id).or_default().insert(key.to_owned(), value);
            }
        }
        Ok(all)
    }
}

impl<D: Database> Storage for SqlStorage<D> {
    fn name(&self) -> String {
        self.database.name()
    }

    fn studies(&mut self) -> Result<Vec<StudyRecord>> {
        let rows = self.database.query(
            "SELECT s.study_id, s.study_name, CAST(d.direction AS TEXT) FROM studies s \
             LEFT JOIN study_directions d ON d.study_id = s.study_id ORDER BY s.study_id, d.objective",
            &[],
        )?;
        let mut studies: Vec<StudyRecord> = Vec::new();
        for row in rows {
            let (Some(id), Some(name)) = (row[0].integer(), row[1].text()) else { continue };
            if studies.last().is_none_or(|last| last.id != id) {
                let record = StudyRecord {
                    id,
                    name: name.to_owned(),
                    directions: Vec::new(),
                    attributes: BTreeMap::new(),
                };
                studies.push(record);
            }
            let direction = match row[2].text() {
                Some("MINIMIZE") => Some(Direction::Minimize),
                Some("MAXIMIZE") => Some(Direction::Maximize),
                _ => None,
            };
            studies.last_mut().expect("just pushed").directions.extend(direction);
        }
        let keys = list(studies.iter().map(|study| study.id));
        let mut attributes = self.attributes("study_user_attributes", "study_id", &keys)?;
        for study in &mut studies {
            study.attributes = attributes.remove(&study.id).unwrap_or_default();
        }
        Ok(studies)
    }

    fn open_study(&mut self, name: &str, direction: Direction) -> Result<StudyRecord> {
        self.transaction(|database| {
            let added = database.query(
                "INSERT INTO studies (study_name) VALUES ($1) ON CONFLICT DO NOTHING RETURNING study_id",
                &[name.into()],
            )?;
            if let Some(id) = added.first().and_then(|row| row[0].integer()) {
                let word = match direction {
                    Direction::Minimize => "MINIMIZE",
                    Direction::Maximize => "MAXIMIZE",
                };
                let insert = format!(
                    "INSERT INTO study_directions (direction, study_id, objective) VALUES ('{word}', $1, 0)"
                );
                database.execute(&insert, &[Cell::Integer(id)])?;
            }
            Ok(())
        })?;
        let found = self.studies()?.into_iter().find(|study| study.name == name);
        found.ok_or_else(|| Error::NoStudy { study: name.to_owned(), storage: self.name() })
    }

    fn set_study_attribute(&mut self, study: i64, key: &str, value: &Value) -> Result<()> {
        self.transaction(|database| {
            database.execute(
                "INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES ($1, $2, $3) \
                 ON CONFLICT (study_id, \"key\") DO UPDATE SET value_json = excluded.value_json",
                &[Cell::Integer(study), key.into(), value.into()],
            )
        })?;
        Ok(())
    }

    fn trials(&mut self, study: i64, after: i64, also: &[i64]) -> Result<Vec<Trial>> {
        let also = list(also.iter().copied());
        let rows = self.database.query(
            &format!(
                "SELECT trial_id, number, CAST(state AS TEXT), CAST(datetime_start AS TEXT), \
                 CAST(datetime_complete AS TEXT) FROM trials \
                 WHERE study_id = $1 AND (trial_id > $2 OR trial_id IN ({also})) ORDER BY number"
            ),
            &[Cell::Integer(study), Cell::Integer(after)],
        )?;
        let mut trials: BTreeMap<i64, Trial> = BTreeMap::new();
        for row in rows {
            let (Some(id), Some(number), Some(state)) =
                (row[0].integer(), row[1].integer(), row[2].text().and_then(State::from_word))
            else {
                return Err(self.malformed(format!("an unreadable trial {row:?}")));
            };
            let time = |cell: &Cell| cell.text().map(str::to_owned);
            let trial = Trial {
                id,
                number: number as u64,
                state,
                value: None,
                parameters: BTreeMap::new(),
                intermediate: BTreeMap::new(),
                user_attributes: BTreeMap::new(),
                system_attributes: BTreeMap::new(),
                times: (time(&row[3]), time(&row[4])),
            };
            trials.insert(id, trial);
        }
        if trials.is_empty() {
            return Ok(Vec::new());
        }
        let keys = list(trials.keys().copied());
        let parameters = self.database.query(
            &format!("SELECT trial_id, param_name, param_value, distribution_json FROM trial_params WHERE trial_id IN ({keys})"),
            &[],
        )?;
        for row in parameters {
            if let (Some(id), Some(name), Some(value), Some(text)) =
                (row[0].integer(), row[1].text(), row[2].real(), row[3].text())
            {
                let distribution = Distribution::from_json(text)?;
                trials
                    .get_mut(&id)
                    .expect("asked for")
                    .parameters
                    .insert(name.to_owned(), (distribution, value));
            }
        }
        let values = self.database.query(
            &format!("SELECT trial_id, value, CAST(value_type AS TEXT) FROM trial_values WHERE objective = 0 AND trial_id IN ({keys})"),
            &[],
        )?;
        for row in values {
            let id = row[0].integer().expect("a key");
            trials.get_mut(&id).expect("asked for").value = Some(number(&row[1], &row[2]));
        }
        let reports = self.database.query(
            &format!(
                "SELECT trial_id, step, intermediate_value, CAST(intermediate_value_type AS TEXT) \
                 FROM trial_intermediate_values WHERE trial_id IN ({keys})"
            ),
            &[],
        )?;
        for row in reports {
            if let (Some(id), Some(step)) = (row[0].integer(), row[1].integer()) {
                trials.get_mut(&id).expect("asked for").intermediate.insert(step, number(&row[2], &row[3]));
            }
        }
        for (id, attributes) in self.attributes("trial_user_attributes", "trial_id", &keys)? {
            trials.get_mut(&id).expect("asked for").user_attributes = attributes;
        }
        for (id, attributes) in self.attributes("trial_system_attributes", "trial_id", &keys)? {
            trials.get_mut(&id).expect("asked for").system_attributes = attributes;
        }
        let mut trials: Vec<Trial> = trials.into_values().collect();
        trials.sort_by_key(|trial| trial.number);
        Ok(trials)
    }

    fn add_trial(
        &mut self,
        study: i64,
        expected: Option<u64>,
        trial: &NewTrial,
    ) -> Result<Option<(i64, u64)>> {
        self.transaction(|database| {
            if let Some(lock) = D::LOCK_STUDY {
                database.query(lock, &[Cell::Integer(study)])?;
            }
            let count = database
                .query("SELECT count(*) FROM trials WHERE study_id = $1", &[Cell::Integer(study)])?[0][0]
                .integer();
            let number = count.unwrap_or(0) as u64;
            if expected.is_some_and(|expected| expected != number) {
                return Ok(None);
            }
            let (word, now) = (trial.state.word(), D::NOW);
            let start = if trial.state == State::Waiting { "NULL" } else { now };
            let complete = if trial.state.is_finished() { now } else { "NULL" };
            let id = database.query(
                &format!(
                    "INSERT INTO trials (number, study_id, state, datetime_start, datetime_complete) \
                     VALUES ($1, $2, '{word}', {start}, {complete}) RETURNING trial_id"
                ),
                &[Cell::Integer(number as i64), Cell::Integer(study)],
            )?[0][0]
                .integer()
                .expect("a key");
            insert_parameters(database, id, &trial.parameters)?;
            if let Some(value) = trial.value {
                insert_value(database, id, value)?;
            }
            for (step, value) in &trial.intermediate {
                insert_report(database, id, *step, *value)?;
            }
            for (key, value) in &trial.user_attributes {
                set_attribute(database, "trial_user_attributes", id, key, value)?;
            }
            for (key, value) in &trial.system_attributes {
                set_attribute(database, "trial_system_attributes", id, key, value)?;
            }
            if trial.state == State::Running {
                set_attribute(database, "trial_system_attributes", id, owner::KEY, &owner::current())?;
                beat(database, id)?;
            }
            Ok(Some((id, number)))
        })
    }

    fn claim(&mut self, trial: &Trial) -> Result<bool> {
        let id = Cell::Integer(trial.id);
        let mine = Cell::from(&owner::current());
        self.transaction(|database| {
            let update = format!(
                "UPDATE trials SET state = 'RUNNING', datetime_start = {} WHERE trial_id = $1 AND state = '{}'",
                D::NOW,
                trial.state.word()
            );
            let mut won = database.execute(&update, std::slice::from_ref(&id))? == 1;
            if won && trial.state == State::Running {
                // Several may want a trial whose worker is gone: the one that replaces the old name gets it.
                won = match trial.system_attributes.get(owner::KEY) {
                    Some(gone) => {
                        let cells = [mine.clone(), id.clone(), owner::KEY.into(), gone.into()];
                        let swap = "UPDATE trial_system_attributes SET value_json = $1 \
                                    WHERE trial_id = $2 AND \"key\" = $3 AND value_json = $4";
                        database.execute(swap, &cells)? == 1
                    }
                    None => {
                        let insert = "INSERT INTO trial_system_attributes (trial_id, \"key\", value_json) \
                                      VALUES ($1, $2, $3) ON CONFLICT DO NOTHING";
                        database.execute(insert, &[id, owner::KEY.into(), mine])? == 1
                    }
                };
            } else if won {
                set_attribute(database, "trial_system_attributes", trial.id, owner::KEY, &owner::current())?;
            }
            if won {
                database.execute("DELETE FROM trial_intermediate_values WHERE trial_id = $1", &[Cell::Integer(trial.id)])?;
                beat(database, trial.id)?;
            }
            Ok(won)
        })
    }

    fn add_parameters(
        &mut self,
        trial: i64,
        parameters: &BTreeMap<String, (Distribution, f64)>,
    ) -> Result<()> {
        self.transaction(|database| insert_parameters(database, trial, parameters))
    }

    fn finish(
        &mut self,
        trial: i64,
        state: State,
        value: Option<f64>,
        attributes: &BTreeMap<String, Value>,
    ) -> Result<bool> {
        self.transaction(|database| {
            let update = format!(
                "UPDATE trials SET state = '{}', datetime_complete = {} WHERE trial_id = $1 AND state = 'RUNNING'",
                state.word(),
                D::NOW
            );
            if database.execute(&update, &[Cell::Integer(trial)])? == 0 {
                return Ok(false);
            }
            if let Some(value) = value {
                insert_value(database, trial, value)?;
            }
            for (key, value) in attributes {
                set_attribute(database, "trial_user_attributes", trial, key, value)?;
            }
            Ok(true)
        })
    }

    fn release(&mut self, trial: i64) -> Result<()> {
        self.transaction(|database| {
            let id = [Cell::Integer(trial)];
            database.execute(
                "UPDATE trials SET state = 'WAITING' WHERE trial_id = $1 AND state = 'RUNNING'",
                &id,
            )?;
            database.execute("DELETE FROM trial_heartbeats WHERE trial_id = $1", &id)?;
            Ok(())
        })
    }

    fn report(&mut self, trial: i64, step: i64, value: f64) -> Result<()> {
        self.transaction(|database| insert_report(database, trial, step, value))
    }

    fn heartbeat(&mut self, trials: &[i64]) -> Result<()> {
        if trials.is_empty() {
            return Ok(());
        }
        self.transaction(|database| trials.iter().try_for_each(|&trial| beat(database, trial)))
    }

    fn stale(&mut self, study: i64, grace: u64) -> Result<Vec<i64>> {
        let query = format!(
            "SELECT t.trial_id, CASE WHEN h.heartbeat < {} THEN 1 ELSE 0 END, a.value_json FROM trials t \
             LEFT JOIN trial_heartbeats h ON h.trial_id = t.trial_id \
             LEFT JOIN trial_system_attributes a ON a.trial_id = t.trial_id AND a.\"key\" = $1 \
             WHERE t.study_id = $2 AND t.state = 'RUNNING' ORDER BY t.trial_id",
            D::older_than(grace)
        );
        let rows = self.database.query(&query, &[owner::KEY.into(), Cell::Integer(study)])?;
        let gone = |cell: &Cell| {
            cell.text()
                .and_then(|text| serde_json::from_str(text).ok())
                .is_some_and(|name: Value| owner::is_gone(&name))
        };
        Ok(rows
            .iter()
            .filter(|row| row[1].integer() == Some(1) || gone(&row[2]))
            .filter_map(|row| row[0].integer())
            .collect())
    }
}

/// Keys for `IN (...)`; an empty list matches nothing.
fn list(keys: impl Iterator<Item = i64>) -> String {
    let keys: Vec<String> = keys.map(|key| key.to_string()).collect();
    if keys.is_empty() { "-1".into() } else { keys.join(", ") }
}

/// A number and its type, as Optuna stores them: databases have no infinities.
fn number(value: &Cell, kind: &Cell) -> f64 {
    match kind.text() {
        Some("INF_POS") => f64::INFINITY,
        Some("INF_NEG") => f64::NEG_INFINITY,
        _ => value.real().unwrap_or(f64::NAN),
    }
}

fn stored(value: f64) -> (Cell, &'static str) {
    if value.is_nan() {
        (Cell::Null, "NAN")
    } else if value == f64::INFINITY {
        (Cell::Null, "INF_POS")
    } else if value == f64::NEG_INFINITY {
        (Cell::Null, "INF_NEG")
    } else {
        (Cell::Real(value), "FINITE")
    }
}

fn insert_parameters(
    database: &mut impl Database,
    trial: i64,
    parameters: &BTreeMap<String, (Distribution, f64)>,
) -> Result<()> {
    for (name, (distribution, value)) in parameters {
        database.execute(
            "INSERT INTO trial_params (trial_id, param_name, param_value, distribution_json) VALUES ($1, $2, $3, $4)",
            &[Cell::Integer(trial), name.as_str().into(), Cell::Real(*value), Cell::Text(distribution.to_json())],
        )?;
    }
    Ok(())
}

fn insert_value(database: &mut impl Database, trial: i64, value: f64) -> Result<()> {
    let (cell, kind) = stored(value);
    let insert = format!(
        "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES ($1, 0, $2, '{kind}')"
    );
    database.execute(&insert, &[Cell::Integer(trial), cell])?;
    Ok(())
}

fn insert_report(database: &mut impl Database, trial: i64, step: i64, value: f64) -> Result<()> {
    let (cell, kind) = stored(value);
    let insert = format!(
        "INSERT INTO trial_intermediate_values (trial_id, step, intermediate_value, intermediate_value_type) \
         VALUES ($1, $2, $3, '{kind}') ON CONFLICT (trial_id, step) DO UPDATE \
         SET intermediate_value = excluded.intermediate_value, \
         intermediate_value_type = excluded.intermediate_value_type"
    );
    database.execute(&insert, &[Cell::Integer(trial), Cell::Integer(step), cell])?;
    Ok(())
}

fn set_attribute(
    database: &mut impl Database,
    table: &str,
    trial: i64,
    key: &str,
    value: &Value,
) -> Result<()> {
    let insert = format!(
        "INSERT INTO {table} (trial_id, \"key\", value_json) VALUES ($1, $2, $3) \
         ON CONFLICT (trial_id, \"key\") DO UPDATE SET value_json = excluded.value_json"
    );
    database.execute(&insert, &[Cell::Integer(trial), key.into(), value.into()])?;
    Ok(())
}

fn beat(database: &mut impl Database, trial: i64) -> Result<()> {
    database.execute(
        "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES ($1, CURRENT_TIMESTAMP) \
         ON CONFLICT (trial_id) DO UPDATE SET heartbeat = excluded.heartbeat",
        &[Cell::Integer(trial)],
    )?;
    Ok(())
}
