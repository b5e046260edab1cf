//! Adam with L2 decay, on all parameters at once or on groups with rates and decays of their own.
//!
//! ```text
//! g <- g + decay * w
//! m <- b1 m + (1 - b1) g,   v <- b2 v + (1 - b2) g^2
//! w <- w - rate * (m / (1 - b1^t)) / (sqrt(v / (1 - b2^t)) + 1e-8)
//! ```
//! (Kingma, Ba 2015, algorithm 1; the decay is part of the gradient, as in PyTorch's `Adam`, not apart from it.)

use rayon::prelude::*;

use crate::aligned::Aligned;
use crate::hardware::{Loops, dispatch};
use crate::matrix::LANES;
use crate::parallel::part;
use crate::{Group, Real};

const BETA_1: f64 = 0.9;
const BETA_2: f64 = 0.999;
const EPSILON: f64 = 1e-8;
/// Multiplications that take the time of moving one weight, about.
const OPERATIONS: usize = 8;
/// Weights and first moments below this become 0. The decay drives weights that no training vertex uses down there, to
/// numbers too small for the processor's fast path: an evaluation on Cornell took 0.8 ms with them, 0.06 ms without.
const NEGLIGIBLE: f64 = 1e-30;

/// The optimiser's state.
#[derive(Clone, Debug)]
pub struct Adam<T> {
    groups: Vec<Group>,
    steps: i32,
    first: Aligned<T>,
    second: Aligned<T>,
}

impl<T: Real> Adam<T> {
    /// A fresh optimiser for `parameters` numbers.
    pub fn new(parameters: usize, learning_rate: f64, weight_decay: f64) -> Self {
        Self::grouped(vec![Group { range: 0..parameters, learning_rate, weight_decay }], parameters)
    }

    /// A fresh optimiser for `parameters` numbers in groups; what is in none stays as it is.
    ///
    /// # Panics
    /// If a group reaches beyond the parameters.
    pub fn grouped(groups: Vec<Group>, parameters: usize) -> Self {
        assert!(groups.iter().all(|group| group.range.end <= parameters), "a group beyond the parameters");
        let zeros = Aligned::zeros(parameters);
        Self { groups, steps: 0, first: zeros.clone(), second: zeros }
    }

    /// Moves `weights` one step against `gradient`.
    pub fn step(&mut self, weights: &mut [T], gradient: &[T]) {
        T::adam_step(self, weights, gradient);
    }

    pub(crate) fn compiled_step(&mut self, weights: &mut [T], gradient: &[T]) {
        assert_eq!(weights.len(), self.first.len(), "number of parameters");
        assert_eq!(gradient.len(), self.first.len(), "number of gradients");
        self.steps += 1;
        let Self { groups, steps, first, second } = self;
        for Group { range, learning_rate, weight_decay } in groups.iter() {
            let step = |weights: &mut [T], gradient: &[T], first: &mut [T], second: &mut [T]| {
                dispatch(Step {
                    rate: learning_rate / (1.0 - BETA_1.powi(*steps)),
                    root: 1.0 / (1.0 - BETA_2.powi(*steps)).sqrt(),
                    decay: *weight_decay,
                    weights,
                    gradient,
                    first,
                    second,
                });
            };
            let (weights, gradient) = (&mut weights[range.clone()], &gradient[range.clone()]);
            let (first, second) = (&mut first[range.clone()], &mut second[range.clone()]);
            let Some(size) = part(weights.len(), (2 * LANES, 1 << 12), OPERATIONS * weights.len()) else {
                step(weights, gradient, first, second);
                continue;
            };
            let moments = first.par_chunks_mut(size).zip(second.par_chunks_mut(size));
            let numbers = weights.par_chunks_mut(size).zip(gradient.par_chunks(size));
            numbers.zip(moments).for_each(|((w, g), (m, v))| step(w, g, m, v));
        }
    }
}

struct Step<'a, T> {
    rate: f64,
    root: f64,
    decay: f64,
    weights: &'a mut [T],
    gradient: &'a [T],
    first: &'a mut [T],
    second: &'a mut [T],
}

impl<T: Real> Loops for Step<'_, T> {
    type Output = ();

    #[inline(always)]
    fn run<const FUSED: bool>(self) {
        let Self { weights, gradient, first, second, .. } = self;
        let real = T::from_f64;
        let (rate, root, decay) = (real(self.rate), real(self.root), real(self.decay));
        let (keep_1, take_1) = (real(BETA_1), real(1.0 - BETA_1));
        let (keep_2, take_2) = (real(BETA_2), real(1.0 - BETA_2));
        let moments = first.iter_mut().zip(second.iter_mut());
        for ((w, &g), (m, v)) in weights.iter_mut().zip(gradient).zip(moments) {
            let g = g + decay * *w;
            *m = flush(keep_1 * *m + take_1 * g);
            *v = keep_2 * *v + take_2 * g * g;
            *w = flush(*w - rate * *m / (v.sqrt() * root + real(EPSILON)));
        }
    }
}

/// The number, or 0 if it is negligible. NaN stays.
#[inline(always)]
fn flush<T: Real>(value: T) -> T {
    if value.abs() < T::from_f64(NEGLIGIBLE) { T::ZERO } else { value }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_moves_by_the_learning_rate_against_the_sign() {
        let mut weights = [1.0f64, -1.0, 0.0];
        Adam::new(3, 0.01, 0.0).step(&mut weights, &[5.0, -0.1, 0.0]);
        for (weight, expected) in weights.iter().zip([0.99, -0.99, 0.0]) {
            assert!((weight - expected).abs() < 1e-8);
        }
    }

    #[test]
    fn groups_move_at_their_own_rates_and_what_is_in_none_stays() {
        let group = |range, learning_rate, weight_decay| Group { range, learning_rate, weight_decay };
        let mut weights = [1.0f64, 1.0, 1.0, 1.0];
        let mut adam = Adam::grouped(vec![group(0..1, 0.01, 0.0), group(1..3, 0.05, 2.0)], 4);
        adam.step(&mut weights, &[1.0, 1.0, -1.0, 1.0]);
        // The decay 2 w turns the sign of the third gradient.
        for (weight, expected) in weights.iter().zip([0.99, 0.95, 0.95, 1.0]) {
            assert!((weight - expected).abs() < 1e-8, "{weights:?}");
        }
    }

    #[test]
    fn a_weight_that_only_decays_never_gets_below_the_normal_numbers() {
        let (mut weights, mut adam) = ([0.3f32, f32::NAN], Adam::new(2, 0.01, 5e-4));
        for _ in 0..5000 {
            adam.step(&mut weights, &[0.0, 0.0]);
            assert!(
                [weights[0], adam.first[0], adam.second[0]].iter().all(|x| !x.is_subnormal()),
                "{adam:?}"
            );
        }
        assert!(weights[0].abs() < 1e-20 && weights[1].is_nan());
    }
}
