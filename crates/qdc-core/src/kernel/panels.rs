//! Rows of a kernel from panels of columns, each sparsified before the next is made.
//!
//! Q = f(L) is symmetric, so a column is a row. A column is made once for each class of vertices that L
//! cannot tell apart, as f(L) 1_c / t, and lifted to the rows of the class where it is decided what they
//! keep. What is kept streams straight into the result; N x N numbers are never stored.

use std::ops::Range;

use rayon::prelude::*;

use super::Sink;
use crate::simd::Line;
use crate::sparsify::{Lane, Sparsify};
use crate::twins::Classes;
use crate::{Error, Filter, Scalar, Transition, Watch};

/// A way to columns of f(L) on vectors that are constant on classes.
///
/// A column must not depend on those beside it: shards and threads group them differently.
pub(super) trait Columns<T: Scalar, const W: usize>: Sync {
    /// The memory of one worker.
    type Workspace: Send;

    fn workspace(&self) -> Self::Workspace;

    /// The line of a class in a panel; classes of near lines are cheap together.
    fn position(&self, class: u32) -> u32;

    /// The columns f(L) 1_c / t of up to W classes c.
    fn panel<'a>(&self, classes: &[u32], workspace: &'a mut Self::Workspace) -> &'a mut [Line<T, W>];
}

/// L, its classes and the filter: what lifts a panel to rows of the kernel.
pub(super) struct Lift<'a> {
    pub(super) transition: &'a Transition,
    pub(super) classes: &'a Classes,
    pub(super) filter: &'a Filter,
}

/// Rows requested, by the lines of their classes.
pub(super) struct Requested {
    pub(super) rows: Vec<u32>,
    /// Where each row was asked for.
    pub(super) places: Vec<usize>,
    /// The class and the rows of each column to be made.
    pub(super) columns: Vec<(u32, Range<usize>)>,
}

impl Lift<'_> {
    /// Puts the rows that nobody has put yet into the sink, panel by panel.
    pub(super) fn make<T: Scalar, const W: usize, C: Columns<T, W>>(
        &self,
        source: &C,
        sink: &Sink,
        watch: &Watch,
    ) -> Result<(), Error> {
        self.put_isolated(sink);
        let lines: Vec<u32> = self.classes.of_vertex().iter().map(|&class| source.position(class)).collect();
        let requested = self.requested(&lines, sink);
        let phase = watch.phase("kernel rows", requested.rows.len() as u64);
        requested.columns.par_chunks(W).try_for_each_init(
            || source.workspace(),
            |workspace, block| {
                let names: Vec<u32> = block.iter().map(|column| column.0).collect();
                let panel = source.panel(&names, workspace);
                let lanes: Vec<Lane<'_>> = block
                    .iter()
                    .map(|(class, range)| self.lane(*class, &requested.rows[range.clone()]))
                    .collect();
                let kept = sink.rule().keep_panel(&lanes, &lines, panel);
                let places = &requested.places[block[0].1.start..];
                let count = kept.len() as u64;
                places.iter().zip(kept).for_each(|(&place, row)| sink.put_kept(place, row));
                phase.advance(count)
            },
        )
    }

    pub(super) fn lane<'a>(&'a self, class: u32, rows: &'a [u32]) -> Lane<'a> {
        let eigenvalue = self.classes.eigenvalue(self.transition.matrix(), class as usize);
        let apart = eigenvalue.map_or(0.0, |eigenvalue| self.filter.evaluate(eigenvalue));
        Lane { rows, class: self.classes.members(class as usize), apart }
    }

    /// The only entry P(L_vv) of the row of a vertex that has no neighbours.
    pub(super) fn isolated(&self, vertex: u32) -> Option<f64> {
        let (columns, entries) = self.transition.matrix().row(vertex as usize);
        let alone = columns.iter().all(|&column| column == vertex);
        alone.then(|| self.filter.evaluate(entries.first().copied().unwrap_or(0.0)))
    }

    /// Puts the rows of vertices without neighbours.
    pub(super) fn put_isolated(&self, sink: &Sink) {
        let mut values =
            if sink.rule().sparsify == Sparsify::None { vec![0.0; sink.nodes()] } else { Vec::new() };
        let rows = sink.rows().iter().enumerate();
        for (place, &row) in rows.filter(|&(place, _)| !sink.is_put(place)) {
            if let Some(own) = self.isolated(row) {
                let kept = if values.is_empty() {
                    sink.rule().keep_row(row, row, &[own])
                } else {
                    values[row as usize] = own;
                    let kept = sink.rule().keep_row(row, 0, &values);
                    values[row as usize] = 0.0;
                    kept
                };
                sink.put_kept(place, kept);
            }
        }
    }

    /// The rows that nobody has put yet.
    pub(super) fn requested(&self, lines: &[u32], sink: &Sink) -> Requested {
        let mut places: Vec<usize> = (0..sink.rows().len()).filter(|&place| !sink.is_put(place)).collect();
        places.sort_unstable_by_key(|&place| (lines[sink.rows()[place] as usize], sink.rows()[place]));
        let rows: Vec<u32> = places.iter().map(|&place| sink.rows()[place]).collect();
        let class = |row: u32| self.classes.of_vertex()[row as usize];
        let mut columns = Vec::new();
        let mut start = 0;
        for same in rows.chunk_by(|&a, &b| class(a) == class(b)) {
            columns.push((class(same[0]), start..start + same.len()));
            start += same.len();
        }
        Requested { rows, places, columns }
    }
}
