//! How work is cut: the grids and blocks of kernels, and the parts of gradients. It depends on the network
//! and its matrices, and not on the batch: so do the orders of all sums.

use std::ops::Range;

use qdc_nn::program::{Operation, Program};

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

/// Where the gradient of every parameter lies in parts, in the order of the parameters, and numbers in all.
pub(crate) fn sites(program: &Program<f32>) -> Result<(Vec<Site>, u64), Error> {
    let nodes = program.nodes as u32;
    counted("parameters", program.weights as u64)?;
    let (mut sites, mut offset) = (Vec::new(), 0u64);
    let mut add = |range: &Range<usize>, parts: u32| {
        if !range.is_empty() {
            let length = range.len() as u32;
            sites.push(Site { begin: range.start as u32, length, offset: offset as u32, parts });
            offset += u64::from(length) * u64::from(parts);
        }
    };
    for stage in program.towers.iter().flatten().chain(&program.readout) {
        add(
            &stage.theta,
            match stage.operation {
                Operation::Linear { .. } => nodes.div_ceil(inner_of_a_part(nodes)),
                Operation::Attention { .. } => nodes.div_ceil(rows_of_a_part(nodes)),
                _ => 1,
            },
        );
        if let Some(activate) = &stage.activate {
            add(&activate.bias, nodes.div_ceil(rows_of_a_part(nodes)));
        }
    }
    sites.sort_by_key(|site| site.begin);
    counted("parts of a gradient", offset)?;
    Ok((sites, offset))
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
