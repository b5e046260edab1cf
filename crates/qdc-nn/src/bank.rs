//! The bank of windows: many views of the features, each with its own matrix, weighed by learned shares.
//!
//! ```text
//! h_k = z_k W_k + c_k b_k            z_k = P_k(L) X or any other channel, c_k = 0.3 x the root mean square of its rows' norms
//! y_k = h_k / |h_k|, row by row      (or h_k itself)
//! logits = concat_k(K softmax(a)_k relu(y_k)), dropped out, times R, plus bias
//! ```
//! ReLU commutes with the positive shares, so the sum over channels of share_k drop(relu(y_k)) R_k is the
//! same, and the wide concatenation never exists. The window network is the bank of one channel whose filter
//! is learned.

mod channel;
mod footprint;
mod inputs;
mod network;
mod program;
mod training;
mod window;

pub use inputs::{BankInputs, ChannelMap, ChannelSource, Way};
pub use network::BankNetwork;
pub use program::{BankProgram, ChannelStage};
pub use training::best_start;
pub(crate) use training::train_split;
pub use window::LearnedWindow;

use serde::{Deserialize, Serialize};

use crate::Error;
use crate::program::Dropout;

/// What follows the joined channels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Readout {
    /// One matrix.
    #[default]
    Linear,
    /// A hidden layer of the same width as the channels', ReLU and dropout, then a matrix.
    Layers,
}

/// What a bank network looks like.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BankArchitecture {
    /// Columns of each channel's output.
    pub hidden: usize,
    /// Whether each row of a channel's output is divided by its norm.
    pub norm: bool,
    /// What follows the channels.
    pub readout: Readout,
    /// Dropout of the joined channels, and inside a readout of two layers.
    pub dropout: f64,
    /// Dropout of what each channel acts on.
    pub input_dropout: f64,
    /// L2 decay of the readout; the schedule's is that of the channels' matrices.
    pub readout_decay: f64,
    /// Number of classes.
    pub classes: usize,
}

impl BankArchitecture {
    /// The dropout of what channel number `channel` acts on.
    pub(crate) fn input_dropout_of(&self, channel: usize) -> Dropout {
        Dropout { rate: self.input_dropout, stream: 2 * channel as u64 + 1 }
    }

    /// The dropout of its output where channels are joined.
    pub(crate) fn dropout_of(&self, channel: usize) -> Dropout {
        Dropout { rate: self.dropout, stream: 2 * channel as u64 + 2 }
    }

    /// Says what is wrong with it, if anything.
    pub fn check(&self) -> Result<(), Error> {
        let wrong = |problem: String| Err(Error::Architecture { problem });
        if self.hidden == 0 || self.classes == 0 {
            return wrong(format!("{} hidden columns for {} classes", self.hidden, self.classes));
        }
        for (name, rate) in [("dropout", self.dropout), ("input dropout", self.input_dropout)] {
            if !(0.0..1.0).contains(&rate) {
                return wrong(format!("{name} {rate} is not in [0, 1)"));
            }
        }
        if !(self.readout_decay >= 0.0 && self.readout_decay.is_finite()) {
            return wrong(format!("a decay of {} for the readout", self.readout_decay));
        }
        Ok(())
    }
}
