//! Optuna's journal file: one JSON object a line, each an operation. Export and import only.
//!
//! A program killed while appending leaves a torn last line; reading stops there and says so.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::{NewTrial, Storage, StudyRecord, parsed_size};
use crate::{Direction, Distribution, Error, Result, State, Trial};

const CREATE_STUDY: u64 = 0;
const DELETE_STUDY: u64 = 1;
const SET_STUDY_USER_ATTRIBUTE: u64 = 2;
const CREATE_TRIAL: u64 = 4;
const SET_PARAMETER: u64 = 5;
const SET_STATE: u64 = 6;
const SET_REPORT: u64 = 7;
const SET_USER_ATTRIBUTE: u64 = 8;
const SET_SYSTEM_ATTRIBUTE: u64 = 9;

/// Studies as a journal that `optuna.storages.JournalStorage` opens.
#[derive(Debug)]
pub struct Journal {
    lines: Vec<Value>,
    /// How many trials it holds.
    pub trials: usize,
}

impl Journal {
    /// Writes it, a line an operation.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        self.lines.iter().try_for_each(|line| writeln!(out, "{line}"))
    }
}

/// The journal of studies.
///
/// # Errors
/// Those of reading the storage.
pub fn export(storage: &mut dyn Storage, studies: &[StudyRecord]) -> Result<Journal> {
    let mut trials = 0;
    let mut lines = Vec::new();
    for (index, study) in studies.iter().enumerate() {
        let directions: Vec<u64> = study.directions.iter().map(|direction| number(*direction)).collect();
        lines.push(operation(CREATE_STUDY, json!({ "study_name": study.name, "directions": directions })));
        for (key, value) in &study.attributes {
            let attribute = Map::from_iter([(key.clone(), value.clone())]);
            lines.push(operation(
                SET_STUDY_USER_ATTRIBUTE,
                json!({ "study_id": index, "user_attr": attribute }),
            ));
        }
        for trial in storage.trials(study.id, 0, &[])? {
            lines.push(operation(CREATE_TRIAL, written(&trial, index)));
            trials += 1;
        }
    }
    Ok(Journal { lines, trials })
}

/// What was read from a journal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Imported {
    /// The names of the studies, with how many trials each has.
    pub studies: Vec<(String, usize)>,
    /// The line at which the journal breaks off, counting from 1; it was left out.
    pub torn_line: Option<usize>,
}

/// The studies that a journal holds.
pub struct Recorded {
    studies: Vec<Replayed>,
    torn_line: Option<usize>,
}

/// Reads the journal `name`, whose content is `bytes`.
///
/// # Errors
/// [`Error::Malformed`] with the line, and [`Error::Memory`] if its lines could take more than `memory` once
/// parsed.
pub fn read(name: &str, bytes: &[u8], memory: u64) -> Result<Recorded> {
    if parsed_size(bytes) > memory {
        return Err(Error::Memory { storage: name.to_owned(), allowed: memory });
    }
    let malformed = |problem| Error::Malformed { storage: name.to_owned(), problem };
    let (studies, torn_line) = replay(bytes).map_err(malformed)?;
    Ok(Recorded { studies, torn_line })
}

/// Puts the studies of a journal into a storage.
///
/// # Errors
/// If the name of one is taken; the storage is then as it was. Those of the storage, which may then hold some
/// of the studies.
pub fn import(storage: &mut dyn Storage, recorded: Recorded) -> Result<Imported> {
    let Recorded { studies, torn_line } = recorded;
    let taken: BTreeSet<String> = storage.studies()?.into_iter().map(|study| study.name).collect();
    if let Some(study) = studies.iter().find(|study| taken.contains(&study.name)) {
        return Err(Error::Direction {
            study: study.name.clone(),
            problem: format!("exists already in {}", storage.name()),
        });
    }
    let mut report = Vec::new();
    for study in studies {
        let record = storage.open_study(&study.name, study.direction)?;
        for (key, value) in &study.attributes {
            storage.set_study_attribute(record.id, key, value)?;
        }
        for trial in &study.trials {
            storage.add_trial(record.id, None, trial)?;
        }
        report.push((study.name, study.trials.len()));
    }
    Ok(Imported { studies: report, torn_line })
}

struct Replayed {
    name: String,
    direction: Direction,
    attributes: BTreeMap<String, Value>,
    trials: Vec<NewTrial>,
}

