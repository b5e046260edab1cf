//! Rows of Optuna's tables that belong to a trial: how each is written, and how numbers are read.

use std::collections::BTreeMap;

use serde_json::Value;

use super::database::{Cell, Database};
use crate::{Distribution, Result};

/// Keys for `IN (...)`; an empty list matches nothing.
pub(super) fn list(keys: impl Iterator<Item = i64>) -> String {
    let keys: Vec<String> = keys.map(|key| key.to_string()).collect();
    if keys.is_empty() { "-1".into() } else { keys.join(", ") }
}

/// A number and its type, as Optuna stores them: databases have no infinities.
pub(super) fn number(value: &Cell, kind: &Cell) -> f64 {
    match kind.text() {
        Some("INF_POS") => f64::INFINITY,
        Some("INF_NEG") => f64::NEG_INFINITY,
        _ => value.real().unwrap_or(f64::NAN),
    }
}

/// The same, to be stored.
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

/// Deletes what belongs to a new trial's key: databases use the keys of deleted trials again, and a trial
/// deleted by hand may have left rows in other tables.
pub(super) fn clear(database: &mut impl Database, trial: i64) -> Result<()> {
    for table in [
        "trial_params",
        "trial_values",
        "trial_intermediate_values",
        "trial_user_attributes",
        "trial_system_attributes",
        "trial_heartbeats",
    ] {
        database.execute(&format!("DELETE FROM {table} WHERE trial_id = $1"), &[Cell::Integer(trial)])?;
    }
    Ok(())
}

/// Adds parameters to a trial.
pub(super) fn insert_parameters(
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

/// Gives a trial its value.
pub(super) fn insert_value(database: &mut impl Database, trial: i64, value: f64) -> Result<()> {
    let (cell, kind) = stored(value);
    let insert = format!(
        "INSERT INTO trial_values (trial_id, objective, value, value_type) VALUES ($1, 0, $2, '{kind}')"
    );
    database.execute(&insert, &[Cell::Integer(trial), cell])?;
    Ok(())
}

/// Adds a report, or replaces the one of the same step.
pub(super) fn insert_report(database: &mut impl Database, trial: i64, step: i64, value: f64) -> Result<()> {
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

/// Attaches something to a trial; `table` says whose attributes they are.
pub(super) fn set_attribute(
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

/// Says that a trial is being worked on.
pub(super) fn beat(database: &mut impl Database, trial: i64) -> Result<()> {
    database.execute(
        "INSERT INTO trial_heartbeats (trial_id, heartbeat) VALUES ($1, CURRENT_TIMESTAMP) \
         ON CONFLICT (trial_id) DO UPDATE SET heartbeat = excluded.heartbeat",
        &[Cell::Integer(trial)],
    )?;
    Ok(())
}
