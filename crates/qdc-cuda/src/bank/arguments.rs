//! The arguments of the kernels of `device/bank.cu` and `device/series.cu`.

#![allow(unsafe_code)] // the promise of `Argument`

use crate::launch::Argument;
use crate::state::{Address, Mask, Sparse};

/// `shares` and `shares_back`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Shares {
    pub(crate) runs: Address,
    pub(crate) weights: Address,
    pub(crate) shares: Address,
    pub(crate) parts: Address,
    pub(crate) gradient: Address,
    pub(crate) weights_run: u64,
    pub(crate) gradient_run: u64,
    pub(crate) channels: u32,
    pub(crate) blocks: u32,
}

/// `channel_*`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct ChannelWork {
    pub(crate) runs: Address,
    pub(crate) y: Address,
    pub(crate) active: Address,
    pub(crate) inverse: Address,
    pub(crate) weights: Address,
    pub(crate) biases: Address,
    pub(crate) constants: Address,
    pub(crate) shares: Address,
    pub(crate) parts: Address,
    pub(crate) weights_run: u64,
    pub(crate) mask: Mask,
    pub(crate) rows: u32,
    pub(crate) hidden: u32,
    pub(crate) channels: u32,
    pub(crate) norm: u32,
    pub(crate) per_block: u32,
    pub(crate) pad: u32,
}

/// `term`: one step of a Chebyshev recurrence.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Term {
    pub(crate) matrix: Sparse,
    pub(crate) runs: Address,
    pub(crate) x: Address,
    pub(crate) before: Address,
    pub(crate) out: Address,
    pub(crate) y: Address,
    pub(crate) z: Address,
    pub(crate) moments: Address,
    pub(crate) coefficients: Address,
    pub(crate) counts: Address,
    pub(crate) x_run: u64,
    pub(crate) before_run: u64,
    pub(crate) out_run: u64,
    pub(crate) y_run: u64,
    pub(crate) z_run: u64,
    pub(crate) coefficients_run: u64,
    pub(crate) rows: u32,
    pub(crate) stride: u32,
    pub(crate) chunks: u32,
    pub(crate) term: u32,
}

/// `window_series` and `window_back`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Window {
    pub(crate) runs: Address,
    pub(crate) weights: Address,
    pub(crate) terms: Address,
    pub(crate) counts: Address,
    pub(crate) moments: Address,
    pub(crate) gradient: Address,
    pub(crate) weights_run: u64,
    pub(crate) gradient_run: u64,
    pub(crate) blocks: u32,
    pub(crate) pad: u32,
}

// SAFETY: all of them are `repr(C)` structures of numbers, padded by hand, field for field those of the kernels.
unsafe impl Argument for Shares {}
// SAFETY: as above.
unsafe impl Argument for ChannelWork {}
// SAFETY: as above.
unsafe impl Argument for Term {}
// SAFETY: as above.
unsafe impl Argument for Window {}
