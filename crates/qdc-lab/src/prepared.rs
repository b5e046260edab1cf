//! A model made ready for a dataset: what a run trains on every split, and a saved model predicts with.

use std::ops::ControlFlow;
use std::sync::Arc;

use qdc_core::{Metric, Watch};
use qdc_data::Dataset;
use qdc_nn::training::{Keep, Schedule, Scores, Trained};
use qdc_nn::{
    Architecture, Batch, BatchRun, Inputs, Learner, Matrix, MiniBatched, Network, Pass, Saved, Trainee,
    Trainer, probabilities,
};
use serde::Deserialize;

use crate::architecture::{architecture, feature_scale};
use crate::bank::{Learned, PlannedBank, PreparedBank};
use crate::memory::{Needs, Share};
use crate::rewirings::{Rewired, Rewirings};
use crate::{Error, Hyperparameters, Patience};

/// A model with everything it runs over.
#[derive(Debug)]
pub(crate) enum Prepared {
    /// Layers over matrices.
    Towers {
        /// The network's shape.
        architecture: Architecture,
        /// What it runs over.
        inputs: Inputs<f32>,
        /// Vertices in a mini-batch; `None`: all at once.
        batch_nodes: Option<usize>,
    },
    /// Channels.
    Bank(PreparedBank),
}

/// The rates of Adam.
#[derive(Deserialize)]
struct Optimiser {
    learning_rate: f64,
    weight_decay: f64,
}

/// A model ready for `runs` runs, and what it may take.
pub(crate) struct Ready<'a> {
    /// The model.
    pub(crate) prepared: Prepared,
    /// The rewirings it runs over.
    pub(crate) rewired: Vec<Rewired>,
    /// Networks that may be trained at the same time.
    pub(crate) at_once: usize,
    /// Their memory; given back when dropped.
    pub(crate) share: Share<'a>,
}

