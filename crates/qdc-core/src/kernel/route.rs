//! Routes: the ways to make rows of a kernel, by one name each and one small trait.
//!
//! A new route is a file with an implementation of [`RowMaker`] and one line in the list of names below.

use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::sink::Sink;
use super::{MadeWhole, Plan, Precision, Recipe, Resources, eigenpairs, job, local, pagerank, polynomial};
use crate::twins::Classes;
use crate::{Error, Pairs, Transition, Watch};

/// A way to make rows of a kernel, prepared for one problem.
///
/// [`super::Job::by`] takes any implementation. The rows must not depend on which others are asked for, so
/// that shards join into the whole, and not on the number of threads.
pub trait RowMaker: Send + Sync {
    /// The route, why it is the right one, and what making every row takes without what the sink keeps.
    fn plan(&self) -> Plan;

    /// Makes the rows that the sink asks for, each of which the sink sparsifies as it comes, and says what
    /// was done.
    ///
    /// # Errors
    /// Whatever the route meets, and a stop asked for.
    fn make(&self, sink: &Sink, watch: &Watch) -> Result<Account, Error>;

    /// Makes the whole kernel of a recipe with a threshold, before its normalisation, where a device does that and
    /// keeps it. `None`: its rows have to be made.
    ///
    /// # Errors
    /// As [`RowMaker::make`].
    fn resident(&self, recipe: &Recipe, watch: &Watch) -> Result<Option<MadeWhole>, Error> {
        let _ = (recipe, watch);
        Ok(None)
    }
}

/// How a route is prepared for a problem; an error if it cannot do it.
type Offer = fn(&Problem<'_>, &Watch) -> Result<Box<dyn RowMaker>, Error>;

macro_rules! routes {
    ($($(#[$attribute:meta])* $variant:ident = $name:literal, by $offer:expr;)*) => {
        /// The route from L to eigenpairs or to a kernel: one name in options, plans and reports.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(rename_all = "lowercase")]
        #[non_exhaustive]
        pub enum Route { $($(#[$attribute])* $variant,)* }

        impl Route {
            /// Every route, in the order of the help text.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name users type.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// Prepares the route for a problem.
            pub(super) fn offer(self) -> Offer {
                match self { $(Self::$variant => $offer,)* }
            }
        }
    };
}

routes! {
    /// Picks the cheapest that fits in memory, and says why.
    #[default]
    Auto = "auto", by job::cheapest;
    /// Eigenpairs by the full symmetric eigendecomposition.
    Dense = "dense", by eigenpairs::offer;
    /// Eigenpairs the published way: LOBPCG on (L - mu)^2.
    Lobpcg = "lobpcg", by eigenpairs::offer;
    /// Eigenpairs by block methods around mu.
    Window = "window", by eigenpairs::offer;
    /// No eigenpairs: a polynomial in L (kernels of all pairs only).
    Chebyshev = "chebyshev", by polynomial::offer;
    /// No eigenpairs: sparse elimination (personalised PageRank of all pairs only).
    Elimination = "elimination", by pagerank::offer;
    /// No eigenpairs: each row over the vertices it reaches, as accurate as asked for (large entries of all pairs
    /// only).
    Local = "local", by local::offer;
}

impl FromStr for Route {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Self::ALL.iter().copied().find(|route| route.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|route| route.name()).collect();
            format!("'{text}' is not a solver: choose {}", names.join(", "))
        })
    }
}

impl fmt::Display for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A kernel to be made of a graph, with what may be used: what a route is prepared for.
pub(super) struct Problem<'a> {
    pub(super) recipe: &'a Recipe,
    pub(super) resources: &'a Resources,
    pub(super) transition: Arc<Transition>,
    /// The route that is asked to prepare itself.
    pub(super) route: Route,
    /// The operations that the cheapest other route takes, if `auto` compares routes. Finding out one's own
    /// cost must stay a small share of it.
    pub(super) rival: Option<f64>,
    pub(super) classes: Arc<OnceLock<Arc<Classes>>>,
}

impl Problem<'_> {
    /// The classes of vertices that L cannot tell apart, found once for all routes.
    pub(super) fn classes(&self) -> Arc<Classes> {
        Arc::clone(self.classes.get_or_init(|| Arc::new(Classes::of(self.transition.matrix()))))
    }

    /// Why the route is taken, where somebody asked for it by name.
    pub(super) fn asked(&self) -> &'static str {
        if self.rival.is_none() { "asked for; " } else { "" }
    }

    /// That the route of this problem cannot do it.
    pub(super) fn unsuited(&self, reason: &'static str) -> Error {
        Error::UnsuitedRoute { route: self.route, reason }
    }
}

/// How far an entry of the kernel, before sparsification, may be from the exact one: what is proved and what
/// is estimated. At least one of the two is there.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Accuracy {
    /// No entry is farther from the exact one than this. `None`: no such bound is known.
    pub bound: Option<f64>,
    /// An estimate of the largest error.
    pub estimate: Option<f64>,
    /// Where the estimate comes from.
    pub how: Option<String>,
}

impl Accuracy {
    /// A proved bound; one that is not a finite number is no bound.
    pub fn proved(bound: f64) -> Self {
        Self { bound: Some(bound).filter(|bound| bound.is_finite()), ..Self::default() }
    }

    /// An estimate, and where it comes from.
    pub fn estimated(estimate: f64, how: impl Into<String>) -> Self {
        Self { bound: None, estimate: Some(estimate).filter(|e| e.is_finite()), how: Some(how.into()) }
    }
}

/// What a route says it did: its part of the report.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// The route; for eigenpairs the one they came from.
    pub route: Route,
    /// Why that route.
    pub reason: String,
    /// The error of an entry.
    pub accuracy: Accuracy,
    /// Degree of the Chebyshev series, where there was one.
    pub degree: Option<usize>,
    /// The pairs that entered.
    pub pairs: Pairs,
    /// The largest residual of the eigenpairs used, where there were any.
    pub residual_max: Option<f64>,
    /// The sum of the filter over the pairs that entered, as a share of its sum over all pairs.
    pub captured_mass: Option<f64>,
    /// Whether `captured_mass` is an estimate.
    pub captured_mass_estimated: bool,
    /// The precision of the arithmetic.
    pub precision: Precision,
    /// What is allowed but probably not meant, in sentences.
    pub warnings: Vec<String>,
}

impl Account {
    /// All pairs in double precision by the route of a plan.
    pub fn new(plan: Plan, accuracy: Accuracy) -> Self {
        Self {
            route: plan.route,
            reason: plan.reason,
            accuracy,
            degree: plan.degree,
            pairs: Pairs::All,
            residual_max: None,
            captured_mass: Some(1.0),
            captured_mass_estimated: false,
            precision: Precision::F64,
            warnings: Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for route in Route::ALL {
            assert_eq!(route.to_string().parse(), Ok(*route));
            assert_eq!(serde_json::to_string(route).unwrap(), format!("\"{route}\""));
        }
        assert!("fast".parse::<Route>().unwrap_err().contains("auto, dense, lobpcg"));
    }
}
