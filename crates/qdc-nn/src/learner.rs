//! What a training needs of a network, whatever it computes.

use std::ops::Range;

use crate::layers::Pass;
use crate::{Adam, Matrix, Placed, Real};

/// Parameters that share a learning rate and a decay: a range of the flat array.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    /// Where they lie.
    pub range: Range<usize>,
    /// Their learning rate.
    pub learning_rate: f64,
    /// Their L2 decay.
    pub weight_decay: f64,
}

/// Something that learns: parameters in one flat array, logits, a loss and its gradient.
pub trait Learner<T: Real> {
    /// The parameters and where they lie.
    fn parameters(&self) -> &[Placed];

    /// All parameters, flat (see [`Placed`]).
    fn weights(&self) -> &[T];

    /// All parameters, to be changed.
    fn weights_mut(&mut self) -> &mut [T];

    /// The groups of parameters under a schedule's rate and decay; a network may give some of them others.
    fn groups(&self, learning_rate: f64, weight_decay: f64) -> Vec<Group> {
        vec![Group { range: 0..self.weights().len(), learning_rate, weight_decay }]
    }

    /// The logits: a row for each vertex, a column for each class.
    fn forward(&mut self, pass: Pass) -> &Matrix<T>;

    /// The logits without dropout, of the vertices in `sets` at least.
    fn evaluate(&mut self, _sets: &[&[u32]]) -> &Matrix<T> {
        self.forward(Pass::Evaluate)
    }

    /// The loss on `vertices`, and its gradient with respect to every parameter, which is kept.
    fn loss_and_gradient(&mut self, labels: &[u32], vertices: &[u32], pass: Pass) -> f64;

    /// Moves the weights one step against the gradient, and back into their range where they have one.
    fn update(&mut self, adam: &mut Adam<T>);
}
