//! Graph attention: every vertex averages its neighbours with weights it computes from both ends.
//!
//! For each head, with x the transformed columns of that head (Velickovic et al. 2018, equations 1 to 6):
//!
//! ```text
//! r_ij = a_s . x_j + a_d . x_i (+ c M_ij)      c = sum(w_e a_e), only where edge values are a bias
//! s_ij = leaky(r_ij)                           leaky(r) = r for r > 0, 0.2 r below
//! p_ij = exp(s_ij) / sum_j exp(s_ij)           over the stored entries j of row i
//! q_ij = drop(p_ij) (M_ij)                     times M_ij only where edge values multiply
//! y_i  = sum_j q_ij x_j
//! ```
//!
//! Heads are concatenated, or averaged. A row without entries gives 0. Cost: O((entries + vertices) * heads * width)
//! time; besides activations, one number for each entry and head.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Layer, Parameter, Pass, Start};
use crate::hardware::{Loops, dispatch, multiply_add};
use crate::random::Mask;
use crate::sparse::{accumulate, for_tiles, tile, tile_mut};
use crate::{Matrix, Propagation, Real, Width};

/// The slope of the leaky ReLU below 0.
const SLOPE: f64 = 0.2;

/// What the values M_ij do in an attention.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EdgeValues {
    /// Nothing: only the pattern of M counts.
    Ignore,
    /// They scale the attention after the softmax, which is not normalised again.
    Multiply,
    /// They enter the score as a one-dimensional edge feature.
    Bias,
}

/// What becomes of the heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// Side by side.
    Concatenate,
    /// Their mean.
    Average,
}

/// The attention layer; its input is already transformed (x W, heads side by side).
pub struct Attention<T> {
    graph: Arc<Propagation<T>>,
    input: Width,
    heads: Heads,
    edge_values: EdgeValues,
    dropout: f64,
    stream: u64,
    mask: Option<Mask>,
    /// a_s . x_j and a_d . x_i: vertices x heads.
    source: Vec<T>,
    target: Vec<T>,
    /// p_ij: entries x heads.
    attention: Vec<T>,
    /// Per row: q_ij, d loss / d p_ij (entries of the longest row x heads).
    row_weights: Vec<T>,
    row_gradient: Vec<T>,
    /// d loss / d(a_s . x_j), d loss / d(a_d . x_i): vertices x heads.
    d_source: Vec<T>,
    d_target: Vec<T>,
}

impl<T: Real> Attention<T> {
    /// Attention over the stored entries of the matrix of `graph`, with `input.count()` heads of `input.of_block()` columns.
    pub fn new(
        graph: Arc<Propagation<T>>,
        input: Width,
        heads: Heads,
        edge_values: EdgeValues,
        dropout: f64,
        stream: u64,
    ) -> Self {
        let matrix = graph.matrix();
        let (nodes, count) = (matrix.rows(), input.count());
        let longest = (0..nodes).map(|i| matrix.row(i).0.len()).max().unwrap_or(0);
        let zeros = |length: usize| vec![T::ZERO; length];
        Self {
            input,
            heads,
            edge_values,
            dropout,
            stream,
            mask: None,
            source: zeros(nodes * count),
            target: zeros(nodes * count),
            attention: zeros(matrix.entries() * count),
            row_weights: zeros(longest * count),
            row_gradient: zeros(longest * count),
            d_source: zeros(nodes * count),
            d_target: zeros(nodes * count),
            graph,
        }
    }

    /// a_s, a_d, and w_e, a_e where edge values are a bias.
    fn split<'a>(&self, theta: &'a [T]) -> (&'a [T], &'a [T], Option<(&'a [T], &'a [T])>) {
        let stride = self.input.stride();
        let (source, rest) = theta.split_at(stride);
        let (target, rest) = rest.split_at(stride);
        let edge = (self.edge_values == EdgeValues::Bias).then(|| rest.split_at(stride));
        (source, target, edge)
    }
}

impl<T: Real> Layer<T> for Attention<T> {
    fn width(&self) -> Width {
        match self.heads {
            Heads::Concatenate => self.input,
            Heads::Average => Width::single(self.input.of_block()),
        }
    }

    fn parameters(&self) -> Vec<Parameter> {
        let (heads, width) = (self.input.count(), self.input.of_block());
        let start = Start::Glorot { inputs: heads, outputs: width };
        let vector = |name| Parameter::vector(name, self.input, start);
        let mut parameters = vec![vector("attention_source"), vector("attention_target")];
        if self.edge_values == EdgeValues::Bias {
            let start = Start::Glorot { inputs: 1, outputs: heads * width };
            parameters.push(Parameter::vector("edge_weight", self.input, start));
            parameters.push(vector("attention_edge"));
        }
        parameters
    }

