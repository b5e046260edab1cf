//! One channel: y = P(L) (drop(S) W) + c b, divided by its rows' norms, and its derivatives.

use std::ops::Range;
use std::sync::Arc;

use qdc_core::chebyshev::Recurrence;

use super::BankArchitecture;
use super::inputs::{ChannelInput, ChannelMap, ChannelSource};
use super::program::ChannelStage;
use super::window::{LearnedWindow, WindowSeries};
use crate::chain::Placement;
use crate::dense::{View, product};
use crate::hardware::{Loops, dispatch, multiply_add};
use crate::layers::{DenseFeatureLinear, Layer, Parameter, Pass, SparseFeatureLinear, Start};
use crate::program::Dropout;
use crate::{Matrix, Real, Width};

/// The constant column of a channel, as a share of its size.
const BIAS: f64 = 0.3;
/// What a norm is at least.
const SMALLEST_NORM: f64 = 1e-12;

/// A channel of a network: its layer, its map, and what the backward pass needs.
pub(super) struct Channel<T> {
    source: ChannelSource<T>,
    linear: Box<dyn Layer<T>>,
    map: ChannelMap<T>,
    constant: T,
    norm: bool,
    weight: Range<usize>,
    bias: Range<usize>,
    /// The output: a row for each vertex.
    pub(super) output: Matrix<T>,
    /// What the rows were divided by, inverted.
    inverse: Vec<T>,
    learned: Option<Learned<T>>,
    /// The coordinates of a projection.
    coordinates: Matrix<T>,
}

/// What a learned map adds: its parameters, its series, and what it acted on.
struct Learned<T> {
    window: Range<usize>,
    series: WindowSeries,
    input: Matrix<T>,
    moments: Vec<f64>,
}

/// Memory that the channels of a network share.
pub(super) struct Scratch<T> {
    pub(super) hidden: Matrix<T>,
    recurrence: Recurrence<T>,
}

impl<T: Real> Scratch<T> {
    pub(super) fn new(nodes: usize, hidden: usize) -> Self {
        Self { hidden: Matrix::zeros(nodes, Width::single(hidden)), recurrence: Recurrence::new(nodes) }
    }
}

impl<T: Real> Channel<T> {
    /// Channel number `number`, its matrix and constant row placed; `stream` numbers its dropout.
    pub(super) fn new(
        input: &ChannelInput<T>,
        architecture: &BankArchitecture,
        number: usize,
        placement: &mut Placement,
    ) -> Self {
        let width = Width::single(architecture.hidden);
        let Dropout { rate: dropout, stream } = architecture.input_dropout_of(number);
        let (linear, columns): (Box<dyn Layer<T>>, usize) = match &input.source {
            ChannelSource::Sparse(matrix) => {
                let layer = SparseFeatureLinear::new(Arc::clone(matrix), width, dropout, stream);
                (Box::new(layer), matrix.columns())
            }
            ChannelSource::Dense(matrix) => {
                let layer = DenseFeatureLinear::new(Arc::clone(matrix), width, dropout, stream);
                (Box::new(layer), matrix.width().columns())
            }
        };
        // The constant row is a row of the same matrix: both start by the rule for one more input.
        let start = Start::Glorot { inputs: columns + 1, outputs: architecture.hidden };
        let scope = format!("channels.{number}");
        let weights =
            linear.parameters().into_iter().map(|parameter| Parameter { start, ..parameter }).collect();
        let weight = placement.place(&scope, weights);
        let bias = placement.place(&scope, vec![Parameter::vector("bias", width, start)]);
        let nodes = input.nodes();
        let coordinates = match &input.map {
            ChannelMap::Projection(vectors) => Matrix::zeros(vectors.stride(), width),
            _ => Matrix::zeros(0, width),
        };
        Self {
            source: input.source.clone(),
            linear,
            map: input.map.clone(),
            constant: T::from_f64(BIAS * input.size),
            norm: architecture.norm,
            weight,
            bias,
            output: Matrix::zeros(nodes, width),
            inverse: vec![T::ONE; nodes],
            learned: None,
            coordinates,
        }
    }

    /// Places the parameters of a learned window, where the channel has one; gives where it starts.
    pub(super) fn place_window(
        &mut self,
        number: usize,
        placement: &mut Placement,
    ) -> Option<(Range<usize>, LearnedWindow)> {
        let ChannelMap::Learned { start, .. } = &self.map else { return None };
        let start = *start;
        let parameter = Parameter::vector("window", Width::single(2), Start::Zero);
        let window = placement.place(&format!("channels.{number}"), vec![parameter]);
        self.learned = Some(Learned {
            window: window.clone(),
            series: WindowSeries::new::<T>(),
            input: self.output.clone(),
            moments: Vec::with_capacity(1024),
        });
        Some((window, start))
    }

    /// The channel as plain data, under the dropouts of its input and of its output.
    pub(super) fn stage(&self, input_dropout: Dropout, dropout: Dropout) -> ChannelStage<T> {
        ChannelStage {
            source: self.source.clone(),
            map: self.map.clone(),
            constant: self.constant.to_f64(),
            weight: self.weight.clone(),
            bias: self.bias.clone(),
            window: self.learned.as_ref().map(|learned| learned.window.clone()),
            input_dropout,
            dropout,
        }
    }

