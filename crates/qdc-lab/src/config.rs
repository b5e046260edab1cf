//! A run written down: a TOML file, or a trial of a study.
//!
//! ```toml
//! dataset = "cora"
//! metric = "accuracy"
//! seed = 0
//! [[tower]]
//! network = "gcn"
//! [[tower]]
//! network = "gcn"
//! rewiring = "qdc"
//! mu = 0.9
//! [hyperparameters]
//! hidden = 32
//! [schedule]
//! max_steps = 500
//! ```

use std::collections::BTreeMap;
use std::path::Path;

use qdc_core::{Metric, Route};
use qdc_data::Budget;
use qdc_tune::Trial;
use qdc_tune::storage::{Storage, StudyRecord};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::hyperparameters::Name;
use crate::model::{NetworkKind, RewiringKind, Tower};
use crate::tune::identity::RECORD;
use crate::tune::rescore::best;
use crate::{Error, Hyperparameters, Model, Patience, TowerReport};

/// A run, as far as it is written down; what is missing has its default.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Config {
    /// The dataset's name or file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dataset: Option<String>,
    /// The shares of random splits, such as `48/32/20`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<String>,
    /// The model; or towers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    /// What the scores are measured by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<Metric>,
    /// The first seed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// How many seeds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seeds: Option<u64>,
    /// The splits to train.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub splits: Option<Vec<usize>>,
    /// The file of a kernel that was made before, in the place of those of the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// Where it was trained: `cpu`, `cuda`, or `auto`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// The route to each tower's kernel; `auto` where it has none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub routes: Vec<Route>,
    /// The towers of the model, each with its own hyper-parameters.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[serde(default)]
    pub tower: Vec<TowerConfig>,
    /// Hyper-parameters by name.
    #[serde(default)]
    pub hyperparameters: BTreeMap<String, Json>,
    /// How long to train.
    #[serde(default)]
    pub schedule: ScheduleConfig,
    /// What came of it once; not read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Json>,
    /// The dataset's identity, where a study knows it.
    #[serde(skip)]
    pub identity: Option<Json>,
}

/// A tower of a [`Config`].
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TowerConfig {
    /// Its layers.
    pub network: NetworkKind,
    /// What is done to the graph.
    #[serde(default = "plain")]
    pub rewiring: RewiringKind,
    /// Its hyper-parameters.
    #[serde(flatten)]
    pub parameters: BTreeMap<String, Json>,
}

fn plain() -> RewiringKind {
    RewiringKind::Plain
}

/// How long to train, as far as it is written down.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleConfig {
    /// The most steps there can be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_steps: Option<usize>,
    /// Steps without improvement after which training ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patience: Option<usize>,
    /// Steps in which it never ends.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warm_up: Option<usize>,
    /// Which step is the best.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stop: Option<qdc_nn::Criterion>,
    /// Vertices in a mini-batch; all at once where nothing is said.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub batch_nodes: Option<usize>,
}

impl ScheduleConfig {
    /// The schedule, with the rule of `model` ([`Patience::of`]) where nothing is said.
    pub fn patience(&self, model: &Model) -> Patience {
        let mut patience = Patience::of(model);
        let stopping = &mut patience.stopping;
        stopping.patience = self.patience.unwrap_or(stopping.patience);
        stopping.warm_up = self.warm_up.unwrap_or(stopping.warm_up);
        stopping.criterion = self.stop.unwrap_or(stopping.criterion);
        patience.max_steps = self.max_steps.unwrap_or(patience.max_steps);
        patience.batch_nodes = self.batch_nodes;
        patience
    }
}

/// The largest TOML file that is read. A run or a space is a page of text; parsed, a byte may take a hundred.
const LARGEST: u64 = 1_000_000;

/// The most seeds of a run.
pub const MOST_SEEDS: u64 = 1_000_000;

