//! A network over given features and matrices: prediction, loss and gradient.
//!
//! Tower t computes its stack of layers over matrix t; a single tower ends in the logits. Two towers are added, or set
//! side by side, then logits = relu(joined) R + b. The readout R of two towers side by side is applied as
//! relu(first) R_1 + relu(second) R_2, the same thing without moving the towers together.

use std::sync::Arc;

use qdc_core::{Csr, Features};

use crate::aligned::Aligned;
use crate::architecture::{Architecture, Combinator, Kind, Tower};
use crate::chain::{Chain, Placed, Placement};
use crate::layers::{
    Activate, Activation, Attention, DenseFeatures, Heads, Linear, Pass, Propagate, SparseFeatureLinear,
    Start,
};
use crate::loss::{cross_entropy, cross_entropy_with_gradient};
use crate::random::{derive, uniform};
use crate::{Error, Matrix, Propagation, Real, Width};

/// What a network runs over; shared by all splits and cheap to clone.
#[derive(Clone, Debug)]
pub struct Inputs<T> {
    features: InputFeatures<T>,
    matrices: Vec<Arc<Propagation<T>>>,
    nodes: usize,
}

#[derive(Clone, Debug)]
enum InputFeatures<T> {
    Sparse(Arc<Csr<T>>),
    Dense(Arc<Matrix<T>>),
}

impl<T: Real> Inputs<T> {
    /// Features, and a matrix for each tower (none for an MLP).
    ///
    /// # Errors
    /// If a feature is not finite, or the numbers of vertices differ.
    pub fn new(features: &Features, matrices: Vec<Arc<Propagation<T>>>) -> Result<Self, Error> {
        let nodes = features.rows();
        let not_finite = match features {
            Features::Sparse(matrix) => {
                matrix.iter().find(|entry| !entry.2.is_finite()).map(|(i, j, v)| (i, j as usize, v))
            }
            Features::Dense { columns, values } => {
                values.iter().position(|v| !v.is_finite()).map(|at| (at / columns, at % columns, values[at]))
            }
        };
        if let Some((vertex, feature, value)) = not_finite {
            return Err(Error::FeatureNotFinite { vertex, feature, value });
        }
        for matrix in &matrices {
            if matrix.nodes() != nodes {
                return Err(Error::MatrixSize { matrix: matrix.nodes(), features: nodes });
            }
        }
        let real = |value: f32| T::from_f64(f64::from(value));
        let features = match features {
            Features::Sparse(matrix) => InputFeatures::Sparse(Arc::new(matrix.map(real))),
            Features::Dense { columns, values } => {
                let values: Vec<T> = values.iter().copied().map(real).collect();
                InputFeatures::Dense(Arc::new(Matrix::from_dense(nodes, Width::single(*columns), &values)))
            }
        };
        Ok(Self { features, matrices, nodes })
    }

