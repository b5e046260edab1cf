//! The structures that host and kernels share. Fields, order and meaning are those of `device/panels.cu`,
//! `device/pairs.cu` and `device/whole.cu`.

#![allow(unsafe_code)] // the promise of `Argument`

use crate::launch::Argument;
use crate::state::Address;

/// `step`: b_k = c_k x + scale L b_(k+1) - b_(k+2).
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Step {
    pub(crate) starts: Address,
    pub(crate) columns: Address,
    pub(crate) values: Address,
    pub(crate) order: Address,
    pub(crate) next: Address,
    pub(crate) after: Address,
    pub(crate) positions: Address,
    pub(crate) shares: Address,
    pub(crate) coefficient: f64,
    pub(crate) scale: f64,
    pub(crate) rows: u32,
    pub(crate) packs: u32,
}

/// `chain`: all steps of some columns.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Chain {
    pub(crate) starts: Address,
    pub(crate) columns: Address,
    pub(crate) values: Address,
    pub(crate) order: Address,
    pub(crate) positions: Address,
    pub(crate) shares: Address,
    pub(crate) coefficients: Address,
    pub(crate) panel: Address,
    pub(crate) rows: u32,
    pub(crate) packs: u32,
    pub(crate) terms: u32,
    pub(crate) bits: u32,
}

/// `start`: b_d = c_d x.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Start {
    pub(crate) next: Address,
    pub(crate) positions: Address,
    pub(crate) shares: Address,
    pub(crate) coefficient: f64,
    pub(crate) rows: u32,
    pub(crate) width: u32,
}

/// `pairs_product`: V diag(w) V^T x.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Product {
    pub(crate) vectors: Address,
    pub(crate) weights: Address,
    pub(crate) positions: Address,
    pub(crate) shares: Address,
    pub(crate) last: Address,
    pub(crate) first: Address,
    pub(crate) panel: Address,
    pub(crate) rows: u32,
    pub(crate) width: u32,
    pub(crate) pairs: u32,
    pub(crate) pad: u32,
}

/// What of each column of a panel may be kept: `histogram`, `pick`, `count`, `total`, `write`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Select {
    pub(crate) panel: Address,
    pub(crate) positions: Address,
    pub(crate) last: Address,
    pub(crate) first: Address,
    pub(crate) histogram: Address,
    pub(crate) prefix: Address,
    pub(crate) remaining: Address,
    pub(crate) floors: Address,
    pub(crate) counts: Address,
    pub(crate) totals: Address,
    pub(crate) own: Address,
    pub(crate) offsets: Address,
    pub(crate) lines: Address,
    pub(crate) values: Address,
    pub(crate) rows: u32,
    pub(crate) width: u32,
    pub(crate) absolute: u32,
    pub(crate) round: u32,
    pub(crate) parts: u32,
    pub(crate) rows_of_a_part: u32,
    pub(crate) column_begin: u32,
    pub(crate) column_end: u32,
}

/// A whole kernel by rows: `whole_count`, `whole_total`, `whole_write`, `whole_sums`, `whole_scale`.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub(crate) struct Whole {
    pub(crate) panel: Address,
    pub(crate) class_of: Address,
    pub(crate) apart: Address,
    pub(crate) shares: Address,
    pub(crate) counts: Address,
    pub(crate) totals: Address,
    pub(crate) pointers: Address,
    pub(crate) columns: Address,
    pub(crate) values: Address,
    pub(crate) degrees: Address,
    pub(crate) magnitudes: Address,
    pub(crate) diagonal: Address,
    pub(crate) left: Address,
    pub(crate) right: Address,
    pub(crate) floor: f64,
    pub(crate) vertices: u32,
    pub(crate) width: u32,
    pub(crate) absolute: u32,
    pub(crate) parts: u32,
    pub(crate) of_a_part: u32,
    pub(crate) pad: u32,
}

// SAFETY: plain numbers in C's layout, aligned to eight bytes.
unsafe impl Argument for Step {}
// SAFETY: as above.
unsafe impl Argument for Chain {}
// SAFETY: as above.
unsafe impl Argument for Whole {}
// SAFETY: as above.
unsafe impl Argument for Start {}
// SAFETY: as above.
unsafe impl Argument for Product {}
// SAFETY: as above.
unsafe impl Argument for Select {}
