//! A linear map of hidden columns: y = x W.

use super::{Layer, Parameter, Pass, Rows, Start};
use crate::dense::{View, product};
use crate::program::{Describe, Operation};
use crate::{Matrix, Real, Width};

/// y = x W, with W of `input` x `output`.
pub struct Linear {
    input: Width,
    output: Width,
    inputs: usize,
}

impl Linear {
    /// Maps columns laid out as `input` to columns laid out as `output`.
    pub fn new(input: Width, output: Width) -> Self {
        Self { input, output, inputs: input.columns() }
    }

    /// Starts the weights as those of a map from `inputs` columns, of which this layer sees some.
    pub fn starting_as_part_of(mut self, inputs: usize) -> Self {
        self.inputs = inputs;
        self
    }
}

impl<T: Real> Layer<T> for Linear {
    fn width(&self) -> Width {
        self.output
    }

    fn parameters(&self) -> Vec<Parameter> {
        let start = Start::Glorot { inputs: self.inputs, outputs: self.output.columns() };
        vec![Parameter { start, ..Parameter::weight(Rows::Hidden(self.input), self.output) }]
    }

    fn forward(&mut self, theta: &[T], x: &Matrix<T>, y: &mut Matrix<T>, _pass: Pass) {
        let weight = View::new(self.input.stride(), self.output.stride(), theta);
        product(x.into(), weight, y.values_mut());
    }

    /// y_ik = sum_j x_ij W_jk, so d loss / d W_jk = sum_i x_ij dy_ik and d loss / d x_ij = sum_k dy_ik W_jk:
    /// dW = x^T dy, dx = dy W^T.
    fn backward(
        &mut self,
        theta: &[T],
        x: &Matrix<T>,
        dy: &Matrix<T>,
        gradient: &mut [T],
        dx: &mut Matrix<T>,
    ) {
        product(View::from(x).transposed(), dy.into(), gradient);
        if dx.rows() > 0 {
            let weight = View::new(self.input.stride(), self.output.stride(), theta);
            product(dy.into(), weight.transposed(), dx.values_mut());
        }
    }
}

impl<T: Real> Describe<T> for Linear {
    fn operation(&self) -> Operation<T> {
        Operation::Linear { input: self.input }
    }
}
