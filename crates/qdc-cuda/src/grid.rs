//! How work is cut: the grids and blocks of kernels, and the parts of gradients. It depends on the network
//! and its matrices, and not on the batch: so do the orders of all sums.

use std::ops::Range;

use qdc_nn::program::{Operation, Program, Stage};

use crate::Error;
use crate::matrices::counted;
use crate::state::Site;

/// Threads of a block.
pub(crate) const THREADS: u32 = 256;

/// Groups of heads, as kernels take them: of four, then of one.
pub(crate) fn groups(heads: u32) -> u32 {
    heads / 4 + heads % 4
}

/// Rows whose sum is one part of a gradient: at most 64 parts.
pub(crate) fn rows_of_a_part(rows: u32) -> u32 {
    rows.div_ceil(64).max(256)
}

/// Terms of an inner product that are one part of a gradient: at most 32 parts.
pub(crate) fn inner_of_a_part(inner: u32) -> u32 {
    inner.div_ceil(32).next_multiple_of(16).max(512)
}

/// Parts of the gradient of a bias over so many rows.
pub(crate) fn bias_parts(rows: u32) -> u32 {
    rows.div_ceil(rows_of_a_part(rows))
}

/// Parts of the gradient of a matrix over so many rows.
pub(crate) fn matrix_parts(rows: u32) -> u32 {
    rows.div_ceil(inner_of_a_part(rows))
}

/// Where the gradients of parameters lie in parts.
#[derive(Default)]
pub(crate) struct Sites {
    sites: Vec<Site>,
    offset: u64,
}

impl Sites {
    /// Parameters whose gradient is `factor` times the sum of `parts`.
    pub(crate) fn add(&mut self, range: &Range<usize>, parts: u32, factor: f32) {
        if range.is_empty() {
            return;
        }
        let (begin, length, offset) = (range.start as u32, range.len() as u32, self.offset as u32);
        self.sites.push(Site { begin, length, offset, parts, group: 0, factor });
        self.offset += u64::from(length) * u64::from(parts);
    }

    /// The parameters of a layer.
    pub(crate) fn add_stage(&mut self, stage: &Stage<f32>, rows: u32) {
        let parts = match stage.operation {
            Operation::Linear { .. } => matrix_parts(rows),
            Operation::Attention { .. } => bias_parts(rows),
            _ => 1,
        };
        self.add(&stage.theta, parts, 1.0);
        if let Some(activate) = &stage.activate {
            self.add(&activate.bias, bias_parts(rows), 1.0);
        }
    }

    /// In the order of the parameters, with numbers in all.
    pub(crate) fn finish(mut self) -> Result<(Vec<Site>, u64), Error> {
        counted("parts of a gradient", self.offset)?;
        self.sites.sort_by_key(|site| site.begin);
        Ok((self.sites, self.offset))
    }
}

/// The sites of a network of towers.
pub(crate) fn sites(program: &Program<f32>) -> Sites {
    let mut sites = Sites::default();
    let stages = program.towers.iter().flatten().chain(&program.readout);
    stages.for_each(|stage| sites.add_stage(stage, program.nodes as u32));
    sites
}

/// The grid and block of a kernel over the entries of rows: threads x are groups of four columns, y parts of
/// a row, z rows. Long rows are cut into more parts; it depends on the matrix and not on the batch.
pub(crate) fn spread(chunks: u32, rows: u32, entries: u64, runs: u32) -> ((u32, u32, u32), (u32, u32, u32)) {
    let across = chunks.clamp(1, 64);
    let average = (entries / u64::from(rows.max(1))) as u32;
    let below = |number: u32| 1 << number.max(1).ilog2();
    let parts: u32 = below(average).min(below(THREADS / across)).min(32);
    let together = (THREADS / (across * parts)).clamp(1, 64);
    ((rows.div_ceil(together), chunks.div_ceil(across), runs), (across, parts, together))
}

/// The same for a step of a recurrence, which reads and writes rows besides: a thread takes eight entries of a
/// row or more, so that short rows are not cut.
pub(crate) fn spread_steps(
    chunks: u32,
    rows: u32,
    entries: u64,
    runs: u32,
) -> ((u32, u32, u32), (u32, u32, u32)) {
    spread(chunks, rows, entries / 8, runs)
}
