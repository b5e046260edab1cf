//! Models: one or more towers, each a network over a rewiring of the graph.
//!
//! A tower is spelled as its network, then `+` and what is done to the graph: `gcn`, `gat+qdc`. Towers are
//! joined by `/`: `gcn/gcn+qdc/gcn+qdc`. `gcn+multiscale` is short for `gcn/gcn+qdc`. A name is parsed once,
//! into a list of towers; nothing else looks at names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::closest::by_closeness;

/// The layers of a tower.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NetworkKind {
    /// Sees features only.
    Mlp,
    /// Graph convolutions.
    Gcn,
    /// Graph attention.
    Gat,
    /// A bank of windows: many views of the features, weighed by learned shares.
    Bank,
    /// One window whose centre and width are learned.
    Window,
}

impl NetworkKind {
    /// Whether it is a network of channels and not of layers over a matrix; it then stands alone.
    pub fn is_bank(self) -> bool {
        matches!(self, Self::Bank | Self::Window)
    }
}

/// What is done to the graph a tower runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewiringKind {
    /// Nothing: the transition matrix L.
    Plain,
    /// Graph diffusion convolution: personalised PageRank, or the heat kernel where `time` is set.
    Gdc,
    /// Stochastic discrete Ricci flow.
    Sdrf,
    /// The band-pass kernel.
    Bpdc,
    /// The Gaussian kernel.
    Qdc,
}

impl RewiringKind {
    /// Whether it makes a kernel: a function of the spectrum.
    pub fn is_kernel(self) -> bool {
        matches!(self, Self::Gdc | Self::Bpdc | Self::Qdc)
    }

    /// Whether its filter is a window around mu.
    pub fn is_windowed(self) -> bool {
        matches!(self, Self::Bpdc | Self::Qdc)
    }
}

const NETWORKS: [(&str, NetworkKind); 5] = [
    ("mlp", NetworkKind::Mlp),
    ("gcn", NetworkKind::Gcn),
    ("gat", NetworkKind::Gat),
    ("bank", NetworkKind::Bank),
    ("window", NetworkKind::Window),
];

/// In the order of the published table.
const REWIRINGS: [(&str, RewiringKind); 5] = [
    ("plain", RewiringKind::Plain),
    ("gdc", RewiringKind::Gdc),
    ("sdrf", RewiringKind::Sdrf),
    ("bpdc", RewiringKind::Bpdc),
    ("qdc", RewiringKind::Qdc),
];

const MULTISCALE: &str = "multiscale";

/// One stack of layers, and what it runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Tower {
    /// Its layers.
    pub network: NetworkKind,
    /// What is done to the graph; plain for an MLP, which does not look at it.
    pub rewiring: RewiringKind,
}

impl fmt::Display for Tower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(name_of(&NETWORKS, self.network))?;
        match self.rewiring {
            RewiringKind::Plain => Ok(()),
            rewiring => write!(f, "+{}", name_of(&REWIRINGS, rewiring)),
        }
    }
}

