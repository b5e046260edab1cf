//! Personalised PageRank, alpha (I - (1 - alpha) L)^-1, by elimination: exact but for rounding.
//!
//! On vectors that are constant on classes the matrix is M_cd = 1_c^T (I - (1 - alpha) L) 1_d, and alpha M^-1
//! holds the numbers wanted. With M eliminated down to its core, the rows of Z = alpha M^-1 between the core
//! and everything follow from the core's inverse by substitution, once. Any other column then costs one pass
//! over the multipliers. On graphs that fill slowly that is tens of times less than a polynomial; where it is
//! not, the plan says so.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::cholesky::llt;
use faer::{Mat, Par};
use rayon::prelude::*;

use std::sync::{Arc, OnceLock};

use super::elimination::{Budget, Elimination};
use super::panels::{Columns, Lift};
use super::route::Problem;
use super::{Account, Accuracy, Plan, RowMaker, Sink};
use crate::chebyshev::WIDTH_F64 as WIDTH;
use crate::simd::{Line, substitute};
use crate::twins::Classes;
use crate::{Csr, Error, Filter, Pairs, Transition, Watch};

/// How many operations of a full factorisation take the time of one on panels; measured.
const DENSE_ADVANTAGE: f64 = 6.0;
/// How many operations on panels take the time of one step of merging sparse rows; measured.
const MERGE_COST: f64 = 12.0;
/// The most of the polynomial's time that finding out may take, and the most steps of merging rows: a few
/// seconds.
const TRIAL_SHARE: f64 = 0.25;
const MOST_STEPS: f64 = 1e9;
/// The memory that may be taken where nobody named a limit.
const UNASKED_MEMORY: u64 = 4_000_000_000;
/// Below this, M is too close to singular: its condition is (2 - alpha) / alpha.
const LEAST_ALPHA: f64 = 1e-8;
/// The safety factor for columns that are not probed.
const SAFETY: f64 = 16.0;

/// M for the teleport probability alpha.
fn system(transition: &Transition, classes: &Classes, alpha: f64) -> Csr<f64> {
    let sums = classes.reduce(transition.matrix(), |t, other| t * other);
    let rows = (0..sums.rows()).map(|row| {
        let (columns, values) = sums.row(row);
        let size = classes.size(row) as f64;
        let mut entries: Vec<(u32, f64)> =
            columns.iter().zip(values).map(|(&column, value)| (column, -(1.0 - alpha) * value)).collect();
        match entries.binary_search_by_key(&(row as u32), |entry| entry.0) {
            Ok(at) => entries[at].1 += size,
            Err(at) => entries.insert(at, (row as u32, size)),
        }
        entries.into_iter().unzip()
    });
    Csr::from_rows(sums.columns(), rows).expect("a valid matrix with its diagonal")
}

/// The route, ready for a problem.
struct ByElimination {
    plan: Plan,
    filter: Filter,
    alpha: f64,
    transition: Arc<Transition>,
    classes: Arc<Classes>,
    elimination: Elimination,
    /// Columns of the core, computed when the first row is asked for.
    core_columns: OnceLock<CoreColumns>,
}

/// Prepares the route by eliminating M. Under `auto` that is given up as soon as it is clear that it will not
/// win.
pub(super) fn offer(problem: &Problem<'_>, _: &Watch) -> Result<Box<dyn RowMaker>, Error> {
    let Some(alpha) = problem.recipe.filter.ppr_alpha() else {
        return Err(problem.unsuited("it solves the equations of personalised PageRank only"));
    };
    if problem.recipe.pairs != Pairs::All {
        return Err(Error::NoEigenpairs);
    }
    if alpha < LEAST_ALPHA {
        return Err(problem.unsuited("below alpha = 1e-8 the equations are too close to singular"));
    }
    let classes = problem.classes();
    let system = system(&problem.transition, &classes, alpha);
    let memory = problem.resources.memory.unwrap_or(UNASKED_MEMORY);
    let steps = problem.rival.map_or(f64::INFINITY, |flops| TRIAL_SHARE * flops / MERGE_COST);
    let budget = Budget { steps: steps.min(MOST_STEPS), memory };
    let Some(elimination) = Elimination::of(&system, budget) else {
        return Err(
            problem.unsuited("eliminating vertices fills the matrix beyond the time or memory allowed")
        );
    };
    let plan = plan(problem, &elimination);
    if plan.memory > memory {
        return Err(Error::Memory { what: "elimination", needed: plan.memory, limit: memory });
    }
    Ok(Box::new(ByElimination {
        plan,
        filter: problem.recipe.filter.clone(),
        alpha,
        transition: Arc::clone(&problem.transition),
        classes,
        elimination,
        core_columns: OnceLock::new(),
    }))
}