    /// The same with dense features in the network's own precision.
    ///
    /// # Panics
    /// If the numbers of vertices differ.
    pub fn dense(features: Matrix<T>, matrices: Vec<Arc<Propagation<T>>>) -> Self {
        let nodes = features.rows();
        assert!(matrices.iter().all(|matrix| matrix.nodes() == nodes), "a matrix of another size");
        Self { features: InputFeatures::Dense(Arc::new(features)), matrices, nodes }
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}

/// A network with its parameters.
pub struct Network<T> {
    towers: Vec<Chain<T>>,
    /// What follows the sum of the towers' outputs; absent for a single tower.
    readout: Option<Readout<T>>,
    parameters: Vec<Placed>,
    weights: Aligned<T>,
    gradient: Aligned<T>,
    nothing: Matrix<T>,
}

struct Readout<T> {
    sum: Matrix<T>,
    d_sum: Matrix<T>,
    chain: Chain<T>,
}

impl<T: Real> Network<T> {
    /// Builds the network and starts its parameters from `seed`: weights by Glorot's rule, biases at 0.
    pub fn new(architecture: &Architecture, inputs: &Inputs<T>, seed: u64) -> Result<Self, Error> {
        architecture.check()?;
        let needs_matrix = |tower: &Tower| tower.kind != Kind::Mlp;
        if architecture
            .towers
            .iter()
            .enumerate()
            .any(|(t, tower)| needs_matrix(tower) && t >= inputs.matrices.len())
        {
            let problem =
                format!("{} towers over {} matrices", architecture.towers.len(), inputs.matrices.len());
            return Err(Error::Architecture { problem });
        }
        let mut builder = Builder { inputs, placement: Placement::default(), stream: 0 };
        let mut towers: Vec<Chain<T>> =
            architecture.towers.iter().enumerate().map(|(t, tower)| builder.tower(t, tower)).collect();
        let readout = architecture.combinator.map(|combinator| {
            let classes = Width::single(architecture.classes);
            let mut chain = Chain::new(inputs.nodes);
            let placement = &mut builder.placement;
            match combinator {
                Combinator::Add => {
                    let width = towers[0].width();
                    chain.push(Activate::new(width, Activation::Relu, false, 0.0, 0), "", placement, false);
                    chain.push(Linear::new(width, classes), "readout", placement, false);
                }
                Combinator::Concat => {
                    let inputs = towers.iter().map(|tower| tower.width().columns()).sum();
                    for (t, tower) in towers.iter_mut().enumerate() {
                        let width = tower.width();
                        tower.push(
                            Activate::new(width, Activation::Relu, false, 0.0, 0),
                            "",
                            placement,
                            true,
                        );
                        let linear = Linear::new(width, classes).starting_as_part_of(inputs);
                        tower.push(linear, &format!("readout.{t}"), placement, true);
                    }
                }
            }
            chain.push(
                Activate::new(classes, Activation::Identity, true, 0.0, 0),
                "readout",
                placement,
                false,
            );
            let sum = Matrix::zeros(inputs.nodes, towers[0].width());
            Readout { d_sum: sum.clone(), sum, chain }
        });
        let Placement { parameters, length } = builder.placement;
        let zeros = Aligned::zeros(length);
        let nothing = Matrix::zeros(0, Width::single(1));
        let mut network =
            Self { towers, readout, parameters, weights: zeros.clone(), gradient: zeros, nothing };
        network.start(seed);
        Ok(network)
    }

    /// Starts the parameters anew.
    fn start(&mut self, seed: u64) {
        for (number, placed) in self.parameters.iter().enumerate() {
            let seed = derive(seed, number as u64);
            let (rows, columns) = placed.parameter.shape();
            let values: Vec<T> = match placed.parameter.start {
                Start::Zero => vec![T::ZERO; rows * columns],
                Start::Glorot { inputs, outputs } => {
                    let bound = (6.0 / (inputs + outputs) as f64).sqrt();
                    let draw = |at| T::from_f64(bound * (2.0 * uniform(seed, at as u64) - 1.0));
                    (0..rows * columns).map(draw).collect()
                }
            };
            placed.write(&mut self.weights, &values);
        }
    }

    /// The parameters and where they lie.
    pub fn parameters(&self) -> &[Placed] {
        &self.parameters
    }

    /// All parameters, flat (see [`Placed`]).
    pub fn weights(&self) -> &[T] {
        &self.weights
    }

    /// All parameters, to be changed.
    pub fn weights_mut(&mut self) -> &mut [T] {
        &mut self.weights
    }

    /// The gradient left by [`Network::loss_and_gradient`], laid out like the weights.
    pub fn gradient(&self) -> &[T] {
        &self.gradient
    }

    /// Moves the weights by `update(weights, gradient)`.
    pub fn update(&mut self, update: impl FnOnce(&mut [T], &[T])) {
        update(&mut self.weights, &self.gradient);
    }

    /// The logits: a row for each vertex, a column for each class.
    pub fn forward(&mut self, pass: Pass) -> &Matrix<T> {
        for tower in &mut self.towers {
            tower.forward(&self.weights, &self.nothing, pass);
        }
        match &mut self.readout {
            None => self.towers[0].output(),
            Some(Readout { sum, chain, .. }) => {
                let (first, second) = (self.towers[0].output().values(), self.towers[1].output().values());
                for ((sum, &a), &b) in sum.values_mut().iter_mut().zip(first).zip(second) {
                    *sum = a + b;
                }
                chain.forward(&self.weights, sum, pass);
                chain.output()
            }
        }
    }

    /// The loss on `vertices` without its gradient.
    pub fn loss(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        cross_entropy(self.forward(pass), labels, vertices)
    }

