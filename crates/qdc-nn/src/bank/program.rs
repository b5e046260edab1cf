//! What a bank network computes, as plain data, for those who compute it elsewhere than on the CPU.

use std::ops::Range;

use super::inputs::{ChannelMap, ChannelSource};
use crate::Width;
use crate::program::{ActivateStage, Dropout, Stage};

/// A bank network as a list of channels and what follows them.
#[derive(Clone, Debug)]
pub struct BankProgram<T> {
    /// Number of vertices.
    pub nodes: usize,
    /// The columns of the logits.
    pub classes: Width,
    /// Numbers in the flat array of parameters, padding included.
    pub weights: usize,
    /// The columns of each channel.
    pub hidden: Width,
    /// Whether rows of channels are divided by their norms.
    pub norm: bool,
    /// The channels.
    pub channels: Vec<ChannelStage<T>>,
    /// Where the logarithms of the shares lie among the parameters.
    pub mixing: Range<usize>,
    /// Where the readout of the channels lies: their matrices one below the other.
    pub readout: Range<usize>,
    /// The columns of the joined channels.
    pub joined: Width,
    /// What is done to the joined channels in place.
    pub finish: ActivateStage,
    /// The layers that follow; none where the joined channels are the logits.
    pub second: Vec<Stage<T>>,
}

/// A channel: y = P(L) (drop(S) W) + c b, divided by its rows' norms.
#[derive(Clone, Debug)]
pub struct ChannelStage<T> {
    /// S.
    pub source: ChannelSource<T>,
    /// P(L).
    pub map: ChannelMap<T>,
    /// c.
    pub constant: f64,
    /// Where W lies among the parameters.
    pub weight: Range<usize>,
    /// Where b lies.
    pub bias: Range<usize>,
    /// Where mu and sigma of a learned window lie.
    pub window: Option<Range<usize>>,
    /// Of S.
    pub input_dropout: Dropout,
    /// Of relu(y), where the channels are joined.
    pub dropout: Dropout,
}
