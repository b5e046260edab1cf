//! From kept entries to the finished kernel: normalisation, the counts of the report, and warnings.

use rayon::prelude::*;

use super::{Account, BuiltKernel, KernelReport, Recipe, RowSums};
use crate::normalize::Scales;
use crate::sparsify::{Row, Rule};
use crate::{Csr, Error, Sign, Sparsify};

/// Rows looked at to say which epsilon would keep one percent.
const SAMPLED_ROWS: usize = 64;

/// The report of a kernel before its entries are counted.
pub(super) fn report(recipe: &Recipe, nodes: usize, account: Account) -> KernelReport {
    KernelReport {
        nodes,
        entries: 0,
        density: 0.0,
        entries_per_row: 0.0,
        diagonal_share: None,
        filter: recipe.filter.name().to_owned(),
        parameters: recipe.filter.parameters(),
        pairs: account.pairs,
        solver: account.route,
        reason: account.reason,
        degree: account.degree,
        error_bound: account.accuracy.bound,
        error_estimate: account.accuracy.estimate,
        error_estimate_how: account.accuracy.how,
        residual_max: account.residual_max,
        captured_mass: account.captured_mass,
        captured_mass_estimated: account.captured_mass_estimated,
        empty_rows: 0,
        sparsify: recipe.sparsify,
        sign: recipe.sign,
        normalize: recipe.normalize,
        self_loop: recipe.self_loop,
        precision: account.precision,
        warnings: recipe.filter.warnings().into_iter().chain(account.warnings).collect(),
    }
}

/// Counts of the entries of a kernel, or of some rows of it.
#[derive(Debug, Default)]
pub(super) struct Totals {
    entries: usize,
    empty: Vec<bool>,
    /// Sums of magnitudes: of all entries, and of the diagonal.
    all: f64,
    diagonal: f64,
}

impl Totals {
    /// The counts of a kernel whose rows were summed up.
    pub(super) fn of(pointers: &[usize], sums: &RowSums) -> Self {
        let mut totals = Self::default();
        let lengths = pointers.windows(2).map(|row| row[1] - row[0]);
        for ((length, &all), &diagonal) in lengths.zip(&sums.magnitudes).zip(&sums.diagonal) {
            totals.add_row(length, all, diagonal);
        }
        totals
    }

    /// Adds some rows, the first of which is row `start` of the kernel.
    pub(super) fn add(&mut self, matrix: &Csr<f64>, start: usize) {
        let sums = |row: usize| {
            let (columns, values) = matrix.row(row);
            let all: f64 = values.iter().map(|value| value.abs()).sum();
            (columns.len(), all, matrix.get(row, (start + row) as u32).unwrap_or(0.0).abs())
        };
        let sums: Vec<_> = (0..matrix.rows()).into_par_iter().map(sums).collect();
        sums.into_iter().for_each(|(length, all, diagonal)| self.add_row(length, all, diagonal));
    }

    /// Adds a row of so many entries; row by row, so that the sums do not depend on who made them.
    fn add_row(&mut self, length: usize, all: f64, diagonal: f64) {
        self.entries += length;
        self.empty.push(length == 0);
        self.all += all;
        self.diagonal += diagonal;
    }

    /// Puts the counts into a report.
    pub(super) fn put(&self, report: &mut KernelReport) {
        let rows = self.empty.len() as f64;
        let cells = rows * report.nodes as f64;
        report.entries = self.entries;
        report.density = if cells == 0.0 { 0.0 } else { self.entries as f64 / cells };
        report.entries_per_row = self.entries as f64 / rows;
        report.empty_rows = self.empty.iter().filter(|empty| **empty).count();
        report.diagonal_share = (self.all > 0.0).then(|| self.diagonal / self.all);
    }

    /// How many rows have entries but no positive degree.
    pub(super) fn improper(&self, scales: &Scales) -> usize {
        self.empty.iter().enumerate().filter(|&(row, empty)| !empty && scales.is_improper(row)).count()
    }
}