/// Follows the operations. The last line may be torn: without its end, or without sense; then its number is
/// given too.
fn replay(bytes: &[u8]) -> std::result::Result<(Vec<Replayed>, Option<usize>), String> {
    let mut studies: Vec<Option<Replayed>> = Vec::new();
    let mut names: BTreeSet<String> = BTreeSet::new(); // of the studies that are not deleted
    let mut places: Vec<(usize, usize)> = Vec::new(); // of each trial: study, place in it
    let end = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |place| place + 1);
    let lines: Vec<(usize, &[u8])> =
        bytes[..end].split(|&byte| byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty()).collect();
    let mut torn_line = (end < bytes.len()).then(|| 1 + bytes.iter().filter(|&&byte| byte == b'\n').count());
    for &(index, line) in &lines {
        let entry: Value = match parse(line) {
            Ok(entry) => entry,
            Err(_) if lines.last().is_some_and(|last| last.0 == index) => {
                torn_line = Some(index + 1);
                break;
            }
            Err(error) => return Err(format!("line {}: {error}", index + 1)),
        };
        let code = entry["op_code"].as_u64().ok_or(format!("line {}: no op_code", index + 1))?;
        if code == CREATE_STUDY {
            let name = entry["study_name"].as_str().unwrap_or_default().to_owned();
            let direction = match entry["directions"].as_array().map(Vec::as_slice) {
                Some([one]) if one.as_u64() == Some(1) => Direction::Minimize,
                Some([one]) if one.as_u64() == Some(2) => Direction::Maximize,
                _ => return Err(format!("study {name} does not have exactly one direction")),
            };
            if names.insert(name.clone()) {
                studies.push(Some(Replayed {
                    name,
                    direction,
                    attributes: BTreeMap::new(),
                    trials: Vec::new(),
                }));
            }
        } else if let Some(study) = entry.get("study_id").and_then(Value::as_u64) {
            let study = study as usize;
            let Some(Some(known)) = studies.get_mut(study) else { continue };
            match code {
                DELETE_STUDY => {
                    names.remove(&known.name);
                    studies[study] = None;
                }
                SET_STUDY_USER_ATTRIBUTE => known.attributes.extend(pairs(&entry["user_attr"])),
                CREATE_TRIAL => {
                    places.push((study, known.trials.len()));
                    known.trials.push(trial(&entry)?);
                }
                _ => {}
            }
        } else if let Some(trial) = entry.get("trial_id").and_then(Value::as_u64) {
            let Some(&(study, place)) = places.get(trial as usize) else { continue };
            let Some(trial) = studies[study].as_mut().map(|study| &mut study.trials[place]) else { continue };
            if !trial.state.is_finished() {
                apply(trial, code, &entry)?;
            }
        }
    }
    Ok((studies.into_iter().flatten().collect(), torn_line))
}

fn apply(trial: &mut NewTrial, code: u64, entry: &Value) -> std::result::Result<(), String> {
    match code {
        SET_PARAMETER => {
            let name = entry["param_name"].as_str().unwrap_or_default().to_owned();
            let distribution = distribution(&entry["distribution"])?;
            let value = entry["param_value_internal"].as_f64().ok_or("a parameter without a value")?;
            trial.parameters.insert(name, (distribution, value));
        }
        SET_STATE => {
            trial.state = entry["state"].as_u64().and_then(State::from_number).ok_or("an unknown state")?;
            if let Some(value) = entry["values"].get(0).and_then(real) {
                trial.value = Some(value);
            }
        }
        SET_REPORT => {
            if let (Some(step), Some(value)) = (entry["step"].as_i64(), real(&entry["intermediate_value"])) {
                trial.intermediate.insert(step, value);
            }
        }
        SET_USER_ATTRIBUTE => trial.user_attributes.extend(pairs(&entry["user_attr"])),
        SET_SYSTEM_ATTRIBUTE => trial.system_attributes.extend(pairs(&entry["system_attr"])),
        _ => {}
    }
    Ok(())
}

