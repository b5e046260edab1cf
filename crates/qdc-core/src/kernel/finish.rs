//! From kept entries to the finished kernel: normalisation, the counts of the report, and warnings.

use super::{BuiltKernel, Kernel, KernelReport};
use crate::sparsify::{Row, Rule};
use crate::{Csr, Error, Sign, Sparsify};

/// Rows looked at to say which epsilon would keep one percent.
const SAMPLED_ROWS: usize = 64;

impl Kernel {
    /// The report of what was asked for, before anything was done.
    pub(super) fn blank_report(&self, nodes: usize) -> KernelReport {
        KernelReport {
            nodes,
            entries: 0,
            density: 0.0,
            filter: self.filter.name().to_owned(),
            parameters: self.filter.parameters(),
            pairs: self.pairs,
            solver: String::new(),
            reason: String::new(),
            degree: None,
            error_bound: 0.0,
            residual_max: None,
            captured_mass: None,
            captured_mass_estimated: false,
            empty_rows: 0,
            sparsify: self.sparsify,
            sign: self.sign,
            normalize: self.normalize,
            self_loop: self.self_loop,
            precision: self.precision,
            warnings: self.filter.warnings(),
        }
    }
}

/// The type of a missing `sample`.
pub(super) type NoSample = fn(&Rule, &[u32]) -> Result<Vec<Row>, Error>;

/// Normalises and completes the report; `sample` makes some rows again by another rule, where advice needs it.
pub(super) fn finish(
    mut matrix: Csr<f64>,
    mut report: KernelReport,
    sample: Option<impl FnOnce(&Rule, &[u32]) -> Result<Vec<Row>, Error>>,
) -> Result<BuiltKernel, Error> {
    let nodes = matrix.rows();
    let improper = report.normalize.apply(&mut matrix, report.sign);
    if improper > 0 {
        report.warnings.push(format!(
                "{improper} rows have entries but no positive row sum and became 0; degrees exist with --sign absolute"
            ));
    }
    report.entries = matrix.entries();
    report.density = matrix.density();
    report.empty_rows = (0..nodes).filter(|&row| matrix.row(row).0.is_empty()).count();
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
