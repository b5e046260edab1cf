//! Propagation as a layer: y = M x.

use std::sync::Arc;

use super::{Layer, Parameter, Pass};
use crate::program::{Describe, Operation};
use crate::{Matrix, Propagation, Real, Width};

/// y = M x; no parameters.
pub struct Propagate<T> {
    matrix: Arc<Propagation<T>>,
    width: Width,
}

impl<T: Real> Propagate<T> {
    /// Propagates matrices of this width with `matrix`.
    pub fn new(matrix: Arc<Propagation<T>>, width: Width) -> Self {
        Self { matrix, width }
    }
}

impl<T: Real> Layer<T> for Propagate<T> {
    fn width(&self) -> Width {
        self.width
    }

    fn parameters(&self) -> Vec<Parameter> {
        Vec::new()
    }

    fn forward(&mut self, _theta: &[T], x: &Matrix<T>, y: &mut Matrix<T>, _pass: Pass) {
        self.matrix.apply(x, y);
    }

    /// y_i = sum_j M_ij x_j, so d loss / d x_j = sum_i M_ij dy_i: dx = M^T dy.
    fn backward(
        &mut self,
        _theta: &[T],
        _x: &Matrix<T>,
        dy: &Matrix<T>,
        _gradient: &mut [T],
        dx: &mut Matrix<T>,
    ) {
        if dx.rows() > 0 {
            self.matrix.apply_transposed(dy, dx);
        }
    }
}

impl<T: Real> Describe<T> for Propagate<T> {
    fn operation(&self) -> Operation<T> {
        Operation::Propagate { matrix: Arc::clone(&self.matrix) }
    }
}
