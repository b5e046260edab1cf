//! A training run: a model on a dataset, split by split, and the record of it.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use qdc_core::{Metric, Watch};
use qdc_data::Dataset;
use qdc_nn::training::{self, Scores, Step, check_split, untrained_classes};
use qdc_nn::{BatchRun, Cpu, Criterion, EarlyStopping, Trainer};
use serde::{Deserialize, Serialize};

use crate::bank::Learned;
use crate::experiment::{DatasetIdentity, Experiment};
use crate::model::NetworkKind;
use crate::prepared::{Prepared, Ready};
use crate::rewiring::RewiringReport;
use crate::rewiring::recipes;
use crate::rewirings::Rewirings;
use crate::scores::Summary;
use crate::tower_report::TowerReport;
use crate::{Error, Hyperparameters, Model, RewiringKind};

/// How long to train: the published rule by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Patience {
    /// The most steps there can be.
    pub max_steps: usize,
    /// When to stop before.
    pub stopping: EarlyStopping,
    /// Vertices in a mini-batch; `None`: all training vertices at once. A step is then a pass over the training
    /// vertices, with an update for each batch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch_nodes: Option<usize>,
}

impl Patience {
    /// The rule a model was found with: the published one; for banks and windows at most 400 steps, and for
    /// banks the step of lowest validation loss. (A window that has hardly moved can have the lowest loss.)
    pub fn of(model: &Model) -> Self {
        let criterion = match model.towers()[0].network {
            NetworkKind::Bank => Criterion::Loss,
            NetworkKind::Window => Criterion::Metric,
            NetworkKind::Mlp | NetworkKind::Gcn | NetworkKind::Gat => return Self::default(),
        };
        let stopping = EarlyStopping { criterion, ..EarlyStopping::default() };
        Self { max_steps: 400, stopping, batch_nodes: None }
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self { max_steps: 1000, stopping: EarlyStopping::default(), batch_nodes: None }
    }
}

/// What to keep of a run besides its record.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The weights of the best step of every split.
    pub weights: bool,
    /// Every step.
    pub curve: bool,
    /// The probability of every class for every vertex at the best step, for an [`crate::Ensemble`].
    pub probabilities: bool,
}

/// What to train and on what.
#[derive(Clone, Copy, Debug)]
pub struct Training<'a> {
    /// The dataset.
    pub dataset: &'a Dataset,
    /// The model and its hyper-parameters.
    pub hyperparameters: &'a Hyperparameters,
    /// The seeds every split is trained with; split k draws from its own stream, whatever other splits are run.
    pub seeds: &'a [u64],
    /// The splits to train, by number.
    pub splits: &'a [usize],
    /// How long to train.
    pub patience: Patience,
    /// What decides which step is the best, and what the scores are.
    pub metric: Metric,
    /// What to keep besides the record.
    pub keep: Keep,
}

impl Training<'_> {
    /// The record of all that decides the result.
    pub fn experiment(&self) -> Experiment {
        Experiment {
            version: Experiment::VERSION.to_owned(),
            dataset: DatasetIdentity::of(self.dataset),
            splits: self.splits.to_vec(),
            model: self.hyperparameters.model().clone(),
            hyperparameters: self.hyperparameters.written(),
            schedule: self.patience,
            metric: self.metric,
            seeds: self.seeds.to_vec(),
            recipes: recipes(self.hyperparameters),
            kernel: None,
            search: None,
        }
    }

    /// Looks at the splits before any work is done.
    fn check(&self) -> Result<(), Error> {
        let Self { dataset, splits, metric, .. } = *self;
        let absent = |&&split: &&usize| split >= dataset.splits.len();
        let none = (splits.is_empty() && dataset.splits.is_empty()).then_some(&0);
        if let Some(&split) = splits.iter().find(absent).or(none) {
            let (dataset, splits) = (dataset.name.clone(), dataset.splits.len());
            return Err(Error::NoSuchSplit { split, dataset, splits });
        }
        if self.patience.batch_nodes.is_some() && self.hyperparameters.model().is_bank() {
            return Err(Error::NoBatches { model: self.hyperparameters.model().to_string() });
        }
        for &number in splits {
            check_split(&dataset.splits[number], number, &dataset.labels, dataset.classes, metric)?;
        }
        Ok(())
    }
}

