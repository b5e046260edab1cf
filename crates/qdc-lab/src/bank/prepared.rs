//! A bank or a window made ready for a graph: trained on splits, and what its weights say besides matrices.

use qdc_core::bank::{Channel, Channels};
use qdc_core::{Features, Filter, Graph, Resources, Watch};
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork, LearnedWindow, Way};
use qdc_nn::training::Scores;
use qdc_nn::{Footprint, Trainee};
use serde::Serialize;

use super::{DropoutOn, Norm, Settings};
use crate::model::NetworkKind;
use crate::{Error, Hyperparameters};

/// How fast narrow windows move, as a multiple of the weights' rate. At the usual rate they become wide
/// within a few steps, before the weights have found out what is in them.
const SLOW: f64 = 0.05;

/// Where learned windows start: both ends of the spectrum, the middle, one that sees everything, and a narrow
/// one in each half.
pub const STARTS: [LearnedWindow; 6] = [
    LearnedWindow::new(1.0, 0.5),
    LearnedWindow::new(0.5, 0.5),
    LearnedWindow::new(-0.5, 0.5),
    LearnedWindow::new(0.0, 1.5),
    LearnedWindow::new(0.75, 0.15).at_rate(SLOW),
    LearnedWindow::new(-0.75, 0.15).at_rate(SLOW),
];

/// What a bank or a window learnt on one split besides its matrices.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Learned {
    /// The split, by number.
    pub split: usize,
    /// The seed it was trained with.
    pub seed: u64,
    /// How much each channel of a bank counts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub shares: Vec<Share>,
    /// The learned window.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<Window>,
}

/// How much a channel counts.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Share {
    /// The channel.
    pub channel: String,
    /// Its weight; the mean over the channels is 1.
    pub share: f64,
}

/// A Gaussian window that was learned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Window {
    /// Its centre.
    pub mu: f64,
    /// Its width.
    pub sigma: f64,
}

impl Window {
    /// The filter of the window.
    ///
    /// # Errors
    /// If a number is not finite.
    pub fn filter(self) -> Result<Filter, Error> {
        Ok(Filter::gaussian(self.mu, self.sigma)?)
    }
}

/// A bank or a window whose channels are known but not yet computed.
pub(crate) struct PlannedBank {
    settings: Settings,
    classes: usize,
    source: Source,
}

enum Source {
    /// The features, which each start of a window acts on.
    Window(Features),
    /// The channels of a bank, their names, and how they are computed.
    Channels(Channels, Vec<String>, Way),
}

impl PlannedBank {
    /// Finds the channels of a graph, for a machine with this [`qdc_nn::Trainer::dense_advantage`].
    ///
    /// # Errors
    /// Whatever a channel refuses, and a stop asked for.
    #[allow(clippy::too_many_arguments)] // each is one noun of the sentence
    pub(crate) fn new(
        values: &Hyperparameters,
        graph: &Graph,
        features: &Features,
        classes: usize,
        resources: &Resources,
        dense_advantage: f64,
        watch: &Watch,
    ) -> Result<Self, Error> {
        let settings = Settings::of(values);
        let features = settings.features.scale(features);
        let source = match values.model().towers()[0].network {
            NetworkKind::Window => Source::Window(features),
            _ => {
                let list = settings.channels.channels(graph, watch)?;
                let names = list.iter().map(Channel::to_string).collect();
                let channels = Channels::new(&list, graph, features, resources, watch)?;
                let way = match (settings.input_dropout > 0.0, settings.dropout_on) {
                    (false, _) => Way::Auto(dense_advantage),
                    (true, DropoutOn::Features) => Way::Mapped,
                    (true, DropoutOn::Channels) => Way::Kept,
                };
                Source::Channels(channels, names, way)
            }
        };
        Ok(Self { settings, classes, source })
    }

    /// Bytes that computing the channels takes.
    pub(crate) fn needed(&self) -> u64 {
        match &self.source {
            Source::Window(_) => 0,
            Source::Channels(channels, _, way) => BankInputs::<f32>::needed(channels, *way),
        }
    }

    /// Computes the channels.
    ///
    /// # Errors
    /// Whatever a channel refuses, and a stop asked for.
    pub(crate) fn finish(self, graph: &Graph, watch: &Watch) -> Result<PreparedBank, Error> {
        let Self { settings, classes, source } = self;
        let (channels, inputs) = match source {
            Source::Window(features) => {
                let from = |&start: &LearnedWindow| BankInputs::window(graph, &features, start);
                (Vec::new(), STARTS.iter().map(from).collect::<Result<_, _>>()?)
            }
            Source::Channels(channels, names, way) => (names, vec![BankInputs::new(&channels, way, watch)?]),
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
        Ok(PreparedBank { architecture, channels, inputs, learning_rate, weight_decay })
    }
}

/// A bank or a window ready to be trained.
#[derive(Debug)]
pub(crate) struct PreparedBank {
    architecture: BankArchitecture,
    /// The channels' names; none for a window.
    channels: Vec<String>,
    /// One for a bank; for a window one for each start.
    inputs: Vec<BankInputs<f32>>,
    pub(crate) learning_rate: f64,
    pub(crate) weight_decay: f64,
}

impl PreparedBank {
    /// What training takes; every start of a window is a network of its own.
    pub(crate) fn footprint(&self) -> Footprint {
        let one = Footprint::of_bank(&self.architecture, &self.inputs[0]);
        let starts = self.inputs.len() as u64;
        let (shared, run) = (one.shared.saturating_mul(starts), one.run.saturating_mul(starts));
        Footprint { preparing: shared, shared, run, ..one }
    }

    /// A network to be filled with weights.
    pub(crate) fn network(&self) -> Result<BankNetwork<f32>, Error> {
        Ok(BankNetwork::new(&self.architecture, &self.inputs[0], 0)?)
    }

    /// What the weights of a network say besides matrices.
    pub(crate) fn learned(&self, network: &mut BankNetwork<f32>, scores: &Scores) -> Learned {
        let shares = self.channels.iter().zip(network.shares());
        let share = |(channel, share): (&String, f64)| Share { channel: channel.clone(), share };
        let window = network.windows().first().map(|&(mu, sigma)| Window { mu, sigma });
        let Scores { split, seed, .. } = *scores;
        Learned { split, seed, shares: shares.map(share).collect(), window }
    }

    /// The network and what it runs over.
    pub(crate) fn trainee(&self) -> Trainee<'_> {
        Trainee::Bank { architecture: &self.architecture, inputs: &self.inputs }
    }
}
