//! A search whose study file cannot be written on the way, whose device is lost, or whose trials run
//! elsewhere.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use qdc_core::Watch;
use qdc_data::{DataDir, EdgeReading, Shares, SpectrumCache};
use qdc_lab::tune::{Search, SearchSpace, Shared, TrialRecord, Workers, run_trial, search};
use qdc_lab::{Error, Patience};
use qdc_nn::training::{Scores, Trained};
use qdc_nn::{Batch, Cpu, Trainer};
use qdc_tune::storage::{Sqlite, Storage};
use qdc_tune::{Pruning, Sampler, State};
use rusqlite::Connection;
use serde_json::Value;

const SPACE: &str = "[search]\nhidden = { low = 4, high = 16 }\ndropout = { low = 0.1, high = 0.6 }\n";

fn run(file: &Path) -> Result<(), Error> {
    run_on(file, &Cpu)
}

fn run_on(file: &Path, trainer: &dyn Trainer) -> Result<(), Error> {
    with_search(trainer, |settings| begin(file, settings))
}

fn begin(file: &Path, settings: &Search<'_>) -> Result<(), Error> {
    search(settings, Box::new(Sqlite::open(file)?), "study", &Watch::silent()).map(|_| ())
}

fn with_search<T>(
    trainer: &dyn Trainer,
    work: impl FnOnce(&Search<'_>) -> Result<T, Error>,
) -> Result<T, Error> {
    let source =
        qdc_data::open("csbm:n=60,homophily=0.8,seed=1", &DataDir::new("nowhere"), EdgeReading::default());
    let dataset = source.unwrap().into_dataset().unwrap().with_random_splits(Shares::default(), 0);
    let space = SearchSpace::from_toml("small", SPACE, "gcn".parse()?)?;
    let settings = Search {
        dataset: &dataset,
        source: None,
        splits: &(0..dataset.splits.len()).collect::<Vec<usize>>(),
        space: &space,
        trials: 6,
        seed: 3,
        seeds: 1,
        finalists: 1,
        ensemble: 0,
        batch: 2,
        jobs: 2,
        sampler: Sampler::Tpe,
        pruning: Pruning::Off,
        memory: None,
        trial_time: None,
        attention_limit: None,
        until: None,
        patience: Patience { max_steps: 20, ..Patience::default() },
        metric: qdc_core::Metric::Accuracy,
        spectra: SpectrumCache::new("nowhere"),
        accelerator: None,
        trainer,
        pool: None,
        workers: None,
    };
    work(&settings)
}

/// Parameters, state and value of every trial.
fn trials(file: &Path) -> Vec<(State, Option<f64>, BTreeMap<String, Value>)> {
    let mut file = Sqlite::open(file).unwrap();
    let study = file.studies().unwrap()[0].id;
    let trials = file.trials(study, 0, &[]).unwrap();
    trials.into_iter().map(|trial| (trial.state, trial.value, trial.parameters())).collect()
}

const FULL: &str = r#", CONSTRAINT "the disk is full" CHECK (trial_intermediate_value_id <= "#;

/// From the report of that number on none can be stored, as on a disk that is full.
fn fill_disk(file: &Path, reports: usize) {
    drop(Sqlite::open(file).unwrap()); // makes the tables
    let body = |sql: &str| sql.trim_end().strip_suffix(')').unwrap().to_owned();
    rebuild(file, |sql| format!("{}{FULL}{reports}))", body(sql)));
}

fn empty_disk(file: &Path) {
    rebuild(file, |sql| format!("{})", sql.split(FULL).next().unwrap()));
}

/// Makes the table of reports again by a changed definition, with its rows.
fn rebuild(file: &Path, change: impl Fn(&str) -> String) {
    let connection = Connection::open(file).unwrap();
    let query = "SELECT sql FROM sqlite_master WHERE name = 'trial_intermediate_values'";
    let sql: String = connection.query_row(query, [], |row| row.get(0)).unwrap();
    let rename = "ALTER TABLE trial_intermediate_values RENAME TO before";
    let copy = "INSERT INTO trial_intermediate_values SELECT * FROM before; DROP TABLE before";
    let create = change(&sql);
    connection.execute_batch(&format!("{rename}; {create}; {copy}")).unwrap();
}

#[test]
fn a_search_whose_disk_was_full_fails_no_trial_and_resumes_as_if_nothing_had_been() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    run(&whole).unwrap();
    assert_eq!(trials(&whole).len(), 6);
    for reports in [0, 25] {
        let file = folder.path().join(format!("{reports}.db"));
        fill_disk(&file, reports);
        let error = run(&file).unwrap_err();
        assert!(error.to_string().contains("the disk is full"), "{error}");
        let stopped = trials(&file);
        assert!(stopped.len() < 6 && stopped.iter().all(|trial| trial.0 != State::Failed), "{stopped:?}");
        empty_disk(&file);
        run(&file).unwrap();
        assert_eq!(trials(&file), trials(&whole));
    }
}

