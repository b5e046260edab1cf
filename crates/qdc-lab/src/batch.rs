//! A batch of runs: one network trained on several splits.
//!
//! This is the one place that knows where networks are trained. Another device trains the same batch in its own way and
//! gives the same kind of result.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

use qdc_core::{Split, Watch};
use qdc_nn::training::{Keep, Schedule, Scores, Trained, train_split};
use qdc_nn::{Architecture, Inputs};
use rayon::prelude::*;

use crate::Error;

/// A network and what it is trained on.
pub(crate) struct Batch<'a> {
    pub(crate) architecture: &'a Architecture,
    pub(crate) inputs: &'a Inputs<f32>,
    pub(crate) labels: &'a [u32],
    /// Every split of the dataset.
    pub(crate) splits: &'a [Split],
    pub(crate) schedule: Schedule,
    pub(crate) keep: Keep,
    pub(crate) seed: u64,
}

impl Batch<'_> {
    /// Trains a network on each of the splits named, in parallel on rayon's current pool; gives those that were finished,
    /// in the order named. `on_split` hears of each as it ends, in any order; if it breaks, no further one begins.
    pub(crate) fn train(
        &self,
        numbers: &[usize],
        watch: &Watch,
        on_split: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Trained<f32>>, Error> {
        let stop = AtomicBool::new(false);
        let train = |&number: &usize| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let Self { architecture, inputs, labels, splits, schedule, keep, seed } = self;
            let split = &splits[number];
            let trained =
                train_split(architecture, inputs, labels, split, number, schedule, *seed, *keep, watch)?;
            if on_split(&trained.scores).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(Some(trained))
        };
        let finished: Result<Vec<Option<Trained<f32>>>, Error> =
            numbers.par_iter().with_max_len(1).map(train).collect();
        Ok(finished?.into_iter().flatten().collect())
    }
}
