//! A few hubs and rows spread evenly over the graph, computed exactly: what the local route measures itself by.

use std::fmt;

use rayon::prelude::*;

use super::{Cut, Links, Row, Walker};
use crate::chebyshev::{Operator, Series, WIDTH_F64 as WIDTH, Workspace, clenshaw_units};
use crate::kernel::route::Problem;
use crate::sparsify::{Rule, TIE};
use crate::{Csr, Error, Watch};

/// The rows of a sample: whole panels.
const ROWS: usize = 4 * WIDTH;
/// The hubs among them, at most.
const HUBS: usize = 4;
/// What the exact rows leave out, as a share of the accuracy.
const SHARE: f64 = 0.01;
/// The share of the accuracy that the sample may be off by: other rows are off by a little more.
const SURE: f64 = 0.9;
/// What a cut is multiplied by if the sample is off by more.
const STEP: f64 = 0.85;
/// The share of the first cut, and of its share for hubs, at which the measured error is taken as it is.
const LEAST: f64 = 1.0 / 64.0;

/// The rows of the sample: hubs, where errors are largest, and others spread evenly over the graph.
fn rows(links: &Links) -> Vec<u32> {
    let mut rows = if links.nodes() > ROWS { links.hubs(HUBS) } else { Vec::new() };
    rows.extend(spread(links, ROWS - rows.len()));
    rows
}

/// The rows whose work counts, which are spread evenly.
pub(super) fn ordinary(links: &Links) -> Vec<u32> {
    spread(links, ROWS - HUBS).collect()
}

/// Vertices spread evenly over the graph, all of them if there are no more.
fn spread(links: &Links, most: usize) -> impl Iterator<Item = u32> {
    let nodes = links.nodes();
    let count = most.min(nodes);
    (0..count).map(move |at| ((2 * at + 1) * nodes / (2 * count)) as u32)
}

/// Bytes of L, as it is and in the order of the panels (four times, as ordering it takes twice what it gives), and for
/// each panel at work of two of them, a row, and `walker`.
pub(super) fn memory(matrix: &Csr<f64>, walker: u64) -> u64 {
    let (nodes, entries) = (matrix.rows() as u64, matrix.entries() as u64);
    let at_once = rayon::current_num_threads().min(ROWS / WIDTH) as u64;
    let panels = (2 * WIDTH + 1) as u64 * 8 * nodes;
    4 * (12 * entries + 8 * nodes) + at_once * (panels + walker)
}

/// What was measured on the sample.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Sample {
    rows: usize,
    /// The largest error of an entry that a hub keeps, and that another row keeps.
    hub_error: f64,
    ordinary_error: f64,
    /// Entries that should be kept, and those of them that are, ties counted as equal.
    wanted: usize,
    found: usize,
}

impl Sample {
    pub(super) fn error(&self) -> f64 {
        self.hub_error.max(self.ordinary_error)
    }

    /// A row: what it keeps, and all its exact values.
    fn of(row: u32, is_hub: bool, rule: &Rule, kept: &Row, exact: &[f64]) -> Self {
        let right = rule.keep_row(row, 0, exact);
        let sizes = right.values.iter().map(|&value| rule.sign.size(value));
        let least = sizes.fold(f64::INFINITY, f64::min) - TIE;
        let truth = || kept.columns.iter().map(|&column| exact[column as usize]);
        let error = kept.values.iter().zip(truth()).map(|(&value, truth)| (value - truth).abs());
        let error = error.fold(0.0, f64::max);
        let found = truth().filter(|&truth| rule.sign.size(truth) >= least).count();
        let (hub_error, ordinary_error) = if is_hub { (error, 0.0) } else { (0.0, error) };
        Self { rows: 1, hub_error, ordinary_error, wanted: right.columns.len(), found }
    }

    /// Two samples together.
    fn with(self, other: Self) -> Self {
        Self {
            rows: self.rows + other.rows,
            hub_error: self.hub_error.max(other.hub_error),
            ordinary_error: self.ordinary_error.max(other.ordinary_error),
            wanted: self.wanted + other.wanted,
            found: self.found + other.found,
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = 100.0 * self.found.min(self.wanted) as f64 / self.wanted.max(1) as f64;
        write!(f, "measured on what {} rows keep, computed exactly; they keep {share:.1} % of ", self.rows)?;
        f.write_str("what they should")
    }
}

/// The largest cut at which each row of the sample is accurate enough, found by lowering the `first`; and what the rows
/// are off by at the cut of each. A hub lowers the share of hubs: a few of them do not make the rows of everyone else
/// dearer.
pub(super) fn find_cut(
    problem: &Problem<'_>,
    rule: &Rule,
    links: &Links,
    (first, accuracy): (Cut, f64),
    make: impl Fn(&mut Walker, Cut, u32) -> Row + Sync,
    watch: &Watch,
) -> Result<(Cut, Sample), Error> {
    let series = Series::of(&problem.recipe.filter, SHARE * accuracy)?;
    let operator = Operator::<f64>::new(&problem.transition);
    let nodes = operator.nodes();
    let rows = rows(links);
    let phase = watch.phase("sample of rows", rows.len() as u64);
    let lower = |cut: Cut, is_hub: bool| match is_hub {
        true => Cut { hubs: STEP * cut.hubs, ..cut },
        false => Cut { all: STEP * cut.all, ..cut },
    };
    let is_least = |cut: Cut| cut.all < LEAST * first.all || cut.hubs < LEAST * first.hubs;
    let measure = |block: &[u32]| {
        let units: Vec<(u32, f64)> =
            block.iter().map(|&row| (operator.position(row as usize), 1.0)).collect();
        let (mut workspace, mut walker) = (Workspace::<f64, WIDTH>::new(nodes), Walker::new(links));
        let panel = clenshaw_units(&operator, series.coefficients(), &units, &mut workspace);
        let mut exact = vec![0.0; nodes];
        let (mut lowest, mut total) = (first, Sample::default());
        for (lane, &row) in block.iter().enumerate() {
            (0..nodes).for_each(|vertex| exact[vertex] = panel[operator.position(vertex) as usize][lane]);
            let (mut cut, is_hub) = (first, links.is_hub(row));
            let sample = loop {
                let sample = Sample::of(row, is_hub, rule, &make(&mut walker, cut, row), &exact);
                if sample.error() <= SURE * accuracy || is_least(cut) {
                    break sample;
                }
                cut = lower(cut, is_hub);
            };
            lowest = lowest.least(cut);
            total = total.with(sample);
        }
        phase.advance(block.len() as u64)?;
        Ok((lowest, total))
    };
    let both = |a: (Cut, Sample), b: (Cut, Sample)| Ok((a.0.least(b.0), a.1.with(b.1)));
    rows.par_chunks(WIDTH).map(measure).try_reduce(|| (first, Sample::default()), both)
}