/// The text of a TOML file, or why there is none.
pub(crate) fn read_toml(path: &Path) -> Result<String, String> {
    match qdc_data::read_text(path, Budget::bytes(LARGEST)) {
        Err(qdc_data::Error::Memory { .. }) => Err(format!("it has more than {LARGEST} bytes")),
        Err(qdc_data::Error::Read { source, .. }) => Err(source.to_string()),
        text => text.map_err(|error| error.to_string()),
    }
}

/// What a TOML text says. Numbers that are not finite are refused here: in JSON, which values are kept in,
/// they would become null, which stands for a value that is not set.
pub(crate) fn parse_toml<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    if let Some((name, number)) = table.iter().find_map(|(name, value)| Some((name, not_finite(value)?))) {
        return Err(format!("{name} holds {number}, which is no finite number"));
    }
    toml::from_str(text).map_err(|error| error.to_string())
}

/// The first number in a value that is not finite.
fn not_finite(value: &toml::Value) -> Option<f64> {
    match value {
        toml::Value::Float(number) => (!number.is_finite()).then_some(*number),
        toml::Value::Array(values) => values.iter().find_map(not_finite),
        toml::Value::Table(values) => values.values().find_map(not_finite),
        _ => None,
    }
}

impl Config {
    /// Reads a TOML file.
    ///
    /// # Errors
    /// If it cannot be read, is no configuration, or has names and values that are not its model's.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let wrong = |problem: String| Error::Configuration { path: path.into(), problem };
        let config = Self::from_toml(&read_toml(path).map_err(wrong)?).map_err(wrong)?;
        config.hyperparameters().map_err(|error| wrong(error.to_string()))?;
        Ok(config)
    }

    /// Reads a text; says what is wrong with it.
    pub fn from_toml(text: &str) -> Result<Self, String> {
        let config: Self = parse_toml(text)?;
        if let Some(seeds) = config.seeds.filter(|seeds| !(1..=MOST_SEEDS).contains(seeds)) {
            return Err(format!("seeds = {seeds}: it must be from 1 to {MOST_SEEDS}"));
        }
        if config.schedule.batch_nodes == Some(0) {
            return Err("batch_nodes = 0: a batch has at least one vertex".into());
        }
        match (&config.model, config.tower.is_empty()) {
            (Some(_), false) => Err("it has both a model and towers".into()),
            (None, true) => Err("it has neither a model nor a [[tower]]".into()),
            _ => Ok(config),
        }
    }

    /// The file that [`Config::read`] reads. TOML has no null: a hyper-parameter that is not set is left out, as
    /// nothing is set unless it is written.
    pub fn to_toml(&self) -> String {
        let mut written = self.clone();
        written.hyperparameters.retain(|_, value| !value.is_null());
        for tower in &mut written.tower {
            tower.parameters.retain(|_, value| !value.is_null());
        }
        toml::to_string(&written).expect("a configuration is plain data")
    }

    /// The model with its hyper-parameters.
    ///
    /// # Errors
    /// A model that cannot be built, and names and values that are not its hyper-parameters'.
    pub fn hyperparameters(&self) -> Result<Hyperparameters, Error> {
        let model = match &self.model {
            Some(model) => model.clone(),
            None => {
                let towers = self.tower.iter();
                Model::new(
                    towers
                        .map(|&TowerConfig { network, rewiring, .. }| Tower { network, rewiring })
                        .collect(),
                )?
            }
        };
        let mut values = Hyperparameters::new(model);
        for (name, value) in &self.hyperparameters {
            values.set_json(name, value)?;
        }
        for (number, tower) in self.tower.iter().enumerate() {
            for (line, value) in &tower.parameters {
                values.set_json(&Name::own(number, line), value)?;
            }
        }
        Ok(values)
    }

    /// A trial of a study: the best, or the one of that number.
    ///
    /// # Errors
    /// If there is no such study or trial, or it is not one of ours.
    pub fn of_trial(
        storage: &mut dyn Storage,
        study: Option<&str>,
        number: Option<u64>,
    ) -> Result<(Self, u64), Error> {
        let wrong = |problem: String| Error::Trial { storage: storage_name(study), problem };
        let mut studies = storage.studies()?;
        if let Some(name) = study {
            studies.retain(|study| study.name == name);
        }
        let names: Vec<&str> = studies.iter().map(|study| study.name.as_str()).collect();
        let study = match studies.as_slice() {
            [] => return Err(wrong(format!("{} holds no such study", storage.name()))),
            [study] => study.clone(),
            _ => return Err(wrong(format!("{} holds several: {}", storage.name(), names.join(", ")))),
        };
        let trials = storage.trials(study.id, 0, &[])?;
        let trial = match number {
            Some(number) => trials.iter().find(|trial| trial.number == number),
            None => best(&study.attributes, trials.iter()),
        };
        let Some(trial) = trial else {
            return Err(wrong(number.map_or_else(
                || format!("study '{}' has no complete trial", study.name),
                |number| format!("study '{}' has no trial {number}", study.name),
            )));
        };
        Ok((Self::of_record(&study, trial).map_err(wrong)?, trial.number))
    }

    fn of_record(study: &StudyRecord, trial: &Trial) -> Result<Self, String> {
        let attribute = |key: &str| study.attributes.get(key).cloned().unwrap_or(Json::Null);
        let (record, source) = (attribute(RECORD), attribute("source"));
        let either = |part: &str| if record[part].is_null() { attribute(part) } else { record[part].clone() };
        let missing = |part: &str| format!("study '{}' does not say its {part}", study.name);
        let read = |value: Json, part: &str| serde_json::from_value(value).map_err(|_| missing(part));
        let dataset = if source.is_null() { attribute("dataset") } else { source["dataset"].clone() };
        let model: String = serde_json::from_value(either("model")).map_err(|_| missing("model"))?;
        let mut config = Self {
            dataset: read(dataset, "dataset")?,
            split: source["split"].as_str().map(str::to_owned),
            model: Some(model.parse().map_err(|error: Error| error.to_string())?),
            metric: serde_json::from_value(either("metric")).unwrap_or_default(),
            seed: record["seeds"][0].as_u64().or_else(|| attribute("seed").as_u64()),
            splits: serde_json::from_value(record["splits"].clone()).unwrap_or_default(),
            identity: (!record.is_null()).then(|| record["dataset"].clone()),
            ..Self::default()
        };
        if let Some(towers) = trial.user_attributes.get("towers") {
            let towers: Vec<TowerReport> = serde_json::from_value(towers.clone()).unwrap_or_default();
            config.routes = TowerReport::routes(&towers);
        }
        let device = trial.user_attributes.get("device").and_then(Json::as_str);
        config.device = device.map(|name| choice_of(name).to_owned());
        let fixed = if record.is_null() { attribute("fixed") } else { record["hyperparameters"].clone() };
        config.hyperparameters = serde_json::from_value(fixed).unwrap_or_default();
        config.hyperparameters.extend(trial.parameters());
        let schedule = serde_json::from_value(record["schedule"].clone());
        if let Ok(Patience { max_steps, stopping, batch_nodes }) = schedule {
            config.schedule = ScheduleConfig {
                batch_nodes,
                max_steps: Some(max_steps),
                patience: Some(stopping.patience),
                warm_up: Some(stopping.warm_up),
                stop: Some(stopping.criterion),
            };
        }
        Ok(config)
    }
}

