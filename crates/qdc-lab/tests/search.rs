//! A search whose storage fails on the way.

use std::collections::BTreeMap;
use std::path::Path;

use qdc_core::Watch;
use qdc_data::{DataDir, EdgeReading, Shares, SpectrumCache};
use qdc_lab::tune::{Search, SearchSpace, search};
use qdc_lab::{Error, Patience};
use qdc_tune::storage::{NewTrial, Sqlite, Storage, StudyRecord};
use qdc_tune::{Direction, Distribution, Pruning, Result as Stored, Sampler, State, Trial};
use serde_json::Value;

const SPACE: &str = "[search]\nhidden = { low = 4, high = 16 }\ndropout = { low = 0.1, high = 0.6 }\n";

/// A study file on a disk that is full for a moment: one report cannot be stored.
struct FullForAMoment {
    file: Sqlite,
    reports_before: usize,
}

impl Storage for FullForAMoment {
    fn report(&mut self, trial: i64, step: i64, value: f64) -> Stored<()> {
        self.reports_before = self.reports_before.wrapping_sub(1);
        if self.reports_before == 0 {
            let (storage, problem) = (self.name(), "the disk is full".into());
            return Err(qdc_tune::Error::Malformed { storage, problem });
        }
        self.file.report(trial, step, value)
    }

    fn name(&self) -> String {
        self.file.name()
    }
    fn studies(&mut self) -> Stored<Vec<StudyRecord>> {
        self.file.studies()
    }
    fn open_study(&mut self, name: &str, direction: Direction) -> Stored<StudyRecord> {
        self.file.open_study(name, direction)
    }
    fn set_study_attribute(&mut self, study: i64, key: &str, value: &Value) -> Stored<()> {
        self.file.set_study_attribute(study, key, value)
    }
    fn trials(&mut self, study: i64, after: i64, also: &[i64]) -> Stored<Vec<Trial>> {
        self.file.trials(study, after, also)
    }
    fn add_trial(&mut self, study: i64, expected: Option<u64>, new: &NewTrial) -> Stored<Option<(i64, u64)>> {
        self.file.add_trial(study, expected, new)
    }
    fn claim(&mut self, trial: &Trial) -> Stored<bool> {
        self.file.claim(trial)
    }
    fn add_parameters(&mut self, trial: i64, added: &BTreeMap<String, (Distribution, f64)>) -> Stored<()> {
        self.file.add_parameters(trial, added)
    }
    fn finish(
        &mut self,
        trial: i64,
        state: State,
        value: Option<f64>,
        attributes: &BTreeMap<String, Value>,
    ) -> Stored<bool> {
        self.file.finish(trial, state, value, attributes)
    }
    fn release(&mut self, trial: i64) -> Stored<()> {
        self.file.release(trial)
    }
    fn heartbeat(&mut self, trials: &[i64]) -> Stored<()> {
        self.file.heartbeat(trials)
    }
    fn stale(&mut self, study: i64, grace: u64) -> Stored<Vec<i64>> {
        self.file.stale(study, grace)
    }
}

fn run(storage: Box<dyn Storage>, folder: &Path) -> Result<(), Error> {
    let source =
        qdc_data::open("csbm:n=60,homophily=0.8,seed=1", &DataDir::new(folder), EdgeReading::default());
    let dataset = source.unwrap().into_dataset().unwrap().with_random_splits(Shares::default(), 0);
    let space = SearchSpace::from_toml("small", SPACE, "gcn".parse()?)?;
    let settings = Search {
        dataset: &dataset,
        space: &space,
        trials: 6,
        seed: 3,
        batch: 2,
        jobs: 2,
        sampler: Sampler::Tpe,
        pruning: Pruning::Off,
        memory: None,
        trial_time: None,
        until: None,
        patience: Patience { max_steps: 20, ..Patience::default() },
        spectra: SpectrumCache::new(folder),
        pool: None,
    };
    search(&settings, storage, "study", &Watch::silent()).map(|_| ())
}

/// Parameters, state and value of every trial.
fn trials(file: &mut Sqlite) -> Vec<(State, Option<f64>, BTreeMap<String, Value>)> {
    let study = file.studies().unwrap()[0].id;
    let trials = file.trials(study, 0, &[]).unwrap();
    trials.into_iter().map(|trial| (trial.state, trial.value, trial.parameters())).collect()
}

#[test]
fn a_search_whose_disk_was_full_fails_no_trial_and_resumes_as_if_nothing_had_been() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| Sqlite::open(folder.path().join(name)).unwrap();
    run(Box::new(file("whole.db")), folder.path()).unwrap();
    let whole = trials(&mut file("whole.db"));
    assert_eq!(whole.len(), 6);
    for reports_before in [1, 25] {
        let name = format!("{reports_before}.db");
        let storage = FullForAMoment { file: file(&name), reports_before };
        let error = run(Box::new(storage), folder.path()).unwrap_err();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let stopped = trials(&mut file(&name));
        assert!(stopped.len() < 6 && stopped.iter().all(|trial| trial.0 != State::Failed), "{stopped:?}");
        run(Box::new(file(&name)), folder.path()).unwrap();
        assert_eq!(trials(&mut file(&name)), whole);
    }
}
