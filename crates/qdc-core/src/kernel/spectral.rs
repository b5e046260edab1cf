//! The spectral route: Q = V P(E) V^T from eigenpairs, a block of rows at a time.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::{BuiltKernel, Kernel, KernelReport, Made, finish};
use crate::chebyshev::{Operator, apply};
use crate::scramble::scramble;
use crate::sparsify::{Row, Rule};
use crate::{Error, Filter, Pairs, Sparsify, Spectrum, Transition, Watch};

/// Rows computed at a time.
const BLOCK: usize = 64;
/// Pairs whose filter is smaller than this are skipped: together they move no entry by more.
const NEGLIGIBLE: f64 = 1e-16;
/// Random probes for the trace of the filter.
const PROBES: usize = 64;

/// The pairs of a spectrum that enter a kernel, with their weights.
struct Weighted<'a> {
    spectrum: &'a Spectrum,
    range: Range<usize>,
    weights: Vec<f64>,
}

impl Kernel {
    pub(super) fn sum_over_pairs(
        &self,
        spectrum: &Spectrum,
        transition: &Transition,
        reason: String,
        watch: &Watch,
    ) -> Result<BuiltKernel, Error> {
        let weighted = self.weigh(spectrum)?;
        let every: Vec<u32> = (0..spectrum.nodes() as u32).collect();
        let rule = self.rule();
        let rows = weighted.rows(&rule, &every, watch)?;
        let report = self.spectral_report(&weighted, transition, reason, watch)?;
        finish::finish(
            rule.assemble(rows),
            report,
            Some(|rule: &Rule, rows: &[u32]| weighted.rows(rule, rows, watch)),
        )
    }

    /// The given rows as each keeps them, from eigenpairs.
    pub(super) fn rows_over_pairs(
        &self,
        spectrum: &Spectrum,
        transition: &Transition,
        reason: String,
        rule: &Rule,
        rows: &[u32],
        watch: &Watch,
    ) -> Result<Made, Error> {
        let weighted = self.weigh(spectrum)?;
        let rows = weighted.rows(rule, rows, watch)?;
        Ok(Made { rows, report: self.spectral_report(&weighted, transition, reason, watch)? })
    }

    /// The pairs asked for, with the filter's value at each.
    fn weigh<'a>(&self, spectrum: &'a Spectrum) -> Result<Weighted<'a>, Error> {
        let range = match self.pairs {
            Pairs::All if spectrum.is_complete() => 0..spectrum.pairs(),
            Pairs::All => {
                let (expected, found) = (spectrum.nodes(), spectrum.pairs());
                return Err(Error::LengthMismatch { what: "pairs of a complete spectrum", expected, found });
            }
            Pairs::Nearest(k) => spectrum.nearest(self.filter.centre().unwrap_or(crate::defaults::MU), k),
        };
        let weights: Vec<f64> = spectrum.eigenvalues()[range.clone()]
            .iter()
            .map(|&energy| self.filter.evaluate(energy))
            .collect();
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite()) {
            return Err(Error::FilterNotFinite {
                filter: self.filter.to_string(),
                energy: spectrum.eigenvalues()[range.start + at],
                value: weights[at],
            });
        }
        Ok(Weighted { spectrum, range, weights })
    }

    fn spectral_report(
        &self,
        weighted: &Weighted<'_>,
        transition: &Transition,
        reason: String,
        watch: &Watch,
    ) -> Result<KernelReport, Error> {
        let Weighted { spectrum, range, weights } = weighted;
        let mut report = KernelReport {
            solver: spectrum.report().solver.to_string(),
            reason,
            error_bound: weighted.error_bound(&self.filter),
            residual_max: Some(spectrum.report().residual_max),
            ..self.blank_report(spectrum.nodes())
        };
        let used: f64 = weights.iter().sum();
        if spectrum.is_complete() {
            let all: f64 = spectrum.eigenvalues().iter().map(|&energy| self.filter.evaluate(energy)).sum();
            report.captured_mass = share(used, all);
        } else {
            let all = trace(&self.filter, transition, watch)?;
            report.captured_mass = share(used, all.max(used));
            report.captured_mass_estimated = true;
        }
        if let Pairs::Nearest(asked) = self.pairs {
            report.pairs = Pairs::Nearest(range.len());
            if asked > spectrum.nodes() {
                let nodes = spectrum.nodes();
                report.warnings.push(format!("{asked} pairs were lowered to the {nodes} there are"));
            }
        }
        Ok(report)
    }
}