fn storage_name(study: Option<&str>) -> String {
    study.map_or_else(|| "the study".to_owned(), |name| format!("study '{name}'"))
}

/// The `--device` that repeats what a record says a training was computed on.
fn choice_of(name: &str) -> &'static str {
    match name {
        "cpu" => "cpu",
        both if both.split(" and ").any(|part| part == "cpu") => "auto",
        _ => "cuda",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREE: &str = "dataset = 'csbm:n=60'\nmetric = 'f1'\nseed = 3\n[[tower]]\nnetwork = 'gcn'\n\
        [[tower]]\nnetwork = 'gcn'\nrewiring = 'qdc'\nmu = 0.9\n\
        [[tower]]\nnetwork = 'gat'\nrewiring = 'qdc'\nmu = -0.5\nheads = 2\n\
        [hyperparameters]\nhidden = 8\n[schedule]\nmax_steps = 7\nstop = 'loss'\n[result]\ntest_mean = 0.5\n";

    #[test]
    fn a_training_is_repeated_where_it_was_computed() {
        assert_eq!((choice_of("cpu"), choice_of("NVIDIA H200")), ("cpu", "cuda"));
        assert_eq!((choice_of("NVIDIA H200 and cpu"), choice_of("cpu and X")), ("auto", "auto"));
    }

    #[test]
    fn a_hyper_parameter_that_is_not_set_is_not_written() {
        let mut config = Config::from_toml("model = 'gcn+qdc'\n[hyperparameters]\nhidden = 8").unwrap();
        config.hyperparameters.insert("top_k".into(), Json::Null);
        let read = Config::from_toml(&config.to_toml()).unwrap();
        assert_eq!(read.hyperparameters.keys().collect::<Vec<_>>(), ["hidden"]);
        assert_eq!(read.hyperparameters().unwrap(), config.hyperparameters().unwrap());
    }

    #[test]
    fn towers_have_their_own_values_and_the_rest_is_shared() {
        let config = Config::from_toml(THREE).unwrap();
        let values = config.hyperparameters().unwrap();
        assert_eq!(values.model().to_string(), "gcn/gcn+qdc/gat+qdc");
        assert_eq!(values.get("tower2_mu"), Some(&0.9.into()));
        assert_eq!(values.get("tower3_mu"), Some(&(-0.5).into()));
        assert_eq!(values.get("tower3_heads"), Some(&2u64.into()));
        assert_eq!(values.get("hidden"), Some(&8u64.into()));
        let patience = config.schedule.patience(values.model());
        assert_eq!((patience.max_steps, patience.stopping.patience), (7, 50));
        assert_eq!(patience.stopping.criterion, qdc_nn::Criterion::Loss);
        assert_eq!((config.metric, config.seed), (Some(Metric::F1), Some(3)));
    }

    #[test]
    fn what_is_written_reads_back() {
        let config = Config::from_toml(THREE).unwrap();
        assert_eq!(Config::from_toml(&config.to_toml()).unwrap(), config);
    }

    #[test]
    fn a_file_that_is_no_run_is_refused_with_the_place() {
        for (text, word) in [
            ("dataset = 'cora'", "neither a model nor"),
            ("model = 'gcn'\n[[tower]]\nnetwork = 'gcn'", "both a model and towers"),
            ("model = 'gnc'", "gnc"),
            ("model = 'gcn'\nsteps = 3", "steps"),
            ("model = 'gcn'\n[schedule]\nmax_step = 3", "max_step"),
            ("model = 'gcn'\nseeds = 9223372036854775807", "seeds = 9223372036854775807"),
            ("model = 'gcn'\nseeds = 0", "seeds = 0"),
            ("model = 'gcn'\n[hyperparameters]\ndropout = nan", "hyperparameters holds NaN"),
        ] {
            let problem = Config::from_toml(text).unwrap_err();
            assert!(problem.contains(word), "{text}: {problem}");
        }
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.toml");
        for (text, word) in [
            ("model = 'gcn'\n[hyperparameters]\nhidden = 0".to_owned(), "hidden = 0"),
            ("#".repeat(1_000_001), "more than 1000000 bytes"),
        ] {
            std::fs::write(&path, text).unwrap();
            let error = Config::read(&path).unwrap_err();
            assert!(error.to_string().contains(word) && error.to_string().contains("run.toml"), "{error}");
            assert!(!error.is_usage(), "what stands in a file was not typed: {error}");
        }
        let error = Config::from_toml("[[tower]]\nnetwork = 'gcn'\nmu = 0.5").unwrap().hyperparameters();
        assert!(error.unwrap_err().to_string().contains("tower1_mu"));
    }
}
