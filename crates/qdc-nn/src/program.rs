//! What a network computes, as plain data, for those who compute it elsewhere than on the CPU.
//!
//! A [`Program`] lists the layers in their order with the places of their parameters in the flat array and
//! the numbers of their random streams; [`crate::Network::program`] makes it from the very layers that
//! compute on the CPU.

use std::ops::Range;
use std::sync::Arc;

use qdc_core::Csr;

use crate::layers::{Activation, EdgeValues, Heads, Layer};
use crate::{Matrix, Propagation, Real, Width};

/// A layer that can be written down in a program.
pub trait Describe<T: Real>: Layer<T> {
    /// Its function as plain data.
    fn operation(&self) -> Operation<T>;
}

/// A network as a list of operations.
#[derive(Clone, Debug)]
pub struct Program<T> {
    /// Number of vertices.
    pub nodes: usize,
    /// The columns of the logits.
    pub classes: Width,
    /// Numbers in the flat array of parameters, padding included.
    pub weights: usize,
    /// The layers of each tower; the sum of their last outputs goes on.
    pub towers: Vec<Vec<Stage<T>>>,
    /// What the sum goes through where it is not the logits already: a ReLU, then these layers.
    pub readout: Vec<Stage<T>>,
    /// The vertex each row belongs to, where rows are stored in another order than theirs.
    pub order: Option<Arc<[u32]>>,
}

/// A layer of a program: y = drop(act(f(x; theta) + b)).
#[derive(Clone, Debug)]
pub struct Stage<T> {
    /// f.
    pub operation: Operation<T>,
    /// Where theta lies among the parameters.
    pub theta: Range<usize>,
    /// The columns of y.
    pub width: Width,
    /// Whether y depends on a parameter, so that its gradient is needed.
    pub varies: bool,
    /// What is done to f(x) in place.
    pub activate: Option<ActivateStage>,
}

/// The bias, activation and dropout of a stage.
#[derive(Clone, Debug)]
pub struct ActivateStage {
    /// act.
    pub activation: Activation,
    /// The dropout of y in training.
    pub dropout: Dropout,
    /// Where b lies among the parameters; empty where there is none.
    pub bias: Range<usize>,
}

/// A dropout: its rate, 0 for none, and the random stream of its masks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Dropout {
    /// The share that is dropped.
    pub rate: f64,
    /// The number of the stream.
    pub stream: u64,
}

/// The functions of layers; the formulas stand in [`crate::layers`].
#[derive(Clone, Debug)]
pub enum Operation<T> {
    /// y = drop(X) W with sparse features X.
    SparseFeatures {
        /// X.
        features: Arc<Csr<T>>,
        /// Of the entries of X.
        dropout: Dropout,
    },
    /// y = drop(X) with dense features X.
    DenseFeatures {
        /// X.
        features: Arc<Matrix<T>>,
        /// Of the entries of X.
        dropout: Dropout,
    },
    /// y = x W.
    Linear {
        /// The columns of x.
        input: Width,
    },
    /// y = M x.
    Propagate {
        /// M.
        matrix: Arc<Propagation<T>>,
    },
    /// Graph attention over the entries of M.
    Attention {
        /// M.
        matrix: Arc<Propagation<T>>,
        /// The columns of x: a block for each head.
        input: Width,
        /// What becomes of the heads.
        heads: Heads,
        /// What the values of M do.
        edge_values: EdgeValues,
        /// Of the attention.
        dropout: Dropout,
    },
}
