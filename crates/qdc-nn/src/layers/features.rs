//! Where a network begins: the features of the vertices, with dropout.
//!
//! Features are constants, so no gradient is taken with respect to them. Sparse ones are multiplied with the
//! first weights without ever being written out, and dropout draws a mask for the stored entries only: a
//! dropped zero is still zero. Most of the time of a dense first layer is spent on those zeros.

use std::sync::Arc;

use qdc_core::Csr;

use super::{Layer, Parameter, Pass, Rows};
use crate::dense::{View, product};
use crate::hardware::{Loops, dispatch};
use crate::matrix::LANES;
use crate::parallel::for_rows;
use crate::program::{Describe, Dropout, Operation};
use crate::random::Mask;
use crate::sparse::{SparseRows, gather, scatter};
use crate::{Matrix, Real, Width};

/// y = drop(X) W with sparse features X; the first layer of a network, so its input x is empty.
pub struct SparseFeatureLinear<T> {
    features: Arc<Csr<T>>,
    output: Width,
    dropout: f64,
    stream: u64,
    kept: Kept<T>,
    masked: bool,
}

impl<T: Real> SparseFeatureLinear<T> {
    /// Maps `features` to `output` columns, dropping a share `dropout` of them in training; `stream` numbers
    /// the random stream of the masks.
    pub fn new(features: Arc<Csr<T>>, output: Width, dropout: f64, stream: u64) -> Self {
        let room = if dropout > 0.0 { features.entries() } else { 0 };
        let kept = Kept {
            pointers: vec![0; features.rows() + 1],
            indices: vec![0; room],
            values: vec![T::ZERO; room],
            flags: vec![0; room],
        };
        Self { features, output, dropout, stream, kept, masked: false }
    }

    fn operand(&self) -> SparseRows<'_, T> {
        if self.masked { self.kept.rows() } else { (&*self.features).into() }
    }
}

impl<T: Real> Layer<T> for SparseFeatureLinear<T> {
    fn width(&self) -> Width {
        self.output
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::weight(Rows::Features(self.features.columns()), self.output)]
    }

    fn forward(&mut self, theta: &[T], _x: &Matrix<T>, y: &mut Matrix<T>, pass: Pass) {
        let mask = pass.mask(self.dropout, self.stream);
        self.masked = mask.is_some();
        if let Some(mask) = mask {
            dispatch(Draw { mask, features: &self.features, kept: &mut self.kept });
        }
        gather(self.operand(), theta, self.output, y.values_mut());
    }

    /// dW = drop(X)^T dy, as for any linear map; each kept entry (i, j, v) adds v dy_i to row j of dW.
    fn backward(
        &mut self,
        _theta: &[T],
        _x: &Matrix<T>,
        dy: &Matrix<T>,
        gradient: &mut [T],
        _dx: &mut Matrix<T>,
    ) {
        scatter(self.operand(), dy.values(), self.output, gradient);
    }
}

impl<T: Real> Describe<T> for SparseFeatureLinear<T> {
    fn operation(&self) -> Operation<T> {
        let dropout = Dropout { rate: self.dropout, stream: self.stream };
        Operation::SparseFeatures { features: Arc::clone(&self.features), dropout }
    }
}

/// The entries of the features that survived dropout, scaled; room for all of them is kept from step to step.
struct Kept<T> {
    pointers: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<T>,
    flags: Vec<u8>,
}

impl<T> Kept<T> {
    fn rows(&self) -> SparseRows<'_, T> {
        SparseRows { pointers: &self.pointers, indices: &self.indices, values: &self.values }
    }
}

/// Draws a mask and moves what stays to the front.
struct Draw<'a, T> {
    mask: Mask,
    features: &'a Csr<T>,
    kept: &'a mut Kept<T>,
}

impl<T: Real> Loops for Draw<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { mask, features, kept } = self;
        mask.write_flags(&mut kept.flags); // this vectorises, what follows cannot
        let scale = T::from_f64(mask.scale());
        let mut next = 0;
        for row in 0..features.rows() {
            let (start, end) = (features.pointers()[row], features.pointers()[row + 1]);
            let entries = features.indices()[start..end].iter().zip(&features.values()[start..end]);
            for ((&index, &value), &flag) in entries.zip(&kept.flags[start..end]) {
                // Written always, counted only if kept: no branch to mispredict.
                kept.indices[next] = index;
                kept.values[next] = value * scale;
                next += usize::from(flag);
            }
            kept.pointers[row + 1] = next;
        }
    }
}

