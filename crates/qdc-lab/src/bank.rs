//! The bank of windows and the learned window as models: presets, and what their networks run over.
//!
//! A preset is a whole configuration; a hyper-parameter that is set takes the place of the preset's. Presets were found
//! on the nine datasets of the published table: on others they are untested.

use qdc_core::bank::{Channel, Channels, On, View};
use qdc_core::{Features, Filter, Graph, Spectrum, Split, Transition, Watch, lanczos};
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork, LearnedWindow, Readout, Way};
use qdc_nn::training::{Keep, Schedule, Scores, Trained, start_seed, train_learner};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::architecture::FeatureScale;
use crate::model::NetworkKind;
use crate::{Error, Hyperparameters};

/// A whole configuration of the bank, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Gaussian windows at both ends of the spectrum.
    #[default]
    Ends,
    /// The same with dropout on the features.
    EndsDropout,
    /// The same with windows on the graph of the ten nearest neighbours in feature space.
    EndsKnn,
    /// Five hard windows by rank, adjacency rows and statistics of the vertices.
    Ranks,
    /// Windows at both ends without row norm, features that sum to 1, a readout of two layers.
    Plain,
}

/// The channels of a bank, by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ChannelSet {
    /// X, L X, windows at 1 (sigma 1, 1/2, 1/4, 1/8) and at the lowest eigenvalue (sigma 1, 1/2).
    Ends,
    /// The same, and L X and windows at 1 (sigma 1, 1/2) on the graph of the ten nearest neighbours.
    EndsKnn,
    /// X, five windows by rank, adjacency rows and statistics.
    Ranks,
}

/// Whether rows are divided by their norm.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Norm {
    L2,
    None,
}

/// What input dropout acts on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum DropoutOn {
    /// The features, before the window.
    Features,
    /// The channel, after it; channels are then kept as dense matrices.
    Channels,
}

/// What a bank or a window is trained with.
#[derive(Clone, Debug, PartialEq)]
struct Settings {
    channels: ChannelSet,
    hidden: usize,
    norm: Norm,
    readout: Readout,
    dropout: f64,
    input_dropout: f64,
    dropout_on: DropoutOn,
    learning_rate: f64,
    weight_decay: f64,
    readout_decay: f64,
    features: FeatureScale,
}

/// The same as a user sets them: what is absent is the preset's.
#[derive(Deserialize)]
struct Overrides {
    preset: Option<Preset>,
    channels: Option<ChannelSet>,
    hidden: Option<usize>,
    norm: Option<Norm>,
    readout: Option<Readout>,
    dropout: Option<f64>,
    input_dropout: Option<f64>,
    dropout_on: Option<DropoutOn>,
    readout_decay: Option<f64>,
}

/// Those of the whole model.
#[derive(Deserialize)]
struct ModelOverrides {
    learning_rate: Option<f64>,
    weight_decay: Option<f64>,
    features: Option<FeatureScale>,
}

