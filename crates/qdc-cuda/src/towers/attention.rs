//! The kernels of attention.

use std::sync::Arc;

use qdc_nn::layers::{EdgeValues, Heads};
use qdc_nn::program::{Operation, Stage};

use super::DeviceTowers;
use crate::frame::Place;
use crate::grid::spread;
use crate::launch::Launch;
use crate::state::{Attention, Finish, Mask};

impl DeviceTowers<'_> {
    pub(super) fn attention(
        &self,
        key: (usize, usize),
        stage: &Stage<f32>,
        place: Place,
        before: Place,
        training: bool,
    ) -> Attention {
        let Operation::Attention { matrix, input, heads, edge_values, dropout } = &stage.operation else {
            unreachable!("only attentions come here")
        };
        let (room, matrices) = (self.attention[&key], &self.matrices[&(Arc::as_ptr(matrix) as usize, true)]);
        let count = input.count();
        let average = *heads == Heads::Average;
        let scale = if training { 1.0 / (1.0 - dropout.rate) } else { 1.0 };
        let (nodes, entries) = (self.program.nodes as u32, matrices.entries);
        Attention {
            runs: self.frame.states,
            pointers: matrices.forward.pointers,
            indices: matrices.forward.indices,
            values: matrices.forward.values,
            column_pointers: matrices.backward.pointers,
            column_rows: matrices.backward.indices,
            column_places: matrices.backward.places,
            x: before.output,
            y: place.output,
            dy: place.gradient,
            dx: before.gradient,
            theta: self.frame.weights + 4 * stage.theta.start as u64,
            source: room.source,
            target: room.target,
            p: room.p,
            d_scores: room.d_scores,
            d_source: room.d_source,
            d_target: room.d_target,
            d_edge: room.d_edge,
            parts: 0,
            x_run: before.run,
            y_run: place.run,
            theta_run: self.program.weights as u64,
            nodes_run: u64::from(nodes) * count as u64,
            entries_run: entries * count as u64,
            parts_run: self.frame.parts_run,
            mask: Mask::of(*dropout, training),
            finish: Finish::default(),
            factor: (if average { scale / count as f64 } else { scale }) as f32,
            nodes,
            entries: entries as u32,
            heads: count as u32,
            block: input.block_stride() as u32,
            stride: before.stride,
            y_stride: place.stride,
            average: u32::from(average),
            edge_values: match edge_values {
                EdgeValues::Ignore => 0,
                EdgeValues::Multiply => 1,
                EdgeValues::Bias => 2,
            },
            per_block: 0,
            parts_length: 0,
            pad: 0,
        }
    }

    /// An attention kernel over the entries of rows; `bytes` of shared memory for each thread.
    pub(super) fn spread(&self, name: &str, chunks: u32, attention: Attention, bytes: u32) -> Launch {
        let (grid, block) = spread(chunks, attention.nodes, u64::from(attention.entries), self.frame.runs);
        self.frame.launch(name, grid, block, block.0 * block.1 * block.2 * bytes, attention)
    }
}
