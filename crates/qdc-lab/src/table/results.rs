//! The table as a folder: `table.csv`, `table.md`, and for each cell a file that `qdc train --config` repeats.

use std::path::{Path, PathBuf};

use qdc_data::output::write_file;
use qdc_tune::Trial;
use qdc_tune::storage::{Storage, StudyRecord};
use serde_json::{Value, json};

use super::format::quoted;
use super::{Cell, Format, Table};
use crate::config::Config;
use crate::tune::identity::{HASH, RECORD};
use crate::tune::rescore;
use crate::{Error, Scores};

/// The columns of `table.csv`; scores are in percent.
const COLUMNS: &str = "dataset,model,space,trials,seeds,test_mean,test_std,validation_mean,published_mean,\
                       published_std,diagonal_share,config\n";

impl Table {
    /// Writes the results into `folder`: `table.csv`, `table.md` and `cells/*.toml`; gives the files written.
    ///
    /// A cell's file is the configuration of its best trial with what came of it: scores of every split and
    /// seed, the experiment's hash, trials, device and seconds. `storages` are those the table was read from.
    ///
    /// # Errors
    /// If a storage cannot be read or a file cannot be written.
    pub fn write_results(
        &self,
        storages: &mut [Box<dyn Storage>],
        folder: &Path,
    ) -> Result<Vec<PathBuf>, Error> {
        let (mut csv, mut files) = (COLUMNS.to_owned(), Vec::new());
        let cells = folder.join("cells");
        std::fs::create_dir_all(&cells)
            .map_err(|source| qdc_data::Error::Write { path: cells.clone(), source })?;
        for cell in &self.cells {
            let file = cells.join(format!("{}.toml", file_name(cell)));
            let config = configuration(cell, storages, &file)?;
            put(&file, &config.to_toml())?;
            csv += &line(cell, &file);
            files.push(file);
        }
        for (name, text) in [("table.csv", csv), ("table.md", self.write(Format::Markdown, true))] {
            let file = folder.join(name);
            put(&file, &text)?;
            files.push(file);
        }
        Ok(files)
    }
}

fn put(file: &Path, text: &str) -> Result<(), Error> {
    Ok(write_file(file, |out| out.write_all(text.as_bytes()))?)
}

/// What a cell is, in letters that every file system takes: `cora-gcn+qdc-paper`.
fn file_name(cell: &Cell) -> String {
    let row = &cell.row;
    let mut name = format!("{}-{}-{}", cell.dataset, row.model, row.space);
    if !row.study.is_empty() {
        name = format!("{name}-{}", row.study);
    }
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "+-_.=".contains(letter);
    name.chars().map(|letter| if plain(letter) { letter } else { '_' }).collect()
}

fn line(cell: &Cell, file: &Path) -> String {
    let percent = |value: f64| format!("{:.2}", 100.0 * value);
    let optional = |value: Option<f64>| value.map_or(String::new(), percent);
    let fields = [
        quoted(&cell.dataset),
        quoted(&cell.row.model.to_string()),
        quoted(&cell.row.space),
        cell.trials.to_string(),
        cell.seeds.to_string(),
        percent(cell.test_mean),
        percent(cell.test_std),
        percent(cell.validation),
        optional(cell.published.map(|pair| pair.0)),
        optional(cell.published.map(|pair| pair.1)),
        optional(cell.diagonal_share),
        quoted(&file.to_string_lossy()),
    ];
    fields.join(",") + "\n"
}

/// The best trial of a cell, ready to be trained again, and what came of it.
fn configuration(cell: &Cell, storages: &mut [Box<dyn Storage>], file: &Path) -> Result<Config, Error> {
    for storage in storages {
        let Some((study, trial)) = recorded(cell, &mut **storage)? else { continue };
        let (mut config, _) = Config::of_trial(&mut **storage, Some(&cell.name), Some(cell.trial))?;
        let (scores, seeds) = match rescore::scores(&study.attributes, trial.number) {
            Some(scores) => (scores, cell.seeds as u64),
            None => (attribute::<Vec<Scores>>(&trial, "scores").unwrap_or_default(), 1),
        };
        config.seeds = Some(seeds);
        let version = study.attributes.get(RECORD).map_or(Value::Null, |record| record["version"].clone());
        config.result = Some(without_nulls(json!({
            "test_mean": cell.test_mean,
            "test_std": cell.test_std,
            "validation_mean": cell.validation,
            "space": cell.row.space,
            "study": cell.name,
            "trial": cell.trial,
            "trials": cell.trials,
            "failed": cell.failed,
            "experiment": cell.experiment,
            "device": attribute::<String>(&trial, "device"),
            "diagonal_share": cell.diagonal_share,
            "seconds": cell.seconds,
            "version": version,
            "command": format!("qdc train --config {}", file.display()),
            "splits": scores,
        })));
        return Ok(config);
    }
    let problem = format!("trial {} is gone", cell.trial);
    Err(Error::Trial { storage: format!("study '{}'", cell.name), problem })
}

/// The study and the best trial of a cell, if a storage holds them.
fn recorded(cell: &Cell, storage: &mut dyn Storage) -> Result<Option<(StudyRecord, Trial)>, Error> {
    for study in storage.studies()? {
        let hash = study.attributes.get(HASH).and_then(Value::as_str);
        if study.name == cell.name && hash == cell.experiment.as_deref() {
            let trials = storage.trials(study.id, 0, &[])?;
            let trial = trials.into_iter().find(|trial| trial.number == cell.trial);
            return Ok(trial.map(|trial| (study, trial)));
        }
    }
    Ok(None)
}

fn attribute<T: serde::de::DeserializeOwned>(trial: &Trial, key: &str) -> Option<T> {
    serde_json::from_value(trial.user_attributes.get(key)?.clone()).ok()
}

/// TOML has no null: what is not known is left out.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let known = fields.into_iter().filter(|(_, value)| !value.is_null());
            known.map(|(name, value)| (name, without_nulls(value))).collect()
        }
        Value::Array(values) => values.into_iter().map(without_nulls).collect(),
        value => value,
    }
}
