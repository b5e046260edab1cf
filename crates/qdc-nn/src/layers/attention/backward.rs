//! The backward pass of an attention, a group of heads at a time; its equations stand above
//! `Attention::backward`.

use std::ops::Range;

use super::{Attention, EdgeValues, GROUP, Heads, SLOPE, Theta, WIDE, dropped, for_groups, kept, raw_scores};
use crate::hardware::Loops;
use crate::sparse::{accumulate, for_tiles, ranges, tile, tile_mut};
use crate::{Matrix, Real};

/// Vertices whose rows are taken through all heads while they are in the cache.
const PORTION: usize = 32;

pub(super) struct Backward<'a, T> {
    pub(super) layer: &'a mut Attention<T>,
    pub(super) theta: &'a [T],
    pub(super) x: &'a Matrix<T>,
    pub(super) dy: &'a Matrix<T>,
    pub(super) gradient: &'a mut [T],
    pub(super) dx: &'a mut Matrix<T>,
}

impl<T: Real> Loops for Backward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(mut self) {
        let (heads, stride) = (self.layer.input.count(), self.layer.input.block_stride());
        self.gradient.fill(T::ZERO);
        for_groups!(heads, |first, H| {
            self.layer.d_scores.fill(T::ZERO);
            for vertices in self.layer.portions() {
                if stride < WIDE {
                    for_tiles!(stride, |offset, W| self.pull::<H, H, W, FUSED>(&vertices, first, 0, offset));
                } else {
                    for h in 0..H {
                        for_tiles!(stride, |offset, W| self
                            .pull::<H, 1, W, FUSED>(&vertices, first, h, offset));
                    }
                }
            }
            self.scores::<H, FUSED>(first);
            for vertices in ranges(self.x.rows(), PORTION) {
                for h in 0..H {
                    for_tiles!(stride, |offset, W| self.project::<H, W, FUSED>(&vertices, first, h, offset));
                }
            }
        });
    }
}

