//! Polynomials of L applied again and again, as training does: in memory that is taken once, on one thread.

use std::mem::swap;

use super::Operator;
use super::clenshaw::clenshaw_panels;
use crate::Scalar;
use crate::simd::{Line, Rows, step};

/// Columns taken at a time: with three panels of them a few thousand vertices stay in the second-level cache.
const WIDTH: usize = 32;

/// The memory in which polynomials of L are applied to matrices of the same vertices.
///
/// ```
/// use qdc_core::chebyshev::{Operator, Recurrence};
/// use qdc_core::{EdgeRule, Graph, Transition};
///
/// let pair = Graph::from_edges(2, [(0, 1)], EdgeRule::Undirected)?;
/// let operator = Operator::<f32>::new(&Transition::new(&pair));
/// let mut moved = [0.0; 2];
/// Recurrence::new(2).apply(&operator, &[1.0, 2.0], &[1.0, 0.0], 1, &mut moved); // X + 2 L X
/// assert_eq!(moved, [2.0, 1.0]);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Recurrence<T> {
    signals: Vec<Line<T, WIDTH>>,
    next: Vec<Line<T, WIDTH>>,
    after: Vec<Line<T, WIDTH>>,
}

impl<T: Scalar> Recurrence<T> {
    /// Memory for matrices of `nodes` rows.
    pub fn new(nodes: usize) -> Self {
        let panel = vec![Line::ZERO; nodes];
        Self { signals: panel.clone(), next: panel.clone(), after: panel }
    }

    /// `out` = sum_k c_k T_k(L) X, with `columns` numbers for each vertex in X and in `out`.
    ///
    /// Cost: one product of L with X for each coefficient but the first.
    ///
    /// # Panics
    /// If the sizes do not fit, or there is no coefficient.
    pub fn apply(
        &mut self,
        operator: &Operator<T>,
        coefficients: &[f64],
        x: &[T],
        columns: usize,
        out: &mut [T],
    ) {
        self.check(operator, columns, x.len(), out.len());
        for first in (0..columns).step_by(WIDTH) {
            load(operator, x, columns, first, &mut self.signals);
            clenshaw_panels(operator, coefficients, &self.signals, &mut self.next, &mut self.after);
            store(operator, &self.next, columns, first, out);
        }
    }

    /// The same, and the scalar products `moments[k]` = <Y, T_k(L) X> for another matrix Y.
    ///
    /// They are what a derivative by a parameter of the filter needs: with d c_k the derivative of the
    /// coefficients, <Y, dP(L) X> = sum_k d c_k `moments[k]`, in the one pass that applies P(L). There may be
    /// more moments than coefficients; the terms beyond them count 0.
    ///
    /// # Panics
    /// If the sizes do not fit, or there are fewer moments than coefficients.
    #[allow(clippy::too_many_arguments)] // as many operands as the formula has
    pub fn apply_with_moments(
        &mut self,
        operator: &Operator<T>,
        coefficients: &[f64],
        x: &[T],
        y: &[T],
        columns: usize,
        out: &mut [T],
        moments: &mut [f64],
    ) {
        self.check(operator, columns, x.len(), out.len());
        assert_eq!(x.len(), y.len(), "both sides of the scalar products have the same size");
        assert!(moments.len() >= coefficients.len(), "a moment for each coefficient");
        moments.fill(0.0);
        for first in (0..columns).step_by(WIDTH) {
            let (terms, width) = (moments.len(), WIDTH.min(columns - first));
            let Self { signals: sum, next: current, after: previous } = self;
            load(operator, x, columns, first, current);
            sum.fill(Line::ZERO);
            for term in 0..terms {
                let coefficient = T::from_f64(coefficients.get(term).copied().unwrap_or(0.0));
                let mut moment = 0.0;
                for (position, (sum, line)) in sum.iter_mut().zip(current.iter()).enumerate() {
                    let y = &y[operator.name(position) as usize * columns + first..][..width];
                    let mut product = T::ZERO;
                    for (lane, &y) in y.iter().enumerate() {
                        product += y * line[lane];
                        sum[lane] += coefficient * line[lane];
                    }
                    moment += product.to_f64();
                }
                moments[term] += moment;
                if term + 1 < terms {
                    if term == 0 {
                        previous.fill(Line::ZERO);
                        step(operator, Rows::All, T::ONE, current, previous);
                    } else {
                        step(operator, Rows::All, T::from_f64(2.0), current, previous);
                    }
                    swap(current, previous);
                }
            }
            store(operator, sum, columns, first, out);
        }
    }