    /// Computes the output.
    pub(super) fn forward(&mut self, theta: &[T], scratch: &mut Scratch<T>, pass: Pass, nothing: &Matrix<T>) {
        let stride = self.output.stride();
        let Scratch { hidden, recurrence } = scratch;
        let weight = &theta[self.weight.clone()];
        match (&self.map, &mut self.learned) {
            (ChannelMap::Identity, _) => self.linear.forward(weight, nothing, &mut self.output, pass),
            (ChannelMap::Series { operator, coefficients }, _) => {
                self.linear.forward(weight, nothing, hidden, pass);
                recurrence.apply(operator, coefficients, hidden.values(), stride, self.output.values_mut());
            }
            (ChannelMap::Projection(vectors), _) => {
                self.linear.forward(weight, nothing, hidden, pass);
                project(vectors, hidden, &mut self.coordinates, &mut self.output);
            }
            (ChannelMap::Learned { operator, .. }, learned) => {
                let learned = learned.as_mut().expect("a learned window was placed");
                self.linear.forward(weight, nothing, &mut learned.input, pass);
                let window = &theta[learned.window.clone()];
                learned.series.set(window[0].to_f64(), window[1].to_f64());
                let coefficients = learned.series.coefficients();
                recurrence.apply(
                    operator,
                    coefficients,
                    learned.input.values(),
                    stride,
                    self.output.values_mut(),
                );
            }
        }
        let bias = &theta[self.bias.clone()];
        let (constant, norm) = (self.constant, self.norm);
        let (y, inverse) = (self.output.values_mut(), &mut self.inverse);
        dispatch(Finish { bias, constant, norm, y, inverse });
    }

    /// From d loss / d output, which is overwritten, to the gradients of the parameters.
    pub(super) fn backward(
        &mut self,
        theta: &[T],
        dy: &mut Matrix<T>,
        scratch: &mut Scratch<T>,
        gradient: &mut [T],
        nothing: &Matrix<T>,
    ) {
        let stride = dy.stride();
        let Scratch { hidden, recurrence } = scratch;
        dispatch(Unfinish {
            constant: self.constant,
            norm: self.norm,
            y: self.output.values(),
            inverse: &self.inverse,
            dy: dy.values_mut(),
            d_bias: &mut gradient[self.bias.clone()],
        });
        // P(L) is symmetric: what maps x to y maps dy to dx.
        let d_input = match (&self.map, &mut self.learned) {
            (ChannelMap::Identity, _) => &*dy,
            (ChannelMap::Series { operator, coefficients }, _) => {
                recurrence.apply(operator, coefficients, dy.values(), stride, hidden.values_mut());
                hidden
            }
            (ChannelMap::Projection(vectors), _) => {
                project(vectors, dy, &mut self.coordinates, hidden);
                hidden
            }
            (ChannelMap::Learned { operator, .. }, learned) => {
                let learned = learned.as_mut().expect("a learned window was placed");
                let Learned { window, series, input, moments } = learned;
                let coefficients = series.coefficients();
                moments.resize(coefficients.len(), 0.0);
                let (x, out) = (dy.values(), hidden.values_mut());
                recurrence.apply_with_moments(
                    operator,
                    coefficients,
                    x,
                    input.values(),
                    stride,
                    out,
                    moments,
                );
                let [by_mu, by_sigma] = series.slopes(moments);
                gradient[window.start] = T::from_f64(by_mu);
                gradient[window.start + 1] = T::from_f64(by_sigma);
                hidden
            }
        };
        let weight = self.weight.clone();
        let mut unwanted = Matrix::zeros(0, Width::single(1)); // features are constants
        self.linear.backward(&theta[weight.clone()], nothing, d_input, &mut gradient[weight], &mut unwanted);
    }
}

impl<T: Real> ChannelInput<T> {
    fn nodes(&self) -> usize {
        match &self.source {
            ChannelSource::Sparse(matrix) => matrix.rows(),
            ChannelSource::Dense(matrix) => matrix.rows(),
        }
    }
}

/// out = V V^T x.
fn project<T: Real>(vectors: &Matrix<T>, x: &Matrix<T>, coordinates: &mut Matrix<T>, out: &mut Matrix<T>) {
    product(View::from(vectors).transposed(), x.into(), coordinates.values_mut());
    product(vectors.into(), (&*coordinates).into(), out.values_mut());
}

/// y <- (y + c b) / |y + c b|, row by row.
struct Finish<'a, T> {
    bias: &'a [T],
    constant: T,
    norm: bool,
    y: &'a mut [T],
    inverse: &'a mut [T],
}

impl<T: Real> Loops for Finish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { bias, constant, norm, y, inverse } = self;
        for (row, inverse) in y.chunks_exact_mut(bias.len()).zip(inverse) {
            for (y, &b) in row.iter_mut().zip(bias) {
                *y = multiply_add::<T, FUSED>(constant, b, *y);
            }
            if norm {
                *inverse = T::ONE / T::dot::<FUSED>(row, row).sqrt().max(T::from_f64(SMALLEST_NORM));
                row.iter_mut().for_each(|y| *y *= *inverse);
            }
        }
    }
}

/// The way back. With y = h / |h|: dh = (dy - y <y, dy>) / |h|; db = c times the sum over rows of dh.
struct Unfinish<'a, T> {
    constant: T,
    norm: bool,
    y: &'a [T],
    inverse: &'a [T],
    dy: &'a mut [T],
    d_bias: &'a mut [T],
}

impl<T: Real> Loops for Unfinish<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { constant, norm, y, inverse, dy, d_bias } = self;
        d_bias.fill(T::ZERO);
        let rows = y.chunks_exact(d_bias.len()).zip(dy.chunks_exact_mut(d_bias.len())).zip(inverse);
        for ((y, dy), &inverse) in rows {
            if norm {
                let along = T::dot::<FUSED>(y, dy);
                for (dy, &y) in dy.iter_mut().zip(y) {
                    *dy = multiply_add::<T, FUSED>(-along, y, *dy) * inverse;
                }
            }
            for (sum, &dy) in d_bias.iter_mut().zip(dy.iter()) {
                *sum = multiply_add::<T, FUSED>(constant, dy, *sum);
            }
        }
    }
}
