//! The bank of windows and the learned window as models: presets and their channels.
//!
//! A preset is a whole configuration; a hyper-parameter that is set takes the place of the preset's. Presets
//! were found on the nine datasets of the published table: on others they are untested.

mod prepared;

use qdc_core::bank::{Channel, Channels, On, View};
use qdc_core::{Features, Filter, Graph, Resources, Transition, Watch, lanczos};
use qdc_nn::bank::Readout;
use serde::{Deserialize, Serialize};

use crate::architecture::FeatureScale;
use crate::model::NetworkKind;
use crate::{Error, Hyperparameters};

pub use prepared::{Learned, STARTS, Share, Window};
pub(crate) use prepared::{PlannedBank, PreparedBank};

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
#[derive(Clone, Debug, PartialEq, Serialize)]
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
    /// Their names, in the same order; [`std::str::FromStr`] reads them.
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

impl std::str::FromStr for Preset {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let known = Self::NAMES.iter().position(|known| *known == name);
        known
            .map(|at| Self::ALL[at])
            .ok_or_else(|| format!("there is no preset '{name}'; choose {}", Self::NAMES.join(", ")))
    }
}

impl Settings {
    /// What a learned window is trained with: chosen by validation on texas, cornell, cora and citeseer
    /// (bench/train/RESULTS.md).
    fn of_window() -> Self {
        Self { weight_decay: 0.01, input_dropout: 0.3, ..Preset::Ends.settings() }
    }

    fn of(values: &Hyperparameters) -> Self {
        let own: Overrides = values.of_tower(0);
        let of_model: ModelOverrides = values.of_model();
        let preset = match (own.preset, values.model().towers()[0].network) {
            (None, NetworkKind::Window) => Self::of_window(),
            (preset, _) => preset.unwrap_or_default().settings(),
        };
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
        let lowest = match self {
            Self::Ranks => -1.0, // no window stands there
            Self::Ends | Self::EndsKnn => lanczos::lowest_eigenvalue(&Transition::new(graph), watch)?,
        };
        self.channels_above(lowest)
    }

    /// The channels for a spectrum that begins at `lowest`.
    fn channels_above(self, lowest: f64) -> Result<Vec<Channel>, Error> {
        let gaussian = |mu, sigma| Ok::<_, Error>(View::Filter(Filter::gaussian(mu, sigma)?));
        let mut channels = vec![Channel::new(View::Features)];
        if self == Self::Ranks {
            channels.extend((0..5).map(|window| Channel::new(View::Rank { window, of: 5 })));
            channels.extend([View::Rows, View::Statistics].map(Channel::new));
            return Ok(channels);
        }
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

/// What a bank or a window is trained with, by the names of the hyper-parameters: what is set, and the preset's for the
/// rest. Empty for other models.
pub(crate) fn spelled_out(values: &Hyperparameters) -> serde_json::Map<String, serde_json::Value> {
    if !values.model().is_bank() {
        return serde_json::Map::new();
    }
    match serde_json::to_value(Settings::of(values)) {
        Ok(serde_json::Value::Object(settings)) => settings,
        _ => unreachable!("settings have fields"),
    }
}

/// The channel of a bank that belongs to the vertices of one graph, if it has one: such a bank says nothing
/// about another graph.
pub(crate) fn vertex_channel(values: &Hyperparameters) -> Result<Option<Channel>, Error> {
    if !values.model().has(|tower| tower.network == NetworkKind::Bank) {
        return Ok(None);
    }
    let channels = Settings::of(values).channels.channels_above(-1.0)?;
    Ok(channels.into_iter().find(Channel::names_vertices))
}

/// The channels of a preset for a graph and its features, as matrices: what its network learns from, for use
/// in any other library.
///
/// Gives the names of the channels and their matrices, in order. Cost: one Chebyshev pass over the features
/// for each graph; all eigenpairs for `ranks`.
///
/// ```
/// use qdc_core::{EdgeRule, Features, Graph, Resources, Watch};
/// use qdc_lab::{Preset, bank_features};
///
/// let ring = Graph::from_edges(20, (0..20).map(|i| (i, (i + 1) % 20)), EdgeRule::Undirected)?;
/// let features = Features::from_dense(2, (0..40).map(|at| (at % 7) as f32).collect());
/// let channels = bank_features(Preset::Ends, &ring, &features, &Resources::default(), &Watch::silent())?;
/// assert_eq!(channels.len(), 8);
/// assert_eq!(channels[2].0, "gaussian(mu 1, sigma 1)");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Whatever a channel refuses, and a stop asked for.
pub fn bank_features(
    preset: Preset,
    graph: &Graph,
    features: &Features,
    resources: &Resources,
    watch: &Watch,
) -> Result<Vec<(String, Features)>, Error> {
    let settings = preset.settings();
    let list = settings.channels.channels(graph, watch)?;
    let channels = Channels::new(&list, graph, settings.features.scale(features), resources, watch)?;
    let named = list.iter().zip(channels.matrices(watch)?);
    Ok(named.map(|(channel, matrix)| (channel.to_string(), matrix)).collect())
}
