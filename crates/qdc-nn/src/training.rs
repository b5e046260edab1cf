//! Training one split: full batches or mini-batches, Adam, early stopping, the best step kept.

use std::sync::Arc;
use std::time::Instant;

use qdc_core::{Metric, Split, UNLABELLED, Watch};
use serde::{Deserialize, Serialize};

use crate::early_stopping::{EarlyStopping, Validation, Verdict};
use crate::layers::Pass;
use crate::loss::cross_entropy;
use crate::mini_batch::{MiniBatched, batches};
use crate::random::derive;
use crate::scorer::{Scorer, defined_on};
use crate::{Adam, Architecture, Error, Inputs, Learner, Network, Real};

/// The name of the CPU in records.
pub(crate) const CPU: &str = "cpu";

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// L2 decay of all parameters.
    pub weight_decay: f64,
    /// The most steps there can be.
    pub max_steps: usize,
    /// When to stop before, and which step is the best.
    pub stopping: EarlyStopping,
    /// What the scores are measured by.
    pub metric: Metric,
    /// Vertices in a mini-batch; `None`: all training vertices at once. A step is a pass over the training
    /// vertices, with an update for each batch.
    pub batch_nodes: Option<usize>,
}

/// The scores of one split: those of its best step, by the metric of the schedule; 0 if no step had a finite
/// loss.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Scores {
    /// The split, by number.
    pub split: usize,
    /// The seed it was trained with.
    pub seed: u64,
    /// The score on the training vertices.
    pub train: f64,
    /// The score on the validation vertices.
    pub validation: f64,
    /// The loss on the validation vertices.
    pub validation_loss: Option<f64>,
    /// The score on the test vertices.
    pub test: f64,
    /// Steps taken.
    pub steps: usize,
    /// The best of them, counting from 1; 0 if there was none.
    pub best_step: usize,
    /// The step at which the loss was no longer finite, if that ended the training.
    pub diverged_at: Option<usize>,
    /// Time taken.
    pub seconds: f64,
}

/// One step of a training, for curves.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// The step, counting from 1.
    pub step: usize,
    /// Loss on the training vertices, with dropout, before the step.
    pub train_loss: f64,
    /// Loss on the validation vertices after it.
    pub validation_loss: f64,
    /// The score on the training vertices after it, without dropout.
    pub train: f64,
    /// The score on the validation vertices after it.
    pub validation: f64,
    /// The score on the test vertices after it.
    pub test: f64,
}

/// What to keep of a training besides its scores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// The weights and predictions of the best step.
    pub weights: bool,
    /// Every step.
    pub curve: bool,
}

/// A finished training.
#[derive(Clone, Debug, PartialEq)]
pub struct Trained<T> {
    /// What it was computed on: `cpu`, or the name of a device.
    pub device: Arc<str>,
    /// The scores.
    pub scores: Scores,
    /// The weights of the best step (flat, see [`crate::Placed`]), if they were to be kept and there was one.
    pub weights: Option<Vec<T>>,
    /// Every step, if they were to be kept.
    pub curve: Vec<Step>,
}

/// Trains a fresh network on one split. The same arguments give the same weights and scores, bit for bit.
///
/// Split `number` draws from a stream of its own, made of its number and `seed`, whatever other splits are
/// trained. The phase of `watch` is called by the number. Labels outside the split are not looked at.
///
/// # Errors
/// See [`check_split`]; and if the watch asks to stop. A loss that is no longer finite is no error: it ends
/// the training, and the scores say so.
#[allow(clippy::too_many_arguments)] // each is one noun of the sentence
pub fn train_split<T: Real>(
    architecture: &Architecture,
    inputs: &Inputs<T>,
    labels: &[u32],
    split: &Split,
    number: usize,
    schedule: &Schedule,
    seed: u64,
    keep: Keep,
    watch: &Watch,
) -> Result<Trained<T>, Error> {
    let (start, classes) = (start_seed(seed, number), architecture.classes);
    if let Some(nodes) = schedule.batch_nodes {
        let mut network = MiniBatched::new(architecture, inputs, nodes, start)?;
        return train_learner(&mut network, classes, labels, split, number, schedule, seed, keep, watch);
    }
    let mut network = Network::new(architecture, inputs, start)?;
    train_learner(&mut network, classes, labels, split, number, schedule, seed, keep, watch)
}

/// The seed of the first weights of a split under the seed of a run.
pub fn start_seed(seed: u64, number: usize) -> u64 {
    derive(derive(seed, number as u64), 0)
}