/// Counts the entries of some rows, the first of which is row `start` of the kernel.
pub(super) fn count(report: &mut KernelReport, matrix: &Csr<f64>, start: usize) {
    let mut totals = Totals::default();
    totals.add(matrix, start);
    totals.put(report);
}

/// The type of a missing `sample`.
pub(super) type NoSample = fn(&Rule, &[u32]) -> Result<Vec<Row>, Error>;

/// Normalises and completes the report; `sample` makes some rows again by another rule, where advice needs
/// it.
pub(super) fn finish(
    mut matrix: Csr<f64>,
    mut report: KernelReport,
    sample: Option<impl FnOnce(&Rule, &[u32]) -> Result<Vec<Row>, Error>>,
) -> Result<BuiltKernel, Error> {
    let nodes = matrix.rows();
    count(&mut report, &matrix, 0);
    let improper = report.normalize.apply(&mut matrix, report.sign);
    let mut advice = None;
    if let (Sparsify::Epsilon(_), 0, Some(sample)) = (report.sparsify, report.entries, sample) {
        let rule = Rule { sparsify: Sparsify::None, sign: report.sign, upper: false };
        advice = Some(keeps_one_percent(report.sign, sample(&rule, &sampled(nodes))?));
    }
    complete(&mut report, improper, advice);
    Ok(BuiltKernel { matrix, report })
}

/// Warns of what is probably not meant: of `improper` rows, of a threshold that keeps nothing (with `advice` on
/// another), of a k beyond the vertices.
pub(super) fn complete(report: &mut KernelReport, improper: usize, advice: Option<String>) {
    if improper > 0 {
        report.warnings.push(format!(
            "{improper} rows have entries but no positive row sum and became 0; with the sign rule `absolute` every \
             row has one"
        ));
    }
    match report.sparsify {
        Sparsify::Epsilon(epsilon) if report.entries == 0 => {
            let advice = advice.unwrap_or_default();
            report.warnings.push(format!("epsilon {epsilon} keeps nothing{advice}"));
        }
        Sparsify::TopK(k) if k > report.nodes => {
            let nodes = report.nodes;
            report.sparsify = Sparsify::TopK(nodes);
            report.warnings.push(format!("top-k {k} was lowered to the {nodes} vertices there are"));
        }
        _ => {}
    }
}

/// Rows spread evenly over the graph.
fn sampled(nodes: usize) -> Vec<u32> {
    let count = SAMPLED_ROWS.min(nodes);
    (0..count).map(|i| (i * nodes / count) as u32).collect()
}

fn keeps_one_percent(sign: Sign, rows: Vec<Row>) -> String {
    let mut sizes: Vec<f64> =
        rows.into_iter().flat_map(|row| row.values).map(|value| sign.size(value)).collect();
    sizes.sort_unstable_by(|a, b| b.total_cmp(a));
    let largest = sizes.first().copied().unwrap_or(0.0);
    match sizes.get(sizes.len() / 100).copied() {
        Some(epsilon) if epsilon > 0.0 => {
            format!("; about {epsilon:.3e} would keep one percent of the entries")
        }
        _ if largest > 0.0 => {
            format!(
                "; fewer than one percent of the entries are positive; the largest is about {largest:.3e}"
            )
        }
        _ => "; no entry is positive".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_on_epsilon_tells_what_would_keep_something() {
        let advice = |values: Vec<f64>| {
            let columns = (0..values.len() as u32).collect();
            keeps_one_percent(Sign::Positive, vec![Row { columns, values }])
        };
        assert!(advice(vec![0.25; 10]).contains("about 2.500e-1 would keep one percent"));
        let mut few = vec![-1.0; 200];
        few[7] = 0.125;
        assert!(advice(few).contains("the largest is about 1.250e-1"));
        assert!(advice(vec![-1.0, 0.0]).contains("no entry is positive"));
    }
}
