//! A network over given features and matrices: prediction, loss and gradient.
//!
//! Tower t computes its stack of layers over matrix t; a single tower ends in the logits. Several towers are
//! added, or set side by side, then logits = relu(joined) R + b. The readout R of towers side by side is
//! applied as relu(first) R_1 + b + relu(second) R_2 + ...: a sum again, the same thing without moving the
//! towers together.

use std::sync::Arc;

use crate::aligned::Aligned;
use crate::architecture::{Architecture, Combinator, Kind, Tower};
use crate::builder::{Builder, last_activation};
use crate::chain::{Chain, Placed, Placement};
use crate::layers::{Activate, Pass, Start};
use crate::loss::{cross_entropy, cross_entropy_with_gradient};
use crate::matrix::LANES;
use crate::parallel::for_rows;
use crate::random::{derive, uniform};
use crate::{Adam, Error, Inputs, Learner, Matrix, Program, Real, Width};

/// A network with its parameters.
pub struct Network<T> {
    towers: Vec<Chain<T>>,
    /// What joins several towers; absent for a single one.
    join: Option<Join<T>>,
    /// Present where rows are not stored in the order of the vertices.
    outside: Option<Outside<T>>,
    parameters: Vec<Placed>,
    weights: Aligned<T>,
    gradient: Aligned<T>,
    nothing: Matrix<T>,
}

/// The sum of the towers.
struct Join<T> {
    sum: Matrix<T>,
    d_sum: Matrix<T>,
    /// What the sum goes through; nothing where it is the logits already.
    readout: Option<(Activate, Chain<T>)>,
}

/// Logits and their gradient in the order of the vertices.
struct Outside<T> {
    order: Arc<[u32]>,
    /// The row of each vertex: the order the other way round.
    row_of: Vec<u32>,
    logits: Matrix<T>,
    d_logits: Matrix<T>,
}

impl<T: Real> Network<T> {
    /// Builds the network and starts its parameters from `seed`: weights by Glorot's rule, biases at 0.
    pub fn new(architecture: &Architecture, inputs: &Inputs<T>, seed: u64) -> Result<Self, Error> {
        T::network(architecture, inputs, seed)
    }

    pub(crate) fn compiled_new(
        architecture: &Architecture,
        inputs: &Inputs<T>,
        seed: u64,
    ) -> Result<Self, Error> {
        architecture.check()?;
        let lacks_matrix =
            |(t, tower): (usize, &Tower)| tower.kind != Kind::Mlp && t >= inputs.matrices.len();
        if architecture.towers.iter().enumerate().any(lacks_matrix) {
            let problem =
                format!("{} towers over {} matrices", architecture.towers.len(), inputs.matrices.len());
            return Err(Error::Architecture { problem });
        }
        let mut builder = Builder::new(inputs);
        let last = last_activation(architecture.combinator);
        let towers = architecture.towers.iter().enumerate();
        let mut towers: Vec<Chain<T>> = towers.map(|(t, tower)| builder.tower(t, tower, last)).collect();
        let classes = Width::single(architecture.classes);
        let readout = match architecture.combinator {
            Some(Combinator::Add) => {
                let width = towers[0].width();
                Some((Activate::relu(width), builder.readout(width, classes)))
            }
            Some(Combinator::Concat) => {
                builder.read_out_each(&mut towers, classes);
                None
            }
            None => None,
        };
        let zeros = |width| Matrix::zeros(inputs.nodes(), width);
        let width = towers[0].width();
        let join = architecture.combinator.map(|_| Join { sum: zeros(width), d_sum: zeros(width), readout });
        let outside = inputs.order.clone().map(|order| {
            let mut row_of = vec![0; order.len()];
            order.iter().enumerate().for_each(|(row, &vertex)| row_of[vertex as usize] = row as u32);
            Outside { order, row_of, logits: zeros(classes), d_logits: zeros(classes) }
        });
        let Placement { parameters, length } = builder.placement;
        let weights = Aligned::zeros(length);
        let nothing = Matrix::zeros(0, Width::single(1));
        let mut network =
            Self { towers, join, outside, parameters, gradient: weights.clone(), weights, nothing };
        start(&network.parameters, &mut network.weights, seed);
        Ok(network)
    }

    /// What it computes, as plain data.
    pub fn program(&self) -> Program<T> {
        let readout = self.join.as_ref().and_then(|join| join.readout.as_ref());
        let last = readout.map_or(&self.towers[0], |(_, chain)| chain);
        Program {
            nodes: last.output().rows(),
            classes: last.width(),
            weights: self.weights.len(),
            towers: self.towers.iter().map(Chain::stages).collect(),
            readout: readout.map_or_else(Vec::new, |(_, chain)| chain.stages()),
            order: self.outside.as_ref().map(|outside| Arc::clone(&outside.order)),
        }
    }

