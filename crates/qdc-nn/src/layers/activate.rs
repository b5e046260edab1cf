//! Bias, non-linearity and the next layer's dropout in one pass over memory: y = drop(act(x + b)).

use std::ops::Range;

use super::{Parameter, Pass, Start};
use crate::hardware::{Loops, dispatch};
use crate::parallel::{BLOCK, add_in_order, for_each, for_rows};
use crate::program::{ActivateStage, Dropout};
use crate::random::Mask;
use crate::{Matrix, Real, Width};

/// Rows that are taken through all steps before the next ones: they stay in the first-level cache, and whole
/// blocks of a mask lie in them.
const ROWS: usize = 8;

/// Multiplications that take the time of one entry, about: of its mask, mostly.
const OPERATIONS: usize = 8;

/// The non-linearity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Activation {
    /// act(a) = a.
    Identity,
    /// act(a) = max(a, 0).
    Relu,
    /// act(a) = a for a > 0, e^a - 1 below.
    Elu,
}

impl Activation {
    #[inline(always)]
    fn apply<T: Real, const FUSED: bool>(self, a: T) -> T {
        match self {
            Self::Identity => a,
            Self::Relu => a.max(T::ZERO),
            Self::Elu => {
                let below = a.fast_exp::<FUSED>() - T::ONE;
                if a > T::ZERO { a } else { below }
            }
        }
    }

    /// act'(a), given act(a) only: 1 where that is positive, below it 0 (ReLU) or e^a = act(a) + 1 (ELU).
    #[inline(always)]
    fn slope<T: Real>(self, value: T) -> T {
        match self {
            Self::Identity => T::ONE,
            Self::Relu => {
                if value > T::ZERO {
                    T::ONE
                } else {
                    T::ZERO
                }
            }
            Self::Elu => {
                if value > T::ZERO {
                    T::ONE
                } else {
                    value + T::ONE
                }
            }
        }
    }
}

/// y = drop(act(x + b)), **in place**: x is overwritten by y, and later dy by dx. The bias is optional.
///
/// Runs in place: no backward pass reads its own output, and this one needs y only. On large graphs moving
/// arrays through memory is what takes the time.
pub struct Activate {
    width: Width,
    activation: Activation,
    bias: bool,
    dropout: f64,
    stream: u64,
    mask: Option<Mask>,
}

impl Activate {
    /// Applies `activation`, then, in training, a dropout of rate `dropout` from the random stream `stream`.
    pub fn new(width: Width, activation: Activation, bias: bool, dropout: f64, stream: u64) -> Self {
        Self { width, activation, bias, dropout, stream, mask: None }
    }

    /// max(x, 0) and nothing else.
    pub fn relu(width: Width) -> Self {
        Self::new(width, Activation::Relu, false, 0.0, 0)
    }

    /// The parameters: the bias, if there is one.
    pub fn parameters(&self) -> Vec<Parameter> {
        let bias = Parameter::vector("bias", self.width, Start::Zero);
        if self.bias { vec![bias] } else { Vec::new() }
    }

    /// The same as plain data; the bias lies at `bias` among the parameters.
    pub(crate) fn stage(&self, bias: Range<usize>) -> ActivateStage {
        let dropout = Dropout { rate: self.dropout, stream: self.stream };
        ActivateStage { activation: self.activation, dropout, bias }
    }

    /// From x to y; `theta` is the bias.
    pub fn forward<T: Real>(&mut self, theta: &[T], y: &mut Matrix<T>, pass: Pass) {
        self.mask = pass.mask(self.dropout, self.stream);
        let (activation, mask, stride) = (self.activation, self.mask, self.width.stride());
        let work = OPERATIONS * y.values().len();
        for_rows(y.values_mut(), stride, (ROWS, ROWS), work, |first, y| {
            dispatch(Forward { activation, mask, stride, bias: theta, first: first * stride, y });
        });
    }

