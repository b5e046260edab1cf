//! A model made ready for a dataset: what a run trains on every split, and a saved model predicts with.

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qdc_core::{Features, Metric, Watch};
use qdc_data::Dataset;
use qdc_nn::training::{Keep, Schedule, Scores, Trained};
use qdc_nn::{
    Architecture, Batch, BatchRun, Footprint, Inputs, Learner, Matrix, Network, Pass, Saved, Shape, Trainer,
    probabilities,
};
use rayon::prelude::*;
use serde::Deserialize;

use crate::architecture::{architecture, inputs};
use crate::bank::{Learned, PreparedBank};
use crate::rewiring::{Rewired, Rewirings};
use crate::{Error, Hyperparameters, Patience};

/// A model with everything it runs over.
pub(crate) enum Prepared {
    /// Layers over matrices.
    Towers {
        /// The network's shape.
        architecture: Architecture,
        /// What it runs over.
        inputs: Inputs<f32>,
    },
    /// Channels.
    Bank(PreparedBank),
}

/// What one run of a network takes, in bytes, counted before anything of it is built.
fn footprint(architecture: &Architecture, dataset: &Dataset, rewired: &[Rewired]) -> u64 {
    let feature_entries = match &dataset.features {
        Features::Sparse(matrix) => Some(matrix.entries()),
        Features::Dense { .. } => None,
    };
    let shape = Shape {
        nodes: dataset.graph.nodes(),
        features: dataset.features.columns(),
        feature_entries,
        matrix_entries: rewired.iter().map(|made| made.matrix.matrix().entries()).collect(),
    };
    let Footprint { shared, run } = Footprint::of(architecture, &shape);
    shared.saturating_add(run)
}

/// What Adam wants to know.
#[derive(Deserialize)]
struct Optimiser {
    learning_rate: f64,
    weight_decay: f64,
}

impl Prepared {
    /// Makes the rewirings (or finds them) or the channels of a model; gives the rewirings besides.
    pub(crate) fn new(
        values: &Hyperparameters,
        dataset: &Dataset,
        classes: usize,
        rewirings: &Rewirings<'_>,
        seed: u64,
        watch: &Watch,
    ) -> Result<(Self, Vec<Rewired>), Error> {
        if values.model().is_bank() {
            let Dataset { graph, features, .. } = dataset;
            let bank = PreparedBank::new(values, graph, features, classes, rewirings.resources(), watch)?;
            return Ok((Self::Bank(bank), Vec::new()));
        }
        let rewired = rewirings.of_model(values, seed, watch)?;
        let architecture = architecture(values, classes);
        let needed = footprint(&architecture, dataset, &rewired);
        if let Some(limit) = rewirings.resources().memory.filter(|&limit| needed > limit) {
            return Err(Error::OverMemory { needed, limit });
        }
        let matrices = rewired.iter().map(|made| Arc::clone(&made.matrix)).collect();
        Ok((Self::Towers { architecture, inputs: inputs(dataset, values, matrices)? }, rewired))
    }

    /// How to train it.
    pub(crate) fn schedule(&self, values: &Hyperparameters, patience: Patience, metric: Metric) -> Schedule {
        let Optimiser { learning_rate, weight_decay } = match self {
            Self::Towers { .. } => values.of_model(),
            Self::Bank(PreparedBank { learning_rate, weight_decay, .. }) => {
                Optimiser { learning_rate: *learning_rate, weight_decay: *weight_decay }
            }
        };
        let Patience { max_steps, stopping } = patience;
        Schedule { learning_rate, weight_decay, max_steps, stopping, metric }
    }

    /// Trains the runs given: layers by `trainer`, banks on rayon's current pool. See [`Trainer::train`].
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    pub(crate) fn train(
        &self,
        labels: &[u32],
        runs: &[BatchRun<'_>],
        schedule: &Schedule,
        keep: Keep,
        trainer: &dyn Trainer,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, Error> {
        let bank = match self {
            Self::Towers { architecture, inputs } => {
                let batch = Batch { architecture, inputs, labels, runs, schedule, keep };
                return Ok(trainer.train(&batch, watch, on_end)?);
            }
            Self::Bank(bank) => bank,
        };
        let stop = AtomicBool::new(false);
        let train = |run: &BatchRun<'_>| {
            if stop.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let trained = bank.train_split(labels, run.split, run.number, schedule, run.seed, keep, watch)?;
            if on_end(&trained.scores).is_break() {
                stop.store(true, Ordering::Relaxed);
            }
            Ok(Some(trained))
        };
        runs.par_iter().with_max_len(1).map(train).collect()
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
            Self::Towers { architecture, inputs } => each(Network::new(architecture, inputs, 0)?, trained),
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
            Self::Towers { architecture, inputs } => {
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
            Self::Towers { architecture, inputs } => logits(Network::new(architecture, inputs, 0)?, saved),
            Self::Bank(bank) => logits(bank.network()?, saved),
        }
    }
}

fn weights_of(trained: &Option<Trained<f32>>) -> Option<&Vec<f32>> {
    trained.as_ref()?.weights.as_ref()
}