impl<T: Real> Backward<'_, T> {
    /// Where the columns of head `head` begin in dy: heads that are averaged share them.
    #[inline(always)]
    fn block_of_dy(&self, head: usize) -> usize {
        if self.layer.heads == Heads::Average { 0 } else { head * self.layer.input.block_stride() }
    }

    /// `W` columns, from `offset` on, of d q_ij = g_i . x_j and of dx_j = sum_i q_ij g_i, for j in `vertices`
    /// and `G` of the `H` heads of a group, from `h` on: every g_i is fetched once for both. Where k_ij = 0,
    /// d q_ij may be left out.
    #[inline(always)]
    fn pull<const H: usize, const G: usize, const W: usize, const FUSED: bool>(
        &mut self,
        vertices: &Range<usize>,
        first: usize,
        h: usize,
        offset: usize,
    ) {
        let from: [usize; G] = std::array::from_fn(|g| self.block_of_dy(first + h + g) + offset);
        let Self { layer, x, dy, dx, .. } = self;
        let stride = layer.input.block_stride();
        let multiply = layer.edge_values == EdgeValues::Multiply;
        let factor = layer.factor();
        let matrix = layer.graph.matrix();
        let (entries, values) = (matrix.entries(), matrix.values());
        let by_column = layer.graph.entries_by_column();
        let p = &layer.attention[first * entries..].as_chunks::<H>().0[..entries];
        let dq = &mut layer.d_scores.as_chunks_mut::<H>().0[..entries];
        let (x_stride, dy_stride) = (x.stride(), dy.stride());
        let (x, dy, dx) = (x.values(), dy.values(), dx.values_mut());
        let block = |g: usize| (first + h + g) * stride + offset;
        for j in vertices.clone() {
            let (rows, places) = by_column.row(j);
            let mut own = [[T::ZERO; W]; G];
            for g in 0..G {
                own[g] = *tile(x, j * x_stride + block(g));
            }
            let mut sums = [[T::ZERO; W]; G];
            for &at in layer.numbers.of::<T, G>(places.len(), |at| p[places[at]][h]) {
                let (i, place) = (rows[at as usize], places[at as usize]);
                for g in 0..G {
                    let q = kept(p[place][h + g]);
                    let q = if multiply { q * values[place] } else { q };
                    let dy = tile::<T, W>(dy, i as usize * dy_stride + from[g]);
                    accumulate::<T, W, FUSED>(&mut sums[g], q, dy);
                    dq[place][h + g] += T::dot::<FUSED>(dy, &own[g]);
                }
            }
            for g in 0..G {
                let dx = tile_mut::<T, W>(dx, j * x_stride + block(g));
                for w in 0..W {
                    dx[w] = factor * sums[g][w];
                }
            }
        }
    }

    /// From d q_ij to d r_ij, in place; u_j, v_i, and the gradients of w_e and a_e.
    #[inline(always)]
    fn scores<const H: usize, const FUSED: bool>(&mut self, first: usize) {
        let Self { layer, theta, gradient, .. } = self;
        let stride = layer.input.block_stride();
        let a = Theta::of(layer, theta);
        let edge = a.edge_factors::<H, FUSED>(first, stride);
        let multiply = layer.edge_values == EdgeValues::Multiply;
        let factor = layer.factor();
        let matrix = layer.graph.matrix();
        let (nodes, entries) = (matrix.rows(), matrix.entries());
        let source = layer.source[first * nodes..].as_chunks::<H>().0;
        let target = layer.target[first * nodes..].as_chunks::<H>().0;
        let p = &layer.attention[first * entries..].as_chunks::<H>().0[..entries];
        let d = &mut layer.d_scores.as_chunks_mut::<H>().0[..entries];
        let v = &mut layer.d_target.as_chunks_mut::<H>().0[..nodes];
        let mut d_edge = [T::ZERO; H];
        for i in 0..nodes {
            let (columns, values) = matrix.row(i);
            let p = &p[matrix.pointers()[i]..][..columns.len()];
            let d = &mut d[matrix.pointers()[i]..][..columns.len()];
            let mut mean = [T::ZERO; H]; // sum_l p_il d p_il
            for ((p, d), &value) in p.iter().zip(d.iter_mut()).zip(values) {
                let factor = if multiply { factor * value } else { factor };
                for h in 0..H {
                    d[h] *= if dropped(p[h]) { T::ZERO } else { factor };
                    mean[h] += p[h].abs() * d[h];
                }
            }
            let mut sum = [T::ZERO; H];
            for (((p, d), &j), &value) in p.iter().zip(d.iter_mut()).zip(columns).zip(values) {
                let raw = raw_scores(&source[j as usize], &target[i], &edge, value);
                for h in 0..H {
                    let slope = if raw[h] > T::ZERO { T::ONE } else { T::from_f64(SLOPE) };
                    d[h] = p[h].abs() * (d[h] - mean[h]) * slope;
                    sum[h] += d[h];
                    d_edge[h] += d[h] * value;
                }
            }
            v[i] = sum;
        }
        let u = &mut layer.d_source.as_chunks_mut::<H>().0[..nodes];
        let by_column = layer.graph.entries_by_column();
        for j in 0..nodes {
            let mut sum = [T::ZERO; H];
            for &place in by_column.row(j).1 {
                for h in 0..H {
                    sum[h] += d[place][h];
                }
            }
            u[j] = sum;
        }
        if let Some((weight, attention)) = a.edge {
            let width = layer.input.stride();
            for h in 0..H {
                for at in (first + h) * stride..(first + h + 1) * stride {
                    gradient[2 * width + at] = d_edge[h] * attention[at];
                    gradient[3 * width + at] = d_edge[h] * weight[at];
                }
            }
        }
    }

    /// `W` columns of head `h` of a group, from `offset` on: dx_j += u_j a_s + v_j a_d, and the gradients of
    /// a_s and a_d.
    #[inline(always)]
    fn project<const H: usize, const W: usize, const FUSED: bool>(
        &mut self,
        vertices: &Range<usize>,
        first: usize,
        h: usize,
        offset: usize,
    ) {
        let Self { layer, theta, x, gradient, dx, .. } = self;
        let (stride, width) = (layer.input.block_stride(), layer.input.stride());
        let block = (first + h) * stride + offset;
        let a = Theta::of(layer, theta);
        let (source, target) = (*tile::<T, W>(a.source, block), *tile::<T, W>(a.target, block));
        let (u, v) = (layer.d_source.as_chunks::<H>().0, layer.d_target.as_chunks::<H>().0);
        let (mut d_source, mut d_target) = ([T::ZERO; W], [T::ZERO; W]);
        let (x, dx) = (x.values(), dx.values_mut());
        for j in vertices.clone() {
            let (u, v) = (u[j], v[j]);
            let (x, dx) = (tile(x, j * width + block), tile_mut(dx, j * width + block));
            accumulate::<T, W, FUSED>(&mut d_source, u[h], x);
            accumulate::<T, W, FUSED>(&mut d_target, v[h], x);
            accumulate::<T, W, FUSED>(dx, u[h], &source);
            accumulate::<T, W, FUSED>(dx, v[h], &target);
        }
        accumulate::<T, W, FUSED>(tile_mut(gradient, block), T::ONE, &d_source);
        accumulate::<T, W, FUSED>(tile_mut(gradient, width + block), T::ONE, &d_target);
    }
}
