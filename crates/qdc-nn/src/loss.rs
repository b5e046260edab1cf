//! The loss: mean cross-entropy over a set of vertices.
//!
//! ```text
//! loss = -1/n sum over i in the set of log softmax(z_i)[label_i]
//! d loss / d z_ik = (softmax(z_i)_k - [k = label_i]) / n, and 0 outside the set
//! ```

use crate::hardware::{Loops, dispatch};
use crate::{Matrix, Real};

/// The loss of `logits` on `vertices`, in double precision.
pub fn cross_entropy<T: Real>(logits: &Matrix<T>, labels: &[u32], vertices: &[u32]) -> f64 {
    dispatch(CrossEntropy { logits, labels, vertices, gradient: None })
}

/// The loss, and its gradient with respect to the logits, which is written to `gradient`.
pub fn cross_entropy_with_gradient<T: Real>(
    logits: &Matrix<T>,
    labels: &[u32],
    vertices: &[u32],
    gradient: &mut Matrix<T>,
) -> f64 {
    gradient.values_mut().fill(T::ZERO);
    dispatch(CrossEntropy { logits, labels, vertices, gradient: Some(gradient) })
}

struct CrossEntropy<'a, T> {
    logits: &'a Matrix<T>,
    labels: &'a [u32],
    vertices: &'a [u32],
    gradient: Option<&'a mut Matrix<T>>,
}

impl<T: Real> Loops for CrossEntropy<'_, T> {
    type Output = f64;

    #[inline(always)]
    fn run<const FUSED: bool>(mut self) -> f64 {
        let classes = self.logits.width().columns();
        let stride = self.logits.stride();
        let weight = T::ONE / T::from_f64(self.vertices.len() as f64);
        let mut loss = 0.0;
        for &vertex in self.vertices {
            let vertex = vertex as usize;
            let label = self.labels[vertex] as usize;
            let logits = self.logits.row(vertex);
            let highest = logits[..classes].iter().copied().fold(logits[0], T::max);
            let mut sum = T::ZERO;
            match &mut self.gradient {
                None => {
                    for &z in &logits[..classes] {
                        sum += (z - highest).fast_exp::<FUSED>();
                    }
                }
                Some(gradient) => {
                    let gradient = &mut gradient.values_mut()[vertex * stride..][..classes];
                    for (g, &z) in gradient.iter_mut().zip(logits) {
                        *g = (z - highest).fast_exp::<FUSED>();
                        sum += *g;
                    }
                    let factor = weight / sum;
                    gradient.iter_mut().for_each(|g| *g *= factor);
                    gradient[label] -= weight;
                }
            }
            loss += (sum.ln() + highest - logits[label]).to_f64();
        }
        loss / self.vertices.len() as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;

    #[test]
    fn equal_logits_cost_the_logarithm_of_the_classes() {
        let logits = Matrix::<f64>::zeros(3, Width::single(5));
        let mut gradient = logits.clone();
        let loss = cross_entropy_with_gradient(&logits, &[0, 4, 2], &[1, 2], &mut gradient);
        assert!((loss - 5f64.ln()).abs() < 1e-15);
        assert!((cross_entropy(&logits, &[0, 4, 2], &[1, 2]) - loss).abs() < 1e-15);
        assert_eq!(gradient.row(0), [0.0; 8]);
        assert!((gradient.get(1, 4) - (0.2 - 1.0) / 2.0).abs() < 1e-15);
        assert!((gradient.get(1, 0) - 0.1).abs() < 1e-15);
    }
}
