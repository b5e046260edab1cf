//! Personalised PageRank on dense graphs: alpha (I - (1 - alpha) L)^-1 by a Cholesky factorisation.
//!
//! Costs N^3 operations and 24 N^2 bytes whatever the number of edges, where the polynomial costs 80 operations for
//! each edge and vertex: it wins on graphs such as squirrel.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::{Mat, Par};
use rayon::prelude::*;

use super::polynomial::Made;
use super::{Kernel, KernelReport, Plan};
use crate::sparsify::{Row, Rule};
use crate::{Error, Graph, Precision, Sparsify, Transition, Watch};

/// How many operations of a dense factorisation take the time of one of the polynomial route; measured.
const DENSE_ADVANTAGE: f64 = 1.5;
/// The memory that may be taken without being asked about a limit.
const UNASKED_MEMORY: u64 = 4_000_000_000;
/// Every how many columns the residual is looked at, and the safety factor for the others.
const PROBE_EVERY: usize = 64;
const SAFETY: f64 = 16.0;

impl Kernel {
    /// Whether the inverse is the faster way to this kernel and fits in memory.
    pub(super) fn inverse_wins(&self, graph: &Graph, polynomial_flops: f64) -> bool {
        self.filter.ppr_alpha().is_some()
            && self.precision == Precision::F64
            && (graph.nodes() as f64).powi(3) < DENSE_ADVANTAGE * polynomial_flops
            && self.inverse_memory(graph) <= self.memory.unwrap_or(UNASKED_MEMORY)
    }

    pub(super) fn inverse_memory(&self, graph: &Graph) -> u64 {
        24 * (graph.nodes() as u64).pow(2)
    }

    /// The given rows of the kernel; the whole inverse is computed for them.
    pub(super) fn inverse_rows(
        &self,
        plan: &Plan,
        transition: &Transition,
        rule: &Rule,
        rows: &[u32],
        watch: &Watch,
    ) -> Result<Made, Error> {
        let alpha = self.filter.ppr_alpha().expect("only PageRank plans an inverse");
        let nodes = transition.nodes();
        let phase = watch.phase("dense inverse", 3);
        let mut kernel = inverse(transition, alpha, &|| phase.advance(1))?;
        // The inverse holds the lower triangle; what stands below the diagonal of a column is a row of Q above it.
        if !rule.upper || matches!(rule.sparsify, Sparsify::TopK(_)) {
            for i in 0..nodes {
                for j in i + 1..nodes {
                    kernel[(i, j)] = kernel[(j, i)];
                }
            }
        }
        let column = |j: usize| kernel.col_as_slice(j);
        let kept: Vec<Row> =
            rows.par_iter().map(|&row| rule.keep_row(row, 0, column(row as usize))).collect();
        let report = KernelReport {
            solver: "inverse".into(),
            reason: plan.reason.clone(),
            error_bound: error_bound(transition, alpha, &kernel),
            captured_mass: Some(1.0),
            ..self.blank_report(nodes)
        };
        Ok(Made { rows: kept, report })
    }
}

/// The lower triangle of alpha (I - (1 - alpha) L)^-1.
fn inverse(
    transition: &Transition,
    alpha: f64,
    step_done: &dyn Fn() -> Result<(), Error>,
) -> Result<Mat<f64>, Error> {
    let nodes = transition.nodes();
    // One thread: the factorisation's rounding must not depend on how many there are.
    let par = Par::Seq;
    // (I - (1 - alpha) L) / alpha, whose inverse is the kernel
    let mut factor = Mat::<f64>::zeros(nodes, nodes);
    for i in 0..nodes {
        factor[(i, i)] = 1.0 / alpha;
    }
    for (i, j, value) in transition.matrix().iter() {
        factor[(i, j as usize)] -= (1.0 - alpha) / alpha * value;
    }
    let scratch = llt::factor::cholesky_in_place_scratch::<f64>(nodes, par, Default::default());
    let mut buffer = MemBuffer::new(scratch);
    llt::factor::cholesky_in_place(
        factor.as_mut(),
        Default::default(),
        par,
        MemStack::new(&mut buffer),
        Default::default(),
    )
    .expect("the matrix is positive definite: its eigenvalues are at least 1");
    step_done()?;
    let mut kernel = Mat::<f64>::zeros(nodes, nodes);
    let mut buffer = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(nodes, par));
    llt::inverse::inverse(kernel.as_mut(), factor.as_ref(), par, MemStack::new(&mut buffer));
    step_done()?;
    Ok(kernel)
}

/// From residuals: an error e of a column q obeys (I - (1 - alpha) L) e = alpha * unit - (I - (1 - alpha) L) q, and the
/// inverse of that matrix has norm at most 1 / alpha.
fn error_bound(transition: &Transition, alpha: f64, lower: &Mat<f64>) -> f64 {
    let nodes = transition.nodes();
    let worst = (0..nodes).into_par_iter().step_by(PROBE_EVERY).map(|j| {
        let column: Vec<f64> =
            (0..nodes).map(|i| if i >= j { lower[(i, j)] } else { lower[(j, i)] }).collect();
        let mut image = vec![0.0; nodes];
        transition.matrix().apply(&column, &mut image);
        let residual = |i: usize| {
            let unit = if i == j { alpha } else { 0.0 };
            unit - column[i] + (1.0 - alpha) * image[i]
        };
        (0..nodes).map(|i| residual(i).powi(2)).sum::<f64>().sqrt()
    });
    SAFETY * worst.reduce(|| f64::EPSILON, f64::max) / alpha
}