/// Trains a network that has just been started (see [`start_seed`]) on one split, as [`train_split`] does;
/// the network is left as the last step made it.
///
/// # Errors
/// As [`train_split`].
#[allow(clippy::too_many_arguments)] // each is one noun of the sentence
pub fn train_learner<T: Real>(
    network: &mut impl Learner<T>,
    classes: usize,
    labels: &[u32],
    split: &Split,
    number: usize,
    schedule: &Schedule,
    seed: u64,
    keep: Keep,
    watch: &Watch,
) -> Result<Trained<T>, Error> {
    check_split(split, number, labels, classes, schedule.metric)?;
    let start = Instant::now();
    let stream = derive(seed, number as u64);
    let groups = network.groups(schedule.learning_rate, schedule.weight_decay);
    let mut adam = Adam::grouped(groups, network.weights().len());
    let mut stopping = schedule.stopping.start();
    let mut scorer = Scorer::new(schedule.metric);
    let mut scores = Scores { split: number, seed, ..Scores::default() };
    let (mut weights, mut curve) = (None, Vec::new());
    let phase = watch.phase(&format!("split {number}"), schedule.max_steps as u64);
    for step in 1..=schedule.max_steps {
        let drawn = derive(stream, step as u64);
        let train_loss = match schedule.batch_nodes {
            None => {
                let loss = network.loss_and_gradient(labels, split.train(), Pass::Train { seed: drawn });
                network.update(&mut adam);
                loss
            }
            Some(nodes) => {
                let mut sum = 0.0;
                for (batch, vertices) in batches(split.train(), nodes, drawn).iter().enumerate() {
                    let pass = Pass::Train { seed: derive(drawn, 1 + batch as u64) };
                    sum += vertices.len() as f64 * network.loss_and_gradient(labels, vertices, pass);
                    network.update(&mut adam);
                    watch.check()?;
                }
                sum / split.train().len() as f64
            }
        };
        let logits = network.evaluate(&[split.train(), split.validation(), split.test()]);
        let mut score = |vertices| scorer.score(logits, labels, vertices);
        let loss = cross_entropy(logits, labels, split.validation());
        scores.steps = step;
        if !train_loss.is_finite() || !loss.is_finite() {
            scores.diverged_at = Some(step);
            break;
        }
        let validation = Validation { score: score(split.validation()), loss };
        if keep.curve {
            curve.push(Step {
                step,
                train_loss,
                validation_loss: loss,
                train: score(split.train()),
                validation: validation.score,
                test: score(split.test()),
            });
        }
        match stopping.observe(validation) {
            Verdict::Improved => {
                scores.best_step = step;
                scores.train = score(split.train());
                scores.validation = validation.score;
                scores.validation_loss = Some(loss);
                scores.test = score(split.test());
                if keep.weights {
                    weights = Some(network.weights().to_vec());
                }
            }
            Verdict::Continue => {}
            Verdict::Stop => break,
        }
        phase.advance(1)?;
    }
    scores.seconds = start.elapsed().as_secs_f64();
    Ok(Trained { device: CPU.into(), scores, weights, curve })
}

/// Whether a network can be trained and scored on a split. `number` names the split in errors.
///
/// # Errors
/// If one of its sets is empty, has a vertex whose label is no class, or says nothing about `metric`.
pub fn check_split(
    split: &Split,
    number: usize,
    labels: &[u32],
    classes: usize,
    metric: Metric,
) -> Result<(), Error> {
    for (part, vertices) in
        [("training", split.train()), ("validation", split.validation()), ("test", split.test())]
    {
        if vertices.is_empty() {
            return Err(Error::EmptySet { split: number, part });
        }
        if let Some(&vertex) = vertices.iter().find(|&&vertex| labels[vertex as usize] as usize >= classes) {
            let (vertex, label) = (vertex as usize, labels[vertex as usize]);
            return Err(match label {
                UNLABELLED => Error::Unlabelled { vertex, split: number, part },
                label => Error::Label { vertex, split: number, part, label, classes },
            });
        }
        if !defined_on(metric, labels, vertices) {
            return Err(Error::OneClass { split: number, part, metric });
        }
    }
    Ok(())
}

/// Classes that no training vertex has, with the number of validation and test vertices that do.
///
/// A network cannot learn them; small datasets have such splits, so it is a remark and no error.
pub fn untrained_classes(labels: &[u32], split: &Split, classes: usize) -> Vec<(u32, usize)> {
    let mut trained = vec![false; classes];
    split.train().iter().for_each(|&v| trained[labels[v as usize] as usize] = true);
    let mut scored = vec![0; classes];
    for &vertex in split.validation().iter().chain(split.test()) {
        scored[labels[vertex as usize] as usize] += 1;
    }
    let untrained = |class: &usize| !trained[*class] && scored[*class] > 0;
    (0..classes).filter(untrained).map(|class| (class as u32, scored[class])).collect()
}
