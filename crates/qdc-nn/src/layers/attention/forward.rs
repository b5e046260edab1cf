//! The forward pass of an attention, a group of heads at a time.

use std::ops::Range;

use super::{Attention, EdgeValues, GROUP, Heads, SLOPE, Theta, WIDE, for_groups, kept, raw_scores};
use crate::hardware::Loops;
use crate::sparse::{accumulate, for_tiles, tile, tile_mut};
use crate::{Matrix, Real};

pub(super) struct Forward<'a, T> {
    pub(super) layer: &'a mut Attention<T>,
    pub(super) theta: &'a [T],
    pub(super) x: &'a Matrix<T>,
    pub(super) y: &'a mut Matrix<T>,
}

impl<T: Real> Loops for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let (heads, stride) = (self.layer.input.count(), self.layer.input.block_stride());
        for_groups!(heads, |first, H| {
            self.project::<H, FUSED>(first);
            self.attend::<H, FUSED>(first);
            for rows in self.layer.portions() {
                if stride < WIDE {
                    for_tiles!(stride, |offset, W| self.combine::<H, H, W, FUSED>(&rows, first, 0, offset));
                } else {
                    for h in 0..H {
                        for_tiles!(stride, |offset, W| self
                            .combine::<H, 1, W, FUSED>(&rows, first, h, offset));
                    }
                }
            }
        });
    }
}

impl<T: Real> Forward<'_, T> {
    /// a_s . x_i and a_d . x_i for every vertex.
    #[inline(always)]
    fn project<const H: usize, const FUSED: bool>(&mut self, first: usize) {
        let Self { layer, theta, x, .. } = self;
        let (a, stride) = (Theta::of(layer, theta), layer.input.block_stride());
        let nodes = x.rows();
        let source = layer.source[first * nodes..].as_chunks_mut::<H>().0;
        let target = layer.target[first * nodes..].as_chunks_mut::<H>().0;
        for i in 0..nodes {
            let x = x.row(i);
            for h in 0..H {
                let block = (first + h) * stride..(first + h + 1) * stride;
                source[i][h] = T::dot::<FUSED>(&x[block.clone()], &a.source[block.clone()]);
                target[i][h] = T::dot::<FUSED>(&x[block.clone()], &a.target[block]);
            }
        }
    }

    /// p_ij: the scores, their exponentials (less the highest of the row, so that none overflows), their shares.
    #[inline(always)]
    fn attend<const H: usize, const FUSED: bool>(&mut self, first: usize) {
        let Self { layer, theta, .. } = self;
        let edge = Theta::of(layer, theta).edge_factors::<H, FUSED>(first, layer.input.block_stride());
        let matrix = layer.graph.matrix();
        let (nodes, entries) = (matrix.rows(), matrix.entries());
        let source = layer.source[first * nodes..].as_chunks::<H>().0;
        let target = layer.target[first * nodes..].as_chunks::<H>().0;
        let p = &mut layer.attention[first * entries..].as_chunks_mut::<H>().0[..entries];
        for span in &layer.spans {
            for i in span.rows.clone() {
                let (columns, values) = matrix.row(i);
                let p = &mut p[matrix.pointers()[i]..][..columns.len()];
                let mut highest = [T::from_f64(f64::NEG_INFINITY); H];
                for ((p, &j), &value) in p.iter_mut().zip(columns).zip(values) {
                    let raw = raw_scores(&source[j as usize], &target[i], &edge, value);
                    for h in 0..H {
                        p[h] = if raw[h] > T::ZERO { raw[h] } else { raw[h] * T::from_f64(SLOPE) };
                        highest[h] = if p[h] > highest[h] { p[h] } else { highest[h] };
                    }
                }
                for p in p {
                    for h in 0..H {
                        p[h] -= highest[h];
                    }
                }
            }
            // The whole span at once: rows are too short for vectors.
            let all = p[span.entries.clone()].as_flattened_mut();
            all.iter_mut().for_each(|p| *p = p.fast_exp::<FUSED>());
            for i in span.rows.clone() {
                let p = &mut p[matrix.pointers()[i]..matrix.pointers()[i + 1]];
                let mut sum = [T::ZERO; H];
                for p in p.iter() {
                    for h in 0..H {
                        sum[h] += p[h];
                    }
                }
                let share = sum.map(|sum| T::ONE / sum);
                for p in p {
                    for h in 0..H {
                        p[h] *= share[h];
                    }
                }
            }
            if let Some(mask) = layer.mask {
                mask.mark(
                    first * entries + H * span.entries.start,
                    p[span.entries.clone()].as_flattened_mut(),
                );
            }
        }
    }

    /// `W` columns of y_i = sum_j q_ij x_j, from `offset` on, for i in `rows` and `G` of the `H` heads of a
    /// group, from `h` on.
    #[inline(always)]
    fn combine<const H: usize, const G: usize, const W: usize, const FUSED: bool>(
        &mut self,
        rows: &Range<usize>,
        first: usize,
        h: usize,
        offset: usize,
    ) {
        let Self { layer, x, y, .. } = self;
        let stride = layer.input.block_stride();
        let matrix = layer.graph.matrix();
        let entries = matrix.entries();
        let p = &layer.attention[first * entries..].as_chunks::<H>().0[..entries];
        let multiply = layer.edge_values == EdgeValues::Multiply;
        let average = layer.heads == Heads::Average;
        let factor = layer.factor();
        let (x_stride, y_stride) = (x.stride(), y.stride());
        let (x, y) = (x.values(), y.values_mut());
        let block = |g: usize| (first + h + g) * stride + offset;
        for i in rows.clone() {
            let (columns, values) = matrix.row(i);
            let p = &p[matrix.pointers()[i]..][..columns.len()];
            let mut sums = [[T::ZERO; W]; G];
            for &at in layer.numbers.of::<T, G>(p.len(), |at| p[at][h]) {
                let (p, j, value) = (&p[at as usize], columns[at as usize], values[at as usize]);
                for g in 0..G {
                    let q = if multiply { kept(p[h + g]) * value } else { kept(p[h + g]) };
                    let x = tile::<T, W>(x, j as usize * x_stride + block(g));
                    accumulate::<T, W, FUSED>(&mut sums[g], q, x);
                }
            }
            if average {
                let y = tile_mut::<T, W>(y, i * y_stride + offset);
                for g in 0..G {
                    for w in 0..W {
                        let before = if first + h + g == 0 { T::ZERO } else { y[w] };
                        y[w] = before + factor * sums[g][w];
                    }
                }
            } else {
                for g in 0..G {
                    let y = tile_mut::<T, W>(y, i * y_stride + block(g));
                    for w in 0..W {
                        y[w] = factor * sums[g][w];
                    }
                }
            }
        }
    }
}