fn plan(problem: &Problem<'_>, elimination: &Elimination) -> Plan {
    let (nodes, core) = (elimination.nodes() as f64, elimination.core().nrows() as f64);
    let fill = elimination.multipliers().matrix().entries() as f64;
    let flops = 2.0 * fill * (nodes + core) + core.powi(3) / DENSE_ADVANTAGE;
    let less = match problem.rival {
        Some(rival) if rival.is_finite() => {
            format!(", {:.0} times less work than another way", rival / flops)
        }
        _ => String::new(),
    };
    Plan {
        route: problem.route,
        reason: format!(
            "{}eliminating vertices leaves a core of {} of {}{less}",
            problem.asked(),
            elimination.core().nrows(),
            problem.transition.nodes(),
        ),
        degree: None,
        flops,
        memory: (8.0 * core * (nodes + 3.0 * core) + 16.0 * fill) as u64,
    }
}

impl RowMaker for ByElimination {
    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn make(&self, sink: &Sink, watch: &Watch) -> Result<Account, Error> {
        let (elimination, alpha) = (&self.elimination, self.alpha);
        let core_columns = match self.core_columns.get() {
            Some(columns) => columns,
            None => {
                let columns = core_columns(elimination, alpha, watch)?;
                self.core_columns.get_or_init(|| columns)
            }
        };
        let pagerank = PageRank { elimination, alpha, core_columns };
        let lift = Lift { transition: &self.transition, classes: &self.classes, filter: &self.filter };
        lift.make::<f64, WIDTH, _>(&pagerank, sink, watch)?;
        let system = system(&self.transition, &self.classes, alpha);
        let how = "residuals of sixteen columns, divided by alpha, times 16";
        let estimate = pagerank.error_estimate(&system, &self.classes);
        Ok(Account::new(self.plan(), Accuracy::estimated(estimate, how)))
    }
}

/// The columns of the core of alpha M^-1, panel by panel; as Z is symmetric, these are the core's rows of
/// every column.
type CoreColumns = Vec<Vec<Line<f64, WIDTH>>>;

fn core_columns(elimination: &Elimination, alpha: f64, watch: &Watch) -> Result<CoreColumns, Error> {
    let size = elimination.core().nrows();
    let phase = watch.phase("core", 1 + size.div_ceil(WIDTH) as u64);
    let inverse = inverse(elimination.core());
    phase.advance(1)?;
    (0..size)
        .into_par_iter()
        .step_by(WIDTH)
        .map(|first| {
            let mut panel = vec![Line::ZERO; elimination.nodes()];
            for (row, line) in panel[..size].iter_mut().enumerate() {
                for column in first..size.min(first + WIDTH) {
                    // Only the lower triangle is computed.
                    line[column - first] = alpha * inverse[(row.max(column), row.min(column))];
                }
            }
            substitute(elimination.multipliers(), size, &mut panel);
            phase.advance(1)?;
            Ok(panel)
        })
        .collect()
}

/// Columns of alpha M^-1.
struct PageRank<'a> {
    elimination: &'a Elimination,
    alpha: f64,
    core_columns: &'a CoreColumns,
}

