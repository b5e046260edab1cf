//! What was really done to make a kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Precision, Route};
use crate::{Normalize, Pairs, Sign, Sparsify};

/// What was asked for, what was really done, and how good it is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct KernelReport {
    /// Number of vertices.
    pub nodes: usize,
    /// Number of entries kept.
    pub entries: usize,
    /// Entries kept as a share of all.
    pub density: f64,
    /// Entries kept in a row, on average.
    pub entries_per_row: f64,
    /// The share of the diagonal in the sum of the absolute values kept; `None` if nothing is kept. At 1 the
    /// kernel joins no vertices, and a network on it sees each vertex by itself.
    pub diagonal_share: Option<f64>,
    /// The filter's name.
    pub filter: String,
    /// The filter's parameters.
    pub parameters: BTreeMap<String, f64>,
    /// The pairs that entered: all, or how many; that can be more than asked for, as groups of equal
    /// eigenvalues are taken whole.
    pub pairs: Pairs,
    /// The route; for eigenpairs the one they came from.
    pub solver: Route,
    /// Why that route.
    pub reason: String,
    /// Degree of the Chebyshev series, where there was one.
    pub degree: Option<usize>,
    /// Proved: no entry of the kernel, before sparsification, is farther from the exact one. `None`: unknown.
    pub error_bound: Option<f64>,
    /// An estimate of the largest such error; there wherever `error_bound` is not.
    pub error_estimate: Option<f64>,
    /// Where the estimate comes from.
    pub error_estimate_how: Option<String>,
    /// The largest residual |L phi - E phi| of the eigenpairs used, where there were any.
    pub residual_max: Option<f64>,
    /// The sum of the filter over the pairs that entered, as a share of its sum over all pairs.
    pub captured_mass: Option<f64>,
    /// Whether `captured_mass` is an estimate, from random probes of the trace.
    pub captured_mass_estimated: bool,
    /// Rows that keep nothing.
    pub empty_rows: usize,
    /// The rule by which entries were kept.
    pub sparsify: Sparsify,
    /// How entries were compared.
    pub sign: Sign,
    /// How the kernel was normalised.
    pub normalize: Normalize,
    /// Weight of the self-loops in the transition matrix.
    pub self_loop: f64,
    /// The precision of the arithmetic.
    pub precision: Precision,
    /// What is allowed but probably not meant, in sentences.
    pub warnings: Vec<String>,
}
