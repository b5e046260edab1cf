//! The kernel Q = sum over pairs of P(E_a) phi_a phi_a^T, sparsified and normalised.
//!
//! [`Kernel`] is a recipe: a filter, the pairs that enter, what is kept and how it is normalised. Building it on a
//! graph takes one of several routes, which agree within their stated error: a polynomial in L (`polynomial`), sparse
//! elimination for PageRank (`elimination`, `pagerank`), or eigenpairs (`spectral`). The first two make columns that
//! `stream` sparsifies as they come. No route stores N x N numbers unless that many are kept or all eigenpairs are its
//! very idea.

mod elimination;
mod finish;
mod pagerank;
mod plan;
mod polynomial;
mod report;
mod shard;
mod spectral;
mod stream;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use plan::{Plan, Route};
use plan::{Prepared, Way};
pub use report::KernelReport;
pub use shard::{Shard, ShardManifest};
use stream::Lift;

use crate::sparsify::{Row, Rule};
use crate::{
    Csr, Eigensolver, Error, Filter, Graph, Normalize, Pairs, Sign, Solver, Sparsify, Spectrum, Transition,
    Watch, defaults,
};

/// The reason for a route that was settled by what the caller has.
const COMPUTED_BEFORE: &str = "from a spectrum computed before";

/// The precision of the polynomial route's arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Double.
    #[default]
    F64,
    /// Single: about twice as fast, errors near 1e-7.
    F32,
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "f64" => Ok(Self::F64),
            "f32" => Ok(Self::F32),
            _ => Err(format!("'{text}' is neither f64 nor f32")),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::F64 { "f64" } else { "f32" })
    }
}

/// A recipe for a kernel; `build` follows it on a graph.
///
/// ```
/// use qdc_core::{EdgeRule, Filter, Graph, Kernel, Sparsify, Watch};
///
/// let ring = Graph::from_edges(50, (0..50).map(|i| (i, (i + 1) % 50)), EdgeRule::Undirected)?;
/// let kernel = Kernel::new(Filter::gaussian(0.3, 0.1)?)
///     .sparsify(Sparsify::top_k(8)?)
///     .build(&ring, &Watch::silent())?;
/// assert_eq!(kernel.matrix.rows(), 50);
/// assert!(kernel.report.error_bound <= 1e-10);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Kernel {
    filter: Filter,
    pairs: Pairs,
    solver: Solver,
    sparsify: Sparsify,
    sign: Sign,
    normalize: Normalize,
    self_loop: f64,
    tolerance: f64,
    precision: Precision,
    memory: Option<u64>,
}

/// A finished kernel and how it was made.
#[derive(Clone, Debug)]
pub struct BuiltKernel {
    /// The sparse, normalised kernel; symmetric unless normalised by rows or columns.
    pub matrix: Csr<f64>,
    /// What was really done.
    pub report: KernelReport,
}

/// Rows as kept by a route, in the order asked for, and the route's part of the report.
struct Made {
    rows: Vec<Row>,
    report: KernelReport,
}

