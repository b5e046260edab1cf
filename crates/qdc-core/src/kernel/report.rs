//! What was really done to make a kernel.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Precision;
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
    /// The filter's name.
    pub filter: String,
    /// The filter's parameters.
    pub parameters: BTreeMap<String, f64>,
    /// The pairs that entered: all, or how many; that can be more than asked for, as groups of equal eigenvalues are
    /// taken whole.
    pub pairs: Pairs,
    /// The route: `chebyshev`, `elimination`, or the solver the eigenpairs came from.
    pub solver: String,
    /// Why that route.
    pub reason: String,
    /// Degree of the Chebyshev series, where there was one.
    pub degree: Option<usize>,
    /// The most by which an entry of the kernel, before sparsification, differs from the exact one: what the series
    /// leaves out plus an estimate of rounding, or what the residuals of the eigenpairs allow.
    pub error_bound: f64,
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