/// y = drop(X) with dense features X; no parameters, and its input x is empty.
pub struct DenseFeatures<T> {
    features: Arc<Matrix<T>>,
    dropout: f64,
    stream: u64,
}

impl<T: Real> DenseFeatures<T> {
    /// Gives `features`, dropping a share `dropout` of their entries in training; `stream` numbers the random
    /// stream.
    pub fn new(features: Arc<Matrix<T>>, dropout: f64, stream: u64) -> Self {
        Self { features, dropout, stream }
    }
}

impl<T: Real> Layer<T> for DenseFeatures<T> {
    fn width(&self) -> Width {
        self.features.width()
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn forward(&mut self, _theta: &[T], _x: &Matrix<T>, y: &mut Matrix<T>, pass: Pass) {
        match pass.mask(self.dropout, self.stream) {
            None => copy(self.features.values(), y.values_mut()),
            Some(mask) => drop_out(mask, self.features.values(), y.values_mut()),
        }
    }

    /// Nothing depends on a parameter.
    fn backward(
        &mut self,
        _theta: &[T],
        _x: &Matrix<T>,
        _dy: &Matrix<T>,
        _gradient: &mut [T],
        _dx: &mut Matrix<T>,
    ) {
    }
}

impl<T: Real> Describe<T> for DenseFeatures<T> {
    fn operation(&self) -> Operation<T> {
        let dropout = Dropout { rate: self.dropout, stream: self.stream };
        Operation::DenseFeatures { features: Arc::clone(&self.features), dropout }
    }
}

/// y = x.
fn copy<T: Real>(x: &[T], y: &mut [T]) {
    let work = y.len();
    for_rows(y, LANES, (1, 1 << 12), work, |first, y| y.copy_from_slice(&x[first * LANES..][..y.len()]));
}

/// y = drop(x), entry by entry.
fn drop_out<T: Real>(mask: Mask, x: &[T], y: &mut [T]) {
    let work = 8 * y.len(); // drawing takes the time of some multiplications
    for_rows(y, LANES, (LANES, 1 << 12), work, |first, y| {
        let first = first * LANES;
        dispatch(Drop { mask, first, x: &x[first..][..y.len()], y });
    });
}

/// A part of [`drop_out`], whose first number is number `first` of the mask.
struct Drop<'a, T> {
    mask: Mask,
    first: usize,
    x: &'a [T],
    y: &'a mut [T],
}

impl<T: Real> Loops for Drop<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        self.y.copy_from_slice(self.x);
        self.mask.apply(self.first, self.y, |x| x);
    }
}

/// y = drop(X) W with dense features X; the first layer of a network, so its input x is empty.
pub struct DenseFeatureLinear<T> {
    features: Arc<Matrix<T>>,
    output: Width,
    dropout: f64,
    stream: u64,
    /// The features that survived dropout; without rows where nothing is ever dropped.
    kept: Matrix<T>,
    masked: bool,
}

impl<T: Real> DenseFeatureLinear<T> {
    /// Maps `features` to `output` columns, dropping a share `dropout` of them in training; `stream` numbers
    /// the random stream of the masks.
    pub fn new(features: Arc<Matrix<T>>, output: Width, dropout: f64, stream: u64) -> Self {
        let rows = if dropout > 0.0 { features.rows() } else { 0 };
        let kept = Matrix::zeros(rows, features.width());
        Self { features, output, dropout, stream, kept, masked: false }
    }

    fn operand(&self) -> View<'_, T> {
        if self.masked { (&self.kept).into() } else { (&*self.features).into() }
    }
}

impl<T: Real> Layer<T> for DenseFeatureLinear<T> {
    fn width(&self) -> Width {
        self.output
    }

    fn parameters(&self) -> Vec<Parameter> {
        vec![Parameter::weight(Rows::Hidden(self.features.width()), self.output)]
    }

    fn forward(&mut self, theta: &[T], _x: &Matrix<T>, y: &mut Matrix<T>, pass: Pass) {
        let mask = pass.mask(self.dropout, self.stream);
        self.masked = mask.is_some();
        if let Some(mask) = mask {
            drop_out(mask, self.features.values(), self.kept.values_mut());
        }
        let weight = View::new(self.features.stride(), self.output.stride(), theta);
        product(self.operand(), weight, y.values_mut());
    }

    /// dW = drop(X)^T dy.
    fn backward(
        &mut self,
        _theta: &[T],
        _x: &Matrix<T>,
        dy: &Matrix<T>,
        gradient: &mut [T],
        _dx: &mut Matrix<T>,
    ) {
        product(self.operand().transposed(), dy.into(), gradient);
    }
}