    /// From dy to dx, and to the gradient of the bias; y as [`Activate::forward`] left it.
    ///
    /// With a = x + b and the mask k (k_ij is 0 or 1 / (1 - rate)): y_ij = k_ij act(a_ij), so
    /// dx_ij = dy_ij k_ij act'(a_ij), and since every row shares the bias, db_j = sum_i dx_ij.
    pub fn backward<T: Real>(&mut self, y: &Matrix<T>, dy: &mut Matrix<T>, gradient: &mut [T]) {
        let (activation, mask, stride) = (self.activation, self.mask, self.width.stride());
        let work = OPERATIONS * y.values().len();
        let block = BLOCK * stride;
        if dy.rows() <= BLOCK {
            let (y, dy) = (y.values(), dy.values_mut());
            return dispatch(Backward { activation, mask, stride, first: 0, y, dy, d_bias: gradient });
        }
        let mut sums = vec![T::ZERO; dy.rows().div_ceil(BLOCK) * gradient.len()];
        let mut sums_of = sums.chunks_mut(gradient.len().max(1));
        let blocks = dy.values_mut().chunks_mut(block).zip(y.values().chunks(block)).enumerate();
        let each = blocks.map(|(number, (dy, y))| {
            let d_bias = sums_of.next().unwrap_or_default(); // without a bias there is nothing to add to
            Backward { activation, mask, stride, first: number * block, y, dy, d_bias }
        });
        for_each(each.collect(), work, dispatch);
        add_in_order(gradient, &sums);
    }
}

struct Forward<'a, T> {
    activation: Activation,
    mask: Option<Mask>,
    stride: usize,
    bias: &'a [T],
    /// The place of the first number in the mask.
    first: usize,
    y: &'a mut [T],
}

impl<T: Real> Loops for Forward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        // One loop for each activation, so that the choice is not made for every entry.
        match self.activation {
            Activation::Identity => self.rows(|a| Activation::Identity.apply::<T, FUSED>(a)),
            Activation::Relu => self.rows(|a| Activation::Relu.apply::<T, FUSED>(a)),
            Activation::Elu => self.rows(|a| Activation::Elu.apply::<T, FUSED>(a)),
        }
    }
}

impl<T: Real> Forward<'_, T> {
    #[inline(always)]
    fn rows(self, activation: impl Fn(T) -> T) {
        let Self { mask, stride, bias, first, y, .. } = self;
        let chunk = ROWS * stride;
        for (number, y) in y.chunks_mut(chunk).enumerate() {
            for row in y.chunks_exact_mut(stride) {
                for (y, &bias) in row.iter_mut().zip(bias) {
                    *y += bias; // without a bias there is nothing to add
                }
            }
            match mask {
                Some(mask) => mask.apply(first + number * chunk, y, &activation),
                None => y.iter_mut().for_each(|y| *y = activation(*y)),
            }
        }
    }
}

struct Backward<'a, T> {
    activation: Activation,
    mask: Option<Mask>,
    stride: usize,
    /// The place of the first number in the mask.
    first: usize,
    y: &'a [T],
    dy: &'a mut [T],
    d_bias: &'a mut [T],
}

impl<T: Real> Loops for Backward<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        match self.activation {
            Activation::Identity => self.entries(|value| Activation::Identity.slope(value)),
            Activation::Relu => self.entries(|value| Activation::Relu.slope(value)),
            Activation::Elu => self.entries(|value| Activation::Elu.slope(value)),
        }
    }
}

impl<T: Real> Backward<'_, T> {
    #[inline(always)]
    fn entries(self, slope: impl Fn(T) -> T) {
        let Self { mask, stride, first, y, dy, d_bias, .. } = self;
        d_bias.fill(T::ZERO);
        let share = T::from_f64(mask.map_or(1.0, |mask| 1.0 / mask.scale()));
        let chunk = ROWS * stride;
        for (number, (dy, y)) in dy.chunks_mut(chunk).zip(y.chunks(chunk)).enumerate() {
            for (dy, &y) in dy.iter_mut().zip(y) {
                *dy *= slope(y * share); // y carries the factor of the mask
            }
            if let Some(mask) = mask {
                mask.apply(first + number * chunk, dy, |dy| dy);
            }
            for row in dy.chunks_exact(stride) {
                for (sum, &value) in d_bias.iter_mut().zip(row) {
                    *sum += value; // without a bias there is nothing to add to
                }
            }
        }
    }
}
