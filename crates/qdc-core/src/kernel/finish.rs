//! From kept entries to the finished kernel: normalisation, the counts of the report, and warnings.

use super::{Account, BuiltKernel, KernelReport, Recipe};
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

/// Counts the entries of some rows, the first of which is row `start` of the kernel.
pub(super) fn count(report: &mut KernelReport, matrix: &Csr<f64>, start: usize) {
    report.entries = matrix.entries();
    report.density = matrix.density();
    report.entries_per_row = matrix.entries() as f64 / matrix.rows() as f64;
    report.empty_rows = (0..matrix.rows()).filter(|&row| matrix.row(row).0.is_empty()).count();
    let all: f64 = matrix.values().iter().map(|value| value.abs()).sum();
    let own = |row: usize| matrix.get(row, (start + row) as u32).unwrap_or(0.0).abs();
    let diagonal: f64 = (0..matrix.rows()).map(own).sum();
    report.diagonal_share = (all > 0.0).then(|| diagonal / all);
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
    if improper > 0 {
        report.warnings.push(format!(
            "{improper} rows have entries but no positive row sum and became 0; with the sign rule `absolute` every \
             row has one"
        ));
    }
    match report.sparsify {
        Sparsify::Epsilon(epsilon) if report.entries == 0 => {
            let mut warning = format!("epsilon {epsilon} keeps nothing");
            if let Some(sample) = sample {
                let rule = Rule { sparsify: Sparsify::None, sign: report.sign, upper: false };
                warning += &keeps_one_percent(report.sign, sample(&rule, &sampled(nodes))?);
            }
            report.warnings.push(warning);
        }
        Sparsify::TopK(k) if k > nodes => {
            report.sparsify = Sparsify::TopK(nodes);
            report.warnings.push(format!("top-k {k} was lowered to the {nodes} vertices there are"));
        }
        _ => {}
    }
    Ok(BuiltKernel { matrix, report })
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
