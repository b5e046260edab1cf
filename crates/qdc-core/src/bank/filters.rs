//! Several filters of one L, applied together.
//!
//! T_0(L) X, T_1(L) X and so on are the same for all filters of the bank, only the coefficients differ. One
//! recurrence T_(k+1) = 2 L T_k - T_(k-1) therefore serves them all: the cost is that of the sharpest filter,
//! not of their sum.

use std::mem::swap;

use rayon::prelude::*;

use crate::chebyshev::{Operator, Series, WIDTH_F64};
use crate::simd::{Line, Rows, step};
use crate::{Error, Features, Filter, Transition, Watch};

/// The numbers of one vertex in a panel.
type Row = Line<f64, WIDTH_F64>;
/// Writes the columns of X from a first one on, so many of them, into a panel of zeros.
type Fill<'a> = &'a (dyn Fn(usize, usize, &mut [Row]) + Sync);

/// A list of filters of one L.
///
/// ```
/// use qdc_core::{EdgeRule, Filter, FilterBank, Graph, Transition, Watch};
///
/// let bank = FilterBank::new(vec![Filter::gaussian(1.0, 0.5)?, Filter::heat(3.0)?]);
/// assert_eq!(bank.evaluate(1.0), [1.0, 1.0]);
/// let pair = Transition::new(&Graph::from_edges(2, [(0, 1)], EdgeRule::Undirected)?);
/// let moved = bank.apply(&pair, &[1.0, 1.0], 1, 1e-12, &Watch::silent())?; // the eigenvector of eigenvalue 1
/// assert!(moved.iter().flatten().all(|value| (value - 1.0).abs() < 1e-11));
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct FilterBank {
    filters: Vec<Filter>,
}

impl FilterBank {
    /// The bank of these filters.
    pub fn new(filters: Vec<Filter>) -> Self {
        Self { filters }
    }

    /// The filters.
    pub fn filters(&self) -> &[Filter] {
        &self.filters
    }

    /// The value of each filter at an eigenvalue.
    pub fn evaluate(&self, energy: f64) -> Vec<f64> {
        self.filters.iter().map(|filter| filter.evaluate(energy)).collect()
    }

    /// P(L) X for each filter P, entries right to about `tolerance` times the norm of each column of X.
    ///
    /// X is `signals`, row-major with `columns` numbers for each vertex. Cost: one product of L with X for
    /// each term of the longest series, and an addition for each term of each filter.
    ///
    /// # Errors
    /// If a filter is too sharp for a series, or the watch asks to stop.
    ///
    /// # Panics
    /// If `signals` does not hold `columns` numbers for each vertex.
    pub fn apply(
        &self,
        transition: &Transition,
        signals: &[f64],
        columns: usize,
        tolerance: f64,
        watch: &Watch,
    ) -> Result<Vec<Vec<f64>>, Error> {
        let nodes = transition.nodes();
        assert_eq!(signals.len(), nodes * columns, "{columns} numbers for each of {nodes} vertices");
        let operator = Operator::new(transition);
        let fill = |first: usize, width: usize, panel: &mut [Row]| {
            for (position, line) in panel.iter_mut().enumerate() {
                let at = operator.name(position) as usize * columns + first;
                line[..width].copy_from_slice(&signals[at..at + width]);
            }
        };
        let mut results = vec![vec![0.0; signals.len()]; self.filters.len()];
        let panels = self.pass(&operator, columns, tolerance, &fill, |_, sums| sums.to_vec(), watch)?;
        for (first, sums) in panels {
            let width = WIDTH_F64.min(columns - first);
            for (result, sum) in results.iter_mut().zip(sums) {
                for (position, line) in sum.iter().enumerate() {
                    let at = operator.name(position) as usize * columns + first;
                    result[at..at + width].copy_from_slice(&line[..width]);
                }
            }
        }
        Ok(results)
    }

    /// [`FilterBank::apply`] on features, in their precision.
    ///
    /// # Errors
    /// As [`FilterBank::apply`].
    pub fn apply_to_features(
        &self,
        transition: &Transition,
        features: &Features,
        tolerance: f64,
        watch: &Watch,
    ) -> Result<Vec<Vec<f32>>, Error> {
        let signals: Vec<f64> = features.to_dense().into_iter().map(f64::from).collect();
        let moved = self.apply(transition, &signals, features.columns(), tolerance, watch)?;
        Ok(moved.into_iter().map(|values| values.into_iter().map(|value| value as f32).collect()).collect())
    }

