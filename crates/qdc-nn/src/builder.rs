//! From an architecture to chains of layers.

use std::sync::Arc;

use crate::architecture::{Combinator, Kind, Tower};
use crate::chain::{Chain, Placement};
use crate::inputs::InputFeatures;
use crate::layers::{
    Activate, Activation, Attention, DenseFeatures, Heads, Linear, Propagate, SparseFeatureLinear,
};
use crate::{Inputs, Real, Width};

/// Builds the chains of a network; parameters and random streams are numbered in the order of the calls.
pub(crate) struct Builder<'a, T> {
    inputs: &'a Inputs<T>,
    pub(crate) placement: Placement,
    stream: u64,
}

impl<'a, T: Real> Builder<'a, T> {
    pub(crate) fn new(inputs: &'a Inputs<T>) -> Self {
        Self { inputs, placement: Placement::default(), stream: 0 }
    }

    fn stream(&mut self) -> u64 {
        self.stream += 1;
        self.stream
    }

    /// The layers of tower number `number`; `last` is the activation it ends in.
    pub(crate) fn tower(&mut self, number: usize, tower: &Tower, last: Activation) -> Chain<T> {
        let mut chain = Chain::of_features(self.inputs.nodes());
        let matrix = self.inputs.matrices.get(number);
        let mut input = None; // the columns of the layer before; none: the features are sparse
        let precomputed = self.inputs.precomputed(number);
        let dense = match &self.inputs.features {
            InputFeatures::Dense(features) => Some(precomputed.unwrap_or(features)),
            InputFeatures::Sparse(_) => None,
        };
        if let Some(features) = dense {
            let stream = self.stream();
            let layer = DenseFeatures::new(Arc::clone(features), tower.dropout, stream);
            chain.push(layer, &mut self.placement, "");
            input = Some(features.width());
        }
        for (depth, &width) in tower.widths.iter().enumerate() {
            let is_last = depth + 1 == tower.widths.len();
            let scope = format!("towers.{number}.layers.{depth}");
            let transformed = match tower.kind {
                Kind::Gat { heads, .. } => Width::blocks(heads, width),
                Kind::Mlp | Kind::Gcn => Width::single(width),
            };
            let matrix = || Arc::clone(matrix.expect("a matrix for each tower"));
            let propagates = tower.kind == Kind::Gcn && (depth > 0 || precomputed.is_none());
            // M (x W) = (M x) W: the narrower of the two is propagated.
            let narrower = input.filter(|input: &Width| input.stride() < transformed.stride());
            if let (true, Some(input)) = (propagates, narrower) {
                chain.push(Propagate::new(matrix(), input), &mut self.placement, &scope);
            }
            match (input, &self.inputs.features) {
                (Some(input), _) => {
                    chain.push(Linear::new(input, transformed), &mut self.placement, &scope);
                }
                (None, InputFeatures::Sparse(features)) => {
                    let (features, stream) = (Arc::clone(features), self.stream());
                    let layer = SparseFeatureLinear::new(features, transformed, tower.dropout, stream);
                    chain.push(layer, &mut self.placement, &scope);
                }
                (None, InputFeatures::Dense(_)) => {
                    unreachable!("dense features give the first layer its input")
                }
            }
            match tower.kind {
                Kind::Gcn if propagates && narrower.is_none() => {
                    chain.push(Propagate::new(matrix(), transformed), &mut self.placement, &scope);
                }
                Kind::Mlp | Kind::Gcn => {}
                Kind::Gat { edge_values, .. } => {
                    let heads = if is_last { Heads::Average } else { Heads::Concatenate };
                    let stream = self.stream();
                    let layer =
                        Attention::new(matrix(), transformed, heads, edge_values, tower.dropout, stream);
                    chain.push(layer, &mut self.placement, &scope);
                }
            }
            let activation = match tower.kind {
                _ if is_last => last,
                Kind::Gat { .. } => Activation::Elu,
                Kind::Mlp | Kind::Gcn => Activation::Relu,
            };
            let dropout = if is_last { 0.0 } else { tower.dropout };
            let stream = self.stream();
            let activate = Activate::new(chain.width(), activation, true, dropout, stream);
            chain.activate(activate, &mut self.placement, &scope);
            input = Some(chain.width());
        }
        chain
    }

    /// What comes after the sum of towers that are added: logits = relu(sum) R + b.
    pub(crate) fn readout(&mut self, width: Width, classes: Width) -> Chain<T> {
        let mut chain = Chain::of_activations(self.inputs.nodes());
        chain.push(Linear::new(width, classes), &mut self.placement, "readout");
        chain.activate(bias(classes), &mut self.placement, "readout");
        chain
    }

    /// Lets every tower end in its part of the readout, so that the logits are their sum: relu(first) R_1 + b,
    /// relu(second) R_2, ...
    pub(crate) fn read_out_each(&mut self, towers: &mut [Chain<T>], classes: Width) {
        let inputs = towers.iter().map(|tower| tower.width().columns()).sum();
        for (t, tower) in towers.iter_mut().enumerate() {
            let part = Linear::new(tower.width(), classes).starting_as_part_of(inputs);
            tower.push(part, &mut self.placement, &format!("readout.{t}"));
        }
        towers[0].activate(bias(classes), &mut self.placement, "readout");
    }
}

/// x + b.
fn bias(width: Width) -> Activate {
    Activate::new(width, Activation::Identity, true, 0.0, 0)
}

/// The activation towers end in: side by side they are read out one by one, each after its own ReLU.
pub(crate) fn last_activation(combinator: Option<Combinator>) -> Activation {
    if combinator == Some(Combinator::Concat) { Activation::Relu } else { Activation::Identity }
}
