//! The search: trials side by side, each on all splits, until there are enough.
//!
//! This thread asks and tells; each trial has a thread of its own that hands its splits to rayon's pool, or
//! waits for a worker elsewhere. What is found depends on seed and batch, not on how many trials run at once,
//! nor where.

use std::collections::BTreeMap;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use qdc_core::kernel::Accelerator;
use qdc_core::{Metric, Watch};
use qdc_data::{Dataset, SpectrumCache};
use qdc_nn::Trainer;
use qdc_tune::storage::Storage;
use qdc_tune::{Asked, Direction, Pruning, Sampler, State, Study};
use serde::Serialize;
use serde_json::Value;

use super::SearchSpace;
use super::coordinator::{Coordinator, Next};
use super::ensemble::{self, TrialEnsemble};
use super::shared::Shared;
use super::trial::{Ending, Place, Runner};
use super::workers::Workers;
use super::{identity, rescore};
use crate::{Error, Patience, Rewirings, Scores, Summary};

/// What to search, and within which limits.
#[derive(Debug, Clone)]
pub struct Search<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// The model and its space.
    pub space: &'a SearchSpace,
    /// How many trials the study shall have.
    pub trials: usize,
    /// How the dataset was named and split, for who trains a trial again.
    pub source: Option<Value>,
    /// The splits every trial is trained on, by number.
    pub splits: &'a [usize],
    /// The seed of points and of training.
    pub seed: u64,
    /// Seeds the best trial is scored with in the end: `seed` and those that follow it.
    pub seeds: u64,
    /// How many of the best trials are scored so; the highest mean validation over the seeds decides between them.
    pub finalists: usize,
    /// How many of the best trials are asked together in the end; 0 or 1: none.
    pub ensemble: usize,
    /// Results that may be missing when a point is chosen; fixes what is found.
    pub batch: u64,
    /// Trials at once, at most `batch`.
    pub jobs: usize,
    /// Who proposes points.
    pub sampler: Sampler,
    /// Whether hopeless trials stop early.
    pub pruning: Pruning,
    /// Bytes that the program may take; a trial that needs more is a failure. `None`: no limit.
    pub memory: Option<u64>,
    /// Time a trial may take; more is a failure.
    pub trial_time: Option<Duration>,
    /// Entries of a matrix that attention may weigh; a trial with more is a failure. A step takes memory and
    /// time in proportion to them.
    pub attention_limit: Option<usize>,
    /// When to begin no further trial.
    pub until: Option<Instant>,
    /// How long to train.
    pub patience: Patience,
    /// What is searched for.
    pub metric: Metric,
    /// Where complete spectra are kept.
    pub spectra: SpectrumCache,
    /// Who trains.
    pub trainer: &'a dyn Trainer,
    /// A device for kernels and spectra that are worth it.
    pub accelerator: Option<Arc<dyn Accelerator>>,
    /// The threads that compute; the process's own pool where none is given.
    pub pool: Option<&'a rayon::ThreadPool>,
    /// Who runs the trials; this process where nobody is given. The best is scored again, and several are
    /// asked together, in this process.
    pub workers: Option<&'a dyn Workers>,
}

/// The best trial.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Best {
    /// Its number.
    pub number: u64,
    /// Mean validation score, with the first seed: what was searched for.
    pub validation: f64,
    /// Mean test score over splits and seeds.
    pub test_mean: f64,
    /// Its standard deviation over the splits.
    pub test_std: f64,
    /// Seeds it was scored with.
    pub seeds: usize,
    /// The point.
    pub parameters: BTreeMap<String, Value>,
}

/// What came of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchReport {
    /// The study's name.
    pub study: String,
    /// The hash of the experiment.
    pub experiment: String,
    /// Where it is kept.
    pub storage: String,
    /// Finished trials.
    pub trials: usize,
    /// Trials that failed, and the reasons with their counts.
    pub failed: BTreeMap<String, usize>,
    /// Trials given up early.
    pub pruned: usize,
    /// Trials still to be done.
    pub left: usize,
    /// Trials whose result was copied from an equal one.
    pub duplicates: usize,
    /// The best so far.
    pub best: Option<Best>,
    /// The best trials asked together, where that was wanted.
    #[serde(flatten)]
    pub ensemble: Option<TrialEnsemble>,
    /// Whether it was stopped before its time.
    pub interrupted: bool,
    /// Time taken now.
    pub seconds: f64,
}

/// The name of the study of a cell of the table.
pub fn study_name(dataset: &str, space: &SearchSpace) -> String {
    format!("{dataset} {} {}", space.model, space.name)
}

enum Message {
    Split(u64, Scores),
    Done(Asked, Ending),
}