impl PageRank<'_> {
    /// From residuals of some columns: an error e of a column obeys M e = r, and in the norms that classes of
    /// t vertices bring with them, |e|_max <= |T^-1/2 r| / alpha, as I - (1 - alpha) L has no eigenvalue
    /// below alpha.
    fn error_estimate(&self, system: &Csr<f64>, classes: &Classes) -> f64 {
        let count = classes.count();
        let probes = WIDTH.min(count);
        let units: Vec<u32> = (0..probes).map(|i| self.elimination.name(i * count / probes)).collect();
        let mut workspace = self.workspace();
        let panel = self.panel(&units, &mut workspace);
        let mut squares = [0.0; WIDTH];
        for row in 0..count {
            let (columns, values) = system.row(row);
            let mut residual = [0.0; WIDTH];
            for (&column, &value) in columns.iter().zip(values) {
                let line = &panel[self.elimination.position(column as usize) as usize];
                (0..WIDTH).for_each(|lane| residual[lane] -= value * line[lane]);
            }
            for (lane, &unit) in units.iter().enumerate() {
                let unit = if unit as usize == row { self.alpha } else { 0.0 };
                squares[lane] += (residual[lane] + unit).powi(2) / classes.size(row) as f64;
            }
        }
        let worst = squares[..probes].iter().fold(0.0, |worst: f64, square| worst.max(square.sqrt()));
        SAFETY * worst.max(f64::EPSILON) / self.alpha
    }
}

/// A panel, and which of its lines a unit has reached.
struct Workspace {
    panel: Vec<Line<f64, WIDTH>>,
    reached: Vec<bool>,
}

impl PageRank<'_> {
    fn workspace(&self) -> Workspace {
        let nodes = self.elimination.nodes();
        Workspace { panel: vec![Line::ZERO; nodes], reached: vec![false; nodes] }
    }

    fn panel<'a>(&self, classes: &[u32], workspace: &'a mut Workspace) -> &'a mut [Line<f64, WIDTH>] {
        let Workspace { panel, reached } = workspace;
        let multipliers = self.elimination.multipliers();
        let core = self.elimination.core().nrows();
        panel.fill(Line::ZERO);
        reached.fill(false);
        let mut end = core;
        for (lane, &class) in classes.iter().enumerate() {
            let unit = self.elimination.position(class as usize) as usize;
            for (lines, columns) in panel[..core].chunks_mut(WIDTH).zip(self.core_columns) {
                lines.iter_mut().zip(&columns[unit].0).for_each(|(line, &value)| line[lane] = value);
            }
            if unit >= core {
                panel[unit][lane] = self.alpha;
                reached[unit] = true;
                end = end.max(unit + 1);
            }
        }
        // Forward through what was eliminated, from the earliest unit (the last position) on.
        for at in (core..end).rev() {
            if !reached[at] {
                continue;
            }
            let (before, line) = panel.split_at_mut(at);
            let (columns, values) = multipliers.matrix().row(at);
            let beyond = columns.partition_point(|&column| (column as usize) < core);
            for (&column, &value) in columns[beyond..].iter().zip(&values[beyond..]) {
                reached[column as usize] = true;
                let other = &mut before[column as usize];
                (0..WIDTH).for_each(|lane| other[lane] -= value * line[0][lane]);
            }
            let inverse_pivot = self.elimination.inverse_pivot(at);
            line[0].iter_mut().for_each(|value| *value *= inverse_pivot);
        }
        substitute(multipliers, core, panel);
        panel
    }
}

impl Columns<f64, WIDTH> for PageRank<'_> {
    type Workspace = Workspace;

    fn workspace(&self) -> Workspace {
        self.workspace()
    }

    fn position(&self, class: u32) -> u32 {
        self.elimination.position(class as usize)
    }

    fn panel<'a>(&self, classes: &[u32], workspace: &'a mut Workspace) -> &'a mut [Line<f64, WIDTH>] {
        self.panel(classes, workspace)
    }
}

