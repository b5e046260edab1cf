//! The structures that host and kernels share. Fields, order and meaning are those of `device/*.cu`;
//! addresses are numbers on this side.

#![allow(unsafe_code)] // the promise of `Argument`

use cudarc::driver::{DeviceRepr, ValidAsZeroBits};
use qdc_nn::layers::Activation;
use qdc_nn::program::{ActivateStage, Dropout};

use crate::launch::Argument;

/// An address on the device.
pub(crate) type Address = u64;

/// Groups of parameters that have learning rates and decays of their own, at most.
pub(crate) const GROUPS: usize = 4;

/// One run of a batch: what it was asked to do, and how far it is.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Run {
    pub(crate) seed: u64,
    pub(crate) rates: [f64; GROUPS],
    pub(crate) decays: [f64; GROUPS],
    pub(crate) patience: u64,
    pub(crate) warm_up: u64,
    pub(crate) max_steps: u32,
    pub(crate) step: u32,
    pub(crate) stopped: u32,
    pub(crate) improved: u32,
    pub(crate) best_step: u32,
    pub(crate) diverged_at: u32,
    pub(crate) sizes: [u32; 3],
    pub(crate) stops_by_loss: u32,
    pub(crate) best_score: f64,
    pub(crate) best_loss: f64,
    pub(crate) train: f64,
    pub(crate) validation: f64,
    pub(crate) test: f64,
}

// SAFETY: plain numbers in C's layout, valid as zeros.
unsafe impl DeviceRepr for Run {}
// SAFETY: as above.
unsafe impl ValidAsZeroBits for Run {}

/// A dropout, off where `scale` is 0.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Mask {
    pub(crate) stream: u64,
    pub(crate) threshold: u32,
    pub(crate) scale: f32,
}

impl Mask {
    /// The mask of a dropout in training; off when evaluating.
    pub(crate) fn of(dropout: Dropout, training: bool) -> Self {
        if !training || dropout.rate == 0.0 {
            return Self::default();
        }
        Self {
            stream: dropout.stream,
            threshold: (dropout.rate * 4_294_967_296.0) as u32,
            scale: (1.0 / (1.0 - dropout.rate)) as f32,
        }
    }
}

/// What follows a layer.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Finish {
    pub(crate) bias: Address,
    pub(crate) bias_run: u64,
    pub(crate) mask: Mask,
    pub(crate) activation: u32,
    pub(crate) pad: u32,
}

impl Finish {
    /// What `activate` does, with the weights of the first run at `weights` and `run` numbers from run to run.
    pub(crate) fn of(activate: Option<&ActivateStage>, weights: Address, run: u64, training: bool) -> Self {
        let Some(activate) = activate else { return Self::default() };
        let bias = if activate.bias.is_empty() { 0 } else { weights + 4 * activate.bias.start as u64 };
        let mask = Mask::of(activate.dropout, training);
        Self { bias, bias_run: run, mask, activation: code(activate.activation), pad: 0 }
    }

    /// max(x, 0).
    pub(crate) fn relu() -> Self {
        Self { activation: code(Activation::Relu), ..Self::default() }
    }

    /// Whether nothing is done.
    pub(crate) fn is_nothing(&self) -> bool {
        self.bias == 0 && self.mask.scale == 0.0 && self.activation == 0
    }
}

/// The number kernels know an activation by.
pub(crate) fn code(activation: Activation) -> u32 {
    match activation {
        Activation::Identity => 0,
        Activation::Relu => 1,
        Activation::Elu => 2,
    }
}

/// A sparse matrix by rows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Sparse {
    pub(crate) pointers: Address,
    pub(crate) indices: Address,
    pub(crate) values: Address,
    pub(crate) places: Address,
}

/// `gather`: y = drop(S) x.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Gather {
    pub(crate) matrix: Sparse,
    pub(crate) runs: Address,
    pub(crate) x: Address,
    pub(crate) y: Address,
    pub(crate) x_run: u64,
    pub(crate) y_run: u64,
    pub(crate) mask: Mask,
    pub(crate) finish: Finish,
    pub(crate) rows: u32,
    pub(crate) stride: u32,
    pub(crate) chunks: u32,
    pub(crate) pad: u32,
}

