//! What a network looks like: plain data, checked once, stored beside the weights.

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::layers::EdgeValues;

/// The kind of a tower's layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// x W + b: the graph plays no part.
    Mlp,
    /// M x W + b, ReLU between layers.
    Gcn,
    /// Attention over the entries of M, ELU between layers.
    Gat {
        /// Number of heads: side by side in hidden layers, averaged in the last.
        heads: usize,
        /// What the values of M do.
        edge_values: EdgeValues,
    },
}

/// A stack of layers over one matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Tower {
    /// The kind of its layers.
    pub kind: Kind,
    /// Output columns of each layer (of each head, in an attention).
    pub widths: Vec<usize>,
    /// Dropout on the input of each layer, and on attention.
    pub dropout: f64,
}

/// How towers meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Combinator {
    /// Their outputs are summed.
    Add,
    /// Their outputs stand side by side.
    Concat,
}

/// A network: one tower that ends in the classes, or several that are combined, passed through a ReLU and
/// read out linearly.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Architecture {
    /// At least one; tower t runs over matrix t.
    pub towers: Vec<Tower>,
    /// How several towers meet.
    pub combinator: Option<Combinator>,
    /// Number of classes.
    pub classes: usize,
}

impl Architecture {
    /// A network of one tower.
    pub fn single(tower: Tower) -> Self {
        let classes = tower.widths.last().copied().unwrap_or(0);
        Self { towers: vec![tower], combinator: None, classes }
    }

    /// A network of several towers.
    pub fn joined(towers: Vec<Tower>, combinator: Combinator, classes: usize) -> Self {
        Self { towers, combinator: Some(combinator), classes }
    }

    /// Says what is wrong with it, if anything.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |problem: String| Err(Error::Architecture { problem });
        match (self.towers.len(), self.combinator) {
            (1, None) | (2.., Some(_)) => {}
            (towers, _) => return wrong(format!("{towers} towers with combinator {:?}", self.combinator)),
        }
        for tower in &self.towers {
            if tower.widths.is_empty() || tower.widths.contains(&0) {
                return wrong(format!(
                    "layer widths {:?}: every tower needs a layer, every layer a column",
                    tower.widths
                ));
            }
            if !(0.0..1.0).contains(&tower.dropout) {
                return wrong(format!("dropout {} is not in [0, 1)", tower.dropout));
            }
            if matches!(tower.kind, Kind::Gat { heads: 0, .. }) {
                return wrong("an attention needs a head".into());
            }
        }
        let ends: Vec<usize> = self.towers.iter().map(|tower| tower.widths[tower.widths.len() - 1]).collect();
        if self.classes == 0 || (self.combinator.is_none() && ends[0] != self.classes) {
            return wrong(format!("the last width {} for {} classes", ends[0], self.classes));
        }
        let other = ends.iter().find(|&&end| end != ends[0]);
        if let (Some(Combinator::Add), Some(other)) = (self.combinator, other) {
            return wrong(format!("towers of widths {} and {other} cannot be added", ends[0]));
        }
        Ok(())
    }
}