/// A device that is lost after so many trials.
#[derive(Debug)]
struct Losing(AtomicUsize);

impl Trainer for Losing {
    fn device(&self) -> &str {
        "a pretended device"
    }

    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, qdc_nn::Error> {
        let left = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        match left {
            Ok(_) => Cpu.train(batch, watch, on_end),
            Err(_) => Err(qdc_nn::Error::DeviceLost { problem: "the device is lost".into() }),
        }
    }
}

#[test]
fn a_search_whose_device_is_lost_keeps_what_was_finished_and_resumes_as_if_nothing_had_been() {
    let folder = tempfile::tempdir().unwrap();
    let whole = folder.path().join("whole.db");
    run(&whole).unwrap();
    for trials_before in [0, 3] {
        let file = folder.path().join(format!("{trials_before}.db"));
        let error = run_on(&file, &Losing(AtomicUsize::new(trials_before))).unwrap_err();
        assert!(error.to_string().contains("the device is lost"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("run the command again")), "{error}");
        let stopped = trials(&file);
        let finished = stopped.iter().filter(|trial| trial.0 == State::Complete).count();
        // Two trials run at once: the one beside the lost one may have been under way.
        assert!((trials_before.saturating_sub(1)..=trials_before).contains(&finished), "{stopped:?}");
        assert!(stopped.iter().all(|trial| trial.0 != State::Failed), "{stopped:?}");
        run(&file).unwrap();
        assert_eq!(trials(&file), trials(&whole));
    }
}

/// Workers to whom points, and from whom records, travel as text; after `lives` trials they are gone for good.
#[derive(Debug)]
struct Post<'a> {
    search: &'a Search<'a>,
    shared: Shared,
    lives: AtomicUsize,
}

impl<'a> Post<'a> {
    fn new(search: &'a Search<'a>, lives: usize) -> Result<Self, Error> {
        let shared = Shared::prepare(search, &Watch::silent())?;
        Ok(Self { search, shared, lives: lives.into() })
    }
}

impl Workers for Post<'_> {
    fn run(&self, point: &BTreeMap<String, Value>, _: &Watch) -> Result<TrialRecord, Error> {
        let left = self.lives.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
        if left.is_err() {
            return Err(Error::LostWorker { problem: "the workers are gone".into() });
        }
        let there = serde_json::from_str(&serde_json::to_string(point).unwrap()).unwrap();
        let record = run_trial(self.search, &self.shared, &there, &Watch::silent())?;
        Ok(serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap())
    }
}

/// What every trial recorded, but for the time it took.
fn attributes(file: &Path) -> Vec<BTreeMap<String, Value>> {
    let mut file = Sqlite::open(file).unwrap();
    let study = file.studies().unwrap()[0].id;
    let without_times = |trial: qdc_tune::Trial| {
        let mut kept = trial.user_attributes;
        kept.remove("seconds");
        for split in kept.get_mut("scores").and_then(Value::as_array_mut).into_iter().flatten() {
            split["seconds"] = Value::Null;
        }
        kept
    };
    file.trials(study, 0, &[]).unwrap().into_iter().map(without_times).collect()
}

#[test]
fn trials_that_run_elsewhere_make_the_study_of_one_process_pruned_ones_among_them() {
    let folder = tempfile::tempdir().unwrap();
    // Trials after the third are given up when they are below the median of those before.
    for (name, pruning) in [("off", Pruning::Off), ("median", Pruning::Median { startup: 2, warm_up: 1 })] {
        let (here, elsewhere) =
            (folder.path().join(format!("{name}.db")), folder.path().join(format!("{name}-elsewhere.db")));
        with_search(&Cpu, |settings| {
            let settings = Search { pruning, ..settings.clone() };
            begin(&here, &settings)?;
            let post = Post::new(&settings, 6)?;
            begin(&elsewhere, &Search { workers: Some(&post), ..settings.clone() })?;
            assert_eq!(post.lives.into_inner(), 0, "each trial ran once");
            Ok(())
        })
        .unwrap();
        assert_eq!(trials(&elsewhere), trials(&here), "{name}");
        assert_eq!(attributes(&elsewhere), attributes(&here), "{name}");
        let pruned = trials(&here).iter().filter(|trial| trial.0 == State::Pruned).count();
        assert_eq!(pruned > 0, name == "median", "{pruned} pruned");
    }
}

