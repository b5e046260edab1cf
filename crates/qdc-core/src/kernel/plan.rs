//! What a kernel will take, before it is built.

use std::fmt;

use serde::Serialize;

use super::Route;

/// The route chosen, why, and an estimate of what it takes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The route.
    pub route: Route,
    /// Why.
    pub reason: String,
    /// Degree of the Chebyshev series, on the polynomial route.
    pub degree: Option<usize>,
    /// Multiplications and additions.
    pub flops: f64,
    /// Bytes of working memory. A job adds what is kept, where that is known beforehand: not under a
    /// threshold.
    pub memory: u64,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "plan: {} ({}), {:.1} Gflop", self.route, self.reason, self.flops / 1e9)?;
        write!(f, ", about {:.0} MB besides what a threshold keeps", self.memory as f64 / 1e6)
    }
}
