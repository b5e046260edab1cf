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
//! Heads are concatenated, or averaged. A row without entries gives 0. Cost: O((entries + vertices) * heads *
//! width) time; besides activations, two numbers for each entry and head.

mod backward;
mod forward;

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use self::backward::Backward;
use self::forward::Forward;
use super::{Layer, Parameter, Pass, Start};
use crate::hardware::dispatch;
use crate::program::{Describe, Dropout, Operation};
use crate::random::Mask;
use crate::sparse::ranges;
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
/// Rows of a graph are short, so what is done for each entry is done for a group of heads at once: their
/// numbers lie side by side (see `for_groups!` below). Products with x go head by head where heads are wide.
pub struct Attention<T> {
    graph: Arc<Propagation<T>>,
    input: Width,
    heads: Heads,
    edge_values: EdgeValues,
    dropout: f64,
    stream: u64,
    mask: Option<Mask>,
    spans: Vec<Span>,
    /// a_s . x_j and a_d . x_i: groups x vertices x heads of the group.
    source: Vec<T>,
    target: Vec<T>,
    /// p_ij, groups x entries x heads of the group. **The sign is the dropout mask**: minus where p_ij was
    /// dropped, which is unambiguous where p_ij > 0, and where p_ij = 0 nothing depends on it.
    attention: Vec<T>,
    /// For one group: d loss / d q_ij, then d loss / d r_ij.
    d_scores: Vec<T>,
    /// For one group: u_j = d loss / d(a_s . x_j), v_i = d loss / d(a_d . x_i).
    d_source: Vec<T>,
    d_target: Vec<T>,
    numbers: Numbers,
}

/// Most heads a group has.
pub(crate) const GROUP: usize = 4;

/// Calls the body for groups of 4 heads, then of 1, until all `$heads` are done: `$first` is the first head
/// of a group, the constant `$H` their number.
macro_rules! for_groups {
    ($heads:expr, |$first:ident, $H:ident| $body:expr) => {{
        let mut $first = 0;
        while $first + GROUP <= $heads {
            const $H: usize = GROUP;
            $body;
            $first += GROUP;
        }
        while $first < $heads {
            const $H: usize = 1;
            $body;
            $first += 1;
        }
    }};
}
use for_groups;

/// Columns of a head from which on heads are multiplied one by one.
const WIDE: usize = 64;

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
    /// Attention over the stored entries of the matrix of `graph`, with `input.count()` heads of
    /// `input.of_block()` columns.
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
        let group = if count < GROUP { 1 } else { GROUP };
        let spans = Span::cover(matrix.pointers());
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
            d_scores: zeros(matrix.entries() * group),
            d_source: zeros(nodes * group),
            d_target: zeros(nodes * group),
            numbers: Numbers { all: (0..nodes as u32).collect(), kept: vec![0; nodes] },
            graph,
        }
    }

    /// The vertices in the portions that are taken through all heads before the next one: all of them as long
    /// as the columns of one head stay in the second-level cache meanwhile; otherwise so few that the
    /// hardware sees the rows of their neighbours as streams, and fetches the next head's columns ahead.
    fn portions(&self) -> impl Iterator<Item = Range<usize>> + use<T> {
        const CACHE: usize = 1 << 21; // bytes
        let nodes = self.graph.nodes();
        let fits = nodes * self.input.block_stride() * size_of::<T>() <= CACHE;
        ranges(nodes, if fits { nodes } else { 4 })
    }

    /// What every p_ij that was kept is multiplied by: 1 / (1 - rate), and the share of a head in their average.
    fn factor(&self) -> T {
        let scale = self.mask.map_or(1.0, Mask::scale);
        T::from_f64(match self.heads {
            Heads::Concatenate => scale,
            Heads::Average => scale / self.input.count() as f64,
        })
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

    /// Backwards through the five lines above, for one head, with g_i = dy_i (divided by the number of heads
    /// where they are averaged) and k_ij = q_ij / p_ij the product of the dropout mask and M_ij:
    ///
    /// ```text
    /// d q_ij = g_i . x_j                            dx_j  = sum_i q_ij g_i
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
        dy: &Matrix<T>,
        gradient: &mut [T],
        dx: &mut Matrix<T>,
    ) {
        dispatch(Backward { layer: self, theta, x, dy, gradient, dx });
    }
}

impl<T: Real> Describe<T> for Attention<T> {
    fn operation(&self) -> Operation<T> {
        Operation::Attention {
            matrix: Arc::clone(&self.graph),
            input: self.input,
            heads: self.heads,
            edge_values: self.edge_values,
            dropout: Dropout { rate: self.dropout, stream: self.stream },
        }
    }
}

/// The parameters of the layer, taken apart.
struct Theta<'a, T> {
    /// a_s.
    source: &'a [T],
    /// a_d.
    target: &'a [T],
    /// w_e and a_e, where edge values are a bias.
    edge: Option<(&'a [T], &'a [T])>,
}

impl<'a, T: Real> Theta<'a, T> {
    fn of<U>(layer: &Attention<U>, theta: &'a [T]) -> Self {
        let stride = layer.input.stride();
        let (source, rest) = theta.split_at(stride);
        let (target, rest) = rest.split_at(stride);
        let edge = (layer.edge_values == EdgeValues::Bias).then(|| rest.split_at(stride));
        Self { source, target, edge }
    }

    /// c for `H` heads, of `stride` columns each, from `first` on: the factors of M_ij in the score; 0 where
    /// edge values are no bias.
    #[inline(always)]
    fn edge_factors<const H: usize, const FUSED: bool>(&self, first: usize, stride: usize) -> [T; H] {
        let mut factors = [T::ZERO; H];
        if let Some((weight, attention)) = self.edge {
            for h in 0..H {
                let block = (first + h) * stride..(first + h + 1) * stride;
                factors[h] = T::dot::<FUSED>(&weight[block.clone()], &attention[block]);
            }
        }
        factors
    }
}

/// r_ij of a group of heads.
#[inline(always)]
fn raw_scores<T: Real, const H: usize>(source: &[T; H], target: &[T; H], edge: &[T; H], value: T) -> [T; H] {
    let mut scores = [T::ZERO; H];
    for h in 0..H {
        scores[h] = source[h] + target[h] + edge[h] * value;
    }
    scores
}

/// Whether dropout took this stored p_ij. NaN is never taken: a divergence must come to light.
#[inline(always)]
fn dropped<T: Real>(marked: T) -> bool {
    marked < T::ZERO
}

/// What stayed of a stored p_ij: itself where it is not marked as dropped.
#[inline(always)]
fn kept<T: Real>(marked: T) -> T {
    if dropped(marked) { T::ZERO } else { marked }
}

/// The entries of a row or column that are worked on, by their numbers within it.
struct Numbers {
    /// 0, 1, 2...
    all: Vec<u32>,
    kept: Vec<u32>,
}

impl Numbers {
    /// Of the first `count` entries, for `G` heads: those that dropout has left to one head alone, which is
    /// half of the work at the usual rate; all of them for several heads together.
    #[inline(always)]
    fn of<T: Real, const G: usize>(&mut self, count: usize, marked: impl Fn(usize) -> T) -> &[u32] {
        if G > 1 {
            return &self.all[..count];
        }
        let kept = &mut self.kept[..count];
        let mut length = 0;
        for at in 0..count {
            kept[length] = at as u32; // written always, counted only if kept: no branch to mispredict
            length += usize::from(!dropped(marked(at)));
        }
        &kept[..length]
    }
}