    fn forward(&mut self, theta: &[T], x: &Matrix<T>, y: &mut Matrix<T>, pass: Pass) {
        self.mask = pass.mask(self.dropout, self.stream);
        dispatch(Forward { layer: self, theta, x, y });
    }

    /// Backwards through the five lines above, for one head, with g_i = dy_i (divided by the number of heads where they
    /// are averaged) and k_ij = q_ij / p_ij the product of the dropout mask and M_ij:
    ///
    /// ```text
    /// d q_ij = g_i . x_j                            dx_j += sum_i q_ij g_i
    /// d p_ij = k_ij d q_ij
    /// d s_ij = p_ij (d p_ij - sum_l p_il d p_il)    the softmax: d p_ij / d s_il = p_ij (delta_jl - p_il)
    /// d r_ij = d s_ij leaky'(r_ij)
    /// u_j = sum_i d r_ij, v_i = sum_j d r_ij        the gradients of a_s . x_j and of a_d . x_i
    /// dx_j += u_j a_s + v_j a_d                     d a_s = sum_j u_j x_j, d a_d = sum_i v_i x_i
    /// d c = sum_ij d r_ij M_ij                      d w_e = d c a_e, d a_e = d c w_e
    /// ```
    fn backward(
        &mut self,
        theta: &[T],
        x: &Matrix<T>,
        _y: &Matrix<T>,
        dy: &Matrix<T>,
        gradient: &mut [T],
        dx: &mut Matrix<T>,
    ) {
        dispatch(Backward { layer: self, theta, x, dy, gradient, dx });
    }
}

/// `sum += factor * row`.
#[inline(always)]
fn add_scaled<T: Real, const FUSED: bool>(sum: &mut [T], factor: T, row: &[T]) {
    for (sum, &row) in sum.iter_mut().zip(row) {
        *sum = multiply_add::<T, FUSED>(factor, row, *sum);
    }
}

/// c for each head: the factor of M_ij in the score, 0 where edge values are no bias.
#[inline(always)]
fn edge_factor<T: Real, const FUSED: bool>(edge: Option<(&[T], &[T])>, head: usize, stride: usize) -> T {
    edge.map_or(T::ZERO, |(weight, attention)| {
        T::dot::<FUSED>(&weight[head * stride..][..stride], &attention[head * stride..][..stride])
    })
}

/// k_ij: what q_ij is p_ij times.
#[inline(always)]
fn factor<T: Real>(mask: Option<Mask>, edge_values: EdgeValues, at: usize, value: T) -> T {
    let dropped = match mask {
        None => T::ONE,
        Some(mask) if mask.keeps(at) => T::from_f64(mask.scale()),
        Some(_) => T::ZERO,
    };
    if edge_values == EdgeValues::Multiply { dropped * value } else { dropped }
}

#[inline(always)]
fn leaky<T: Real>(score: T) -> T {
    if score > T::ZERO { score } else { score * T::from_f64(SLOPE) }
}

struct Forward<'a, T> {
    layer: &'a mut Attention<T>,
    theta: &'a [T],
    x: &'a Matrix<T>,
    y: &'a mut Matrix<T>,
}

impl<T: Real> Loops for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { layer, theta, x, y } = self;
        let (source, target, edge) = layer.split(theta);
        let (heads, stride) = (layer.input.count(), layer.input.block_stride());
        let average = layer.heads == Heads::Average;
        let share = T::ONE / T::from_f64(heads as f64);
        let (mask, edge_values) = (layer.mask, layer.edge_values);
        let graph = Arc::clone(&layer.graph);
        let matrix = graph.matrix();
        for i in 0..matrix.rows() {
            for (h, x) in x.row(i).chunks_exact(stride).enumerate() {
                layer.source[i * heads + h] = T::dot::<FUSED>(x, &source[h * stride..][..stride]);
                layer.target[i * heads + h] = T::dot::<FUSED>(x, &target[h * stride..][..stride]);
            }
        }
        let y_stride = y.stride();
        for (i, y) in y.values_mut().chunks_exact_mut(y_stride).enumerate() {
            let (columns, values) = matrix.row(i);
            let first = matrix.pointers()[i] * heads;
            let length = columns.len();
            // The row's attention lies head after head, so that loops over neighbours are contiguous.
            let attention = &mut layer.attention[first..][..length * heads];
            y.fill(T::ZERO);
            for h in 0..heads {
                let p = &mut attention[h * length..][..length];
                let target = layer.target[i * heads + h];
                let c = edge_factor::<T, FUSED>(edge, h, stride);
                let mut highest = T::from_f64(f64::NEG_INFINITY);
                for ((p, &j), &value) in p.iter_mut().zip(columns).zip(values) {
                    let score = layer.source[j as usize * heads + h] + target;
                    *p = leaky(if edge.is_some() { score + c * value } else { score });
                    highest = highest.max(*p);
                }
                p.iter_mut().for_each(|p| *p -= highest);
            }
            for p in attention.iter_mut() {
                *p = p.fast_exp(); // all heads in one loop: most rows are short
            }
            for h in 0..heads {
                let p = &mut attention[h * length..][..length];
                let q = &mut layer.row_weights[..length];
                let inverse = T::ONE / p.iter().copied().sum::<T>();
                for (at, ((q, p), &value)) in q.iter_mut().zip(p.iter_mut()).zip(values).enumerate() {
                    *p *= inverse;
                    *q = *p * factor(mask, edge_values, first + h * length + at, value);
                }
                let y = if average { &mut *y } else { &mut y[h * stride..][..stride] };
                for_tiles!(stride, |offset, W| {
                    let mut sum = [T::ZERO; W];
                    for (&j, &q) in columns.iter().zip(q.iter()) {
                        let at = (j as usize * heads + h) * stride + offset;
                        accumulate::<T, W, FUSED>(&mut sum, q, tile(x.values(), at));
                    }
                    for (y, sum) in tile_mut::<T, W>(y, offset).iter_mut().zip(sum) {
                        *y += if average { sum * share } else { sum };
                    }
                });
            }
        }
    }
}

