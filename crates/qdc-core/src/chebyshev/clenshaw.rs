//! Clenshaw's recurrence on panels of W columns: b_k = c_k X + 2 L b_(k+1) - b_(k+2), and P(L) X = c_0 X + L
//! b_1 - b_2.
//!
//! Two panels are all it needs. Each column's arithmetic is the same whatever stands in the other columns of
//! its panel, so that results do not depend on how columns are grouped or shared among threads.

use std::mem::swap;

use super::Operator;
use crate::Scalar;
use crate::simd::{Line, Rows, step, step_adding};

/// The memory of one worker: two panels, and the vertices reached so far.
pub(crate) struct Workspace<T, const W: usize> {
    next: Vec<Line<T, W>>,
    after: Vec<Line<T, W>>,
    reached: Vec<bool>,
    frontier: Vec<u32>,
}

impl<T: Scalar, const W: usize> Workspace<T, W> {
    pub(crate) fn new(nodes: usize) -> Self {
        Self {
            next: vec![Line::ZERO; nodes],
            after: vec![Line::ZERO; nodes],
            reached: vec![false; nodes],
            frontier: Vec::new(),
        }
    }
}

/// sum_k c_k T_k(L) applied to `units`, vectors with one non-zero number each, as columns of a panel in the
/// operator's order.
///
/// At most W of them, each a position and the number there. After s steps from the highest coefficient only
/// vertices within s edges of the units can be non-zero. While those are fewer than half, only they are
/// worked on.
pub(crate) fn clenshaw_units<'a, T: Scalar, const W: usize>(
    operator: &Operator<T>,
    coefficients: &[f64],
    units: &[(u32, f64)],
    workspace: &'a mut Workspace<T, W>,
) -> &'a mut [Line<T, W>] {
    assert!(units.len() <= W, "{} columns in a panel of {W}", units.len());
    let Workspace { next, after, reached, frontier } = workspace;
    next.fill(Line::ZERO);
    after.fill(Line::ZERO);
    reached.fill(false);
    frontier.clear();
    for &(unit, _) in units {
        reached[unit as usize] = true;
        frontier.push(unit);
    }
    let (mut grown, mut everywhere) = (0, false);
    for (k, &coefficient) in coefficients.iter().enumerate().rev() {
        if !everywhere {
            let fresh = frontier.len();
            for at in grown..fresh {
                for &neighbour in operator.neighbours(frontier[at]) {
                    if !std::mem::replace(&mut reached[neighbour as usize], true) {
                        frontier.push(neighbour);
                    }
                }
            }
            frontier[fresh..].sort_unstable();
            grown = fresh;
            everywhere = frontier.len() * 2 > operator.nodes();
        }
        let rows = if everywhere { Rows::All } else { Rows::Listed(frontier) };
        let scale = if k == 0 { T::ONE } else { T::from_f64(2.0) };
        step(operator, rows, scale, next, after);
        for (lane, &(unit, number)) in units.iter().enumerate() {
            after[unit as usize][lane] += T::from_f64(coefficient * number);
        }
        swap(next, after);
    }
    next
}

/// sum_k c_k T_k(L) X for a panel X in the operator's order.
pub(crate) fn clenshaw_signals<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    coefficients: &[f64],
    signals: &[Line<T, W>],
) -> Vec<Line<T, W>> {
    let mut next = vec![Line::ZERO; signals.len()];
    let mut after = next.clone();
    clenshaw_panels(operator, coefficients, signals, &mut next, &mut after);
    next
}

/// The same in two panels of the caller's; the result is left in `next`.
pub(super) fn clenshaw_panels<T: Scalar, const W: usize>(
    operator: &Operator<T>,
    coefficients: &[f64],
    signals: &[Line<T, W>],
    next: &mut Vec<Line<T, W>>,
    after: &mut Vec<Line<T, W>>,
) {
    let (&highest, rest) = coefficients.split_last().expect("a series has a term");
    let highest = T::from_f64(highest);
    for (line, signal) in next.iter_mut().zip(signals) {
        *line = Line(signal.map(|x| highest * x)); // the step from 0
    }
    after.fill(Line::ZERO);
    for (k, &coefficient) in rest.iter().enumerate().rev() {
        let scale = if k == 0 { T::ONE } else { T::from_f64(2.0) };
        step_adding(operator, scale, next, (T::from_f64(coefficient), signals), after);
        swap(next, after);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Graph, Transition};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn units_and_signals_agree_bit_for_bit_however_columns_are_grouped(
            edges in proptest::collection::vec((0u64..12, 0u64..12), 0..30),
            coefficients in proptest::collection::vec(-1.0f64..1.0, 1..8),
        ) {
            let graph = Graph::from_edges(12, edges, EdgeRule::Undirected).unwrap();
            let operator = Operator::<f64>::new(&Transition::new(&graph));
            let identity: Vec<Line<f64, 12>> =
                (0..12).map(|i| Line(std::array::from_fn(|j| f64::from(u8::from(i == j))))).collect();
            let whole = clenshaw_signals(&operator, &coefficients, &identity);
            let mut workspace = Workspace::<f64, 5>::new(12);
            for units in [vec![0u32, 7, 3], vec![7], vec![11, 2, 1, 7, 5]] {
                let units: Vec<(u32, f64)> = units.into_iter().map(|unit| (unit, 1.0)).collect();
                let block = clenshaw_units(&operator, &coefficients, &units, &mut workspace);
                for (lane, &(unit, _)) in units.iter().enumerate() {
                    for position in 0..12 {
                        prop_assert_eq!(block[position][lane], whole[position][unit as usize]);
                    }
                }
            }
        }
    }
}
