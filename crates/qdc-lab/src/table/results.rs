//! The table as a folder: `table.csv`, `table.md`, and for each cell a file that `qdc train --config` repeats.
//!
//! The files of the cells hold the table whole: [`Results::read`] makes it again from them, with what came of
//! every trial, so that the studies themselves need not be kept, and a folder grows by the cells of new studies.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use qdc_data::output::write_file;
use qdc_tune::Trial;
use qdc_tune::storage::{Storage, StudyRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::format::quoted;
use super::{Cell, Column, Format, Searched, Table};
use crate::config::Config;
use crate::scores::Summary;
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
    /// seed, the experiment's hash, trials, device and seconds. `storages` and `earlier` are what the table was
    /// made from.
    ///
    /// # Errors
    /// If a storage cannot be read or a file cannot be written.
    pub fn write_results(
        &self,
        storages: &mut [Box<dyn Storage>],
        earlier: &[Results],
        folder: &Path,
    ) -> Result<Vec<PathBuf>, Error> {
        let (mut csv, mut files) = (COLUMNS.to_owned(), Vec::new());
        let cells = folder.join("cells");
        std::fs::create_dir_all(&cells)
            .map_err(|source| qdc_data::Error::Write { path: cells.clone(), source })?;
        for cell in &self.cells {
            let file = cells.join(format!("{}.toml", file_name(cell)));
            let mut config = match self.recorded(cell, storages)? {
                Some(config) => config,
                None => kept(cell, earlier)?,
            };
            let result = config.result.get_or_insert_default();
            let Value::Object(fields) = json!(cell) else { unreachable!("a cell has fields") };
            fields.into_iter().for_each(|(name, value)| result[name] = value);
            result["validation_mean"] = result["validation"].take();
            result["command"] = json!(format!("qdc train --config {}", file.display()));
            config.result = config.result.map(without_nulls);
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

    /// The configuration of a cell's best trial and what came of it, if a storage has the study.
    fn recorded(&self, cell: &Cell, storages: &mut [Box<dyn Storage>]) -> Result<Option<Config>, Error> {
        for storage in storages {
            let Some((study, trials)) = recorded(cell, &mut **storage)? else { continue };
            let Some(trial) = trials.iter().find(|trial| trial.number == cell.trial) else { continue };
            let (mut config, _) = Config::of_trial(&mut **storage, Some(&cell.name), Some(cell.trial))?;
            let (scores, seeds) = match rescore::scores(&study.attributes, trial.number) {
                Some(scores) => (scores, cell.seeds as u64),
                None => (attribute::<Vec<Scores>>(trial, "scores").unwrap_or_default(), 1),
            };
            config.seeds = Some(seeds);
            config.result = Some(json!({
                "graph": self.columns.iter().find(|column| column.dataset == cell.dataset),
                "device": attribute::<String>(trial, "device"),
                "version": study.attributes.get(RECORD).map_or(Value::Null, |record| record["version"].clone()),
                "splits": scores,
                "search": Trials::of(&Searched::of_study(&study, &trials)),
            }));
            return Ok(Some(config));
        }
        Ok(None)
    }
}

/// A folder of results as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Results {
    /// Its table.
    pub table: Table,
    /// What the trials of every cell came to.
    pub searched: Vec<Searched>,
    /// The file of each cell, in no order.
    files: Vec<(Cell, Config)>,
}

impl Results {
    /// Reads a folder of [`Table::write_results`].
    ///
    /// # Errors
    /// If the folder or one of its cells cannot be read.
    pub fn read(folder: &Path) -> Result<Self, Error> {
        let cells = folder.join("cells");
        let unreadable = |source| qdc_data::Error::Read { path: cells.clone(), source };
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(&cells).map_err(unreadable)? {
            paths.push(entry.map_err(unreadable)?.path());
        }
        paths.retain(|path| path.extension().is_some_and(|extension| extension == "toml"));
        paths.sort();
        let (mut columns, mut files, mut searched) = (BTreeMap::new(), Vec::new(), Vec::new());
        for path in paths {
            let wrong = |problem: String| Error::Configuration { path: path.clone(), problem };
            let config = Config::read(&path)?;
            let result = config.result.as_ref().ok_or_else(|| wrong("it has no [result]".into()))?;
            let mut cell: Cell = part(result).map_err(wrong)?;
            let scores: Vec<Scores> = part(&result["splits"]).map_err(wrong)?;
            cell.validation = Summary::of(&scores).validation_mean;
            let column: Column = part(&result["graph"]).map_err(wrong)?;
            columns.insert(column.dataset.clone(), column);
            let trials: Trials = part(&result["search"]).map_err(wrong)?;
            searched.extend(trials.searched(&cell));
            files.push((cell, config));
        }
        let table = Table::of(columns, files.iter().map(|file| file.0.clone()).collect());
        Ok(Self { table, searched, files })
    }
}

/// The file of a cell that an earlier folder holds.
fn kept(cell: &Cell, earlier: &[Results]) -> Result<Config, Error> {
    let mut files = earlier.iter().flat_map(|results| &results.files);
    let same = |file: &&(Cell, Config)| file.0.name == cell.name && file.0.experiment == cell.experiment;
    files.find(same).map(|file| file.1.clone()).ok_or_else(|| {
        let problem = format!("trial {} is gone", cell.trial);
        Error::Trial { storage: format!("study '{}'", cell.name), problem }
    })
}

/// The finished trials of a cell by columns, which a file holds in few lines. A column that not all trials have
/// is left out.
#[derive(Serialize, Deserialize)]
struct Trials {
    validation: Vec<f64>,
    test: Vec<f64>,
    mu: Option<Vec<f64>>,
    sigma: Option<Vec<f64>>,
    epsilon: Option<Vec<f64>>,
    diagonal_share: Option<Vec<f64>>,
}

impl Trials {
    fn of(trials: &[Searched]) -> Self {
        let column =
            |value: fn(&Searched) -> Option<f64>| trials.iter().map(value).collect::<Option<Vec<f64>>>();
        Self {
            validation: trials.iter().map(|trial| trial.validation).collect(),
            test: trials.iter().map(|trial| trial.test).collect(),
            mu: column(|trial| trial.mu),
            sigma: column(|trial| trial.sigma),
            epsilon: column(|trial| trial.epsilon),
            diagonal_share: column(|trial| trial.diagonal_share),
        }
    }

    fn searched(&self, cell: &Cell) -> Vec<Searched> {
        let of = |column: &Option<Vec<f64>>, trial: usize| column.as_ref()?.get(trial).copied();
        let pairs = self.validation.iter().zip(&self.test).enumerate();
        let trials = pairs.map(|(trial, (&validation, &test))| Searched {
            dataset: cell.dataset.clone(),
            model: cell.row.model.to_string(),
            space: cell.row.space.clone(),
            metric: cell.metric.clone(),
            validation,
            test,
            mu: of(&self.mu, trial),
            sigma: of(&self.sigma, trial),
            epsilon: of(&self.epsilon, trial),
            diagonal_share: of(&self.diagonal_share, trial),
        });
        trials.collect()
    }
}

/// A part of a file's `[result]`, or what is wrong with it.
fn part<T: DeserializeOwned>(value: &Value) -> Result<T, String> {
    serde_json::from_value(value.clone()).map_err(|error| format!("[result]: {error}"))
}

fn put(file: &Path, text: &str) -> Result<(), Error> {
    Ok(write_file(file, |out| out.write_all(text.as_bytes()))?)
}

/// What a cell is, in letters that every file system takes: `cora-gcn+qdc-paper`.
fn file_name(cell: &Cell) -> String {
    let row = &cell.row;
    let mut name = format!("{}-{}-{}", cell.dataset, row.model, row.space.trim_end_matches(".toml"));
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

/// The study of a cell and its trials, if a storage holds all of them; a shorter copy of the study is passed over.
fn recorded(cell: &Cell, storage: &mut dyn Storage) -> Result<Option<(StudyRecord, Vec<Trial>)>, Error> {
    for study in storage.studies()? {
        let hash = study.attributes.get(HASH).and_then(Value::as_str);
        if study.name == cell.name && hash == cell.experiment.as_deref() {
            let trials = storage.trials(study.id, 0, &[])?;
            if trials.iter().filter(|trial| trial.state.is_finished()).count() == cell.trials {
                return Ok(Some((study, trials)));
            }
        }
    }
    Ok(None)
}

fn attribute<T: DeserializeOwned>(trial: &Trial, key: &str) -> Option<T> {
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
