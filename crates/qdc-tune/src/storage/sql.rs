//! Optuna's relational schema, read and written the same way on every database.
//!
//! A [`Database`] runs statements; [`SqlStorage`] knows what they mean, [`rows`](super::rows) how a row is
//! written. States are written into the statements (they are words of ours), everything else is bound.

use std::collections::BTreeMap;

use serde_json::Value;

use super::database::{Cell, Database};
use super::owner::{self, Presence};
use super::rows::{beat, clear, insert_parameters, insert_report, insert_value, list, number, set_attribute};
use super::{NewTrial, Storage, StudyRecord, schema};
use crate::{Direction, Distribution, Error, Result, State, Trial};

/// Studies in a relational database.
pub struct SqlStorage<D> {
    database: D,
}

impl<D: Database> SqlStorage<D> {
    /// Checks the schema, or makes it where there is none.
    pub(super) fn prepare(database: D) -> Result<Self> {
        let mut storage = Self { database };
        if !storage.database.has_tables()?.0 {
            storage.database.transaction(|database| match database.has_tables()? {
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

    pub(super) fn database_mut(&mut self) -> &mut D {
        &mut self.database
    }

    fn malformed(&self, problem: impl Into<String>) -> Error {
        Error::Malformed { storage: self.database.name(), problem: problem.into() }
    }

    /// The attributes in `table` of everything whose key `parent` is one of `keys`.
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

    /// What the table of trials alone says about them, by key.
    fn bare_trials(&mut self, study: i64, after: i64, also: &[i64]) -> Result<BTreeMap<i64, Trial>> {
        let also = list(also.iter().copied());
        let rows = self.database.query(
            &format!(
                "SELECT trial_id, number, CAST(state AS TEXT), CAST(datetime_start AS TEXT), \
                 CAST(datetime_complete AS TEXT) FROM trials \
                 WHERE study_id = $1 AND (trial_id > $2 OR trial_id IN ({also}))"
            ),
            &[Cell::Integer(study), Cell::Integer(after)],
        )?;
        rows.iter()
            .map(|row| {
                let number = row[1].integer().and_then(|number| u32::try_from(number).ok());
                let (Some(id), Some(number), Some(state)) =
                    (row[0].integer(), number, row[2].text().and_then(State::from_word))
                else {
                    return Err(self.malformed(format!("an unreadable trial {row:?}")));
                };
                let time = |cell: &Cell| cell.text().map(str::to_owned);
                let trial = Trial {
                    id,
                    number: number.into(),
                    state,
                    value: None,
                    parameters: BTreeMap::new(),
                    intermediate: BTreeMap::new(),
                    user_attributes: BTreeMap::new(),
                    system_attributes: BTreeMap::new(),
                    times: (time(&row[3]), time(&row[4])),
                };
                Ok((id, trial))
            })
            .collect()
    }

    /// Lets `add` put `columns` of every row of `table` into the trial it belongs to.
    fn fill(
        &mut self,
        trials: &mut BTreeMap<i64, Trial>,
        table: &str,
        columns: &str,
        add: impl Fn(&mut Trial, &[Cell]) -> Result<()>,
    ) -> Result<()> {
        let keys = list(trials.keys().copied());
        let query = format!("SELECT trial_id, {columns} FROM {table} WHERE trial_id IN ({keys})");
        for row in self.database.query(&query, &[])? {
            if let Some(trial) = row[0].integer().and_then(|id| trials.get_mut(&id)) {
                add(trial, &row[1..])?;
            }
        }
        Ok(())
    }
}

impl<D: Database + 'static> Storage for SqlStorage<D> {
    fn name(&self) -> String {
        self.database.name()
    }

    fn reopen(&self) -> Result<Option<Box<dyn Storage>>> {
        let again = self.database.reopen()?;
        Ok(again.map(|database| Box::new(Self { database }) as Box<dyn Storage>))
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
        self.database.transaction(|database| {
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
        self.database.transaction(|database| {
            database.execute(
                "INSERT INTO study_user_attributes (study_id, \"key\", value_json) VALUES ($1, $2, $3) \
                 ON CONFLICT (study_id, \"key\") DO UPDATE SET value_json = excluded.value_json",
                &[Cell::Integer(study), key.into(), value.into()],
            )
        })?;
        Ok(())
    }

    fn trials(&mut self, study: i64, after: i64, also: &[i64]) -> Result<Vec<Trial>> {
        let mut trials = self.bare_trials(study, after, also)?;
        if trials.is_empty() {
            return Ok(Vec::new());
        }
        let parameter = "param_name, distribution_json, param_value";
        self.fill(&mut trials, "trial_params", parameter, |trial, row| {
            if let ([Cell::Text(name), Cell::Text(distribution), ..], Some(value)) = (row, row[2].real()) {
                trial.parameters.insert(name.clone(), (Distribution::from_json(distribution)?, value));
            }
            Ok(())
        })?;
        let value = "objective, value, CAST(value_type AS TEXT)";
        self.fill(&mut trials, "trial_values", value, |trial, row| {
            if row[0] == Cell::Integer(0) {
                trial.value = Some(number(&row[1], &row[2]));
            }
            Ok(())
        })?;
        let report = "step, intermediate_value, CAST(intermediate_value_type AS TEXT)";
        self.fill(&mut trials, "trial_intermediate_values", report, |trial, row| {
            if let Some(step) = row[0].integer() {
                trial.intermediate.insert(step, number(&row[1], &row[2]));
            }
            Ok(())
        })?;
        let keys = list(trials.keys().copied());
        for (id, attributes) in self.attributes("trial_user_attributes", "trial_id", &keys)? {
            trials.entry(id).and_modify(|trial| trial.user_attributes = attributes);
        }
        for (id, attributes) in self.attributes("trial_system_attributes", "trial_id", &keys)? {
            trials.entry(id).and_modify(|trial| trial.system_attributes = attributes);
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
        self.database.transaction(|database| {
            if let Some(lock) = D::LOCK_STUDY {
                database.query(lock, &[Cell::Integer(study)])?;
            }
            let largest = database
                .query("SELECT max(number) FROM trials WHERE study_id = $1", &[Cell::Integer(study)])?[0][0]
                .integer();
            let number = largest.map_or(0, |largest| largest as u64 + 1);
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
            clear(database, id)?;
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
        self.database.transaction(|database| {
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
        self.database.transaction(|database| insert_parameters(database, trial, parameters))
    }

    fn finish(
        &mut self,
        trial: i64,
        state: State,
        value: Option<f64>,
        attributes: &BTreeMap<String, Value>,
    ) -> Result<bool> {
        self.database.transaction(|database| {
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
        self.database.transaction(|database| {
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
        self.database.transaction(|database| insert_report(database, trial, step, value))
    }

    fn heartbeat(&mut self, trials: &[i64]) -> Result<()> {
        if trials.is_empty() {
            return Ok(());
        }
        self.database.transaction(|database| trials.iter().try_for_each(|&trial| beat(database, trial)))
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
        let gone = |row: &&Vec<Cell>| {
            let owner = row[2].text().and_then(|text| serde_json::from_str(text).ok()).unwrap_or(Value::Null);
            match owner::presence(&owner) {
                Presence::Alive => false,
                Presence::Gone => true,
                Presence::Unknown => row[1].integer() == Some(1),
            }
        };
        Ok(rows.iter().filter(gone).filter_map(|row| row[0].integer()).collect())
    }
}