/// `drop`: y = drop(x).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Drop {
    pub(crate) runs: Address,
    pub(crate) x: Address,
    pub(crate) y: Address,
    pub(crate) y_run: u64,
    pub(crate) mask: Mask,
    pub(crate) length: u32,
    pub(crate) pad: u32,
}

/// `add`: y += x, then what follows.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Add {
    pub(crate) runs: Address,
    pub(crate) x: Address,
    pub(crate) y: Address,
    pub(crate) x_run: u64,
    pub(crate) y_run: u64,
    pub(crate) finish: Finish,
    pub(crate) length: u32,
    pub(crate) stride: u32,
    pub(crate) fresh: u32,
    pub(crate) pad: u32,
}

/// `back`: through bias, activation and dropout.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Back {
    pub(crate) runs: Address,
    pub(crate) y: Address,
    pub(crate) dy: Address,
    pub(crate) parts: Address,
    pub(crate) y_run: u64,
    pub(crate) parts_run: u64,
    pub(crate) mask: Mask,
    pub(crate) activation: u32,
    pub(crate) rows: u32,
    pub(crate) stride: u32,
    pub(crate) per_block: u32,
}

/// `product_*`: dense products.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Product {
    pub(crate) runs: Address,
    pub(crate) a: Address,
    pub(crate) b: Address,
    pub(crate) c: Address,
    pub(crate) a_run: u64,
    pub(crate) b_run: u64,
    pub(crate) c_run: u64,
    pub(crate) mask: Mask,
    pub(crate) rows: u32,
    pub(crate) columns: u32,
    pub(crate) inner: u32,
    pub(crate) a_stride: u32,
    pub(crate) b_stride: u32,
    pub(crate) c_stride: u32,
    pub(crate) parts: u32,
    pub(crate) per_part: u32,
}

/// `attention_*`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Attention {
    pub(crate) runs: Address,
    pub(crate) pointers: Address,
    pub(crate) indices: Address,
    pub(crate) values: Address,
    pub(crate) column_pointers: Address,
    pub(crate) column_rows: Address,
    pub(crate) column_places: Address,
    pub(crate) x: Address,
    pub(crate) y: Address,
    pub(crate) dy: Address,
    pub(crate) dx: Address,
    pub(crate) theta: Address,
    pub(crate) source: Address,
    pub(crate) target: Address,
    pub(crate) p: Address,
    pub(crate) d_scores: Address,
    pub(crate) d_source: Address,
    pub(crate) d_target: Address,
    pub(crate) d_edge: Address,
    pub(crate) parts: Address,
    pub(crate) x_run: u64,
    pub(crate) y_run: u64,
    pub(crate) theta_run: u64,
    pub(crate) nodes_run: u64,
    pub(crate) entries_run: u64,
    pub(crate) parts_run: u64,
    pub(crate) mask: Mask,
    pub(crate) finish: Finish,
    pub(crate) factor: f32,
    pub(crate) nodes: u32,
    pub(crate) entries: u32,
    pub(crate) heads: u32,
    pub(crate) block: u32,
    pub(crate) stride: u32,
    pub(crate) y_stride: u32,
    pub(crate) average: u32,
    pub(crate) edge_values: u32,
    pub(crate) per_block: u32,
    pub(crate) parts_length: u32,
    pub(crate) pad: u32,
}

/// `loss`: cross-entropy, its gradient, and what was classified rightly.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Loss {
    pub(crate) runs: Address,
    pub(crate) logits: Address,
    pub(crate) d_logits: Address,
    pub(crate) labels: Address,
    pub(crate) sets: Address,
    pub(crate) losses: Address,
    pub(crate) right: Address,
    pub(crate) logits_run: u64,
    pub(crate) nodes: u32,
    pub(crate) classes: u32,
    pub(crate) stride: u32,
    pub(crate) blocks: u32,
}

/// Where the gradient of some parameters lies.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Site {
    pub(crate) begin: u32,
    pub(crate) length: u32,
    pub(crate) offset: u32,
    pub(crate) parts: u32,
    pub(crate) group: u32,
    pub(crate) factor: f32,
}

// SAFETY: plain numbers in C's layout.
unsafe impl DeviceRepr for Site {}

