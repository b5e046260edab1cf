//! Bounds on the error of an entry that hold for certain, rounding included.
//!
//! "Exact" means the kernel of the matrix L as it is stored, in exact arithmetic. u is the unit of rounding.

use rayon::prelude::*;

use crate::chebyshev::Series;
use crate::{Filter, Spectrum, Transition};

/// The unit of rounding in double precision.
pub(super) const UNIT: f64 = f64::EPSILON / 2.0;
/// Second-order terms in u, and rounding in the bounds themselves.
const SLACK: f64 = 1.1;
/// The products of N k^2 up to which the orthogonality of k vectors is measured exactly.
const MOST_PRODUCTS: f64 = 1e9;

/// A bound on what rounding does to an entry of sum_k c_k T_k(L) by Clenshaw's recurrence, with rows of at most
/// `longest` entries and arithmetic of the given unit.
///
/// An error made in step k acts like a change of c_k x, and reaches the result as T_k(L) times it. As |T_k(L)| <= 1,
/// the errors of all steps add up without growing. Step k computes c_k x + 2 L b_(k+1) - b_(k+2); with rows of m
/// entries it is off by at most (m + 5) u (|c_k| + 2 |b_(k+1)| + |b_(k+2)|) in norm, because L has no negative
/// entries and norm 1. And |b_k| is at most the largest |sum_(j >= k) c_j U_(j-k)(E)| on [-1, 1], a polynomial that
/// is evaluated at 2 d Chebyshev points for degree d, where it is met up to the factor sqrt 2 (Ehlich and Zeller,
/// "Schwankung von Polynomen zwischen Gitterpunkten", 1964). Cost: 2 d^2 operations.
pub(super) fn clenshaw_rounding(series: &Series, longest: usize, unit: f64) -> f64 {
    let coefficients = series.coefficients();
    let points = 2 * coefficients.len();
    let largest = (0..points)
        .into_par_iter()
        .map(|point| {
            let energy = (std::f64::consts::PI * (point as f64 + 0.5) / points as f64).cos();
            let (mut next, mut after) = (0.0, 0.0);
            let mut sizes = vec![0f64; coefficients.len() + 2];
            for (k, &coefficient) in coefficients.iter().enumerate().rev() {
                (next, after) = (coefficient + 2.0 * energy * next - after, next);
                sizes[k] = f64::abs(next);
            }
            sizes
        })
        .reduce(
            || vec![0.0; coefficients.len() + 2],
            |a, b| a.into_iter().zip(b).map(|(a, b)| a.max(b)).collect(),
        );
    let norm = |k: usize| std::f64::consts::SQRT_2 * largest[k];
    let steps = coefficients.iter().enumerate();
    let sum: f64 = steps.map(|(k, c)| c.abs() + 2.0 * norm(k + 1) + norm(k + 2)).sum();
    SLACK * (longest as f64 + 5.0) * unit * sum
}

/// A bound on what twins, which share a column, add to it: P at their eigenvalue, and two more roundings.
pub(super) fn twin_rounding(filter: &Filter, unit: f64) -> Option<f64> {
    Some(
        SLACK
            * (2.0 * filter.evaluation_units()? * UNIT
                + 4.0 * unit * (1.0 + filter.largest()?)
                + 2.0 * UNIT * filter.steepest(-1.0, 1.0)?),
    )
}

/// A bound on the error of every entry of V P(E) V^T against the kernel of exactly the eigenvalues that the range
/// stands for; `None` where it cannot be had.
///
/// With R = L V - V E and U the orthonormal matrix nearest to V, rho = |R| + 2 |V^T V - I| bounds |L U - U E|, all
/// norms being those of Frobenius. Let s be the part of U outside the exact invariant subspace. The entries of
/// Y^T U, Y the eigenvectors left out, are those of Y^T (L U - U E) divided by the distance of the two eigenvalues
/// (Davis and Kahan), so that P U has at most max |P(E_a)| / d_a times rho outside, d_a the distance from E_a to the
/// first eigenvalue left out. Inside the subspace differences of P are at most max |P'| times those of the
/// eigenvalues. Together: rho (max |P'| + max |P(E_a)| / d_a) + 2 max |P| s^2, and rounding of the sum.
///
/// Cost: one product of L with the vectors, and N k^2 / 2 for their products with each other, both compensated.
pub(super) fn eigenpairs_bound(
    transition: &Transition,
    spectrum: &Spectrum,
    range: &std::ops::Range<usize>,
    filter: &Filter,
    weights: &[f64],
) -> Option<f64> {
    let nodes = spectrum.nodes() as f64;
    let pairs = range.len() as f64;
    if range.is_empty() {
        return Some(0.0);
    }
    if nodes * pairs * pairs > MOST_PRODUCTS {
        return None;
    }
    let energies = &spectrum.eigenvalues()[range.clone()];
    let (low, high) = beside(spectrum, range)?;
    let largest = weights.iter().fold(0.0, |most: f64, weight| most.max(weight.abs()));
    let skewness = orthogonality(spectrum, range);
    let rho = SLACK * (residuals(transition, spectrum, range) + 2.0 * skewness);
    let inside = |value: f64| value.clamp(-1.0, 1.0);
    let slope = filter.steepest(inside(energies[0] - rho), inside(energies[range.len() - 1] + rho))?;
    let mut nearest = f64::INFINITY;
    let mut outside = 0f64;
    for (&energy, weight) in energies.iter().zip(weights) {
        let distance = (energy - low).min(high - energy);
        nearest = nearest.min(distance);
        outside = outside.max(weight.abs() / distance);
    }
    let sine = rho / nearest;
    let subspace = rho * (slope + outside) + 2.0 * largest * sine * sine;
    let basis = largest * skewness * (2.0 + skewness);
    let sum = (pairs + 8.0) * UNIT * largest * (1.0 + skewness) + filter.evaluation_units()? * UNIT + 1e-16;
    Some(SLACK * (subspace + basis + sum)).filter(|bound| bound.is_finite())
}