/// The lower triangle of a symmetric positive definite matrix's inverse.
fn inverse(matrix: &Mat<f64>) -> Mat<f64> {
    let size = matrix.nrows();
    // One thread: the rounding must not depend on how many there are.
    let par = Par::Seq;
    let mut factor = matrix.clone();
    let scratch = llt::factor::cholesky_in_place_scratch::<f64>(size, par, Default::default());
    let mut buffer = MemBuffer::new(scratch);
    llt::factor::cholesky_in_place(
        factor.as_mut(),
        Default::default(),
        par,
        MemStack::new(&mut buffer),
        Default::default(),
    )
    .expect("what elimination leaves of a positive definite matrix is positive definite");
    let mut inverse = Mat::<f64>::zeros(size, size);
    let mut buffer = MemBuffer::new(llt::inverse::inverse_scratch::<f64>(size, par));
    llt::inverse::inverse(inverse.as_mut(), factor.as_ref(), par, MemStack::new(&mut buffer));
    inverse
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sparsify::{Row, Rule};
    use crate::{EdgeRule, Graph, Sign, Sparsify, Symmetrize};
    use faer::linalg::solvers::DenseSolveCore;
    use proptest::prelude::*;

    const NODES: usize = 40;
    const BOUNDLESS: Budget = Budget { steps: f64::INFINITY, memory: u64::MAX };

    /// Random weights, so that most graphs fall into pieces and some vertices are isolated, or a few hubs
    /// with many twins.
    fn graph() -> impl Strategy<Value = Graph> {
        let nodes = NODES as u64;
        let weighted = proptest::collection::vec((0..nodes, 0..nodes, 0.1f64..3.0), 0..120);
        let hubs = proptest::collection::vec((0..4u64, 0..nodes), 0..60);
        prop_oneof![
            weighted.prop_map(|edges| {
                Graph::from_weighted_edges(NODES, edges, EdgeRule::Directed(Symmetrize::Max)).unwrap()
            }),
            hubs.prop_map(|edges| Graph::from_edges(NODES, edges, EdgeRule::Undirected).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn elimination_equals_the_full_inverse_within_the_stated_error(
            graph in graph(), alpha in 0.01f64..1.0, self_loop in 0.0f64..2.0
        ) {
            let transition = Transition::with_self_loop(&graph, self_loop).unwrap();
            let dense = transition.matrix().to_dense();
            let shifted = Mat::from_fn(NODES, NODES, |i, j| {
                f64::from(u8::from(i == j)) - (1.0 - alpha) * dense[i * NODES + j]
            });
            let expected = shifted.partial_piv_lu().inverse();

            let classes = Classes::of(transition.matrix());
            let system = system(&transition, &classes, alpha);
            let elimination = Elimination::of(&system, BOUNDLESS).unwrap();
            let core_columns = core_columns(&elimination, alpha, &Watch::silent()).unwrap();
            let pagerank = PageRank { elimination: &elimination, alpha, core_columns: &core_columns };
            let bound = pagerank.error_estimate(&system, &classes);
            prop_assert!(bound < 1e-10, "{bound:e}");

            let filter = Filter::ppr(alpha).unwrap();
            let lift = Lift { transition: &transition, classes: &classes, filter: &filter };
            let rule = Rule { sparsify: Sparsify::None, sign: Sign::Positive, upper: false };
            let make = |rows: std::ops::Range<u32>| -> Vec<Row> {
                let sink = Sink::new(rule, NODES, rows.collect());
                lift.make::<f64, WIDTH, _>(&pagerank, &sink, &Watch::silent()).unwrap();
                sink.into_rows()
            };
            let rows = make(0..NODES as u32);
            for (i, row) in rows.iter().enumerate() {
                prop_assert_eq!(row.values.len(), NODES);
                for (j, value) in row.values.iter().enumerate() {
                    let error = (value - alpha * expected[(i, j)]).abs();
                    prop_assert!(error <= bound, "({i}, {j}): {error:e} above {bound:e}");
                }
            }
            // Any part of the rows is the same to the last bit.
            prop_assert_eq!(&make(7..29)[..], &rows[7..29]);
        }
    }

    #[test]
    fn a_trial_that_costs_more_than_it_may_is_given_up() {
        let joined = |i: u64, j: u64| crate::splitmix::scramble(64 * i + j).is_multiple_of(8);
        let edges = (0..60u64).flat_map(|i| (0..i).filter(move |&j| joined(i, j)).map(move |j| (i, j)));
        let graph = Graph::from_edges(60, edges, EdgeRule::Undirected).unwrap();
        let transition = Transition::new(&graph);
        let classes = Classes::of(transition.matrix());
        let system = system(&transition, &classes, 0.15);
        assert!(Elimination::of(&system, Budget { steps: 50.0, ..BOUNDLESS }).is_none());
        assert!(Elimination::of(&system, Budget { memory: 1000, ..BOUNDLESS }).is_none());
        assert!(Elimination::of(&system, BOUNDLESS).is_some());
    }
}