fn trial(entry: &Value) -> std::result::Result<NewTrial, String> {
    let mut trial = NewTrial::running(BTreeMap::new());
    trial.state = match &entry["state"] {
        Value::Null => State::Running,
        state => state.as_u64().and_then(State::from_number).ok_or("an unknown state")?,
    };
    trial.value = real(&entry["value"]).or_else(|| entry["values"].get(0).and_then(real));
    for (name, text) in pairs(&entry["distributions"]) {
        let value = entry["params"][&name].as_f64().ok_or(format!("parameter {name} without a value"))?;
        trial.parameters.insert(name, (distribution(&text)?, value));
    }
    for (step, value) in pairs(&entry["intermediate_values"]) {
        if let (Ok(step), Some(value)) = (step.parse(), real(&value)) {
            trial.intermediate.insert(step, value);
        }
    }
    trial.user_attributes.extend(pairs(&entry["user_attrs"]));
    trial.system_attributes.extend(pairs(&entry["system_attrs"]));
    Ok(trial)
}

fn written(trial: &Trial, study: usize) -> Value {
    let distributions: BTreeMap<&String, String> =
        trial.parameters.iter().map(|(name, (distribution, _))| (name, distribution.to_json())).collect();
    let values: BTreeMap<&String, f64> =
        trial.parameters.iter().map(|(name, (_, value))| (name, *value)).collect();
    let reports: BTreeMap<String, f64> =
        trial.intermediate.iter().map(|(step, value)| (step.to_string(), *value)).collect();
    let time = |text: &Option<String>| text.as_ref().map(|text| format!("{}+00:00", text.replace(' ', "T")));
    let mut entry = json!({
        "study_id": study, "state": trial.state as u64, "value": trial.value, "values": null,
        "datetime_start": time(&trial.times.0), "distributions": distributions, "params": values,
        "user_attrs": trial.user_attributes, "system_attrs": trial.system_attributes,
        "intermediate_values": reports,
    });
    if let Some(complete) = time(&trial.times.1) {
        entry["datetime_complete"] = json!(complete);
    }
    entry
}

fn operation(code: u64, mut entry: Value) -> Value {
    entry["op_code"] = json!(code);
    entry["worker_id"] = json!("qdc");
    entry
}

fn number(direction: Direction) -> u64 {
    match direction {
        Direction::Minimize => 1,
        Direction::Maximize => 2,
    }
}

fn distribution(value: &Value) -> std::result::Result<Distribution, String> {
    let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
    Distribution::from_json(&text).map_err(|error| error.to_string())
}

fn pairs(value: &Value) -> Vec<(String, Value)> {
    value.as_object().map(|map| map.clone().into_iter().collect()).unwrap_or_default()
}

/// A line as Python writes it: JSON, but numbers may also be `NaN`, `Infinity` or `-Infinity`. Those become
/// strings, which [`real`] understands.
fn parse(line: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(line).or_else(|error| {
        let Ok(text) = std::str::from_utf8(line) else { return Err(error) };
        // every other piece between unescaped quotes is a string and stays as it is
        let mut inside = false;
        let mut escaped = false;
        let mut quoted = String::with_capacity(text.len() + 16);
        let mut rest = text;
        while let Some(next) = rest.chars().next() {
            let word = NOT_FINITE.iter().find(|word| !inside && rest.starts_with(**word));
            if let Some(word) = word {
                quoted.extend(["\"", word, "\""]);
            } else {
                quoted.push(next);
                inside ^= next == '"' && !escaped;
                escaped = next == '\\' && !escaped;
            }
            rest = &rest[word.map_or(next.len_utf8(), |word| word.len())..];
        }
        serde_json::from_str(&quoted)
    })
}

const NOT_FINITE: [&str; 3] = ["NaN", "-Infinity", "Infinity"];

/// A number, which [`parse`] may have had to put in quotes.
fn real(value: &Value) -> Option<f64> {
    value.as_f64().or_else(|| match value.as_str()? {
        "NaN" => Some(f64::NAN),
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_that_only_python_calls_json_are_read_and_strings_left_alone() {
        let line = br#"{"value":-Infinity,"a":[NaN,Infinity,1.5],"text":"NaN \" Infinity","key":"\\"}"#;
        let read = parse(line).unwrap();
        assert_eq!(real(&read["value"]), Some(f64::NEG_INFINITY));
        assert!(real(&read["a"][0]).unwrap().is_nan());
        assert_eq!((real(&read["a"][1]), real(&read["a"][2])), (Some(f64::INFINITY), Some(1.5)));
        assert_eq!((read["text"].as_str(), read["key"].as_str()), (Some("NaN \" Infinity"), Some("\\")));
        assert!(parse(br#"{"value": nonsense}"#).is_err());
    }
}
