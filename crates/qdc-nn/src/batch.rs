//! A batch of runs and who trains it: the seam between the CPU and other devices.

use std::fmt;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use qdc_core::{Split, Watch};
use rayon::prelude::*;

use crate::bank::{self, BankArchitecture, BankInputs};
use crate::parallel::InTraining;
use crate::training::{CPU, Keep, Schedule, Scores, Trained, train_split};
use crate::{Architecture, Error, Inputs};

/// On the CPU a dense product does about this many multiplications in the time a sparse one does one.
pub(crate) const DENSE_ADVANTAGE: f64 = 4.0;

/// A network to be trained, with what it runs over.
#[derive(Clone, Copy, Debug)]
pub enum Trainee<'a> {
    /// Layers over matrices.
    Towers {
        /// The network.
        architecture: &'a Architecture,
        /// What it runs over.
        inputs: &'a Inputs<f32>,
    },
    /// Channels.
    Bank {
        /// The network.
        architecture: &'a BankArchitecture,
        /// What it runs over. Where there are several, which differ in where a learned window starts, a run
        /// is trained from each of them, and the best on validation counts.
        inputs: &'a [BankInputs<f32>],
    },
}

impl Trainee<'_> {
    /// Number of classes.
    pub fn classes(&self) -> usize {
        match self {
            Self::Towers { architecture, .. } => architecture.classes,
            Self::Bank { architecture, .. } => architecture.classes,
        }
    }
}

/// Runs that share the graph, the network's shape and the schedule, and differ in split and seed.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The network.
    pub trainee: Trainee<'a>,
    /// The class of each vertex.
    pub labels: &'a [u32],
    /// The runs.
    pub runs: &'a [BatchRun<'a>],
    /// How to train.
    pub schedule: &'a Schedule,
    /// What to keep.
    pub keep: Keep,
}

/// One run of a batch.
#[derive(Clone, Copy, Debug)]
pub struct BatchRun<'a> {
    /// The split.
    pub split: &'a Split,
    /// Its number.
    pub number: usize,
    /// The seed; the run draws from a stream made of it and the split's number.
    pub seed: u64,
}

/// Who trains batches. A run gives the same result whichever runs share its batch.
pub trait Trainer: fmt::Debug + Sync {
    /// What it computes on, for records: `cpu`, or the name of a device.
    fn device(&self) -> &str;

    /// How many multiplications a dense product does in the time a sparse one does one.
    fn dense_advantage(&self) -> f64 {
        DENSE_ADVANTAGE
    }

    /// Trains the runs of a batch; the results stand in the order of the runs.
    ///
    /// `on_end` hears of each run as it ends, in any order; if it breaks, no further run begins, and those
    /// that were not finished have no result.
    ///
    /// # Errors
    /// Those of [`train_split`], and of the device.
    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, Error>;
}

/// Trains run after run on rayon's current pool, as many at a time as it has threads; where fewer runs than
/// threads are left, the loops within a run use the others.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cpu;

impl Trainer for Cpu {
    fn device(&self) -> &str {
        CPU
    }

    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, Error> {
        let Batch { trainee, labels, runs, schedule, keep } = *batch;
        let (stop, next) = (AtomicBool::new(false), AtomicUsize::new(0));
        let train = |run: &BatchRun<'_>| {
            let BatchRun { split, number, seed } = *run;
            let trained = match trainee {
                Trainee::Towers { architecture, inputs } => {
                    train_split(architecture, inputs, labels, split, number, schedule, seed, keep, watch)
                }
                Trainee::Bank { architecture, inputs } => bank::train_split(
                    architecture,
                    inputs,
                    labels,
                    split,
                    number,
                    schedule,
                    seed,
                    keep,
                    watch,
                ),
            };
            if trained.as_ref().map_or(true, |trained| on_end(&trained.scores).is_break()) {
                stop.store(true, Ordering::Relaxed);
            }
            trained
        };
        let workers = rayon::current_num_threads().min(runs.len());
        let workers: Vec<InTraining> = (0..workers).map(|_| InTraining::begin()).collect();
        let work = |_one: InTraining| {
            let mut finished = Vec::new();
            while !stop.load(Ordering::Relaxed) {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(run) = runs.get(at) else { break };
                finished.push((at, train(run)?));
            }
            Ok(finished)
        };
        let finished: Vec<Vec<_>> =
            workers.into_par_iter().with_max_len(1).map(work).collect::<Result<_, Error>>()?;
        let mut results: Vec<Option<Trained<f32>>> = runs.iter().map(|_| None).collect();
        finished.into_iter().flatten().for_each(|(at, trained)| results[at] = Some(trained));
        Ok(results)
    }
}