struct Backward<'a, T> {
    layer: &'a mut Attention<T>,
    theta: &'a [T],
    x: &'a Matrix<T>,
    dy: &'a Matrix<T>,
    gradient: &'a mut [T],
    dx: &'a mut Matrix<T>,
}

impl<T: Real> Loops for Backward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { layer, theta, x, dy, gradient, dx } = self;
        let (source, target, edge) = layer.split(theta);
        let (heads, stride, width) = (layer.input.count(), layer.input.block_stride(), layer.input.stride());
        let average = layer.heads == Heads::Average;
        let share = if average { T::ONE / T::from_f64(heads as f64) } else { T::ONE };
        let (mask, edge_values) = (layer.mask, layer.edge_values);
        let graph = Arc::clone(&layer.graph);
        let matrix = graph.matrix();
        dx.values_mut().fill(T::ZERO);
        gradient.fill(T::ZERO);
        layer.d_source.fill(T::ZERO);
        for i in 0..matrix.rows() {
            let (columns, values) = matrix.row(i);
            let first = matrix.pointers()[i] * heads;
            let length = columns.len();
            for h in 0..heads {
                let g = if average { dy.row(i) } else { &dy.row(i)[h * stride..][..stride] };
                let p = &layer.attention[first + h * length..][..length];
                let dp = &mut layer.row_gradient[..length];
                let mut mean = T::ZERO; // sum_l p_il d p_il
                for at in 0..length {
                    let row = (columns[at] as usize * heads + h) * stride;
                    let k = factor(mask, edge_values, first + h * length + at, values[at]) * share;
                    dp[at] = k * T::dot::<FUSED>(g, &x.values()[row..row + stride]);
                    mean += p[at] * dp[at];
                    add_scaled::<T, FUSED>(&mut dx.values_mut()[row..row + stride], p[at] * k, g);
                }
                let target = layer.target[i * heads + h];
                let c = edge_factor::<T, FUSED>(edge, h, stride);
                let (mut d_target, mut d_edge) = (T::ZERO, T::ZERO);
                for at in 0..length {
                    let j = columns[at] as usize * heads + h;
                    let score = layer.source[j] + target;
                    let score = if edge.is_some() { score + c * values[at] } else { score };
                    let slope = if score > T::ZERO { T::ONE } else { T::from_f64(SLOPE) };
                    let dr = p[at] * (dp[at] - mean) * slope;
                    layer.d_source[j] += dr;
                    d_target += dr;
                    d_edge += dr * values[at];
                }
                layer.d_target[i * heads + h] = d_target;
                if let Some((weight, attention)) = edge {
                    let block = h * stride..(h + 1) * stride;
                    add_scaled::<T, FUSED>(
                        &mut gradient[2 * width..][block.clone()],
                        d_edge,
                        &attention[block.clone()],
                    );
                    add_scaled::<T, FUSED>(&mut gradient[3 * width..][block.clone()], d_edge, &weight[block]);
                }
            }
        }
        for i in 0..matrix.rows() {
            for h in 0..heads {
                let (u, v) = (layer.d_source[i * heads + h], layer.d_target[i * heads + h]);
                let block = h * stride..(h + 1) * stride;
                let x = &x.row(i)[block.clone()];
                let dx = &mut dx.values_mut()[i * width..][block.clone()];
                add_scaled::<T, FUSED>(dx, u, &source[block.clone()]);
                add_scaled::<T, FUSED>(dx, v, &target[block.clone()]);
                add_scaled::<T, FUSED>(&mut gradient[..width][block.clone()], u, x);
                add_scaled::<T, FUSED>(&mut gradient[width..][block], v, x);
            }
        }
    }
}
