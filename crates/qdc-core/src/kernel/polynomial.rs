//! The polynomial route: columns of sum_k c_k T_k(L), sixteen at a time.
//!
//! Cost: 2 (entries of L) N (degree) operations, both counted after twins became one; memory: two panels for
//! each thread and what is kept.

use std::cell::LazyCell;
use std::sync::Arc;

use super::accuracy::{UNIT, clenshaw_rounding, twin_rounding};
use super::panels::{Columns, Lift};
use super::route::Problem;
use super::{Accelerator, Account, Accuracy, MadeWhole, Plan, Precision, Recipe, RowMaker, Sink};
use crate::chebyshev::{Operator, Series, WIDTH_F32, WIDTH_F64, Workspace, clenshaw_units};
use crate::simd::Line;
use crate::twins::Classes;
use crate::{Csr, Error, Filter, Pairs, Scalar, Transition, Watch};

/// The columns on which rounding is measured, and the safety factor for the others.
const PROBES: usize = 16;
const SAFETY: f64 = 16.0;

/// The route, ready for a problem.
struct Polynomial {
    plan: Plan,
    filter: Filter,
    precision: Precision,
    series: Series,
    transition: Arc<Transition>,
    classes: Arc<Classes>,
    device: Option<Arc<dyn Accelerator>>,
}

/// Prepares the route: finds the series and counts what it takes.
pub(super) fn offer(problem: &Problem<'_>, _: &Watch) -> Result<Box<dyn RowMaker>, Error> {
    if problem.recipe.pairs != Pairs::All {
        return Err(Error::NoEigenpairs);
    }
    let series = series(problem.recipe)?;
    let classes = problem.classes();
    let count = classes.count() as u64;
    let entries = classes.entries(problem.transition.matrix()) as u64;
    let precision = problem.recipe.precision;
    let width = if precision == Precision::F64 { WIDTH_F64 * 8 } else { WIDTH_F32 * 4 } as u64;
    let panels = 2 * width * count * rayon::current_num_threads() as u64;
    // In single precision an operation takes half the time.
    let pace = if precision == Precision::F64 { 1.0 } else { 0.5 };
    let degree = series.degree();
    let flops = pace * 2.0 * entries as f64 * count as f64 * degree as f64;
    let device = problem.resources.accelerator.clone().filter(|device| device.takes(flops));
    let plan = Plan {
        route: problem.route,
        reason: format!(
            "{}a series of degree {degree} reaches the tolerance without eigenpairs{}",
            problem.asked(),
            device.as_ref().map_or(String::new(), |device| format!(", on {}", device.name()))
        ),
        degree: Some(degree),
        flops,
        memory: panels + 24 * entries,
    };
    Ok(Box::new(Polynomial {
        plan,
        filter: problem.recipe.filter.clone(),
        precision,
        series,
        transition: Arc::clone(&problem.transition),
        classes,
        device,
    }))
}

/// The Chebyshev series for the tolerance and precision asked for.
fn series(recipe: &Recipe) -> Result<Series, Error> {
    // The tail takes a hundredth: dividing by small degrees enlarges errors, and a few more terms cost
    // little. Single precision cannot profit from a tail below 1e-8.
    let tail = match recipe.precision {
        Precision::F64 => 0.01 * recipe.allowed(),
        Precision::F32 => (0.01 * recipe.allowed()).max(1e-8),
    };
    Series::of(&recipe.filter, tail)
}

impl Polynomial {
    /// What the series leaves out, and all rounding; `None` for a custom filter, or where it proves nothing
    /// because it is no smaller than the entries can be.
    fn proved(&self) -> Option<Accuracy> {
        let matrix = self.transition.matrix();
        let unit = if self.precision == Precision::F64 { UNIT } else { f64::from(f32::EPSILON) / 2.0 };
        let longest = (0..matrix.rows()).map(|row| matrix.row(row).0.len()).max().unwrap_or(0);
        // Twice: the matrix of the classes is itself rounded.
        let bound = self.series.tail()
            + self.series.rounding()?
            + clenshaw_rounding(&self.series, 2 * longest, unit)
            + twin_rounding(&self.filter, unit)?;
        (bound < self.filter.largest()?).then(|| Accuracy::proved(bound))
    }

    /// L on vectors that are constant on classes.
    fn matrix(&self) -> Csr<f64> {
        self.classes.reduce(self.transition.matrix(), |_, other| other)
    }

    fn lift(&self) -> Lift<'_> {
        Lift { transition: &self.transition, classes: &self.classes, filter: &self.filter }
    }

    fn recurrence<T>(&self, operator: Operator<T>) -> Recurrence<'_, T> {
        Recurrence { operator, series: &self.series, classes: &self.classes }
    }

    /// What is said of the rows; `measured` is asked where rounding is not proved.
    fn account(&self, measured: impl FnOnce() -> f64) -> Account {
        let accuracy = self.proved().unwrap_or_else(|| {
            let how = "what the series leaves out, and rounding measured on sixteen columns, times 16";
            Accuracy::estimated(self.series.tail() + measured(), how)
        });
        Account { precision: self.precision, ..Account::new(self.plan(), accuracy) }
    }
}

impl RowMaker for Polynomial {
    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn make(&self, sink: &Sink, watch: &Watch) -> Result<Account, Error> {
        let (matrix, lift) = (self.matrix(), self.lift());
        // Not needed where a device makes all rows and the error is proved.
        let double = LazyCell::new(|| self.recurrence(Operator::<f64>::ordered(&matrix)));
        let single = LazyCell::new(|| self.recurrence(double.operator.cast::<f32>()));
        if let Some(device) = &self.device {
            let work = (&matrix, self.series.coefficients(), self.precision);
            match lift.make_on(&**device, work, sink, watch) {
                Err(Error::Device { problem }) if device.yields() => {
                    watch.note(&format!("the rest on the CPU: {problem}"));
                }
                other => other?,
            }
        }
        // What the device has made is not made again.
        match self.precision {
            _ if sink.is_full() => {}
            Precision::F64 => lift.make::<f64, WIDTH_F64, _>(&*double, sink, watch)?,
            Precision::F32 => lift.make::<f32, WIDTH_F32, _>(&*single, sink, watch)?,
        }
        Ok(self.account(|| rounding(&double, &single, self.precision)))
    }

    fn resident(&self, recipe: &Recipe, watch: &Watch) -> Result<Option<MadeWhole>, Error> {
        let Some(device) = &self.device else { return Ok(None) };
        let (matrix, lift) = (self.matrix(), self.lift());
        let work = (&matrix, self.series.coefficients(), self.precision);
        let made = lift.make_whole_on(&**device, work, &recipe.rule(), watch)?;
        let measured = || {
            let double = self.recurrence(Operator::<f64>::ordered(&matrix));
            let single = self.recurrence(double.operator.cast::<f32>());
            rounding(&double, &single, self.precision)
        };
        Ok(made.map(|kernel| (kernel, self.account(measured))))
    }
}

/// Columns of the series in L.
struct Recurrence<'a, T> {
    operator: Operator<T>,
    series: &'a Series,
    classes: &'a Classes,
}

impl<T: Scalar, const W: usize> Columns<T, W> for Recurrence<'_, T> {
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
/// precisions; their difference is the rounding of the single one. In double it is smaller by the ratio of
/// the units.
fn rounding(double: &Recurrence<'_, f64>, single: &Recurrence<'_, f32>, precision: Precision) -> f64 {
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
