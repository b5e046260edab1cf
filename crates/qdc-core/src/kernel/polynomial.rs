//! The polynomial route: columns of sum_k c_k T_k(L), sixteen at a time, each block sparsified before the next.
//!
//! Q is symmetric, so a block of columns is a block of rows, and what is kept streams straight into the result. Cost:
//! 2 (entries of L) N (degree) operations; memory: two panels for each thread and what is kept.

use rayon::prelude::*;

use super::{Kernel, KernelReport, Plan, Precision, Route};
use crate::chebyshev::{Operator, Series, WIDTH_F32, WIDTH_F64, Workspace, clenshaw_units};
use crate::sparsify::{Row, Rule};
use crate::{Error, Scalar, Transition, Watch};

/// Rows as kept by a route, in the order asked for, and the route's part of the report.
pub(super) struct Made {
    pub(super) rows: Vec<Row>,
    pub(super) report: KernelReport,
}

/// The columns on which rounding is measured, and the safety factor for the others.
const PROBES: usize = 16;
const SAFETY: f64 = 16.0;

impl Kernel {
    /// The given rows by the plan's route.
    pub(super) fn make_rows(
        &self,
        plan: &Plan,
        transition: &Transition,
        rule: &Rule,
        rows: &[u32],
        watch: &Watch,
    ) -> Result<Made, Error> {
        if plan.route == Route::Inverse {
            return self.inverse_rows(plan, transition, rule, rows, watch);
        }
        let series = self.series()?;
        let operator = Operator::<f64>::new(transition);
        let single = operator.cast::<f32>();
        let rounding = rounding(&operator, &single, &series, self.precision);
        let kept = match self.precision {
            Precision::F64 => keep::<f64, WIDTH_F64>(&operator, &series, rule, rows, watch),
            Precision::F32 => keep::<f32, WIDTH_F32>(&single, &series, rule, rows, watch),
        }?;
        let report = KernelReport {
            solver: "chebyshev".into(),
            reason: plan.reason.clone(),
            degree: Some(series.degree()),
            error_bound: series.tail() + rounding,
            captured_mass: Some(1.0),
            ..self.blank_report(transition.nodes())
        };
        Ok(Made { rows: kept, report })
    }
}

fn keep<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    series: &Series,
    rule: &Rule,
    rows: &[u32],
    watch: &Watch,
) -> Result<Vec<Row>, Error> {
    // Columns that are neighbours in the operator's order share a block, so that early terms stay local.
    let mut by_position: Vec<usize> = (0..rows.len()).collect();
    by_position.sort_unstable_by_key(|&at| operator.position(rows[at] as usize));
    let phase = watch.phase("kernel rows", rows.len() as u64);
    let blocks = by_position
        .par_chunks(W)
        .map_init(
            || Workspace::<T, W>::new(operator.nodes()),
            |workspace, block| {
                let names: Vec<u32> = block.iter().map(|&at| rows[at]).collect();
                let units: Vec<u32> = names.iter().map(|&name| operator.position(name as usize)).collect();
                let panel = clenshaw_units(operator, series.coefficients(), &units, workspace);
                let kept = rule.keep_panel(&names, operator.positions(), panel);
                phase.advance(block.len() as u64)?;
                Ok(kept)
            },
        )
        .collect::<Result<Vec<_>, Error>>()?;
    let mut kept = vec![Row::default(); rows.len()];
    for (&at, row) in by_position.iter().zip(blocks.into_iter().flatten()) {
        kept[at] = row;
    }
    Ok(kept)
}

/// An estimate of the largest rounding error of an entry.
///
/// Measured, because a rigorous bound is too large by orders of magnitude: some columns are computed in both
/// precisions; their difference is the rounding of the single one. In double it is smaller by the ratio of the units.
fn rounding(double: &Operator<f64>, single: &Operator<f32>, series: &Series, precision: Precision) -> f64 {
    let nodes = double.nodes();
    let mut units: Vec<u32> =
        (0..PROBES.min(nodes)).map(|i| (i * nodes / PROBES.min(nodes)) as u32).collect();
    units.dedup();
    let mut wide = Workspace::<f64, PROBES>::new(nodes);
    let mut narrow = Workspace::<f32, PROBES>::new(nodes);
    let exact = clenshaw_units(double, series.coefficients(), &units, &mut wide);
    let rounded = clenshaw_units(single, series.coefficients(), &units, &mut narrow);
    let pairs = exact.iter().flat_map(|line| line.0).zip(rounded.iter().flat_map(|line| line.0));
    let largest = pairs.map(|(a, b)| (a - f64::from(b)).abs()).fold(f64::from(f32::EPSILON), f64::max);
    match precision {
        Precision::F64 => SAFETY * largest * (f64::EPSILON / f64::from(f32::EPSILON)),
        Precision::F32 => SAFETY * largest,
    }
}