#[test]
fn a_trial_that_cannot_be_trained_elsewhere_fails_with_the_reason_of_one_process() {
    let folder = tempfile::tempdir().unwrap();
    let (here, elsewhere) = (folder.path().join("here.db"), folder.path().join("elsewhere.db"));
    with_search(&Cpu, |settings| {
        let settings = Search { memory: Some(1), ..settings.clone() };
        begin(&here, &settings)?;
        let post = Post::new(&settings, 6)?;
        begin(&elsewhere, &Search { workers: Some(&post), ..settings.clone() })
    })
    .unwrap();
    assert!(trials(&here).iter().all(|trial| trial.0 == State::Failed));
    assert!(attributes(&here)[0]["failure"].as_str().unwrap().contains("of memory"));
    assert_eq!(attributes(&elsewhere), attributes(&here));
}

#[test]
fn a_search_whose_workers_are_gone_ends_with_their_error_and_fails_no_trial() {
    let folder = tempfile::tempdir().unwrap();
    let (whole, file) = (folder.path().join("whole.db"), folder.path().join("lost.db"));
    run(&whole).unwrap();
    let error = with_search(&Cpu, |settings| {
        let post = Post::new(settings, 3)?;
        begin(&file, &Search { workers: Some(&post), ..settings.clone() })
    })
    .unwrap_err();
    assert!(error.to_string().contains("the workers are gone"), "{error}");
    let states: Vec<State> = trials(&file).into_iter().map(|trial| trial.0).collect();
    let finished = states.iter().filter(|&&state| state == State::Complete).count();
    assert_eq!(finished, 3, "{states:?}");
    assert!(states.iter().all(|&state| state == State::Complete || state == State::Waiting), "{states:?}");
    run(&file).unwrap();
    assert_eq!(trials(&file), trials(&whole));
}

/// The trial that a search of six calls the best, and what the file says of every finalist: number, mean validation.
fn finals(file: &Path, finalists: usize, seeds: u64) -> (u64, Vec<(u64, f64)>) {
    let best = with_search(&Cpu, |settings| {
        let settings = Search { finalists, seeds, ..settings.clone() };
        search(&settings, Box::new(Sqlite::open(file)?), "study", &Watch::silent())
    });
    let studies = Sqlite::open(file).unwrap().studies().unwrap();
    let rescored = studies[0].attributes["rescored"].as_array().unwrap();
    let mean = |finalist: &Value| {
        let scores = finalist["scores"].as_array().unwrap();
        assert_eq!(scores.len() as u64, 10 * seeds);
        scores.iter().map(|score| score["validation"].as_f64().unwrap()).sum::<f64>() / scores.len() as f64
    };
    let finalists =
        rescored.iter().map(|finalist| (finalist["trial"].as_u64().unwrap(), mean(finalist))).collect();
    (best.unwrap().best.unwrap().number, finalists)
}

#[test]
fn of_the_finalists_the_highest_mean_over_the_seeds_decides() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.db");
    let (leader, one) = finals(&file, 1, 4);
    assert_eq!((one.len(), one[0].0), (1, leader));
    let (best, all) = finals(&file, 6, 4);
    assert_eq!(all.len(), 6);
    assert_eq!(all[0], one[0], "what was scored already is not scored again");
    let highest = all.iter().map(|finalist| finalist.1).fold(f64::MIN, f64::max);
    assert_eq!(all.iter().find(|finalist| finalist.1 == highest).unwrap().0, best);
    assert_ne!(best, leader, "with this seed the leader of the search is not the best of the finalists");
    let mut storage = Sqlite::open(&file).unwrap();
    let (_, trained) = qdc_lab::Config::of_trial(&mut storage, None, None).unwrap();
    assert_eq!(trained, best, "train --from takes the same trial");
}

#[test]
fn a_search_begins_where_it_is_told_and_is_another_experiment_then() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("study.db");
    with_search(&Cpu, |settings| {
        let mut space = settings.space.clone();
        space.begin_at(&[("hidden".into(), "11".into())])?;
        space.begin_at(&[])?; // the default width, 64, is not in the space: only dropout is given
        let settings = Search { space: &space, ..settings.clone() };
        begin(&file, &settings)
    })
    .unwrap();
    let points: Vec<_> = trials(&file).into_iter().map(|trial| trial.2).collect();
    assert_eq!(points.len(), 6);
    assert_eq!((&points[0]["hidden"], &points[0]["dropout"]), (&11.into(), &0.5.into()));
    assert_eq!(points[1]["dropout"], 0.5);
    assert!((4..=16).contains(&points[1]["hidden"].as_i64().unwrap()));
    assert!(points[2..].iter().all(|point| point["dropout"] != 0.5), "the sampler goes on");
    let error = run(&file).unwrap_err().to_string();
    assert!(error.contains("search.start"), "{error}");
}
