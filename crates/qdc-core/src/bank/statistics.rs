//! Statistics of the vertices: where in the graph a vertex stands, whatever its features.

use rayon::prelude::*;

use super::FilterBank;
use crate::splitmix::scramble;
use crate::{Error, Features, Filter, Graph, Spectrum, Transition, Watch};

/// Windows whose diagonals are taken.
const WINDOWS: usize = 16;
/// Random vectors of an estimate; its standard error is then about a tenth of the value.
const PROBES: usize = 128;
/// What a diagonal is at least, so that its logarithm exists.
const SMALLEST: f64 = 1e-6;
/// Degrees are told apart by tenths.
const DECILES: usize = 10;

/// Where the diagonals of windows come from.
#[derive(Clone, Copy, Debug)]
pub enum Diagonals<'a> {
    /// Every eigenpair: sum over pairs of P(E_a) phi_a(i)^2, exact.
    Exact(&'a Spectrum),
    /// Hutchinson's estimate, the mean of z_i (P(L) z)_i over 128 random vectors of signs.
    Estimated,
}

/// A row of 27 numbers for each vertex: the logarithm of its degree, the logarithms of the diagonals of 16
/// Gaussian windows spread over [-1, 1], all brought to mean 0 and variance 1, and which tenth of the degrees
/// it belongs to (ten columns, one of them 1).
///
/// The diagonal of a window is the share of the vertex in that part of the spectrum: the probability that
/// diffusion which sees only this window returns. Cost: exact n^2, estimated one Chebyshev pass over 128
/// columns.
///
/// # Errors
/// If the watch asks to stop.
///
/// Reference: M. F. Hutchinson, "A stochastic estimator of the trace of the influence matrix", 1990.
pub fn statistics(graph: &Graph, diagonals: Diagonals<'_>, watch: &Watch) -> Result<Features, Error> {
    let nodes = graph.nodes();
    let degrees: Vec<f64> = (0..nodes).map(|vertex| graph.degree(vertex)).collect();
    let width = 2.0 / WINDOWS as f64;
    let windows: Vec<Filter> = (0..WINDOWS)
        .map(|window| Filter::gaussian(-1.0 + width * (window as f64 + 0.5), width))
        .collect::<Result<_, _>>()?;
    let diagonals = match diagonals {
        Diagonals::Exact(spectrum) => exact(spectrum, &windows),
        Diagonals::Estimated => estimated(graph, windows, watch)?,
    };
    let mut columns = vec![degrees.iter().map(|degree| (1.0 + degree).ln()).collect::<Vec<f64>>()];
    columns.extend(
        diagonals
            .into_iter()
            .map(|diagonal| diagonal.into_iter().map(|share| share.max(SMALLEST).ln()).collect::<Vec<f64>>()),
    );
    columns.iter_mut().for_each(|column| standardise(column));
    let decile = deciles(&degrees);
    let mut values = Vec::with_capacity(nodes * (columns.len() + DECILES));
    for vertex in 0..nodes {
        values.extend(columns.iter().map(|column| column[vertex] as f32));
        values.extend((0..DECILES).map(|tenth| f32::from(u8::from(decile[vertex] == tenth))));
    }
    Ok(Features::Dense { columns: columns.len() + DECILES, values })
}

fn exact(spectrum: &Spectrum, windows: &[Filter]) -> Vec<Vec<f64>> {
    let diagonal = |filter: &Filter| {
        let mut diagonal = vec![0.0; spectrum.nodes()];
        for (pair, &energy) in spectrum.eigenvalues().iter().enumerate() {
            let weight = filter.evaluate(energy);
            if weight > 1e-16 {
                let vector = spectrum.vector(pair);
                diagonal.iter_mut().zip(vector).for_each(|(sum, value)| *sum += weight * value * value);
            }
        }
        diagonal
    };
    windows.par_iter().map(diagonal).collect()
}