/// The record of a run: what `qdc train --json` prints.
#[derive(Clone, Debug, Serialize)]
pub struct RunRecord {
    /// The dataset's name.
    pub dataset: String,
    /// The model.
    pub model: Model,
    /// All hyper-parameters, defaults included.
    pub hyperparameters: Hyperparameters,
    /// The hash of the experiment.
    pub experiment: String,
    /// The first seed.
    pub seed: u64,
    /// Every seed.
    pub seeds: Vec<u64>,
    /// What the scores are measured by.
    pub metric: Metric,
    /// What it was trained on: `cpu`, or the name of a device; both, joined by `and`, where a device could not
    /// train all of it.
    pub device: String,
    /// Mean test score over splits and seeds.
    pub test_mean: f64,
    /// Its standard deviation (ddof 0) over the splits, each by its mean over the seeds.
    pub test_std: f64,
    /// Mean validation score over splits and seeds: what tuning sees.
    pub validation_mean: f64,
    /// Every split trained, in order, seed after seed.
    pub splits: Vec<Scores>,
    /// What a bank or a window learnt on each of them besides matrices; nothing for other networks.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub learned: Vec<Learned>,
    /// The report of the kernel, or of SDRF; none on the plain graph.
    pub kernel: Option<RewiringReport>,
    /// What the matrix of each tower is and how it was made; none where no tower sees the graph.
    pub towers: Vec<TowerReport>,
    /// Whether a tower's kernel is nearly the identity.
    pub nearly_identity: bool,
    /// Time the rewirings took, before the first split.
    pub rewiring_seconds: f64,
    /// Time of everything.
    pub seconds: f64,
    /// Whether the run was ended before its last split.
    pub stopped: bool,
    /// What is worth knowing about the data.
    pub notes: Vec<String>,
}

/// A finished run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The record.
    pub record: RunRecord,
    /// The weights of each split in the record's order, where they were to be kept.
    pub weights: Vec<Option<Vec<f32>>>,
    /// The steps of each split in the record's order, where they were to be kept.
    pub curves: Vec<Vec<Step>>,
    /// The probability of every class for every vertex (row-major) after each split in the record's order,
    /// where it was to be kept and a step had a finite loss.
    pub probabilities: Vec<Option<Vec<f32>>>,
    /// The network, to be filled with weights that were kept.
    pub(crate) network: Option<Arc<Prepared>>,
}

impl Run {
    /// The place of the split that did best on validation, the first of equals, among those that pass a test.
    pub(crate) fn best_split(&self, has: impl Fn(usize) -> bool) -> Option<usize> {
        let validation = |at: usize| self.record.splits[at].validation;
        let candidates = (0..self.record.splits.len()).filter(|&at| has(at));
        candidates.reduce(|best, at| if validation(at) > validation(best) { at } else { best })
    }
}