    fn check(&self, operator: &Operator<T>, columns: usize, x: usize, out: usize) {
        let expected = operator.nodes() * columns;
        assert_eq!((self.next.len(), x, out), (operator.nodes(), expected, expected), "sizes of a product");
    }
}

/// Copies a few columns of `x` into a panel in the operator's order.
fn load<T: Scalar>(
    operator: &Operator<T>,
    x: &[T],
    columns: usize,
    first: usize,
    panel: &mut [Line<T, WIDTH>],
) {
    let width = WIDTH.min(columns - first);
    for (position, line) in panel.iter_mut().enumerate() {
        let at = operator.name(position) as usize * columns + first;
        line[..width].copy_from_slice(&x[at..at + width]);
        line[width..].fill(T::ZERO);
    }
}

/// Copies a panel back to where [`load`] took it from.
fn store<T: Scalar>(
    operator: &Operator<T>,
    panel: &[Line<T, WIDTH>],
    columns: usize,
    first: usize,
    out: &mut [T],
) {
    let width = WIDTH.min(columns - first);
    for (position, line) in panel.iter().enumerate() {
        let at = operator.name(position) as usize * columns + first;
        out[at..at + width].copy_from_slice(&line[..width]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Graph, Transition, Watch, chebyshev};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_recurrence_agrees_with_the_parallel_way_and_its_moments_with_their_definition(
            edges in proptest::collection::vec((0u64..12, 0u64..12), 0..30),
            coefficients in proptest::collection::vec(-1.0f64..1.0, 1..8),
            columns in 1usize..70, further in 0usize..3, seed in 0u64..100,
        ) {
            let graph = Graph::from_edges(12, edges, EdgeRule::Undirected).unwrap();
            let operator = Operator::<f64>::new(&Transition::new(&graph));
            let number = |at: usize| (crate::splitmix::scramble(seed * 10_000 + at as u64) >> 40) as f64 / (1u64 << 24) as f64;
            let x: Vec<f64> = (0..12 * columns).map(number).collect();
            let y: Vec<f64> = (0..12 * columns).map(|at| number(at + 5000)).collect();
            let apply = |coefficients: &[f64]| {
                chebyshev::apply(&operator, coefficients, &x, columns, &Watch::silent()).unwrap()
            };
            let expected = apply(&coefficients);
            let mut recurrence = Recurrence::new(12);
            let (mut out, mut again) = (vec![f64::NAN; x.len()], vec![f64::NAN; x.len()]);
            let mut moments = vec![f64::NAN; coefficients.len() + further];
            recurrence.apply(&operator, &coefficients, &x, columns, &mut out);
            recurrence.apply_with_moments(&operator, &coefficients, &x, &y, columns, &mut again, &mut moments);
            for at in 0..x.len() {
                prop_assert!((out[at] - expected[at]).abs() < 1e-12);
                prop_assert!((again[at] - expected[at]).abs() < 1e-12);
            }
            for (term, moment) in moments.iter().enumerate() {
                let mut unit = vec![0.0; term + 1];
                unit[term] = 1.0;
                let by_definition: f64 = apply(&unit).iter().zip(&y).map(|(a, b)| a * b).sum();
                prop_assert!((moment - by_definition).abs() < 1e-10, "{term}: {moment} {by_definition}");
            }
        }
    }
}