/// Bounds on the eigenvalues of L next to a range of pairs, below and above; infinite where there are none.
/// `None` where the spectrum is a part and it was not counted what lies beside it.
fn beside(spectrum: &Spectrum, range: &std::ops::Range<usize>) -> Option<(f64, f64)> {
    let energies = &spectrum.eigenvalues()[range.clone()];
    let (below, above) = (spectrum.gap_below(range)?, spectrum.gap_above(range)?);
    Some((energies[0] - below, energies[range.len() - 1] + above))
}

/// The norm of L V - V E, a bound on its rounding included.
fn residuals(transition: &Transition, spectrum: &Spectrum, range: &std::ops::Range<usize>) -> f64 {
    let matrix = transition.matrix();
    let square: f64 = range
        .clone()
        .into_par_iter()
        .map(|pair| {
            let (vector, energy) = (spectrum.vector(pair), spectrum.eigenvalues()[pair]);
            // P is evaluated no farther out than L's spectrum can reach.
            let energy = energy.clamp(-1.0, 1.0);
            (0..matrix.rows())
                .map(|row| {
                    let (columns, values) = matrix.row(row);
                    let terms =
                        columns.iter().zip(values).map(|(&column, &value)| (value, vector[column as usize]));
                    let (sum, size) = compensated(terms.chain([(-energy, vector[row])]));
                    (sum.abs() + 2.0 * UNIT * sum.abs() + (columns.len() as f64 * UNIT).powi(2) * size)
                        .powi(2)
                })
                .sum::<f64>()
        })
        .collect::<Vec<f64>>()
        .into_iter()
        .sum();
    square.sqrt()
}

/// The norm of V^T V - I, a bound on its rounding included.
fn orthogonality(spectrum: &Spectrum, range: &std::ops::Range<usize>) -> f64 {
    let nodes = spectrum.nodes() as f64;
    let square: f64 = range
        .clone()
        .into_par_iter()
        .map(|a| {
            (range.start..=a)
                .map(|b| {
                    let terms = spectrum.vector(a).iter().copied().zip(spectrum.vector(b).iter().copied());
                    let unit = if a == b { [(-1.0, 1.0)] } else { [(0.0, 0.0)] };
                    let (sum, size) = compensated(terms.chain(unit));
                    let bound = sum.abs() * (1.0 + 2.0 * UNIT) + (nodes * UNIT).powi(2) * size;
                    bound * bound * if a == b { 1.0 } else { 2.0 }
                })
                .sum::<f64>()
        })
        .collect::<Vec<f64>>()
        .into_iter()
        .sum();
    square.sqrt()
}

/// The sum of products as if computed in twice the precision, and the sum of their magnitudes.
///
/// Reference: T. Ogita, S. Rump, S. Oishi, "Accurate sum and dot product", 2005, algorithm 5.3.
fn compensated(terms: impl Iterator<Item = (f64, f64)>) -> (f64, f64) {
    let (mut sum, mut correction, mut size) = (0f64, 0f64, 0f64);
    for (a, b) in terms {
        let product = a * b;
        let (high_a, low_a) = split(a);
        let (high_b, low_b) = split(b);
        let rest = low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b);
        let total = sum + product;
        let part = total - sum;
        correction += (sum - (total - part)) + (product - part) + rest;
        sum = total;
        size += product.abs();
    }
    (sum + correction, size)
}

/// A number as the sum of two with half the digits each (Dekker).
fn split(a: f64) -> (f64, f64) {
    let c = 134_217_729.0 * a; // 2^27 + 1
    let high = c - (c - a);
    (high, a - high)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compensated_products_keep_what_plain_ones_lose() {
        let terms =
            [(1e16, 1.0), (1.0, 1.0), (-1e16, 1.0), (1.0 + f64::EPSILON, 1.0 - f64::EPSILON), (-1.0, 1.0)];
        let (sum, size) = compensated(terms.into_iter());
        assert_eq!(sum, 1.0 - f64::EPSILON * f64::EPSILON);
        assert!(size >= 2e16);
    }
}
