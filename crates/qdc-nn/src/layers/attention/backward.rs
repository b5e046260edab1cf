//! The backward pass of an attention, a group of heads at a time; its equations stand above `Attention::backward`.

use std::ops::Range;

use super::{Attention, EdgeValues, GROUP, Heads, SLOPE, Theta, WIDE, for_groups, kept, raw_scores};
use crate::hardware::Loops;
use crate::sparse::{accumulate, for_tiles, tile, tile_mut};
use crate::{Matrix, Real};

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
            for rows in self.layer.portions() {
                if stride < WIDE {
                    self.compare::<H, H, FUSED>(&rows, first, 0);
                } else {
                    for h in 0..H {
                        self.compare::<H, 1, FUSED>(&rows, first, h);
                    }
                }
            }
            self.scores::<H, FUSED>(first);
            for rows in self.layer.portions() {
                if stride < WIDE {
                    for_tiles!(stride, |offset, W| self.collect::<H, H, W, FUSED>(&rows, first, 0, offset));
                } else {
                    for h in 0..H {
                        for_tiles!(stride, |offset, W| self
                            .collect::<H, 1, W, FUSED>(&rows, first, h, offset));
                    }
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

    /// d q_ij = g_i . x_j for i in `rows` and `G` of the `H` heads of a group, from `h` on.
    #[inline(always)]
    fn compare<const H: usize, const G: usize, const FUSED: bool>(
        &mut self,
        rows: &Range<usize>,
        first: usize,
        h: usize,
    ) {
        let from: [usize; G] = std::array::from_fn(|g| self.block_of_dy(first + h + g));
        let Self { layer, x, dy, .. } = self;
        let stride = layer.input.block_stride();
        let matrix = layer.graph.matrix();
        let dq = &mut layer.d_scores.as_chunks_mut::<H>().0[..matrix.entries()];
        let x_stride = x.stride();
        let x = x.values();
        for i in rows.clone() {
            let columns = matrix.row(i).0;
            let g = dy.row(i);
            let dq = &mut dq[matrix.pointers()[i]..][..columns.len()];
            for (dq, &j) in dq.iter_mut().zip(columns) {
                for k in 0..G {
                    let x = &x[j as usize * x_stride + (first + h + k) * stride..][..stride];
                    dq[h + k] = T::dot::<FUSED>(&g[from[k]..][..stride], x);
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
                    d[h] *= if p[h] < T::ZERO { T::ZERO } else { factor };
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

    /// `W` columns of dx_j = sum_i q_ij g_i + u_j a_s + v_j a_d, and of the gradients of a_s and a_d, from `offset` on,
    /// for j in `vertices` and `G` of the `H` heads of a group, from `h` on.
    #[inline(always)]
    fn collect<const H: usize, const G: usize, const W: usize, const FUSED: bool>(
        &mut self,
        vertices: &Range<usize>,
        first: usize,
        h: usize,
        offset: usize,
    ) {
        let from: [usize; G] = std::array::from_fn(|g| self.block_of_dy(first + h + g) + offset);
        let Self { layer, theta, x, dy, gradient, dx } = self;
        let (stride, width) = (layer.input.block_stride(), layer.input.stride());
        let a = Theta::of(layer, theta);
        let matrix = layer.graph.matrix();
        let (entries, values) = (matrix.entries(), matrix.values());
        let by_column = layer.graph.entries_by_column();
        let multiply = layer.edge_values == EdgeValues::Multiply;
        let factor = layer.factor();
        let p = &layer.attention[first * entries..].as_chunks::<H>().0[..entries];
        let u = layer.d_source.as_chunks::<H>().0;
        let v = layer.d_target.as_chunks::<H>().0;
        let (x_stride, dy_stride) = (x.stride(), dy.stride());
        let (x, dy, dx) = (x.values(), dy.values(), dx.values_mut());
        let block = |g: usize| (first + h + g) * stride + offset;
        let mut d_source = [[T::ZERO; W]; G];
        let mut d_target = [[T::ZERO; W]; G];
        for j in vertices.clone() {
            let (rows, places) = by_column.row(j);
            let mut sums = [[T::ZERO; W]; G];
            for (&i, &place) in rows.iter().zip(places) {
                for g in 0..G {
                    let q = kept(p[place][h + g]);
                    let q = if multiply { q * values[place] } else { q };
                    let dy = tile::<T, W>(dy, i as usize * dy_stride + from[g]);
                    accumulate::<T, W, FUSED>(&mut sums[g], q, dy);
                }
            }
            for g in 0..G {
                let (u, v) = (u[j][h + g], v[j][h + g]);
                let (x, dx) =
                    (tile::<T, W>(x, j * x_stride + block(g)), tile_mut::<T, W>(dx, j * x_stride + block(g)));
                accumulate::<T, W, FUSED>(&mut d_source[g], u, x);
                accumulate::<T, W, FUSED>(&mut d_target[g], v, x);
                for w in 0..W {
                    dx[w] = factor * sums[g][w];
                }
                accumulate::<T, W, FUSED>(dx, u, tile(a.source, block(g)));
                accumulate::<T, W, FUSED>(dx, v, tile(a.target, block(g)));
            }
        }
        for g in 0..G {
            accumulate::<T, W, FUSED>(tile_mut(gradient, block(g)), T::ONE, &d_source[g]);
            accumulate::<T, W, FUSED>(tile_mut(gradient, width + block(g)), T::ONE, &d_target[g]);
        }
    }
}
