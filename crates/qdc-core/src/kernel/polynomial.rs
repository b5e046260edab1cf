//! The polynomial route: columns of sum_k c_k T_k(L), sixteen at a time.
//!
//! Cost: 2 (entries of L) N (degree) operations, both counted after twins became one; memory: two panels for each thread
//! and what is kept.

use super::stream::{Columns, Lift};
use super::{Kernel, KernelReport, Made, Plan, Precision};
use crate::chebyshev::{Operator, Series, WIDTH_F32, WIDTH_F64, Workspace, clenshaw_units};
use crate::lines::Line;
use crate::sparsify::Rule;
use crate::twins::Classes;
use crate::{Error, Scalar, Watch};

/// The columns on which rounding is measured, and the safety factor for the others.
const PROBES: usize = 16;
const SAFETY: f64 = 16.0;

impl Kernel {
    /// The given rows by the polynomial route.
    pub(super) fn polynomial_rows(
        &self,
        plan: &Plan,
        lift: &Lift<'_>,
        rule: &Rule,
        rows: &[u32],
        watch: &Watch,
    ) -> Result<Made, Error> {
        let series = self.series()?;
        // L on vectors that are constant on classes
        let matrix = lift.classes.reduce(lift.transition.matrix(), |_, other| other);
        let double = Polynomial {
            operator: Operator::<f64>::ordered(&matrix),
            series: &series,
            classes: lift.classes,
        };
        let single =
            Polynomial { operator: double.operator.cast::<f32>(), series: &series, classes: lift.classes };
        let rounding = rounding(&double, &single, self.precision);
        let kept = match self.precision {
            Precision::F64 => lift.keep::<f64, WIDTH_F64, _>(&double, rule, rows, watch),
            Precision::F32 => lift.keep::<f32, WIDTH_F32, _>(&single, rule, rows, watch),
        }?;
        let report = KernelReport {
            solver: "chebyshev".into(),
            reason: plan.reason.clone(),
            degree: Some(series.degree()),
            error_bound: series.tail() + rounding,
            captured_mass: Some(1.0),
            ..self.blank_report(lift.transition.nodes())
        };
        Ok(Made { rows: kept, report })
    }
}

struct Polynomial<'a, T> {
    operator: Operator<T>,
    series: &'a Series,
    classes: &'a Classes,
}

impl<T: Scalar, const W: usize> Columns<T, W> for Polynomial<'_, T> {
    type Workspace = Workspace<T, W>;

    fn workspace(&self) -> Workspace<T, W> {
        Workspace::new(self.operator.nodes())
    }

    fn position(&self, class: u32) -> u32 {
        self.operator.position(class as usize)
    }

    fn panel<'a>(&self, classes: &[u32], workspace: &'a mut Workspace<T, W>) -> &'a mut [Line<T, W>] {
        let unit = |&class: &u32| {
            let share = 1.0 / self.classes.size(class as usize) as f64;
            (self.operator.position(class as usize), share)
        };
        let units: Vec<(u32, f64)> = classes.iter().map(unit).collect();
        clenshaw_units(&self.operator, self.series.coefficients(), &units, workspace)
    }
}

/// An estimate of the largest rounding error of an entry.
///
/// Measured, because a rigorous bound is too large by orders of magnitude: some columns are computed in both
/// precisions; their difference is the rounding of the single one. In double it is smaller by the ratio of the units.
fn rounding(double: &Polynomial<'_, f64>, single: &Polynomial<'_, f32>, precision: Precision) -> f64 {
    let count = double.classes.count();
    let probes = PROBES.min(count);
    let classes: Vec<u32> = (0..probes).map(|i| double.operator.name(i * count / probes)).collect();
    let mut wide: Workspace<f64, PROBES> = double.workspace();
    let mut narrow: Workspace<f32, PROBES> = single.workspace();
    let (exact, rounded) =
        rayon::join(|| double.panel(&classes, &mut wide), || single.panel(&classes, &mut narrow));
    let pairs = exact.iter().flat_map(|line| line.0).zip(rounded.iter().flat_map(|line| line.0));
    let largest = pairs.map(|(a, b)| (a - f64::from(b)).abs()).fold(f64::from(f32::EPSILON), f64::max);
    match precision {
        Precision::F64 => SAFETY * largest * (f64::EPSILON / f64::from(f32::EPSILON)),
        Precision::F32 => SAFETY * largest,
    }
}