/// Trains a model on the splits asked for with every seed, as many runs at once as `trainer` and the memory
/// allow.
///
/// The rewirings are made (or found in `rewirings`) once and shared. `on_split` hears of each split as it
/// ends, in any order; if it breaks, no further split begins, and the record says that the run was stopped.
/// The result of a split does not depend on the other splits, the other seeds or the number of threads.
///
/// # Errors
/// A split that is not there or cannot be trained on; features that are not finite; more memory needed than
/// allowed; whatever a rewiring refuses; a stop asked for.
pub fn train(
    training: &Training<'_>,
    rewirings: &Rewirings<'_>,
    trainer: &dyn Trainer,
    watch: &Watch,
    on_split: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
) -> Result<Run, Error> {
    let start = Instant::now();
    let Training { dataset, hyperparameters, seeds, splits, patience, metric, keep } = *training;
    training.check()?;
    let has_kernel = hyperparameters.model().has(|tower| tower.rewiring.is_kernel());
    if rewirings.given().is_some() && !has_kernel {
        let problem = format!("{} has no kernel whose place it could take", hyperparameters.model());
        return Err(Error::GivenKernel { problem });
    }
    let trainer = if patience.batch_nodes.is_some() { &Cpu } else { trainer }; // batches are cut on the CPU
    let mut notes = notes(dataset, splits);
    notes.iter().for_each(|note| watch.note(note));
    let mut rewiring_seconds = 0.0;
    let (mut reports, mut trained, mut shown, mut learned) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    // What a network says of itself, and its probabilities, are read off its weights.
    let weights = keep.weights || keep.probabilities || hyperparameters.model().is_bank();
    let kept = training::Keep { weights, curve: keep.curve };
    // Only SDRF draws: every other model is made once for all seeds.
    let draws = hyperparameters.model().has(|tower| tower.rewiring == RewiringKind::Sdrf);
    let seeds_at_once = if draws { 1 } else { seeds.len().max(1) };
    let (mut network, mut towers) = (None, Vec::new());
    for seeds in seeds.chunks(seeds_at_once) {
        let before = Instant::now();
        let run = |&seed: &u64| {
            let of_split = move |&number: &usize| BatchRun { split: &dataset.splits[number], number, seed };
            splits.iter().map(of_split)
        };
        let runs: Vec<BatchRun<'_>> = seeds.iter().flat_map(run).collect();
        let results = if weights { splits.len() * training.seeds.len() } else { 0 };
        drop(network.take()); // the memory of one model at a time
        let Ready { prepared, rewired, at_once, share } = Prepared::ready(
            hyperparameters,
            dataset,
            dataset.classes,
            rewirings,
            seeds[0],
            patience.batch_nodes,
            runs.len(),
            results,
            trainer,
            watch,
        )?;
        rewiring_seconds += before.elapsed().as_secs_f64();
        if reports.is_empty() {
            if !rewired.is_empty() {
                let homophily = qdc_core::homophily(&dataset.graph, &dataset.labels)?.node;
                towers = TowerReport::of(hyperparameters.model().towers(), &rewired, homophily);
            }
            reports = rewired.into_iter().map(|made| made.report).collect();
            for note in identities(&reports) {
                watch.note(&note);
                notes.push(note);
            }
        }
        let schedule = prepared.schedule(hyperparameters, patience, metric);
        let finished = rewirings.compute(|| {
            prepared.train(&dataset.labels, &runs, at_once, &schedule, kept, trainer, watch, on_split)
        })?;
        learned.extend(prepared.learned(&finished)?);
        if keep.probabilities {
            let shares = finished.iter().zip(prepared.probabilities(&finished)?);
            shown.extend(shares.filter(|(run, _)| run.is_some()).map(|(_, shares)| shares));
        }
        drop(share);
        let complete = finished.len() == runs.len() && finished.iter().all(Option::is_some);
        trained.extend(finished.into_iter().flatten());
        network = Some(prepared);
        if !complete {
            break;
        }
    }
    let (mut scores, mut weights, mut curves) = (Vec::new(), Vec::new(), Vec::new());
    let mut computed_on: Vec<Arc<str>> = Vec::new();
    for trained in trained {
        if !computed_on.contains(&trained.device) {
            computed_on.push(trained.device);
        }
        scores.push(trained.scores);
        weights.push(trained.weights.filter(|_| keep.weights));
        curves.push(trained.curve);
    }
    let summary = Summary::of(&scores);
    let told = |report: &RewiringReport| !matches!(report, RewiringReport::Plain { .. });
    let record = RunRecord {
        dataset: dataset.name.clone(),
        model: hyperparameters.model().clone(),
        hyperparameters: hyperparameters.clone(),
        experiment: Experiment { kernel: rewirings.given().map(str::to_owned), ..training.experiment() }
            .hash(),
        seed: seeds.first().copied().unwrap_or(0),
        seeds: seeds.to_vec(),
        metric,
        device: devices(&computed_on, trainer),
        test_mean: summary.test_mean,
        test_std: summary.test_std,
        validation_mean: summary.validation_mean,
        stopped: scores.len() < splits.len() * seeds.len(),
        splits: scores,
        learned,
        kernel: reports.iter().map(|report| (**report).clone()).find(told),
        towers,
        nearly_identity: reports.iter().any(|report| report.is_nearly_identity()),
        rewiring_seconds,
        seconds: start.elapsed().as_secs_f64(),
        notes,
    };
    let network = network.filter(|_| keep.weights).map(Arc::new);
    Ok(Run { record, weights, curves, probabilities: shown, network })
}

/// The names of what the splits were computed on; where none was trained, that of who would have done it.
fn devices(names: &[Arc<str>], trainer: &dyn Trainer) -> String {
    if names.is_empty() { trainer.device().to_owned() } else { names.join(" and ") }
}

/// A remark for each tower whose kernel is nearly the identity.
fn identities(reports: &[Arc<RewiringReport>]) -> Vec<String> {
    let identity = |(number, report): (usize, &Arc<RewiringReport>)| {
        let share = report.diagonal_share().filter(|_| report.is_nearly_identity())?;
        let (whose, what) = match reports.len() {
            1 => ("the kernel".to_owned(), "network"),
            _ => (format!("the kernel of tower {}", number + 1), "tower"),
        };
        Some(format!(
            "{whose} has {:.2} % of its mass on the diagonal, nearly the identity: this {what} is an MLP",
            100.0 * share
        ))
    };
    reports.iter().enumerate().filter_map(identity).collect()
}

/// Classes that cannot be learnt, told once for each class.
fn notes(dataset: &Dataset, splits: &[usize]) -> Vec<String> {
    let mut missing: Vec<Vec<usize>> = vec![Vec::new(); dataset.classes];
    for &split in splits {
        for (class, _) in untrained_classes(&dataset.labels, &dataset.splits[split], dataset.classes) {
            missing[class as usize].push(split);
        }
    }
    let told = missing.iter().enumerate().filter(|(_, splits)| !splits.is_empty());
    told.map(|(class, splits)| {
        let list: Vec<String> = splits.iter().map(ToString::to_string).collect();
        format!(
            "class {class} has no training vertex in split {}: it cannot be learnt there",
            list.join(", ")
        )
    })
    .collect()
}