/// Runs or resumes a search.
pub fn search(
    search: &Search<'_>,
    storage: Box<dyn Storage>,
    name: &str,
    watch: &Watch,
) -> Result<SearchReport, Error> {
    let start = Instant::now();
    let space = search.space;
    let mut study = Study::open_boxed(storage, name, Direction::Maximize, space.space.clone())?
        .sampler(search.sampler)
        .seed(search.seed)
        .batch(search.batch)
        .pruning(search.pruning);
    let experiment = identity::record(search)?;
    identity::identify(&mut study, &experiment)?;
    identity::describe(&mut study, search)?;
    if study.is_empty() {
        space.points.iter().try_for_each(|point| study.enqueue(point))?;
    }
    let finished = study.trials().filter(|trial| trial.state.is_finished()).count();
    let phase = watch.phase(name, search.trials as u64);
    phase.advance(finished as u64).ok();
    let trains_here = finished < search.trials && search.workers.is_none();
    let rewirings = if trains_here || search.seeds > 1 || search.ensemble > 1 {
        Shared::prepare(search, watch)?.rewirings(search)
    } else {
        Rewirings::new(search.dataset)
    };
    let place = search.workers.map_or(Place::Here(&rewirings), Place::Elsewhere);
    let experiment = experiment.hash();
    let runner = Runner { search, place, experiment: &experiment, watch };
    let mut coordinator = Coordinator::new(&mut study, watch);
    let (sender, receiver) = mpsc::channel::<Message>();
    std::thread::scope(|scope| {
        let mut under_way = 0;
        loop {
            let over = watch.stop_requested() || search.until.is_some_and(|until| Instant::now() >= until);
            while !over && under_way < search.jobs.max(1) {
                let (asked, hyperparameters) = match coordinator.next(search) {
                    Next::Run(asked, hyperparameters) => (asked, hyperparameters),
                    Next::Settled => {
                        phase.advance(1).ok();
                        continue;
                    }
                    Next::Nothing => break,
                };
                let switch = coordinator.switch(&asked);
                let (sender, runner) = (sender.clone(), &runner);
                under_way += 1;
                scope.spawn(move || {
                    let number = asked.trial;
                    let report = |split: &Scores| {
                        sender.send(Message::Split(number, split.clone())).ok();
                    };
                    let ending = runner.run(&asked.parameters, &hyperparameters, &switch, &report);
                    sender.send(Message::Done(asked, ending)).ok();
                });
            }
            if under_way == 0 {
                if over || coordinator.is_done(search.trials) {
                    return;
                }
                std::thread::sleep(Duration::from_millis(100)); // others work on what we wait for
                coordinator.synchronise();
                continue;
            }
            match receiver.recv().expect("a sender is kept here") {
                Message::Split(number, split) => coordinator.hear(number, &split),
                Message::Done(asked, ending) => {
                    under_way -= 1;
                    phase.advance(1).ok();
                    coordinator.finish(&asked, ending);
                }
            }
        }
    });
    let duplicates = coordinator.end()?;
    study.synchronise()?;
    if search.seeds > 1 && !watch.stop_requested() {
        rescore::rescore(&mut study, search, &rewirings, watch)?;
    }
    if search.ensemble > 1 && !watch.stop_requested() {
        ensemble::ensemble(&mut study, search, &rewirings, watch)?;
    }
    Ok(report(&study, search, duplicates, watch.stop_requested(), start.elapsed()))
}

fn report(
    study: &Study,
    search: &Search<'_>,
    duplicates: usize,
    interrupted: bool,
    took: Duration,
) -> SearchReport {
    let finished = study.trials().filter(|trial| trial.state.is_finished()).count();
    let mut failed: BTreeMap<String, usize> = BTreeMap::new();
    for trial in study.trials().filter(|trial| trial.state == State::Failed) {
        let reason =
            trial.user_attributes.get("failure").and_then(Value::as_str).unwrap_or("no reason given");
        *failed.entry(reason.to_owned()).or_default() += 1;
    }
    let best = rescore::best(study.attributes(), study.trials()).map(|trial| {
        let number = |key: &str| trial.user_attributes.get(key).and_then(Value::as_f64).unwrap_or(f64::NAN);
        let rescored = rescore::scores(study.attributes(), trial.number).map(|scores| Summary::of(&scores));
        let once = (number("test_mean"), number("test_std"), 1);
        let (test_mean, test_std, seeds) =
            rescored.map_or(once, |summary| (summary.test_mean, summary.test_std, summary.seeds));
        Best {
            number: trial.number,
            validation: trial.value.unwrap_or(f64::NAN),
            test_mean,
            test_std,
            seeds,
            parameters: trial.parameters(),
        }
    });
    SearchReport {
        study: study.name().to_owned(),
        experiment: study.attributes().get(identity::HASH).and_then(Value::as_str).unwrap_or_default().into(),
        storage: study.storage(),
        trials: finished,
        failed,
        pruned: study.trials().filter(|trial| trial.state == State::Pruned).count(),
        left: search.trials.saturating_sub(finished),
        duplicates,
        best,
        ensemble: ensemble::found(study.attributes()).filter(|_| search.ensemble > 1),
        interrupted,
        seconds: took.as_secs_f64(),
    }
}