fn estimated(graph: &Graph, windows: Vec<Filter>, watch: &Watch) -> Result<Vec<Vec<f64>>, Error> {
    let nodes = graph.nodes();
    let sign = |at: usize| if scramble(at as u64) >> 63 == 0 { 1.0 } else { -1.0 };
    let probes: Vec<f64> = (0..nodes * PROBES).map(sign).collect();
    let moved = FilterBank::new(windows).apply(&Transition::new(graph), &probes, PROBES, 1e-6, watch)?;
    let mean = |moved: &[f64], probe: &[f64]| {
        moved.iter().zip(probe).map(|(a, b)| a * b).sum::<f64>() / PROBES as f64
    };
    let diagonal = |moved: &Vec<f64>| {
        moved.chunks_exact(PROBES).zip(probes.chunks_exact(PROBES)).map(|(a, b)| mean(a, b)).collect()
    };
    Ok(moved.iter().map(diagonal).collect())
}

/// Mean 0 and variance 1; a constant column becomes 0.
fn standardise(column: &mut [f64]) {
    let count = column.len() as f64;
    let mean = column.iter().sum::<f64>() / count;
    let deviation = (column.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt();
    for value in column.iter_mut() {
        *value = if deviation > 1e-9 { (*value - mean) / deviation } else { 0.0 };
    }
}

/// The tenth of the ranks in which the mean rank of equal degrees falls: equal degrees are never parted.
fn deciles(degrees: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..degrees.len()).collect();
    order.sort_by(|&a, &b| degrees[a].total_cmp(&degrees[b]));
    let mut decile = vec![0; degrees.len()];
    let mut start = 0;
    for group in order.chunk_by(|&a, &b| degrees[a] == degrees[b]) {
        let end = start + group.len();
        let tenth = ((start + end) * DECILES / (2 * degrees.len())).min(DECILES - 1);
        group.iter().for_each(|&vertex| decile[vertex] = tenth);
        start = end;
    }
    decile
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Eigensolver};

    fn wheel() -> Graph {
        let rim = (1..12u64).flat_map(|i| [(0, i), (i, i % 11 + 1)]);
        let tail = (12..20u64).map(|i| (i - 1, i));
        Graph::from_edges(20, rim.chain(tail), EdgeRule::Undirected).unwrap()
    }

    #[test]
    fn deciles_never_part_equal_degrees() {
        assert_eq!(deciles(&[1.0, 2.0, 2.0, 3.0]), [1, 5, 5, 8]);
        assert_eq!(deciles(&[4.0; 7]), [5; 7]);
    }

    #[test]
    fn an_estimate_lies_near_the_exact_diagonals_and_windows_of_pairs_sum_to_them() {
        let graph = wheel();
        let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &Watch::silent()).unwrap();
        let windows = vec![Filter::gaussian(0.5, 0.3).unwrap(), Filter::gaussian(-0.2, 0.2).unwrap()];
        let sure = exact(&spectrum, &windows);
        let guess = estimated(&graph, windows.clone(), &Watch::silent()).unwrap();
        for (sure, guess) in sure.iter().flatten().zip(guess.iter().flatten()) {
            assert!((sure - guess).abs() < 0.12, "{sure} {guess}");
        }
        let trace: f64 = sure[0].iter().sum();
        let expected: f64 = spectrum.eigenvalues().iter().map(|&e| windows[0].evaluate(e)).sum();
        assert!((trace - expected).abs() < 1e-12);
    }

    #[test]
    fn statistics_are_standardised_and_name_one_decile() {
        let graph = wheel();
        let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &Watch::silent()).unwrap();
        let Features::Dense { columns, values } =
            statistics(&graph, Diagonals::Exact(&spectrum), &Watch::silent()).unwrap()
        else {
            panic!("statistics are dense")
        };
        assert_eq!((columns, values.len()), (27, 20 * 27));
        for column in 0..17 {
            let sum: f32 = (0..20).map(|vertex| values[vertex * 27 + column]).sum();
            let squares: f32 = (0..20).map(|vertex| values[vertex * 27 + column].powi(2)).sum();
            // The lowest window sees nothing of this graph: its column is constant.
            let expected = if column == 1 { 0.0 } else { 20.0 };
            assert!(sum.abs() < 1e-4 && (squares - expected).abs() < 1e-3, "{column}: {sum} {squares}");
        }
        assert!(values.chunks_exact(27).all(|row| row[17..].iter().sum::<f32>() == 1.0));
        assert_eq!(values[26], 1.0); // the hub has the highest degree
    }
}