    /// Starts the parameters anew, as [`Network::new`] does.
    pub fn restart(&mut self, seed: u64) {
        start(&self.parameters, &mut self.weights, seed);
    }

    /// The gradient left by [`Learner::loss_and_gradient`], laid out like the weights.
    pub fn gradient(&self) -> &[T] {
        &self.gradient
    }

    /// The loss on `vertices` without its gradient.
    pub fn loss(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        cross_entropy(self.forward(pass), labels, vertices)
    }

    pub(crate) fn compiled_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        self.forward(pass);
        let (logits, d_logits) = match &mut self.join {
            None => self.towers[0].ends(),
            Some(Join { readout: Some((_, chain)), .. }) => chain.ends(),
            Some(Join { sum, d_sum, readout: None }) => (&*sum, d_sum),
        };
        let loss = match &mut self.outside {
            None => cross_entropy_with_gradient(logits, labels, vertices, d_logits),
            Some(Outside { order, logits, d_logits: d_outside, .. }) => {
                let loss = cross_entropy_with_gradient(logits, labels, vertices, d_outside);
                copy_rows(d_outside, d_logits, |row| order[row]);
                loss
            }
        };
        if let Some(Join { sum, d_sum, readout }) = &mut self.join {
            if let Some((relu, chain)) = readout {
                chain.backward(&self.weights, sum, &mut self.gradient, d_sum);
                relu.backward(sum, d_sum, &mut []);
            }
            for tower in &mut self.towers {
                tower.ends().1.values_mut().copy_from_slice(d_sum.values()); // the derivative of a sum
            }
        }
        for tower in &mut self.towers {
            let mut unwanted = Matrix::zeros(0, Width::single(1)); // features are constants
            tower.backward(&self.weights, &self.nothing, &mut self.gradient, &mut unwanted);
        }
        loss
    }
}

impl<T: Real> Learner<T> for Network<T> {
    fn parameters(&self) -> &[Placed] {
        &self.parameters
    }

    fn weights(&self) -> &[T] {
        &self.weights
    }

    fn weights_mut(&mut self) -> &mut [T] {
        &mut self.weights
    }

    fn update(&mut self, adam: &mut Adam<T>) {
        adam.step(&mut self.weights, &self.gradient);
    }

    fn forward(&mut self, pass: Pass) -> &Matrix<T> {
        for tower in &mut self.towers {
            tower.forward(&self.weights, &self.nothing, pass);
        }
        let logits = match &mut self.join {
            None => self.towers[0].output(),
            Some(Join { sum, readout, .. }) => {
                add(&self.towers, sum);
                match readout {
                    None => sum,
                    Some((relu, chain)) => {
                        relu.forward(&[], sum, pass);
                        chain.forward(&self.weights, sum, pass);
                        chain.output()
                    }
                }
            }
        };
        match &mut self.outside {
            None => logits,
            Some(outside) => {
                let Outside { row_of, logits: out, .. } = outside;
                copy_rows(logits, out, |vertex| row_of[vertex]);
                &outside.logits
            }
        }
    }

    fn loss_and_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64 {
        T::network_gradient(self, labels, vertices, pass)
    }
}

/// The sum of the outputs of several towers.
fn add<T: Real>(towers: &[Chain<T>], sum: &mut Matrix<T>) {
    let each = |terms: &[T], sum: &mut Matrix<T>, add: fn(&mut T, T)| {
        for_rows(sum.values_mut(), LANES, (1, 1 << 12), terms.len(), |first, sum| {
            sum.iter_mut().zip(&terms[first * LANES..]).for_each(|(sum, &term)| add(sum, term));
        });
    };
    each(towers[0].output().values(), sum, |sum, term| *sum = term);
    for tower in &towers[1..] {
        each(tower.output().values(), sum, |sum, term| *sum += term);
    }
}

/// Row i of `to` becomes row `source(i)` of `from`.
fn copy_rows<T: Real>(from: &Matrix<T>, to: &mut Matrix<T>, source: impl Fn(usize) -> u32 + Sync) {
    let stride = to.stride();
    let work = 8 * to.values().len(); // the rows lie all over memory
    for_rows(to.values_mut(), stride, (1, 1 << 10), work, |first, to| {
        for (at, to) in to.chunks_exact_mut(stride).enumerate() {
            to.copy_from_slice(from.row(source(first + at) as usize));
        }
    });
}

/// Starts parameters from `seed`, each by its own rule.
pub(crate) fn start<T: Real>(parameters: &[Placed], weights: &mut [T], seed: u64) {
    for (number, placed) in parameters.iter().enumerate() {
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
        placed.write(weights, &values);
    }
}
