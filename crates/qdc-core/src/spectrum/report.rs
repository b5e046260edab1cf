//! What a solver did, measured after the fact.

use serde::{Deserialize, Serialize};

use super::{Method, Pairs};
use crate::Route;

/// What was really done, and how well.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpectrumReport {
    /// Number of eigenpairs returned.
    pub pairs: usize,
    /// What was asked for.
    pub requested: Pairs,
    /// The mu asked for; absent where all pairs were.
    pub around: Option<f64>,
    /// The route taken; never `auto`.
    pub solver: Route,
    /// The method that did most of the work.
    pub method: Method,
    /// Why that route.
    pub reason: String,
    /// max over a of |L phi_a - E_a phi_a|, recomputed from L in the end.
    pub residual_max: f64,
    /// How far V^T V is from I: the largest entry of |V^T V z - z| over eight random sign vectors z.
    pub orthogonality: f64,
    /// Products of L (or of its reduced form) with one vector.
    pub operator_applications: u64,
    /// The shift really used; it differs from `around` where a solver had to be nudged.
    pub shift: Option<f64>,
    /// The number of eigenvalues in the window, counted without the solver.
    pub counted: Option<usize>,
    /// Whether `counted` is exact (by inertia, or because everything was computed) or an estimate.
    pub count_exact: bool,
    /// Every eigenvalue of L strictly inside this interval is among the pairs: counted by inertia, or because
    /// all pairs of a block were computed. `None` where counting did not fit in memory.
    pub interval: Option<[f64; 2]>,
    /// Pairs whose eigenvectors were written down because vertices share their neighbourhood.
    pub twin_pairs: usize,
    /// Vertices that remained after the twins were taken out.
    pub reduced_nodes: usize,
}
