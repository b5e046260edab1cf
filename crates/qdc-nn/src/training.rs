//! Training one split: full batches, Adam, early stopping, the best step kept.

use qdc_core::{Split, Watch};
use serde::{Deserialize, Serialize};

use crate::early_stopping::{EarlyStopping, Validation, Verdict};
use crate::layers::Pass;
use crate::loss::{accuracy, cross_entropy, predicted};
use crate::random::derive;
use crate::{Adam, Architecture, Error, Inputs, Network, Real};

/// How to train.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Schedule {
    /// Adam's learning rate.
    pub learning_rate: f64,
    /// L2 decay of all parameters.
    pub weight_decay: f64,
    /// The most steps there can be.
    pub max_steps: usize,
    /// When to stop before.
    pub stopping: EarlyStopping,
}

/// What came out of a split. Accuracies are those of the best step, and 0 if no step had a finite loss.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// Accuracy on the training vertices.
    pub train: f64,
    /// Accuracy on the validation vertices.
    pub validation: f64,
    /// Loss on the validation vertices.
    pub validation_loss: Option<f64>,
    /// Accuracy on the test vertices.
    pub test: f64,
    /// Steps taken.
    pub steps: usize,
    /// The best of them, counting from 1; 0 if there was none.
    pub best_step: usize,
    /// The step at which the loss was no longer finite, if that ended the training.
    pub diverged_at: Option<usize>,
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
    /// Accuracy on the validation vertices after it.
    pub validation: f64,
}

/// What to keep of a training besides its outcome.
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
    /// The scores.
    pub outcome: Outcome,
    /// The weights of the best step (flat, see [`crate::Placed`]), if they were to be kept and there was one.
    pub weights: Option<Vec<T>>,
    /// Every step, if they were to be kept.
    pub curve: Vec<Step>,
}

/// Trains a fresh network on one split. The same arguments give the same result, bit for bit.
///
/// The phase of `watch` is called by the `number` of the split.
///
/// # Errors
/// If a set of the split is empty (`number` names the split then), a label is no class, or the watch asks to stop. A loss
/// that is no longer finite is no error: it ends the training, and the outcome says so.
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
    check_split(split, number)?;
    if let Some(vertex) = labels.iter().position(|&label| label as usize >= architecture.classes) {
        return Err(Error::Label { vertex, label: labels[vertex], classes: architecture.classes });
    }
    let mut network = Network::new(architecture, inputs, derive(seed, 0))?;
    let mut adam = Adam::new(network.weights().len(), schedule.learning_rate, schedule.weight_decay);
    let mut progress = schedule.stopping.start();
    let mut outcome = Outcome {
        train: 0.0,
        validation: 0.0,
        validation_loss: None,
        test: 0.0,
        steps: 0,
        best_step: 0,
        diverged_at: None,
    };
    let (mut weights, mut curve) = (None, Vec::new());
    let phase = watch.phase(&format!("split {number}"), schedule.max_steps as u64);
    for step in 1..=schedule.max_steps {
        let train_loss =
            network.loss_and_gradient(labels, split.train(), Pass::Train { seed: derive(seed, step as u64) });
        network.update(|weights, gradient| adam.step(weights, gradient));
        let logits = network.forward(Pass::Evaluate);
        let validation = Validation {
            accuracy: accuracy(logits, labels, split.validation()),
            loss: cross_entropy(logits, labels, split.validation()),
        };
        outcome.steps = step;
        if !train_loss.is_finite() || !validation.loss.is_finite() {
            outcome.diverged_at = Some(step);
            break;
        }
        if keep.curve {
            let (validation_loss, validation) = (validation.loss, validation.accuracy);
            curve.push(Step { step, train_loss, validation_loss, validation });
        }
        match progress.observe(validation) {
            Verdict::Improved => {
                outcome.best_step = step;
                outcome.train = accuracy(logits, labels, split.train());
                outcome.validation = validation.accuracy;
                outcome.validation_loss = Some(validation.loss);
                outcome.test = accuracy(logits, labels, split.test());
                if keep.weights {
                    weights = Some(network.weights().to_vec());
                }
            }
            Verdict::Continue => {}
            Verdict::Stop => break,
        }
        phase.advance(1)?;
    }
    Ok(Trained { outcome, weights, curve })
}

/// Whether a network can be trained on a split: each of its sets has a vertex. `number` names it in the error.
///
/// # Errors
/// If one has none.
pub fn check_split(split: &Split, number: usize) -> Result<(), Error> {
    let sets = [("training", split.train()), ("validation", split.validation()), ("test", split.test())];
    match sets.iter().find(|(_, vertices)| vertices.is_empty()) {
        Some(&(part, _)) => Err(Error::EmptySet { split: number, part }),
        None => Ok(()),
    }
}

/// The class the network gives each vertex.
pub fn predictions<T: Real>(network: &mut Network<T>) -> Vec<u32> {
    let logits = network.forward(Pass::Evaluate);
    (0..logits.rows()).map(|vertex| predicted(logits, vertex)).collect()
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