impl Prepared {
    /// Makes the rewirings (or finds them) or the channels of a model, within the memory allowed.
    ///
    /// There are to be `runs` runs, as many of them at once as fit, in mini-batches of `batch_nodes` vertices
    /// where that is given; the weights of `results` of them are kept.
    /// What a bank computes in which order is chosen for `trainer`.
    ///
    /// # Errors
    /// More memory needed than allowed, with the figure; whatever a rewiring or a channel refuses; a stop
    /// asked for.
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    pub(crate) fn ready<'a>(
        values: &Hyperparameters,
        dataset: &Dataset,
        classes: usize,
        rewirings: &'a Rewirings<'_>,
        seed: u64,
        batch_nodes: Option<usize>,
        runs: usize,
        results: usize,
        trainer: &dyn Trainer,
        watch: &Watch,
    ) -> Result<Ready<'a>, Error> {
        if values.model().is_bank() {
            let Dataset { graph, features, .. } = dataset;
            let resources = rewirings.resources();
            let mut sizing = rewirings.size();
            let advantage = trainer.dense_advantage();
            let planned = rewirings.compute(|| {
                PlannedBank::new(values, graph, features, classes, resources, advantage, watch)
            })?;
            sizing.take(&Needs::of_making(planned.needed()), watch)?;
            let bank = rewirings.compute(|| planned.finish(graph, watch))?;
            let needs = Needs::counted(bank.footprint(), results);
            sizing.take(&needs, watch)?;
            let (share, at_once) = sizing.settle(&needs, runs);
            return Ok(Ready { prepared: Self::Bank(bank), rewired: Vec::new(), at_once, share });
        }
        let mut made = rewirings.of_model(values, classes, seed, batch_nodes, results, watch)?;
        let rewired = std::mem::take(&mut made.rewired);
        let matrices = rewired.iter().map(|made| Arc::clone(&made.matrix)).collect();
        let architecture = architecture(values, classes);
        let features = rewirings.compute(|| rewirings.features(feature_scale(values)))?;
        let inputs = rewirings.compute(|| match batch_nodes {
            Some(_) => Inputs::for_batches(features, matrices, &architecture),
            None => Ok(Inputs::over(features, matrices)?.precomputed_for(&architecture)),
        })?;
        let (share, at_once) = made.settle(runs);
        let prepared = Self::Towers { architecture, inputs, batch_nodes };
        Ok(Ready { prepared, rewired, at_once, share })
    }

    /// How to train it.
    pub(crate) fn schedule(&self, values: &Hyperparameters, patience: Patience, metric: Metric) -> Schedule {
        let Optimiser { learning_rate, weight_decay } = match self {
            Self::Towers { .. } => values.of_model(),
            Self::Bank(PreparedBank { learning_rate, weight_decay, .. }) => {
                Optimiser { learning_rate: *learning_rate, weight_decay: *weight_decay }
            }
        };
        let Patience { max_steps, stopping, batch_nodes } = patience;
        Schedule { learning_rate, weight_decay, max_steps, stopping, metric, batch_nodes }
    }

    /// Trains the runs given, `at_once` at the same time. See [`Trainer::train`].
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    pub(crate) fn train(
        &self,
        labels: &[u32],
        runs: &[BatchRun<'_>],
        at_once: usize,
        schedule: &Schedule,
        keep: Keep,
        trainer: &dyn Trainer,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, Error> {
        let trainee = match self {
            Self::Towers { architecture, inputs, .. } => Trainee::Towers { architecture, inputs },
            Self::Bank(bank) => bank.trainee(),
        };
        let mut finished = Vec::new();
        for runs in runs.chunks(at_once.max(1)) {
            let batch = Batch { trainee, labels, runs, schedule, keep };
            let trained = trainer.train(&batch, watch, on_end)?;
            let complete = trained.iter().all(Option::is_some);
            finished.extend(trained);
            if !complete {
                break;
            }
        }
        Ok(finished)
    }

    /// The probability of every class for every vertex, row-major, under the weights of each run that has them.
    pub(crate) fn probabilities(
        &self,
        trained: &[Option<Trained<f32>>],
    ) -> Result<Vec<Option<Vec<f32>>>, Error> {
        fn each(mut network: impl Learner<f32>, trained: &[Option<Trained<f32>>]) -> Vec<Option<Vec<f32>>> {
            let mut one = |weights: &Vec<f32>| {
                network.weights_mut().copy_from_slice(weights);
                let logits = network.forward(Pass::Evaluate);
                let rows = (0..logits.rows()).flat_map(|vertex| probabilities(logits, vertex));
                rows.map(|share| share as f32).collect::<Vec<f32>>()
            };
            trained.iter().map(weights_of).map(|weights| weights.map(&mut one)).collect()
        }
        Ok(match self {
            Self::Towers { architecture, inputs, batch_nodes: Some(nodes) } => {
                each(MiniBatched::new(architecture, inputs, *nodes, 0)?, trained)
            }
            Self::Towers { architecture, inputs, batch_nodes: None } => {
                each(Network::new(architecture, inputs, 0)?, trained)
            }
            Self::Bank(bank) => each(bank.network()?, trained),
        })
    }

    /// What each run that has weights learnt besides matrices; nothing where there are layers.
    pub(crate) fn learned(&self, trained: &[Option<Trained<f32>>]) -> Result<Vec<Learned>, Error> {
        let Self::Bank(bank) = self else { return Ok(Vec::new()) };
        let mut network = bank.network()?;
        let one = |trained: &Trained<f32>| {
            network.weights_mut().copy_from_slice(trained.weights.as_ref()?);
            Some(bank.learned(&mut network, &trained.scores))
        };
        Ok(trained.iter().flatten().filter_map(one).collect())
    }

    /// The file of a saved model with these weights.
    pub(crate) fn to_bytes(&self, weights: &[f32], configuration: &str) -> Result<Vec<u8>, Error> {
        fn filled(mut network: impl Learner<f32>, weights: &[f32], configuration: &str) -> Vec<u8> {
            network.weights_mut().copy_from_slice(weights);
            qdc_nn::to_bytes(&network, configuration)
        }
        Ok(match self {
            Self::Towers { architecture, inputs, batch_nodes: Some(nodes) } => {
                filled(MiniBatched::new(architecture, inputs, *nodes, 0)?, weights, configuration)
            }
            Self::Towers { architecture, inputs, batch_nodes: None } => {
                filled(Network::new(architecture, inputs, 0)?, weights, configuration)
            }
            Self::Bank(bank) => filled(bank.network()?, weights, configuration),
        })
    }

    /// The logits of saved weights.
    pub(crate) fn predict(&self, saved: &Saved) -> Result<Matrix<f32>, Error> {
        fn logits(mut network: impl Learner<f32>, saved: &Saved) -> Result<Matrix<f32>, Error> {
            saved.fill(&mut network)?;
            Ok(network.forward(Pass::Evaluate).clone())
        }
        match self {
            Self::Towers { architecture, inputs, .. } => {
                logits(Network::new(architecture, inputs, 0)?, saved)
            }
            Self::Bank(bank) => logits(bank.network()?, saved),
        }
    }
}

fn weights_of(trained: &Option<Trained<f32>>) -> Option<&Vec<f32>> {
    trained.as_ref()?.weights.as_ref()
}
