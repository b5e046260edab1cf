//! Rows of Q = V P(E) V^T from eigenpairs and the filter's values at them, a block of rows at a time.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::accelerator::make_pairs_on;
use super::resident::make_whole_of_pairs;
use super::{Accelerator, Resident, Sink};
use crate::sparsify::{Row, Rule};
use crate::{Error, Filter, Sparsify, Spectrum, Watch};

/// Rows computed at a time.
const BLOCK: usize = 64;
/// Pairs whose filter is smaller than this share of the largest are skipped: together they move no entry by
/// more.
const NEGLIGIBLE: f64 = 1e-16;

/// The pairs of a spectrum that enter a kernel, with their weights.
pub(super) struct Weighted<'a> {
    pub(super) spectrum: &'a Spectrum,
    pub(super) range: Range<usize>,
    /// The eigenvalues, within [-1, 1].
    pub(super) energies: Vec<f64>,
    /// How many of the last eigenvalues are exactly 1.
    pub(super) ones: usize,
    /// P at each of them.
    pub(super) weights: Vec<f64>,
}

impl Weighted<'_> {
    /// The largest |P| at the pairs.
    pub(super) fn largest(&self) -> f64 {
        self.weights.iter().fold(0.0, |most, weight| most.max(weight.abs()))
    }

    /// The positions within the range from the first to the last pair that is not skipped.
    pub(super) fn used(&self) -> Range<usize> {
        let least = NEGLIGIBLE * self.largest();
        let used = |weight: &f64| weight.abs() > least;
        match (self.weights.iter().position(used), self.weights.iter().rposition(used)) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..0,
        }
    }

    /// Some of the pairs, by their positions within the range.
    pub(super) fn part(&self, part: Range<usize>) -> Self {
        Self {
            spectrum: self.spectrum,
            range: self.range.start + part.start..self.range.start + part.end,
            energies: self.energies[part.clone()].to_vec(),
            ones: if part.end == self.range.len() { self.ones.min(part.len()) } else { 0 },
            weights: self.weights[part].to_vec(),
        }
    }

    /// The vectors that are not skipped, column after column, and their weights.
    fn parts(&self) -> (&[f64], &[f64]) {
        let (nodes, used) = (self.spectrum.nodes(), self.used());
        let (start, end) = (self.range.start + used.start, self.range.start + used.end);
        (&self.spectrum.vectors()[start * nodes..end * nodes], &self.weights[used])
    }

    /// Makes the rows wanted that nobody has put yet on a device.
    pub(super) fn make_on(&self, device: &dyn Accelerator, sink: &Sink, watch: &Watch) -> Result<(), Error> {
        make_pairs_on(device, self.parts(), sink, watch)
    }

    /// Makes the whole kernel on a device, where it stays.
    pub(super) fn make_whole_on(
        &self,
        device: &dyn Accelerator,
        rule: &Rule,
        watch: &Watch,
    ) -> Result<Option<Box<dyn Resident>>, Error> {
        make_whole_of_pairs(device, self.parts(), (rule, self.spectrum.nodes()), watch)
    }

    /// Makes the rows wanted that nobody has put yet, in blocks that lie the same whichever rows are asked
    /// for, so that their bits do too.
    pub(super) fn make(&self, sink: &Sink, watch: &Watch) -> Result<(), Error> {
        let (nodes, rule) = (self.spectrum.nodes(), sink.rule());
        let (vectors, weights) = self.parts();
        let vectors = MatRef::from_column_major_slice(vectors, nodes, weights.len());
        let places: Vec<usize> = (0..sink.rows().len()).filter(|&place| !sink.is_put(place)).collect();
        let block_of = |place: usize| sink.rows()[place] as usize / BLOCK;
        let blocks: Vec<&[usize]> = places.chunk_by(|&a, &b| block_of(a) == block_of(b)).collect();
        let phase = watch.phase("kernel rows", places.len() as u64);
        blocks.par_iter().try_for_each(|block| {
            let top = block_of(block[0]) * BLOCK;
            let height = BLOCK.min(nodes - top);
            let right = Mat::from_fn(weights.len(), height, |a, r| weights[a] * vectors[(top + r, a)]);
            let product = |columns: Range<usize>| {
                let mut out = Mat::<f64>::zeros(columns.len(), height);
                let left = vectors.subrows(columns.start, columns.len());
                matmul(&mut out, Accum::Replace, left, &right, 1.0, Par::Seq);
                out
            };
            // Above the diagonal always the same product; what lies below only where the rule looks at it.
            let above = product(top..nodes);
            let whole = !rule.upper || matches!(rule.sparsify, Sparsify::TopK(_));
            let below = product(0..if whole { top } else { 0 });
            for &place in *block {
                let row = sink.rows()[place];
                let lane = row as usize - top;
                let kept: Row = if whole {
                    let values = [below.col_as_slice(lane), above.col_as_slice(lane)].concat();
                    rule.keep_row(row, 0, &values)
                } else {
                    rule.keep_row(row, top as u32, above.col_as_slice(lane))
                };
                sink.put_kept(place, kept);
            }
            phase.advance(block.len() as u64)
        })
    }

    /// What residuals and loss of orthogonality do to first order: |P'| at the eigenvalues times the norm of
    /// all residuals, and the largest P times the loss of orthogonality. The gap beside the window is left
    /// out.
    pub(super) fn error_estimate(&self, filter: &Filter) -> f64 {
        let report = self.spectrum.report();
        let residuals = report.residual_max.max(f64::EPSILON) * (self.range.len() as f64).sqrt();
        let slope = |energy: f64| {
            let (low, high) = ((energy - residuals).max(-1.0), (energy + residuals).min(1.0));
            let chord = || (filter.evaluate(high) - filter.evaluate(low)).abs() / (high - low);
            filter.steepest(low, high).unwrap_or_else(chord)
        };
        let uncertain = &self.energies[..self.energies.len() - self.ones];
        let steepest = uncertain.iter().map(|&energy| slope(energy)).fold(0.0, f64::max);
        steepest * residuals + self.largest() * report.orthogonality.max(f64::EPSILON)
    }
}
