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

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{Layer, Parameter, Pass, Start};
use crate::hardware::{Loops, dispatch};
use crate::matrix::LANES;
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
///
/// Heads are computed one after the other: the columns of one head mostly fit the second-level cache, where those of
/// all of them do not.
pub struct Attention<T> {
    graph: Arc<Propagation<T>>,
    input: Width,
    heads: Heads,
    edge_values: EdgeValues,
    dropout: f64,
    stream: u64,
    mask: Option<Mask>,
    spans: Vec<Span>,
    /// a_s . x_j and a_d . x_i: heads x vertices.
    source: Vec<T>,
    target: Vec<T>,
    /// p_ij: heads x entries.
    attention: Vec<T>,
    /// Within a span: k_ij, then q_ij; and d loss / d p_ij.
    weights: Vec<T>,
    d_attention: Vec<T>,
    /// d loss / d(a_s . x_j), d loss / d(a_d . x_i): vertices, for one head.
    d_source: Vec<T>,
    d_target: Vec<T>,
}

/// Consecutive rows and their entries; rows are often too short for vectors, spans are not.
#[derive(Clone, Debug)]
struct Span {
    rows: Range<usize>,
    entries: Range<usize>,
}

impl Span {
    /// Entries a span has at least, but for the last.
    const ENTRIES: usize = 512;

    fn cover(pointers: &[usize]) -> Vec<Self> {
        let (mut spans, mut first) = (Vec::new(), 0);
        for (row, &end) in pointers.iter().enumerate().skip(1) {
            if end - pointers[first] >= Self::ENTRIES || row + 1 == pointers.len() {
                spans.push(Self { rows: first..row, entries: pointers[first]..end });
                first = row;
            }
        }
        spans
    }
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
        let spans = Span::cover(matrix.pointers());
        let longest = spans.iter().map(|span| span.entries.len()).max().unwrap_or(0);
        let zeros = |length: usize| vec![T::ZERO; length];
        Self {
            input,
            heads,
            edge_values,
            dropout,
            stream,
            mask: None,
            spans,
            source: zeros(nodes * count),
            target: zeros(nodes * count),
            attention: zeros(matrix.entries() * count),
            weights: zeros(longest),
            d_attention: zeros(longest),
            d_source: zeros(nodes),
            d_target: zeros(nodes),
            graph,
        }
    }

    /// a_s, a_d, and w_e, a_e where edge values are a bias.
    #[allow(clippy::type_complexity)] // four slices, two of them only together
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

/// c for a head: the factor of M_ij in the score, 0 where edge values are no bias.
#[inline(always)]
fn edge_factor<T: Real, const FUSED: bool>(edge: Option<(&[T], &[T])>, block: Range<usize>) -> T {
    edge.map_or(T::ZERO, |(weight, attention)| T::dot::<FUSED>(&weight[block.clone()], &attention[block]))
}

/// Writes k_ij, what q_ij is p_ij times, for entries of which the first is entry `first` of the mask.
#[inline(always)]
fn write_factors<T: Real>(
    mask: Option<Mask>,
    edge_values: EdgeValues,
    first: usize,
    values: &[T],
    factors: &mut [T],
) {
    factors.fill(T::ONE);
    if let Some(mask) = mask {
        mask.apply(first, factors, |one| one);
    }
    if edge_values == EdgeValues::Multiply {
        factors.iter_mut().zip(values).for_each(|(factor, &value)| *factor *= value);
    }
}

/// The largest of `values`; of none, minus infinity.
#[inline(always)]
fn largest<T: Real>(values: &[T]) -> T {
    let larger = |a: T, b: T| if a > b { a } else { b };
    let (chunks, rest) = values.as_chunks::<16>();
    let mut largest = rest.iter().fold(T::from_f64(f64::NEG_INFINITY), |a, &b| larger(a, b));
    if let Some((&first, others)) = chunks.split_first() {
        let mut lanes = first;
        for chunk in others {
            for lane in 0..16 {
                lanes[lane] = larger(lanes[lane], chunk[lane]);
            }
        }
        largest = lanes.iter().fold(largest, |a, &b| larger(a, b));
    }
    largest
}