impl Weighted<'_> {
    /// The given rows (ascending), in blocks that lie the same whichever rows are asked for, so that their bits do too.
    fn rows(&self, rule: &Rule, rows: &[u32], watch: &Watch) -> Result<Vec<Row>, Error> {
        let nodes = self.spectrum.nodes();
        let used = |weight: &f64| weight.abs() > NEGLIGIBLE;
        let (Some(first), Some(last)) =
            (self.weights.iter().position(used), self.weights.iter().rposition(used))
        else {
            return Ok(vec![Row::default(); rows.len()]);
        };
        let weights = &self.weights[first..=last];
        let start = self.range.start + first;
        let vectors = MatRef::from_column_major_slice(
            &self.spectrum.vectors()[start * nodes..(start + weights.len()) * nodes],
            nodes,
            weights.len(),
        );
        let phase = watch.phase("kernel rows", rows.len() as u64);
        let blocks: Vec<&[u32]> = rows.chunk_by(|a, b| *a as usize / BLOCK == *b as usize / BLOCK).collect();
        let kept = blocks
            .par_iter()
            .map(|block| {
                let top = block[0] as usize / BLOCK * BLOCK;
                let height = BLOCK.min(nodes - top);
                let right = Mat::from_fn(weights.len(), height, |a, r| weights[a] * vectors[(top + r, a)]);
                let product = |columns: Range<usize>| {
                    let mut out = Mat::<f64>::zeros(columns.len(), height);
                    matmul(
                        &mut out,
                        Accum::Replace,
                        vectors.subrows(columns.start, columns.len()),
                        &right,
                        1.0,
                        Par::Seq,
                    );
                    out
                };
                // Above the diagonal always the same product; what lies below only where the rule looks at it.
                let above = product(top..nodes);
                let whole = !rule.upper || matches!(rule.sparsify, Sparsify::TopK(_));
                let below = product(0..if whole { top } else { 0 });
                let kept: Vec<Row> = block
                    .iter()
                    .map(|&row| {
                        let lane = row as usize - top;
                        if whole {
                            let values = [below.col_as_slice(lane), above.col_as_slice(lane)].concat();
                            rule.keep_row(row, 0, &values)
                        } else {
                            rule.keep_row(row, top as u32, above.col_as_slice(lane))
                        }
                    })
                    .collect();
                phase.advance(block.len() as u64)?;
                Ok(kept)
            })
            .collect::<Result<Vec<_>, Error>>()?;
        Ok(kept.into_iter().flatten().collect())
    }

    /// What the residuals and the orthogonality of the pairs allow, to first order.
    ///
    /// With |R| the norm of all residuals: |P'| |R| for the filter's slope, P(edge) |R| / gap for a window that ends at a
    /// gap to the first pair left out (Davis and Kahan), and the largest P times the loss of orthogonality.
    fn error_bound(&self, filter: &Filter) -> f64 {
        let (spectrum, range) = (self.spectrum, &self.range);
        let report = spectrum.report();
        let residuals = report.residual_max.max(f64::EPSILON) * (range.len() as f64).sqrt();
        let grid = |i: i32| filter.evaluate(f64::from(i) / 500.0);
        let slope = (-500..500).map(|i| (grid(i + 1) - grid(i)).abs() * 500.0).fold(0.0, f64::max);
        let largest = self.weights.iter().fold(0.0, |most: f64, weight| most.max(weight.abs()));
        let energies = spectrum.eigenvalues();
        let edge = |inside: Option<usize>, outside: Option<f64>| match (inside, outside) {
            (Some(inside), Some(outside)) => {
                let gap = (energies[inside] - outside).abs().max(f64::EPSILON);
                filter.evaluate(energies[inside]).abs() / gap
            }
            _ => 0.0,
        };
        let below = range.start.checked_sub(1).map(|at| energies[at]);
        let above = energies.get(range.end).copied();
        // Where the spectrum itself is a window, all that is known is how far it is complete.
        let low = below.or((!spectrum.is_complete()).then_some(report.interval[0]).filter(|&end| end > -1.0));
        let high = above.or((!spectrum.is_complete()).then_some(report.interval[1]).filter(|&end| end < 1.0));
        let cut = edge(range.clone().next(), low) + edge(range.clone().last(), high);
        (slope + cut) * residuals + largest * report.orthogonality.max(f64::EPSILON)
    }
}

/// `part / whole`, where that means something.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// An estimate of the trace of P(L): the mean of z^T P(L) z over random sign vectors z from a fixed seed.
fn trace(filter: &Filter, transition: &Transition, watch: &Watch) -> Result<f64, Error> {
    let nodes = transition.nodes();
    let sign = |at: usize| if scramble(at as u64) & 1 == 0 { 1.0 } else { -1.0 };
    let probes: Vec<f64> = (0..nodes * PROBES).map(sign).collect();
    let series = crate::chebyshev::Series::of(filter, 1e-6)?;
    let images = apply(&Operator::new(transition), series.coefficients(), &probes, PROBES, watch)?;
    Ok(probes.iter().zip(&images).map(|(a, b)| a * b).sum::<f64>() / PROBES as f64)
}
