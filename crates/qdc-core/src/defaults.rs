//! The defaults of kernels and rewirings, in one place: they feed the command line, Python and the
//! documentation.

/// The default of a parameter by the name users type, where it has one.
///
/// ```
/// assert_eq!(qdc_core::defaults::of("sigma"), Some(0.3));
/// assert_eq!(qdc_core::defaults::of("times"), None);
/// ```
pub fn of(name: &str) -> Option<f64> {
    Some(match name {
        "mu" => MU,
        "sigma" => SIGMA,
        "gamma" => GAMMA,
        "alpha" => ALPHA,
        "time" => TIME,
        "epsilon" => EPSILON,
        "self_loop" => SELF_LOOP,
        "tolerance" => TOLERANCE,
        _ => return None,
    })
}

/// Centre of the Gaussian and of the band.
pub const MU: f64 = 0.5;
/// Width of the Gaussian.
pub const SIGMA: f64 = 0.3;
/// Half width of the band.
pub const GAMMA: f64 = 0.3;
/// Teleport probability of personalised PageRank.
pub const ALPHA: f64 = 0.15;
/// Time of the heat kernel.
pub const TIME: f64 = 3.0;
/// Threshold of the sparsification.
pub const EPSILON: f64 = 1e-4;
/// Weight of the self-loops in the transition matrix.
pub const SELF_LOOP: f64 = 1.0;
/// Largest error of an entry of the kernel that the Chebyshev route aims at.
pub const TOLERANCE: f64 = 1e-10;
/// Largest error of an entry that is offered for the local route; it has no default.
pub const ACCURACY: f64 = 1e-4;
/// Edges that SDRF adds at most.
pub const ITERATIONS: usize = 100;
/// How sharply SDRF prefers the best edge: it always takes it.
pub const TAU: f64 = f64::INFINITY;
/// Curvature above which SDRF removes an edge.
pub const REMOVAL_BOUND: f64 = 0.5;
/// Number of eigenpairs of the published method; `all` is the default of this program.
pub const PAPER_PAIRS: usize = 512;