/// The word of a table that stands for `value`.
fn name_of<T: PartialEq>(table: &[(&'static str, T)], value: T) -> &'static str {
    table.iter().find(|entry| entry.1 == value).expect("every kind has a word").0
}

/// The value a word of a table stands for.
fn kind_of<T: Copy>(table: &[(&str, T)], word: &str) -> Option<T> {
    table.iter().find(|entry| entry.0 == word).map(|entry| entry.1)
}

/// A list of towers; several are joined by the combinator and read out together.
///
/// ```
/// use qdc_lab::{Model, RewiringKind};
///
/// let model: Model = "gcn+multiscale".parse()?;
/// let rewirings: Vec<_> = model.towers().iter().map(|tower| tower.rewiring).collect();
/// assert_eq!(rewirings, [RewiringKind::Plain, RewiringKind::Qdc]);
/// assert_eq!("gcn/gcn+qdc".parse::<Model>()?, model);
/// assert_eq!(model.to_string(), "gcn+multiscale");
/// # Ok::<(), qdc_lab::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Model {
    towers: Vec<Tower>,
}

impl Model {
    /// The most towers a model can have.
    pub const MOST_TOWERS: usize = 16;

    /// A model of these towers.
    ///
    /// # Errors
    /// If there is no tower or more than [`Model::MOST_TOWERS`], or an MLP is to run over a rewiring.
    pub fn new(towers: Vec<Tower>) -> Result<Self, Error> {
        let problem = if towers.is_empty() || towers.len() > Self::MOST_TOWERS {
            Some(format!("it has {} towers; from 1 to {} are possible", towers.len(), Self::MOST_TOWERS))
        } else {
            let rewired = |tower: &&Tower| tower.rewiring != RewiringKind::Plain;
            let blind = |tower: &&Tower| tower.network == NetworkKind::Mlp && rewired(tower);
            let alone = |tower: &&Tower| tower.network.is_bank() && (rewired(tower) || towers.len() > 1);
            let blind =
                towers.iter().find(blind).map(|tower| format!("an MLP does not look at the graph: {tower}"));
            let alone =
                || towers.iter().find(alone).map(|tower| format!("{tower}: a bank or a window stands alone"));
            blind.or_else(alone)
        };
        match problem {
            Some(problem) => Err(Error::Model { problem }),
            None => Ok(Self { towers }),
        }
    }

    /// Every model with a short name, in the order of the published table.
    pub fn all() -> Vec<Self> {
        let mut models = vec![Self::of(&[(NetworkKind::Mlp, RewiringKind::Plain)])];
        for network in [NetworkKind::Gcn, NetworkKind::Gat] {
            models.extend(REWIRINGS.iter().map(|&(_, rewiring)| Self::of(&[(network, rewiring)])));
            models.push(Self::multiscale(network));
        }
        models
    }

    /// The published models, the bank and the window: what a user can be told of.
    pub fn known() -> Vec<Self> {
        let mut models = Self::all();
        models.extend(
            [NetworkKind::Bank, NetworkKind::Window].map(|kind| Self::of(&[(kind, RewiringKind::Plain)])),
        );
        models
    }

    /// Whether it is a bank or a window.
    pub fn is_bank(&self) -> bool {
        self.has(|tower| tower.network.is_bank())
    }

    fn of(towers: &[(NetworkKind, RewiringKind)]) -> Self {
        let towers = towers.iter().map(|&(network, rewiring)| Tower { network, rewiring });
        Self { towers: towers.collect() }
    }

    fn multiscale(network: NetworkKind) -> Self {
        Self::of(&[(network, RewiringKind::Plain), (network, RewiringKind::Qdc)])
    }

    /// Its towers, at least one.
    pub fn towers(&self) -> &[Tower] {
        &self.towers
    }

    /// Whether `test` is true of a tower.
    pub fn has(&self, test: impl Fn(Tower) -> bool) -> bool {
        self.towers.iter().copied().any(test)
    }

    /// Whether a tower looks at the graph.
    pub fn sees_graph(&self) -> bool {
        self.has(|tower| tower.network != NetworkKind::Mlp)
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let first = self.towers[0];
        if *self == Self::multiscale(first.network) {
            return write!(f, "{first}+{MULTISCALE}");
        }
        for (number, tower) in self.towers.iter().enumerate() {
            write!(f, "{}{tower}", if number > 0 { "/" } else { "" })?;
        }
        Ok(())
    }
}

impl FromStr for Model {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let unknown = || {
            let known: Vec<String> = Self::known().iter().map(Self::to_string).collect();
            Error::UnknownModel { name: name.into(), known: by_closeness(name, known) }
        };
        let mut towers = Vec::new();
        for part in name.split('/') {
            let (network, rewiring) = part.split_once('+').map_or((part, None), |(n, r)| (n, Some(r)));
            let network = kind_of(&NETWORKS, network).ok_or_else(unknown)?;
            if rewiring == Some(MULTISCALE) {
                towers.extend(Self::multiscale(network).towers);
                continue;
            }
            let rewiring = match rewiring {
                None => RewiringKind::Plain,
                Some(word) => kind_of(&REWIRINGS, word).ok_or_else(unknown)?,
            };
            towers.push(Tower { network, rewiring });
        }
        Self::new(towers)
    }
}

impl TryFrom<String> for Model {
    type Error = Error;

    fn try_from(name: String) -> Result<Self, Error> {
        name.parse()
    }
}

impl From<Model> for String {
    fn from(model: Model) -> Self {
        model.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_into_the_model_that_shows_it() {
        assert_eq!(Model::all().len(), 13);
        assert_eq!(Model::known().len(), 15);
        for model in Model::known() {
            assert_eq!(model.to_string().parse::<Model>().unwrap(), model);
        }
        for bad in ["bank+qdc", "bank/gcn", "gcn/window", "bank+multiscale"] {
            assert!(bad.parse::<Model>().unwrap_err().to_string().contains("stands alone"), "{bad}");
        }
    }

    #[test]
    fn any_number_of_towers_has_a_name_of_its_own() {
        for name in ["gcn/gcn+qdc/gcn+qdc", "mlp/gat+gdc", "gat/gcn+qdc", "gcn+bpdc/gcn"] {
            assert_eq!(name.parse::<Model>().unwrap().to_string(), name);
        }
        let three: Model = "gcn+multiscale/gcn+qdc".parse().unwrap();
        assert_eq!(three.to_string(), "gcn/gcn+qdc/gcn+qdc");
        assert_eq!("gcn+plain".parse::<Model>().unwrap().to_string(), "gcn");
    }

    #[test]
    fn an_unknown_name_lists_the_closest_first() {
        let error = "gcn+qcd".parse::<Model>().unwrap_err();
        assert!(error.hint().unwrap().starts_with("known: gcn+qdc, "), "{:?}", error.hint());
        let crowd = ["gcn"; Model::MOST_TOWERS + 1].join("/");
        for bad in ["", "+", "gcn+", "gcn/", "mlp+qdc", "mlp+multiscale", "gcn+qdc+qdc", &crowd] {
            assert!(bad.parse::<Model>().is_err(), "{bad}");
        }
        assert!([("gcn"); Model::MOST_TOWERS].join("/").parse::<Model>().is_ok());
        assert!(Model::new(Vec::new()).unwrap_err().to_string().contains("0 towers"));
    }

    #[test]
    fn only_towers_that_look_at_the_graph_need_it() {
        let sees = |name: &str| name.parse::<Model>().unwrap().sees_graph();
        assert!(!sees("mlp") && !sees("mlp/mlp"));
        assert!(sees("gcn") && sees("mlp/gat"));
    }
}