impl Kernel {
    /// The exact kernel of a filter with the defaults of [`crate::defaults`]: all pairs, epsilon 1e-4, positive, `sym`.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            pairs: Pairs::All,
            solver: Solver::Auto,
            sparsify: Sparsify::Epsilon(defaults::EPSILON),
            sign: Sign::Positive,
            normalize: Normalize::Sym,
            self_loop: defaults::SELF_LOOP,
            tolerance: defaults::TOLERANCE,
            precision: Precision::F64,
            memory: None,
        }
    }

    /// The pairs that enter.
    pub fn pairs(mut self, pairs: Pairs) -> Self {
        self.pairs = pairs;
        self
    }

    /// The route; `Auto` picks and the report says why.
    pub fn solver(mut self, solver: Solver) -> Self {
        self.solver = solver;
        self
    }

    /// What is kept.
    pub fn sparsify(mut self, sparsify: Sparsify) -> Self {
        self.sparsify = sparsify;
        self
    }

    /// How entries are compared.
    pub fn sign(mut self, sign: Sign) -> Self {
        self.sign = sign;
        self
    }

    /// How the result is normalised.
    pub fn normalize(mut self, normalize: Normalize) -> Self {
        self.normalize = normalize;
        self
    }

    /// The weight of the self-loops in L; checked when the kernel is built.
    pub fn self_loop(mut self, weight: f64) -> Self {
        self.self_loop = weight;
        self
    }

    /// The error of an entry that the polynomial route aims at; checked when the kernel is built.
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// The precision of the polynomial route.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// The memory in bytes that dense routes may use; `None` does not ask.
    pub fn memory(mut self, bytes: impl Into<Option<u64>>) -> Self {
        self.memory = bytes.into();
        self
    }

    /// The filter.
    pub fn filter(&self) -> &Filter {
        &self.filter
    }

    /// Builds the kernel of a graph. [`Kernel::plan`] says beforehand what that takes.
    pub fn build(&self, graph: &Graph, watch: &Watch) -> Result<BuiltKernel, Error> {
        let prepared = self.prepare(graph)?;
        watch.note(&prepared.plan.to_string());
        if let Way::Spectral = prepared.way {
            let spectrum = self.eigensolver().solve(&prepared.transition, watch)?;
            return self.sum_over_pairs(&spectrum, &prepared.transition, prepared.plan.reason, watch);
        }
        let every: Vec<u32> = (0..graph.nodes() as u32).collect();
        let rule = self.rule();
        let made = self.make_rows(&prepared, &rule, &every, watch)?;
        let sample = |rule: &Rule, rows: &[u32]| Ok(self.make_rows(&prepared, rule, rows, watch)?.rows);
        finish::finish(rule.assemble(made.rows), made.report, Some(sample))
    }

    /// The given rows as each keeps them, by the route prepared.
    fn make_rows(
        &self,
        prepared: &Prepared,
        rule: &Rule,
        rows: &[u32],
        watch: &Watch,
    ) -> Result<Made, Error> {
        let Prepared { plan, transition, way } = prepared;
        let lift = |classes| Lift { transition, classes, filter: &self.filter };
        match way {
            Way::Polynomial { classes } => self.polynomial_rows(plan, &lift(classes), rule, rows, watch),
            Way::Elimination { classes, elimination } => {
                self.pagerank_rows(plan, elimination, &lift(classes), rule, rows, watch)
            }
            Way::Spectral => {
                let spectrum = self.eigensolver().solve(transition, watch)?;
                self.rows_over_pairs(&spectrum, transition, plan.reason.clone(), rule, rows, watch)
            }
        }
    }

    /// Builds the kernel from eigenpairs computed before: the complete spectrum of the same graph serves every filter
    /// and every choice of pairs; a part of it serves `Pairs::Nearest` where the window lies inside it.
    ///
    /// Cost: N^2 k products for k pairs that matter; memory is what is kept and one block of rows for each thread.
    ///
    /// # Panics
    /// If the spectrum belongs to a graph of another size.
    pub fn build_from(
        &self,
        spectrum: &Spectrum,
        graph: &Graph,
        watch: &Watch,
    ) -> Result<BuiltKernel, Error> {
        assert_eq!(spectrum.nodes(), graph.nodes(), "the spectrum of this graph");
        let transition = Transition::with_self_loop(graph, self.self_loop)?;
        self.sum_over_pairs(spectrum, &transition, COMPUTED_BEFORE.into(), watch)
    }

    /// The rows `rows` of the kernel as each keeps them by its own values, before union and normalisation.
    ///
    /// [`Shard::merge`] joins shards into what [`Kernel::build`] gives, bit for bit. Eigenpairs and an elimination are
    /// computed whole for any rows; the polynomial route takes time for the rows asked for only.
    pub fn build_rows(&self, graph: &Graph, rows: Range<usize>, watch: &Watch) -> Result<Shard, Error> {
        shard::build(self, graph, rows, |rule, names| {
            let prepared = self.prepare(graph)?;
            watch.note(&prepared.plan.to_string());
            self.make_rows(&prepared, rule, names, watch)
        })
    }

    /// [`Kernel::build_rows`] from eigenpairs computed before, as [`Kernel::build_from`] takes them.
    ///
    /// # Panics
    /// If the spectrum belongs to a graph of another size.
    pub fn build_rows_from(
        &self,
        spectrum: &Spectrum,
        graph: &Graph,
        rows: Range<usize>,
        watch: &Watch,
    ) -> Result<Shard, Error> {
        assert_eq!(spectrum.nodes(), graph.nodes(), "the spectrum of this graph");
        let transition = Transition::with_self_loop(graph, self.self_loop)?;
        shard::build(self, graph, rows, |rule, names| {
            self.rows_over_pairs(spectrum, &transition, COMPUTED_BEFORE.into(), rule, names, watch)
        })
    }

    /// The eigensolver for the pairs asked for, around the filter's centre.
    pub fn eigensolver(&self) -> Eigensolver {
        Eigensolver::new()
            .pairs(self.pairs)
            .around(self.filter.centre().unwrap_or(defaults::MU))
            .solver(self.solver)
            .memory(self.memory)
    }

    fn rule(&self) -> Rule {
        Rule { sparsify: self.sparsify, sign: self.sign, upper: true }
    }
}
