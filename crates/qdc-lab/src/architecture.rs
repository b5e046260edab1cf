//! From hyper-parameters to a network and to what it runs over.

use qdc_core::{Csr, Features};
use qdc_nn::{Architecture, Combinator, EdgeValues, Kind};
use serde::{Deserialize, Serialize};

use crate::Hyperparameters;
use crate::model::NetworkKind;

/// The layers of a tower.
#[derive(Deserialize)]
struct Layers {
    layers: usize,
    hidden: usize,
    dropout: f64,
}

/// What an attention has besides.
#[derive(Deserialize)]
struct Attention {
    heads: usize,
    edge_values: EdgeValues,
}

/// How towers meet.
#[derive(Deserialize)]
struct Joined {
    combinator: Combinator,
}

/// The network of a model with these hyper-parameters.
///
/// A single tower ends in the classes. Several end in their hidden width each; where they are added, in that
/// of the first.
pub fn architecture(values: &Hyperparameters, classes: usize) -> Architecture {
    let kinds = values.model().towers();
    let combinator = (kinds.len() > 1).then(|| values.of_model::<Joined>().combinator);
    let first: Layers = values.of_tower(0);
    let tower = |(number, tower): (usize, &crate::Tower)| {
        let Layers { layers, hidden, dropout } = values.of_tower(number);
        let kind = match tower.network {
            NetworkKind::Mlp => Kind::Mlp,
            NetworkKind::Gcn => Kind::Gcn,
            NetworkKind::Gat => {
                let Attention { heads, edge_values } = values.of_tower(number);
                Kind::Gat { heads, edge_values }
            }
            NetworkKind::Bank | NetworkKind::Window => unreachable!("banks have no layers over a matrix"),
        };
        let mut widths = vec![hidden; layers];
        widths[layers - 1] = match combinator {
            None => classes,
            Some(Combinator::Add) => first.hidden,
            Some(Combinator::Concat) => hidden,
        };
        qdc_nn::Tower { kind, widths, dropout }
    };
    let towers = kinds.iter().enumerate().map(tower).collect();
    Architecture { towers, combinator, classes }
}

/// What is done to the features.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum FeatureScale {
    /// Nothing.
    Raw,
    /// Every row is divided by its sum of magnitudes; a row of zeros stays.
    Row,
}

impl FeatureScale {
    pub(crate) fn scale(self, features: &Features) -> Features {
        match self {
            Self::Raw => features.clone(),
            Self::Row => row_normalised(features),
        }
    }
}

#[derive(Deserialize)]
struct Wanted {
    features: FeatureScale,
}

/// How a model wants its features.
pub(crate) fn feature_scale(values: &Hyperparameters) -> FeatureScale {
    values.of_model::<Wanted>().features
}

fn row_normalised(features: &Features) -> Features {
    let divide = |row: &mut [f32]| {
        let sum: f32 = row.iter().map(|value| value.abs()).sum();
        if sum > 0.0 {
            row.iter_mut().for_each(|value| *value /= sum);
        }
    };
    match features {
        Features::Dense { columns, values } => {
            let mut values = values.clone();
            values.chunks_exact_mut(*columns).for_each(divide);
            Features::Dense { columns: *columns, values }
        }
        Features::Sparse(matrix) => {
            let mut matrix: Csr<f32> = matrix.clone();
            let pointers = matrix.pointers().to_vec();
            for ends in pointers.windows(2) {
                divide(&mut matrix.values_mut()[ends[0]..ends[1]]);
            }
            Features::Sparse(matrix)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(model: &str, set: &[(&str, &str)]) -> Architecture {
        let mut values = Hyperparameters::new(model.parse().unwrap());
        set.iter().for_each(|(name, value)| values.set(name, value).unwrap());
        architecture(&values, 7)
    }

    #[test]
    fn a_single_tower_ends_in_the_classes() {
        let Architecture { towers, combinator, classes } = of("gcn+qdc", &[("layers", "3"), ("hidden", "5")]);
        assert_eq!((towers[0].widths.as_slice(), combinator, classes), (&[5, 5, 7][..], None, 7));
        assert_eq!(towers[0].dropout, 0.5);
    }

    #[test]
    fn towers_keep_their_widths_side_by_side_and_end_alike_in_a_sum() {
        let set = [("hidden", "6"), ("qdc_hidden", "5"), ("tower3_layers", "1"), ("tower3_hidden", "4")];
        let widths = |architecture: &Architecture| -> Vec<Vec<usize>> {
            architecture.towers.iter().map(|tower| tower.widths.clone()).collect()
        };
        let beside = of("gcn/gcn+qdc/gcn+qdc", &set);
        assert_eq!(widths(&beside), [vec![6, 6], vec![5, 5], vec![4]]);
        let mut added = set.to_vec();
        added.push(("combinator", "add"));
        let added = of("gcn/gcn+qdc/gcn+qdc", &added);
        assert_eq!(widths(&added), [vec![6, 6], vec![5, 6], vec![6]]);
        assert_eq!(added.combinator, Some(Combinator::Add));
        assert!(beside.check().is_ok() && added.check().is_ok());
    }

    #[test]
    fn towers_of_different_networks_stand_side_by_side() {
        let set = [("heads", "3"), ("edge_values", "bias"), ("tower3_edge_values", "multiply")];
        let towers = of("mlp/gat/gat+qdc", &set).towers;
        assert_eq!(towers[0].kind, Kind::Mlp);
        assert_eq!(towers[1].kind, Kind::Gat { heads: 3, edge_values: EdgeValues::Bias });
        assert_eq!(towers[2].kind, Kind::Gat { heads: 3, edge_values: EdgeValues::Multiply });
    }

    #[test]
    fn rows_are_divided_by_their_magnitudes() {
        let dense = Features::from_dense(2, vec![3.0, -1.0, 0.0, 0.0]);
        let scaled = row_normalised(&dense).to_dense();
        assert_eq!(scaled, [0.75, -0.25, 0.0, 0.0]);
    }
}