    /// The loss on `vertices`, and its gradient with respect to every parameter.
    pub fn loss_and_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        self.forward(pass);
        let loss;
        match &mut self.readout {
            None => {
                let (logits, d_logits) = self.towers[0].ends();
                loss = cross_entropy_with_gradient(logits, labels, vertices, d_logits);
            }
            Some(Readout { sum, d_sum, chain }) => {
                let (logits, d_logits) = chain.ends();
                loss = cross_entropy_with_gradient(logits, labels, vertices, d_logits);
                chain.backward(&self.weights, sum, &mut self.gradient, d_sum);
                for tower in &mut self.towers {
                    tower.ends().1.values_mut().copy_from_slice(d_sum.values()); // the derivative of a sum
                }
            }
        }
        for tower in &mut self.towers {
            let mut unwanted = Matrix::zeros(0, Width::single(1)); // features are constants
            tower.backward(&self.weights, &self.nothing, &mut self.gradient, &mut unwanted);
        }
        loss
    }
}

/// Turns towers into chains of layers.
struct Builder<'a, T> {
    inputs: &'a Inputs<T>,
    placement: Placement,
    stream: u64,
}

impl<T: Real> Builder<'_, T> {
    fn stream(&mut self) -> u64 {
        self.stream += 1;
        self.stream
    }

    fn tower(&mut self, number: usize, tower: &Tower) -> Chain<T> {
        let mut chain = Chain::new(self.inputs.nodes);
        let matrix = self.inputs.matrices.get(number).cloned();
        let mut input = None; // the columns of the layer before; none: the features are sparse
        if let InputFeatures::Dense(features) = &self.inputs.features {
            let stream = self.stream();
            let layer = DenseFeatures::new(Arc::clone(features), tower.dropout, stream);
            chain.push(layer, "", &mut self.placement, true);
            input = Some(features.width());
        }
        for (depth, &width) in tower.widths.iter().enumerate() {
            let last = depth + 1 == tower.widths.len();
            let scope = format!("towers.{number}.layers.{depth}");
            let transformed = match tower.kind {
                Kind::Gat { heads, .. } => Width::blocks(heads, width),
                Kind::Mlp | Kind::Gcn => Width::single(width),
            };
            // M (x W) = (M x) W: the narrower of the two is propagated.
            let propagation =
                (tower.kind == Kind::Gcn).then(|| Arc::clone(matrix.as_ref().expect("checked in new")));
            let first = input.filter(|input: &Width| input.stride() < transformed.stride());
            if let (Some(matrix), Some(width)) = (&propagation, first) {
                chain.push(Propagate::new(Arc::clone(matrix), width), &scope, &mut self.placement, true);
            }
            match (input, &self.inputs.features) {
                (Some(input), _) => {
                    chain.push(Linear::new(input, transformed), &scope, &mut self.placement, true);
                }
                (None, InputFeatures::Sparse(features)) => {
                    let stream = self.stream();
                    let layer =
                        SparseFeatureLinear::new(Arc::clone(features), transformed, tower.dropout, stream);
                    chain.push(layer, &scope, &mut self.placement, true);
                }
                (None, InputFeatures::Dense(_)) => {
                    unreachable!("dense features give the first layer its input")
                }
            }
            match tower.kind {
                Kind::Mlp => {}
                Kind::Gcn => {
                    if let (Some(matrix), None) = (propagation, first) {
                        chain.push(Propagate::new(matrix, transformed), &scope, &mut self.placement, true);
                    }
                }
                Kind::Gat { edge_values, .. } => {
                    let matrix = matrix.as_ref().expect("checked in new");
                    let heads = if last { Heads::Average } else { Heads::Concatenate };
                    let stream = self.stream();
                    let layer = Attention::new(
                        Arc::clone(matrix),
                        transformed,
                        heads,
                        edge_values,
                        tower.dropout,
                        stream,
                    );
                    chain.push(layer, &scope, &mut self.placement, true);
                }
            }
            let width = chain.width();
            let activation = match tower.kind {
                _ if last => Activation::Identity,
                Kind::Gat { .. } => Activation::Elu,
                Kind::Mlp | Kind::Gcn => Activation::Relu,
            };
            let dropout = if last { 0.0 } else { tower.dropout };
            let stream = self.stream();
            chain.push(
                Activate::new(width, activation, true, dropout, stream),
                &scope,
                &mut self.placement,
                true,
            );
            input = Some(width);
        }
        chain
    }
}
