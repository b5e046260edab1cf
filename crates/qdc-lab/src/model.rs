//! Model names: a network over one or two rewirings of the graph.
//!
//! A name is the network, then `+` and what is done to the graph: `gcn`, `gat+qdc`, `gcn+multiscale`. It is parsed once;
//! nothing else looks at names.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::closest::by_closeness;

/// The network.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NetworkKind {
    /// Sees features only.
    Mlp,
    /// Graph convolutions.
    Gcn,
    /// Graph attention.
    Gat,
}

/// What is done to the graph a tower runs over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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

/// A network over one rewiring, or over two (a tower for each), or over none.
///
/// ```
/// use qdc_lab::{Model, RewiringKind};
///
/// let model: Model = "gcn+multiscale".parse()?;
/// assert_eq!(model.towers(), [RewiringKind::Plain, RewiringKind::Qdc]);
/// assert_eq!(model.to_string(), "gcn+multiscale");
/// # Ok::<(), qdc_lab::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Model {
    network: NetworkKind,
    towers: &'static [RewiringKind],
}

const NETWORKS: [(&str, NetworkKind); 3] =
    [("mlp", NetworkKind::Mlp), ("gcn", NetworkKind::Gcn), ("gat", NetworkKind::Gat)];

const REWIRINGS: [(&str, &[RewiringKind]); 6] = [
    ("", &[RewiringKind::Plain]),
    ("gdc", &[RewiringKind::Gdc]),
    ("sdrf", &[RewiringKind::Sdrf]),
    ("bpdc", &[RewiringKind::Bpdc]),
    ("qdc", &[RewiringKind::Qdc]),
    ("multiscale", &[RewiringKind::Plain, RewiringKind::Qdc]),
];

impl Model {
    /// Every model, in the order of the published table.
    pub fn all() -> Vec<Self> {
        let mut models = vec![Self { network: NetworkKind::Mlp, towers: &[] }];
        for network in [NetworkKind::Gcn, NetworkKind::Gat] {
            models.extend(REWIRINGS.iter().map(|&(_, towers)| Self { network, towers }));
        }
        models
    }

    /// The network.
    pub fn network(self) -> NetworkKind {
        self.network
    }

    /// The rewiring each tower runs over; none for an MLP.
    pub fn towers(self) -> &'static [RewiringKind] {
        self.towers
    }

    /// Whether a tower runs over a rewiring that `test` is true of.
    pub fn uses(self, test: impl Fn(RewiringKind) -> bool) -> bool {
        self.towers.iter().copied().any(test)
    }

    /// Whether it has two towers.
    pub fn is_multiscale(self) -> bool {
        self.towers.len() == 2
    }
}

impl fmt::Display for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let network =
            NETWORKS.iter().find(|entry| entry.1 == self.network).expect("every network has a name").0;
        match REWIRINGS.iter().find(|entry| entry.1 == self.towers) {
            Some(&(name, _)) if !name.is_empty() => write!(f, "{network}+{name}"),
            _ => f.write_str(network),
        }
    }
}

impl FromStr for Model {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        let (network, rewiring) = name.split_once('+').unwrap_or((name, ""));
        let unknown = || {
            let known: Vec<String> = Self::all().iter().map(Self::to_string).collect();
            Error::UnknownModel { name: name.into(), known: by_closeness(name, known) }
        };
        let network = NETWORKS.iter().find(|entry| entry.0 == network).ok_or_else(unknown)?.1;
        let towers = REWIRINGS.iter().find(|entry| entry.0 == rewiring).ok_or_else(unknown)?.1;
        match network {
            NetworkKind::Mlp if rewiring.is_empty() => Ok(Self { network, towers: &[] }),
            NetworkKind::Mlp => Err(unknown()),
            _ if name.ends_with('+') => Err(unknown()),
            _ => Ok(Self { network, towers }),
        }
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
        for model in Model::all() {
            assert_eq!(model.to_string().parse::<Model>().unwrap(), model);
        }
    }

    #[test]
    fn an_unknown_name_lists_the_closest_first() {
        let error = "gcn+qcd".parse::<Model>().unwrap_err();
        assert!(error.hint().unwrap().starts_with("known: gcn+qdc, "), "{:?}", error.hint());
        for bad in ["", "+", "gcn+", "mlp+qdc", "gcn+qdc+qdc"] {
            assert!(bad.parse::<Model>().is_err(), "{bad}");
        }
    }
}
