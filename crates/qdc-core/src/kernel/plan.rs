//! What a kernel will take, before it is built.

use std::fmt;

use serde::Serialize;

use super::{Kernel, Precision};
use crate::chebyshev::{Series, WIDTH_F32, WIDTH_F64};
use crate::{Error, Graph, Pairs, Solver, Sparsify};

/// Bytes of a kept entry: column and value, twice, as rows are gathered and then joined.
const BYTES_PER_ENTRY: u64 = 2 * 12;

/// Up to this many vertices a full eigendecomposition takes milliseconds and leaves only rounding.
const SMALL: usize = 256;

/// A way to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Route {
    /// sum_k c_k T_k(L) in blocks of columns.
    Polynomial,
    /// alpha (I - (1 - alpha) L)^-1 by a dense factorisation.
    Inverse,
    /// From eigenpairs.
    Spectral,
}

/// The route chosen, why, and an estimate of what it takes.
#[derive(Clone, Debug, Serialize)]
pub struct Plan {
    /// The route.
    pub route: Route,
    /// Why.
    pub reason: String,
    /// Degree of the Chebyshev series, on the polynomial route.
    pub degree: Option<usize>,
    /// Multiplications and additions.
    pub flops: f64,
    /// Bytes of working memory, without what is kept under a threshold, which is not known beforehand.
    pub memory: u64,
}

impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let route = match self.route {
            Route::Polynomial => "chebyshev",
            Route::Inverse => "inverse",
            Route::Spectral => "eigenpairs",
        };
        write!(f, "plan: {route} ({}), {:.1} Gflop", self.reason, self.flops / 1e9)?;
        write!(f, ", about {:.0} MB besides what a threshold keeps", self.memory as f64 / 1e6)
    }
}

impl Kernel {
    /// Chooses the route for a graph and estimates what it takes; checks the parameters that `build` relies on.
    pub fn plan(&self, graph: &Graph) -> Result<Plan, Error> {
        let nodes = graph.nodes() as f64;
        let transition_entries = (graph.adjacency().entries() + graph.nodes()) as f64;
        let kept = match self.sparsify {
            Sparsify::TopK(k) => 2 * graph.nodes() as u64 * k.min(graph.nodes()) as u64,
            Sparsify::Epsilon(_) => 0,
            Sparsify::None => (graph.nodes() as u64).pow(2),
        } * BYTES_PER_ENTRY;
        let spectral = |reason: &str| {
            let pairs = match self.pairs {
                Pairs::All => nodes,
                Pairs::Nearest(k) => (k as f64).min(nodes),
            };
            Ok(Plan {
                route: Route::Spectral,
                reason: reason.to_owned(),
                degree: None,
                flops: 9.0 * nodes.powi(3) + 2.0 * nodes * nodes * pairs,
                memory: (3.0 * 8.0 * nodes * pairs) as u64 + kept,
            })
        };
        match (self.pairs, self.solver) {
            (Pairs::Nearest(_), Solver::Chebyshev) => return Err(Error::NoEigenpairs),
            (Pairs::Nearest(_), _) => return spectral("a window of pairs needs eigenpairs"),
            (Pairs::All, Solver::Dense | Solver::Lobpcg | Solver::Window) => {
                return spectral("that solver was asked for");
            }
            (Pairs::All, Solver::Auto) if graph.nodes() <= SMALL => {
                self.series().map(drop).or_else(|error| match error {
                    Error::FilterTooSharp { .. } => Ok(()), // the dense route takes any filter
                    error => Err(error),
                })?;
                return spectral("a graph this small is decomposed outright");
            }
            (Pairs::All, Solver::Auto | Solver::Chebyshev) => {}
        }
        let series = match self.series() {
            Err(Error::FilterTooSharp { .. }) if self.solver == Solver::Auto => {
                return spectral("the filter is too sharp for a polynomial");
            }
            series => series?,
        };
        let flops = 2.0 * transition_entries * nodes * series.degree() as f64;
        if self.solver == Solver::Auto && self.inverse_wins(graph, flops) {
            return Ok(Plan {
                route: Route::Inverse,
                reason: "on a graph this dense, factorising once beats the polynomial".into(),
                degree: None,
                flops: nodes.powi(3),
                memory: self.inverse_memory(graph) + kept,
            });
        }
        let width = if self.precision == Precision::F64 { WIDTH_F64 * 8 } else { WIDTH_F32 * 4 };
        let panels = 2 * width as u64 * graph.nodes() as u64 * rayon::current_num_threads() as u64;
        let asked = self.solver == Solver::Chebyshev;
        Ok(Plan {
            route: Route::Polynomial,
            reason: format!(
                "{}a series of degree {} reaches the tolerance without eigenpairs",
                if asked { "asked for; " } else { "" },
                series.degree()
            ),
            degree: Some(series.degree()),
            flops,
            memory: panels + 12 * transition_entries as u64 + kept,
        })
    }

    /// The Chebyshev series for the tolerance and precision asked for.
    pub(super) fn series(&self) -> Result<Series, Error> {
        // The tail takes a hundredth: dividing by small degrees enlarges errors, and a few more terms cost little. Single
        // precision cannot profit from a tail below 1e-8.
        let tail = match self.precision {
            Precision::F64 => 0.01 * self.tolerance,
            Precision::F32 => (0.01 * self.tolerance).max(1e-8),
        };
        Series::of(&self.filter, tail).map_err(|error| match error {
            Error::Parameter { requirement, .. } => {
                Error::Parameter { name: "tolerance", value: self.tolerance, requirement }
            }
            error => error,
        })
    }
}