impl Preset {
    /// Every preset, in the order `tune --space presets` tries them.
    pub const ALL: [Self; 5] = [Self::Ends, Self::EndsDropout, Self::EndsKnn, Self::Ranks, Self::Plain];
    /// Their names, in the same order.
    pub const NAMES: [&'static str; 5] = ["ends", "ends-dropout", "ends-knn", "ranks", "plain"];

    fn settings(self) -> Settings {
        let ends = Settings {
            channels: ChannelSet::Ends,
            hidden: 64,
            norm: Norm::L2,
            readout: Readout::Linear,
            dropout: 0.5,
            input_dropout: 0.0,
            dropout_on: DropoutOn::Features,
            learning_rate: 0.01,
            weight_decay: 3e-3,
            readout_decay: 1e-4,
            features: FeatureScale::Raw,
        };
        match self {
            Self::Ends => ends,
            Self::EndsDropout => Settings { weight_decay: 2e-3, dropout: 0.6, input_dropout: 0.5, ..ends },
            Self::EndsKnn => Settings {
                channels: ChannelSet::EndsKnn,
                learning_rate: 0.004,
                weight_decay: 4e-3,
                dropout: 0.7,
                input_dropout: 0.5,
                ..ends
            },
            Self::Ranks => Settings {
                channels: ChannelSet::Ranks,
                learning_rate: 0.002,
                weight_decay: 2e-4,
                readout_decay: 3e-4,
                dropout: 0.6,
                ..ends
            },
            Self::Plain => Settings {
                hidden: 128,
                norm: Norm::None,
                readout: Readout::Layers,
                learning_rate: 0.02,
                weight_decay: 2.4e-3,
                readout_decay: 7e-4,
                dropout: 0.75,
                features: FeatureScale::Row,
                ..ends
            },
        }
    }
}

impl Settings {
    fn of(values: &Hyperparameters) -> Self {
        let own: Overrides = values.of_tower(0);
        let of_model: ModelOverrides = values.of_model();
        let preset = own.preset.unwrap_or_default().settings();
        Self {
            channels: own.channels.unwrap_or(preset.channels),
            hidden: own.hidden.unwrap_or(preset.hidden),
            norm: own.norm.unwrap_or(preset.norm),
            readout: own.readout.unwrap_or(preset.readout),
            dropout: own.dropout.unwrap_or(preset.dropout),
            input_dropout: own.input_dropout.unwrap_or(preset.input_dropout),
            dropout_on: own.dropout_on.unwrap_or(preset.dropout_on),
            readout_decay: own.readout_decay.unwrap_or(preset.readout_decay),
            learning_rate: of_model.learning_rate.unwrap_or(preset.learning_rate),
            weight_decay: of_model.weight_decay.unwrap_or(preset.weight_decay),
            features: of_model.features.unwrap_or(preset.features),
        }
    }
}

impl ChannelSet {
    /// The channels for a graph; windows at the lower end need its lowest eigenvalue.
    ///
    /// # Errors
    /// If the watch asks to stop.
    pub fn channels(self, graph: &Graph, watch: &Watch) -> Result<Vec<Channel>, Error> {
        let gaussian = |mu, sigma| Ok::<_, Error>(View::Filter(Filter::gaussian(mu, sigma)?));
        let mut channels = vec![Channel::new(View::Features)];
        if self == Self::Ranks {
            channels.extend((0..5).map(|window| Channel::new(View::Rank { window, of: 5 })));
            channels.extend([View::Rows, View::Statistics].map(Channel::new));
            return Ok(channels);
        }
        let lowest = lanczos::lowest_eigenvalue(&Transition::new(graph), watch)?;
        channels.push(Channel::new(View::Step));
        for (mu, sigma) in [(1.0, 1.0), (1.0, 0.5), (1.0, 0.25), (1.0, 0.125), (lowest, 1.0), (lowest, 0.5)] {
            channels.push(Channel::new(gaussian(mu, sigma)?));
        }
        if self == Self::EndsKnn {
            for view in [View::Step, gaussian(1.0, 1.0)?, gaussian(1.0, 0.5)?] {
                channels.push(Channel { on: On::Nearest(10), view });
            }
        }
        Ok(channels)
    }
}

/// Where learned windows start: both ends of the spectrum, narrow and wide, and the middle.
pub const STARTS: [(f64, f64); 4] = [(1.0, 0.5), (0.5, 0.5), (-0.5, 0.5), (0.0, 1.5)];

/// A bank or a window ready to be trained.
pub(crate) struct PreparedBank {
    architecture: BankArchitecture,
    /// One for a bank; for a window one for each start.
    inputs: Vec<BankInputs<f32>>,
    pub(crate) learning_rate: f64,
    pub(crate) weight_decay: f64,
}

impl PreparedBank {
    /// Makes the channels of a graph.
    ///
    /// # Errors
    /// Whatever a channel refuses, and a stop asked for.
    pub(crate) fn new(
        values: &Hyperparameters,
        graph: &Graph,
        features: &Features,
        classes: usize,
        spectrum: Option<Spectrum>,
        watch: &Watch,
    ) -> Result<Self, Error> {
        let settings = Settings::of(values);
        let features = settings.features.scale(features);
        let inputs = match values.model().towers()[0].network {
            NetworkKind::Window => {
                let start = |&(mu, sigma): &(f64, f64)| {
                    BankInputs::window(graph, &features, LearnedWindow { mu, sigma })
                };
                STARTS.iter().map(start).collect::<Result<_, _>>()?
            }
            _ => {
                let list = settings.channels.channels(graph, watch)?;
                let channels = Channels::new(&list, graph, features, spectrum, watch)?;
                let way = match (settings.input_dropout > 0.0, settings.dropout_on) {
                    (false, _) => Way::Auto,
                    (true, DropoutOn::Features) => Way::Mapped,
                    (true, DropoutOn::Channels) => Way::Kept,
                };
                vec![BankInputs::new(&channels, way, watch)?]
            }
        };
        let architecture = BankArchitecture {
            hidden: settings.hidden,
            norm: settings.norm == Norm::L2,
            readout: settings.readout,
            dropout: settings.dropout,
            input_dropout: settings.input_dropout,
            readout_decay: settings.readout_decay,
            classes,
        };
        let Settings { learning_rate, weight_decay, .. } = settings;
        Ok(Self { architecture, inputs, learning_rate, weight_decay })
    }

    /// A network to be filled with saved weights.
    pub(crate) fn network(&self) -> Result<BankNetwork<f32>, Error> {
        Ok(BankNetwork::new(&self.architecture, &self.inputs[0], 0)?)
    }

    /// Trains every start on a split and keeps the one that did best on validation, the first of equals.
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    pub(crate) fn train_split(
        &self,
        labels: &[u32],
        split: &Split,
        number: usize,
        schedule: &Schedule,
        seed: u64,
        keep: Keep,
        watch: &Watch,
    ) -> Result<Trained<f32>, Error> {
        let from = |inputs: &BankInputs<f32>| -> Result<Trained<f32>, Error> {
            let mut network = BankNetwork::new(&self.architecture, inputs, start_seed(seed, number))?;
            let classes = self.architecture.classes;
            Ok(train_learner(&mut network, classes, labels, split, number, schedule, seed, keep, watch)?)
        };
        let trained: Vec<Trained<f32>> = self.inputs.par_iter().map(from).collect::<Result<_, _>>()?;
        let seconds: f64 = trained.iter().map(|trained| trained.scores.seconds).sum();
        let mut best: Option<Trained<f32>> = None;
        for candidate in trained {
            if best.as_ref().is_none_or(|best| better(&candidate.scores, &best.scores)) {
                best = Some(candidate);
            }
        }
        let mut best = best.expect("there is a start");
        best.scores.seconds = seconds;
        Ok(best)
    }
}

/// A higher validation score, or the same at a lower loss.
fn better(one: &Scores, other: &Scores) -> bool {
    let loss = |scores: &Scores| scores.validation_loss.unwrap_or(f64::INFINITY);
    one.validation > other.validation || (one.validation == other.validation && loss(one) < loss(other))
}
