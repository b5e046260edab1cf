//! Layers: each a function y = f(x; theta) with its derivative written out.
//!
//! A network is a chain of them, with an [`Activate`] after some. The forward pass goes along the chain; the
//! backward pass comes back with dy = d loss / d y and turns it into d loss / d theta and dx = d loss / d x
//! by the chain rule. The derivation stands above each `backward`.

mod activate;
mod attention;
mod features;
mod linear;
mod propagate;

pub use activate::{Activate, Activation};
pub(crate) use attention::GROUP;
pub use attention::{Attention, EdgeValues, Heads};
pub use features::{DenseFeatureLinear, DenseFeatures, SparseFeatureLinear};
pub use linear::Linear;
pub use propagate::Propagate;

use crate::{Matrix, Real, Width};

/// A differentiable step y = f(x; theta).
///
/// `theta` and its gradient are slices of one flat array that holds all parameters of a network, so that the
/// optimiser is one loop. A layer may keep what its backward pass needs; it allocates in its constructor and
/// nowhere else.
pub trait Layer<T: Real>: Send {
    /// The columns of y.
    fn width(&self) -> Width;

    /// The parameters theta, in the order they lie in memory.
    fn parameters(&self) -> Vec<Parameter>;

    /// y = f(x; theta).
    fn forward(&mut self, theta: &[T], x: &Matrix<T>, y: &mut Matrix<T>, pass: Pass);

    /// From dy = d loss / dy, after a forward pass with the same theta and x: writes d loss / d theta to
    /// `gradient`, and d loss / dx to `dx`. Skipped if `dx` has no rows (the input needs no gradient). It
    /// does not see y: an [`Activate`] may have changed that in place.
    fn backward(
        &mut self,
        theta: &[T],
        x: &Matrix<T>,
        dy: &Matrix<T>,
        gradient: &mut [T],
        dx: &mut Matrix<T>,
    );
}

/// What a forward pass is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pass {
    /// To predict: no dropout.
    Evaluate,
    /// To train: dropout masks drawn from `seed`, fresh in every step.
    Train {
        /// The seed of this step.
        seed: u64,
    },
}

impl Pass {
    /// The mask of a dropout of rate `rate`, drawn from the stream `stream`; none when evaluating.
    pub(crate) fn mask(self, rate: f64, stream: u64) -> Option<crate::random::Mask> {
        match self {
            Self::Evaluate => None,
            Self::Train { seed } => crate::random::Mask::new(rate, crate::random::derive(seed, stream)),
        }
    }
}

/// One array of parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parameter {
    /// What it is, within its layer: `weight`, `bias`, `attention_source`...
    pub name: &'static str,
    /// The rows.
    pub rows: Rows,
    /// The columns: the layout of the layer's output.
    pub columns: Width,
    /// How it starts.
    pub start: Start,
}

/// The rows of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rows {
    /// A vector.
    One,
    /// A row for each feature.
    Features(usize),
    /// A row for each column of a hidden layer, padded like it.
    Hidden(Width),
}

/// How a parameter starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// 0, as biases do.
    Zero,
    /// Uniform in +-sqrt(6 / (inputs + outputs)) (Glorot, Bengio 2010).
    Glorot {
        /// Number of inputs.
        inputs: usize,
        /// Number of outputs.
        outputs: usize,
    },
}

impl Parameter {
    /// The weight matrix of a linear map.
    pub(crate) fn weight(rows: Rows, columns: Width) -> Self {
        let inputs = match rows {
            Rows::One => 1,
            Rows::Features(count) => count,
            Rows::Hidden(width) => width.columns(),
        };
        Self { name: "weight", rows, columns, start: Start::Glorot { inputs, outputs: columns.columns() } }
    }

    /// A vector with an entry for each column.
    pub(crate) fn vector(name: &'static str, columns: Width, start: Start) -> Self {
        Self { name, rows: Rows::One, columns, start }
    }

    /// Number of rows and columns, padding not counted.
    pub fn shape(&self) -> (usize, usize) {
        let rows = match self.rows {
            Rows::One => 1,
            Rows::Features(count) => count,
            Rows::Hidden(width) => width.columns(),
        };
        (rows, self.columns.columns())
    }

    /// Numbers in memory, padding included.
    pub(crate) fn length(&self) -> usize {
        let rows = match self.rows {
            Rows::One => 1,
            Rows::Features(count) => count,
            Rows::Hidden(width) => width.stride(),
        };
        rows * self.columns.stride()
    }

    /// Where entry (`row`, `column`) lies in memory.
    pub(crate) fn place(&self, row: usize, column: usize) -> usize {
        let row = match self.rows {
            Rows::One | Rows::Features(_) => row,
            Rows::Hidden(width) => width.place(row),
        };
        row * self.columns.stride() + self.columns.place(column)
    }
}
