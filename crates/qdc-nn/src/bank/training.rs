//! Training a bank or a window on one split: every start of a learned window is tried.

use qdc_core::{Split, Watch};
use rayon::prelude::*;

use super::{BankArchitecture, BankInputs, BankNetwork};
use crate::training::{Keep, Schedule, Scores, Trained, start_seed, train_learner};
use crate::{Error, Real};

/// Trains a network over each of `inputs` on a split, and keeps the best; see [`crate::training::train_split`].
#[allow(clippy::too_many_arguments)] // each is one noun of the sentence
pub(crate) fn train_split<T: Real>(
    architecture: &BankArchitecture,
    inputs: &[BankInputs<T>],
    labels: &[u32],
    split: &Split,
    number: usize,
    schedule: &Schedule,
    seed: u64,
    keep: Keep,
    watch: &Watch,
) -> Result<Trained<T>, Error> {
    let from = |inputs: &BankInputs<T>| {
        let mut network = BankNetwork::new(architecture, inputs, start_seed(seed, number))?;
        let classes = architecture.classes;
        train_learner(&mut network, classes, labels, split, number, schedule, seed, keep, watch)
    };
    let trained: Vec<Trained<T>> = inputs.par_iter().map(from).collect::<Result<_, _>>()?;
    let seconds = trained.iter().map(|trained| trained.scores.seconds).sum();
    let mut best = best_start(trained).ok_or_else(|| {
        let problem = "a bank needs inputs to be trained on".to_owned();
        Error::Architecture { problem }
    })?;
    best.scores.seconds = seconds;
    Ok(best)
}

/// The training that did best on validation, the first of equals; `None` of nothing.
pub fn best_start<T>(trained: Vec<Trained<T>>) -> Option<Trained<T>> {
    trained.into_iter().reduce(|best, next| if better(&next.scores, &best.scores) { next } else { best })
}

/// A higher validation score, or the same at a lower loss.
fn better(one: &Scores, other: &Scores) -> bool {
    let loss = |scores: &Scores| scores.validation_loss.unwrap_or(f64::INFINITY);
    one.validation > other.validation || (one.validation == other.validation && loss(one) < loss(other))
}