/// `adam`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Adam {
    pub(crate) runs: Address,
    pub(crate) weights: Address,
    pub(crate) first: Address,
    pub(crate) second: Address,
    pub(crate) parts: Address,
    pub(crate) sites: Address,
    pub(crate) corrections: Address,
    pub(crate) parts_run: u64,
    pub(crate) length: u32,
    pub(crate) count: u32,
}

/// `judge`: the end of a step.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Judge {
    pub(crate) runs: Address,
    pub(crate) train_losses: Address,
    pub(crate) losses: Address,
    pub(crate) right: Address,
    pub(crate) scores: Address,
    pub(crate) curve: Address,
    pub(crate) blocks: u32,
    pub(crate) curve_steps: u32,
}

/// `keep`: the weights of the best step.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Keep {
    pub(crate) runs: Address,
    pub(crate) weights: Address,
    pub(crate) best: Address,
    pub(crate) length: u32,
    pub(crate) pad: u32,
}

// SAFETY: all of them are `repr(C)` structures of numbers, padded by hand, field for field those of the kernels.
unsafe impl Argument for Gather {}
// SAFETY: as above.
unsafe impl Argument for Drop {}
// SAFETY: as above.
unsafe impl Argument for Add {}
// SAFETY: as above.
unsafe impl Argument for Back {}
// SAFETY: as above.
unsafe impl Argument for Product {}
// SAFETY: as above.
unsafe impl Argument for Attention {}
// SAFETY: as above.
unsafe impl Argument for Loss {}
// SAFETY: as above.
unsafe impl Argument for Adam {}
// SAFETY: as above.
unsafe impl Argument for Judge {}
// SAFETY: as above.
unsafe impl Argument for Keep {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bank::arguments::{ChannelWork, Shares, Term, Window};
    use crate::device::SOURCES;
    use crate::panels::{
        self,
        arguments::{Chain, Select, Start, Step, Whole},
    };
    use crate::scores::Score;

    /// Bytes of the argument of every kernel, as the PTX declares them.
    fn argument_sizes() -> Vec<(String, usize)> {
        let declared = |line: &str| {
            let (name, bytes) = line.trim().strip_prefix(".param .align 8 .b8 ")?.split_once("_param_0[")?;
            Some((name.to_owned(), bytes.trim_end_matches(']').parse().ok()?))
        };
        SOURCES.iter().flat_map(|source| source.lines()).filter_map(declared).collect()
    }

    #[test]
    fn arguments_have_the_sizes_the_kernels_expect() {
        let sizes = argument_sizes();
        assert_eq!(sizes.len(), 55, "{sizes:?}");
        for (name, size) in sizes {
            let expected = match name.as_str() {
                "gather" => size_of::<Gather>(),
                "drop" => size_of::<Drop>(),
                "add" => size_of::<Add>(),
                "back" => size_of::<Back>(),
                "loss" => size_of::<Loss>(),
                "adam" => size_of::<Adam>(),
                "judge" => size_of::<Judge>(),
                "keep" => size_of::<Keep>(),
                "shares" | "shares_back" => size_of::<Shares>(),
                "term" => size_of::<Term>(),
                "window_series" | "window_back" => size_of::<Window>(),
                "macro_f1" => size_of::<Score>(),
                name if name.starts_with("auc_") => size_of::<Score>(),
                name if name.starts_with("channel_") => size_of::<ChannelWork>(),
                name if name.starts_with("step_") => size_of::<Step>(),
                name if name.starts_with("start_") => size_of::<Start>(),
                name if name.starts_with("chain_") => size_of::<Chain>(),
                name if name.starts_with("whole_") => size_of::<Whole>(),
                "pick" => size_of::<Select>(),
                name if name.ends_with("_f32") || name.ends_with("_f64") => size_of::<Select>(),
                "pairs_product" => size_of::<panels::arguments::Product>(),
                name if name.starts_with("product_") => size_of::<Product>(),
                name if name.starts_with("attention_") => size_of::<Attention>(),
                name => panic!("an unknown kernel {name}"),
            };
            assert_eq!(size, expected, "{name}");
        }
        assert_eq!(size_of::<Run>(), 168);
    }
}
