//! What a kernel will take, before it is built.

use std::fmt;

use serde::Serialize;

use super::elimination::Elimination;
use super::{Kernel, Precision};
use crate::chebyshev::{Series, WIDTH_F32, WIDTH_F64};
use crate::twins::Classes;
use crate::{Error, Graph, Pairs, Solver, Sparsify, Transition};

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
    /// alpha (I - (1 - alpha) L)^-1 by sparse elimination.
    Elimination,
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
            Route::Elimination => "elimination",
            Route::Spectral => "eigenpairs",
        };
        write!(f, "plan: {route} ({}), {:.1} Gflop", self.reason, self.flops / 1e9)?;
        write!(f, ", about {:.0} MB besides what a threshold keeps", self.memory as f64 / 1e6)
    }
}

/// What the plan is built on, so that `build` need not find it again.
pub(super) struct Prepared {
    pub(super) plan: Plan,
    pub(super) transition: Transition,
    pub(super) way: Way,
}

/// The route with what it needs.
pub(super) enum Way {
    Polynomial { classes: Classes },
    Elimination { classes: Classes, elimination: Box<Elimination> },
    Spectral,
}

impl Kernel {
    /// Chooses the route for a graph and estimates what it takes; checks the parameters that `build` relies on.
    ///
    /// For PageRank that includes trying the elimination, up to a quarter of the time the kernel itself would take.
    pub fn plan(&self, graph: &Graph) -> Result<Plan, Error> {
        Ok(self.prepare(graph)?.plan)
    }

    pub(super) fn prepare(&self, graph: &Graph) -> Result<Prepared, Error> {
        let transition = Transition::with_self_loop(graph, self.self_loop)?;
        match (self.pairs, self.solver) {
            (Pairs::Nearest(_), Solver::Chebyshev) => Err(Error::NoEigenpairs),
            (Pairs::Nearest(_), _) => Ok(self.spectral(transition, "a window of pairs needs eigenpairs")),
            (Pairs::All, Solver::Dense | Solver::Lobpcg | Solver::Window) => {
                Ok(self.spectral(transition, "that solver was asked for"))
            }
            (Pairs::All, Solver::Auto) if graph.nodes() <= SMALL => {
                self.series().map(drop).or_else(|error| match error {
                    Error::FilterTooSharp { .. } => Ok(()), // the dense route takes any filter
                    error => Err(error),
                })?;
                Ok(self.spectral(transition, "a graph this small is decomposed outright"))
            }
            (Pairs::All, Solver::Auto | Solver::Chebyshev) => self.exact(transition),
        }
    }

    /// The routes to the kernel of all pairs that do without eigenpairs, where there is one.
    fn exact(&self, transition: Transition) -> Result<Prepared, Error> {
        let series = match self.series() {
            Err(Error::FilterTooSharp { .. }) if self.solver == Solver::Auto => None,
            series => Some(series?),
        };
        let classes = Classes::of(transition.matrix());
        let nodes = classes.count() as f64;
        let entries = classes.entries(transition.matrix()) as f64;
        let flops = match &series {
            Some(series) => 2.0 * entries * nodes * series.degree() as f64,
            None => 9.0 * nodes.powi(3),
        };
        if self.solver == Solver::Auto
            && let Some((elimination, cost)) = self.eliminate(&transition, &classes, flops)
        {
            let plan = Plan {
                route: Route::Elimination,
                reason: format!(
                    "eliminating vertices leaves a core of {} of {}, {:.0} times less work than {}",
                    elimination.core().nrows(),
                    transition.nodes(),
                    flops / cost.flops,
                    if series.is_some() { "a polynomial" } else { "eigenpairs" }
                ),
                degree: None,
                flops: cost.flops,
                memory: cost.memory + self.kept(transition.nodes()),
            };
            return Ok(Prepared {
                plan,
                transition,
                way: Way::Elimination { classes, elimination: Box::new(elimination) },
            });
        }
        let Some(series) = series else {
            return Ok(self.spectral(transition, "the filter is too sharp for a polynomial"));
        };
        let width = if self.precision == Precision::F64 { WIDTH_F64 * 8 } else { WIDTH_F32 * 4 };
        let panels = 2 * width as u64 * classes.count() as u64 * rayon::current_num_threads() as u64;
        let asked = self.solver == Solver::Chebyshev;
        let plan = Plan {
            route: Route::Polynomial,
            reason: format!(
                "{}a series of degree {} reaches the tolerance without eigenpairs",
                if asked { "asked for; " } else { "" },
                series.degree()
            ),
            degree: Some(series.degree()),
            flops,
            memory: panels + 24 * entries as u64 + self.kept(transition.nodes()),
        };
        Ok(Prepared { plan, transition, way: Way::Polynomial { classes } })
    }

    fn spectral(&self, transition: Transition, reason: &str) -> Prepared {
        let nodes = transition.nodes() as f64;
        let pairs = match self.pairs {
            Pairs::All => nodes,
            Pairs::Nearest(k) => (k as f64).min(nodes),
        };
        let plan = Plan {
            route: Route::Spectral,
            reason: reason.to_owned(),
            degree: None,
            flops: 9.0 * nodes.powi(3) + 2.0 * nodes * nodes * pairs,
            memory: (3.0 * 8.0 * nodes * pairs) as u64 + self.kept(transition.nodes()),
        };
        Prepared { plan, transition, way: Way::Spectral }
    }

    /// Bytes of what is kept, where that is known beforehand.
    fn kept(&self, nodes: usize) -> u64 {
        BYTES_PER_ENTRY
            * match self.sparsify {
                Sparsify::TopK(k) => 2 * nodes as u64 * k.min(nodes) as u64,
                Sparsify::Epsilon(_) => 0,
                Sparsify::None => (nodes as u64).pow(2),
            }
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