/// The sum of `values`, in a fixed order.
#[inline(always)]
fn sum<T: Real>(values: &[T]) -> T {
    let (chunks, rest) = values.as_chunks::<16>();
    let mut sum: T = rest.iter().copied().sum();
    if let Some((&first, others)) = chunks.split_first() {
        let mut lanes = first;
        for chunk in others {
            for lane in 0..16 {
                lanes[lane] += chunk[lane];
            }
        }
        sum += lanes.iter().copied().sum();
    }
    sum
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
        let (a_source, a_target, edge) = layer.split(theta);
        let (heads, stride) = (layer.input.count(), layer.input.block_stride());
        let average = layer.heads == Heads::Average;
        let share = if average { T::ONE / T::from_f64(heads as f64) } else { T::ONE };
        let Attention { graph, mask, edge_values, spans, source, target, attention, weights, .. } = layer;
        let matrix = graph.matrix();
        let (nodes, entries) = (matrix.rows(), matrix.entries());
        let (x_stride, y_stride) = (x.stride(), y.stride());
        let (x, y) = (x.values(), y.values_mut());
        for h in 0..heads {
            let first_to_write = !average || h == 0;
            let block = h * stride..(h + 1) * stride;
            let source = &mut source[h * nodes..][..nodes];
            let target = &mut target[h * nodes..][..nodes];
            let p = &mut attention[h * entries..][..entries];
            let c = edge_factor::<T, FUSED>(edge, block.clone());
            for (i, x) in x.chunks_exact(x_stride).enumerate() {
                source[i] = T::dot::<FUSED>(&x[block.clone()], &a_source[block.clone()]);
                target[i] = T::dot::<FUSED>(&x[block.clone()], &a_target[block.clone()]);
            }
            for span in spans.iter() {
                for i in span.rows.clone() {
                    let (columns, values) = matrix.row(i);
                    let p = &mut p[matrix.pointers()[i]..][..columns.len()];
                    for ((p, &j), &value) in p.iter_mut().zip(columns).zip(values) {
                        let score = source[j as usize] + target[i];
                        let score = if edge.is_some() { score + c * value } else { score };
                        *p = if score > T::ZERO { score } else { score * T::from_f64(SLOPE) };
                    }
                    let largest = largest(p);
                    p.iter_mut().for_each(|p| *p -= largest);
                }
                p[span.entries.clone()].iter_mut().for_each(|p| *p = p.fast_exp());
                let weights = &mut weights[..span.entries.len()];
                let values = &matrix.values()[span.entries.clone()];
                write_factors(*mask, *edge_values, h * entries + span.entries.start, values, weights);
                for i in span.rows.clone() {
                    let columns = matrix.row(i).0;
                    let first = matrix.pointers()[i];
                    let p = &mut p[first..][..columns.len()];
                    let q = &mut weights[first - span.entries.start..][..columns.len()];
                    let inverse = T::ONE / sum(p);
                    for (p, q) in p.iter_mut().zip(q.iter_mut()) {
                        *p *= inverse;
                        *q *= *p * share;
                    }
                    let y = &mut y[i * y_stride + if average { 0 } else { block.start }..][..stride];
                    for_tiles!(stride, |offset, W| {
                        let mut sum = [T::ZERO; W];
                        for (&j, &q) in columns.iter().zip(q.iter()) {
                            let at = j as usize * x_stride + block.start + offset;
                            accumulate::<T, W, FUSED>(&mut sum, q, tile(x, at));
                        }
                        let y = tile_mut::<T, W>(y, offset);
                        for w in 0..W {
                            y[w] = if first_to_write { sum[w] } else { y[w] + sum[w] };
                        }
                    });
                }
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
        let (a_source, a_target, edge) = layer.split(theta);
        let (heads, stride) = (layer.input.count(), layer.input.block_stride());
        let average = layer.heads == Heads::Average;
        let share = if average { T::ONE / T::from_f64(heads as f64) } else { T::ONE };
        let Attention { graph, mask, edge_values, spans, source, target, attention, weights, .. } = layer;
        let Attention { d_attention, d_source, d_target, .. } = layer;
        let matrix = graph.matrix();
        let (nodes, entries) = (matrix.rows(), matrix.entries());
        let x_stride = x.stride();
        let (x, dx) = (x.values(), dx.values_mut());
        dx.fill(T::ZERO);
        gradient.fill(T::ZERO);
        for h in 0..heads {
            let block = h * stride..(h + 1) * stride;
            let source = &source[h * nodes..][..nodes];
            let target = &target[h * nodes..][..nodes];
            let p = &attention[h * entries..][..entries];
            let c = edge_factor::<T, FUSED>(edge, block.clone());
            let mut d_edge = T::ZERO;
            d_source.fill(T::ZERO);
            for span in spans.iter() {
                let weights = &mut weights[..span.entries.len()];
                let values = &matrix.values()[span.entries.clone()];
                write_factors(*mask, *edge_values, h * entries + span.entries.start, values, weights);
                for i in span.rows.clone() {
                    let (columns, values) = matrix.row(i);
                    let first = matrix.pointers()[i];
                    let p = &p[first..][..columns.len()];
                    let k = &mut weights[first - span.entries.start..][..columns.len()];
                    let dp = &mut d_attention[..columns.len()];
                    let g = &dy.row(i)[if average { 0 } else { block.start }..][..stride];
                    for (dp, &j) in dp.iter_mut().zip(columns) {
                        *dp = T::dot::<FUSED>(g, &x[j as usize * x_stride + block.start..][..stride]);
                    }
                    for (k, dp) in k.iter_mut().zip(dp.iter_mut()) {
                        *k *= share;
                        *dp *= *k;
                    }
                    let whole = p.len() / LANES * LANES;
                    let rest = p[whole..].iter().zip(&dp[whole..]).map(|(&p, &dp)| p * dp).sum::<T>();
                    let mean = T::dot::<FUSED>(&p[..whole], &dp[..whole]) + rest; // sum_l p_il d p_il
                    k.iter_mut().zip(p).for_each(|(k, &p)| *k *= p); // now q_ij
                    for_tiles!(stride, |offset, W| {
                        let g = *tile::<T, W>(g, offset);
                        for (&j, &q) in columns.iter().zip(k.iter()) {
                            let at = j as usize * x_stride + block.start + offset;
                            accumulate::<T, W, FUSED>(tile_mut(dx, at), q, &g);
                        }
                    });
                    let mut v = T::ZERO;
                    for at in 0..columns.len() {
                        let j = columns[at] as usize;
                        let score = source[j] + target[i];
                        let score = if edge.is_some() { score + c * values[at] } else { score };
                        let slope = if score > T::ZERO { T::ONE } else { T::from_f64(SLOPE) };
                        let dr = p[at] * (dp[at] - mean) * slope;
                        d_source[j] += dr;
                        v += dr;
                        if edge.is_some() {
                            d_edge += dr * values[at];
                        }
                    }
                    d_target[i] = v;
                }
            }
            let width = gradient.len() / if edge.is_some() { 4 } else { 2 };
            if let Some((weight, attention)) = edge {
                for at in block.clone() {
                    gradient[2 * width + at] = d_edge * attention[at];
                    gradient[3 * width + at] = d_edge * weight[at];
                }
            }
            for_tiles!(stride, |offset, W| {
                let at = block.start + offset;
                let (a_source, a_target) = (*tile::<T, W>(a_source, at), *tile::<T, W>(a_target, at));
                let (mut d_a_source, mut d_a_target) = ([T::ZERO; W], [T::ZERO; W]);
                for i in 0..nodes {
                    let x = tile::<T, W>(x, i * x_stride + at);
                    let dx = tile_mut::<T, W>(dx, i * x_stride + at);
                    accumulate::<T, W, FUSED>(dx, d_source[i], &a_source);
                    accumulate::<T, W, FUSED>(dx, d_target[i], &a_target);
                    accumulate::<T, W, FUSED>(&mut d_a_source, d_source[i], x);
                    accumulate::<T, W, FUSED>(&mut d_a_target, d_target[i], x);
                }
                *tile_mut(gradient, at) = d_a_source;
                *tile_mut(gradient, width + at) = d_a_target;
            });
        }
    }
}
