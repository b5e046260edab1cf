//! A few hubs and rows spread evenly over the graph, computed exactly: what the local route measures itself by.

use std::fmt;

use super::{Links, Row};
use crate::chebyshev::{Operator, Series, WIDTH_F64 as WIDTH, Workspace, clenshaw_units};
use crate::kernel::route::Problem;
use crate::sparsify::{Rule, TIE};
use crate::{Error, Watch};

/// The rows of a sample: whole panels.
const ROWS: usize = 4 * WIDTH;
/// The hubs among them.
const HUBS: usize = 4;
/// What the exact rows leave out, as a share of the accuracy.
const SHARE: f64 = 1e-3;
/// How often the cut is halved before the measured error is taken as it is.
const HALVINGS: u32 = 6;

/// The rows of the sample: the largest hubs, where errors are largest, and others spread evenly over the graph.
pub(super) fn rows(links: &Links) -> Vec<u32> {
    let nodes = links.nodes();
    let count = ROWS.min(nodes);
    let mut rows = links.hubs(if nodes > ROWS { HUBS } else { 0 }).to_vec();
    let spread = count - rows.len();
    rows.extend((0..spread).map(|at| ((2 * at + 1) * nodes / (2 * spread)) as u32));
    rows
}

/// The rows whose work counts, which are spread evenly.
pub(super) fn ordinary(links: &Links) -> Vec<u32> {
    rows(links).split_off(if links.nodes() > ROWS { HUBS } else { 0 })
}

/// Bytes of the panels.
pub(super) fn memory(nodes: usize) -> u64 {
    (2 * WIDTH * size_of::<f64>() * nodes) as u64
}

/// What was measured on the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    rows: usize,
    /// The largest error of an entry kept, and of those in rows that are spread evenly.
    error: f64,
    ordinary_error: f64,
    /// Entries that should be kept, and those of them that are, ties counted as equal.
    wanted: usize,
    found: usize,
}

impl Sample {
    pub(super) fn error(&self) -> f64 {
        self.error
    }

    /// Adds a row: what it keeps, and all its exact values.
    fn add(&mut self, row: u32, is_hub: bool, rule: &Rule, kept: &Row, exact: &[f64]) {
        let right = rule.keep_row(row, 0, exact);
        let sizes = right.values.iter().map(|&value| rule.sign.size(value));
        let least = sizes.fold(f64::INFINITY, f64::min) - TIE;
        for (&column, &value) in kept.columns.iter().zip(&kept.values) {
            let expected = exact[column as usize];
            self.error = self.error.max((value - expected).abs());
            if !is_hub {
                self.ordinary_error = self.ordinary_error.max((value - expected).abs());
            }
            self.found += usize::from(rule.sign.size(expected) >= least);
        }
        self.rows += 1;
        self.wanted += right.columns.len();
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.found.min(self.wanted) as f64 / self.wanted.max(1) as f64;
        write!(f, "measured on what {} rows keep, computed exactly; they keep {share:.1} % of ", self.rows)?;
        f.write_str("what they should")
    }
}

/// Halves the `cut` until what `make` keeps of the sample is accurate enough; each panel of rows is computed
/// exactly once, and rows made before the cut was halved are measured as they were. Hubs are measured too, but a
/// few of them do not make the rows of everyone else dearer.
pub(super) fn find_cut(
    problem: &Problem<'_>,
    rule: &Rule,
    links: &Links,
    (mut cut, accuracy): (f64, f64),
    mut make: impl FnMut(f64, u32) -> Row,
    watch: &Watch,
) -> Result<(f64, Sample), Error> {
    let series = Series::of(&problem.recipe.filter, SHARE * accuracy)?;
    let operator = Operator::<f64>::new(&problem.transition);
    let nodes = operator.nodes();
    let mut workspace = Workspace::<f64, WIDTH>::new(nodes);
    let rows = rows(links);
    let hubs = &rows[..if nodes > ROWS { HUBS } else { 0 }];
    let phase = watch.phase("sample of rows", rows.len() as u64);
    let (mut halvings, mut total) = (0, Sample::default());
    let mut exact = vec![0.0; nodes];
    for block in rows.chunks(WIDTH) {
        let units: Vec<(u32, f64)> =
            block.iter().map(|&row| (operator.position(row as usize), 1.0)).collect();
        let panel = clenshaw_units(&operator, series.coefficients(), &units, &mut workspace);
        loop {
            let mut sample = total;
            for (lane, &row) in block.iter().enumerate() {
                (0..nodes).for_each(|vertex| exact[vertex] = panel[operator.position(vertex) as usize][lane]);
                sample.add(row, hubs.contains(&row), rule, &make(cut, row), &exact);
            }
            if sample.ordinary_error <= accuracy || halvings == HALVINGS {
                total = sample;
                break;
            }
            cut *= 0.5;
            halvings += 1;
        }
        phase.advance(block.len() as u64)?;
    }
    Ok((cut, total))
}