    /// The root mean square of the rows' norms of P(L) X for each filter: its size, without keeping it.
    ///
    /// # Errors
    /// As [`FilterBank::apply`].
    pub fn row_norms(
        &self,
        operator: &Operator<f64>,
        features: &Features,
        tolerance: f64,
        watch: &Watch,
    ) -> Result<Vec<f64>, Error> {
        let columns = features.columns();
        let by_column = match features {
            Features::Sparse(matrix) => Some(matrix.transpose()),
            Features::Dense { .. } => None,
        };
        let fill = |first: usize, width: usize, panel: &mut [Row]| match (&by_column, features) {
            (Some(by_column), _) => {
                for lane in 0..width {
                    let (vertices, values) = by_column.row(first + lane);
                    for (&vertex, &value) in vertices.iter().zip(values) {
                        panel[operator.position(vertex as usize) as usize][lane] = f64::from(value);
                    }
                }
            }
            (None, Features::Dense { values, .. }) => {
                for (position, line) in panel.iter_mut().enumerate() {
                    let row = &values[operator.name(position) as usize * columns + first..][..width];
                    line.iter_mut().zip(row).for_each(|(line, &value)| *line = f64::from(value));
                }
            }
            (None, Features::Sparse(_)) => unreachable!("sparse features were transposed"),
        };
        let squares = |_: usize, sums: &[Vec<Row>]| -> Vec<f64> {
            sums.iter()
                .map(|sum| sum.iter().flat_map(|line| &line.0).map(|value| value * value).sum())
                .collect()
        };
        let panels = self.pass(operator, columns, tolerance, &fill, squares, watch)?;
        let mut totals = vec![0.0; self.filters.len()];
        for (_, squares) in panels {
            totals.iter_mut().zip(squares).for_each(|(total, square)| *total += square);
        }
        let nodes = operator.nodes() as f64;
        Ok(totals.into_iter().map(|total: f64| (total / nodes).sqrt()).collect())
    }

    /// One recurrence for each panel of columns; `finish` sees the panel's number and the results of all
    /// filters.
    fn pass<R: Send>(
        &self,
        operator: &Operator<f64>,
        columns: usize,
        tolerance: f64,
        fill: Fill<'_>,
        finish: impl Fn(usize, &[Vec<Row>]) -> R + Sync,
        watch: &Watch,
    ) -> Result<Vec<(usize, R)>, Error> {
        let series: Vec<Series> =
            self.filters.iter().map(|filter| Series::of(filter, tolerance)).collect::<Result<_, _>>()?;
        let degree = series.iter().map(Series::degree).max().unwrap_or(0);
        let panels: Vec<usize> = (0..columns).step_by(WIDTH_F64).collect();
        let phase = watch.phase("applying the bank", panels.len() as u64);
        let nodes = operator.nodes();
        panels
            .into_par_iter()
            .map(|first| {
                let mut current = vec![Row::ZERO; nodes];
                fill(first, WIDTH_F64.min(columns - first), &mut current);
                let mut previous = vec![Line::ZERO; nodes];
                let mut sums = vec![vec![Row::ZERO; nodes]; series.len()];
                for term in 0..=degree {
                    for (sum, series) in sums.iter_mut().zip(&series) {
                        if let Some(&coefficient) = series.coefficients().get(term) {
                            add_scaled(sum, coefficient, &current);
                        }
                    }
                    if term < degree {
                        let scale = if term == 0 { 1.0 } else { 2.0 };
                        step(operator, Rows::All, scale, &current, &mut previous);
                        swap(&mut current, &mut previous);
                    }
                }
                phase.advance(1)?;
                Ok((first, finish(first, &sums)))
            })
            .collect()
    }
}

fn add_scaled(sum: &mut [Row], factor: f64, panel: &[Row]) {
    for (sum, line) in sum.iter_mut().zip(panel) {
        for lane in 0..WIDTH_F64 {
            sum[lane] += factor * line[lane];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Graph};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn one_pass_gives_what_each_filter_gives_alone(
            edges in proptest::collection::vec((0u64..15, 0u64..15), 0..40), columns in 1usize..40
        ) {
            let graph = Graph::from_edges(15, edges, EdgeRule::Undirected).unwrap();
            let transition = Transition::new(&graph);
            let dense: Vec<f32> =
                (0..15 * columns).map(|at| ((at * 7919) % 13) as f32 * f32::from(u8::from(at % 3 == 0))).collect();
            let signals: Vec<f64> = dense.iter().copied().map(f64::from).collect();
            let filters = vec![
                Filter::gaussian(1.0, 0.25).unwrap(),
                Filter::gaussian(-0.6, 1.0).unwrap(),
                Filter::heat(2.0).unwrap(),
            ];
            let bank = FilterBank::new(filters.clone());
            let together = bank.apply(&transition, &signals, columns, 1e-12, &Watch::silent()).unwrap();
            let features = [
                Features::from_dense(columns, dense.clone()),
                Features::Dense { columns, values: dense.clone() },
            ];
            for (at, filter) in filters.iter().enumerate() {
                let alone = filter.apply(&transition, &signals, columns, 1e-12, &Watch::silent()).unwrap();
                let largest = alone.iter().zip(&together[at]).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
                prop_assert!(largest < 1e-9, "{filter}: {largest}");
                let expected = (alone.iter().map(|value| value * value).sum::<f64>() / 15.0).sqrt();
                for features in &features {
                    let norms = bank
                        .row_norms(&Operator::new(&transition), features, 1e-12, &Watch::silent())
                        .unwrap();
                    prop_assert!((norms[at] - expected).abs() < 1e-9 * (1.0 + expected));
                }
            }
            let rounded =
                bank.apply_to_features(&transition, &features[0], 1e-12, &Watch::silent()).unwrap();
            prop_assert!(rounded.iter().flatten().zip(together.iter().flatten()).all(|(a, b)| *a == *b as f32));
        }
    }
}
