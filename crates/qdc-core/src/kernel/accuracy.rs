//! Bounds on the error of an entry that hold for certain, rounding included.
//!
//! "Exact" means the kernel of L = D^-1/2 (A + w I) D^-1/2 in exact arithmetic, A being the weights of the
//! graph as they are stored. u is the unit of rounding. An entry of L is itself rounded: its relative error
//! is at most 6 u, from the degrees (3 u, however many neighbours there are), a product, a root and a
//! division.

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use super::weighted::Weighted;
use crate::chebyshev::Series;
use crate::cpu::{self, Loops};
use crate::{Csr, Filter, Spectrum, Transition};

/// The unit of rounding in double precision.
pub(super) const UNIT: f64 = f64::EPSILON / 2.0;
/// The relative error of an entry of L: both degrees are right to 3 u, and a product, a root and a division
/// follow. As L has norm 1 and no negative entries, its eigenvalues move by no more.
const ENTRY: f64 = 6.0 * UNIT;
/// Second-order terms in u, and rounding in the bounds themselves.
const SLACK: f64 = 1.1;
/// The products N k^2 up to which the orthogonality of k vectors is measured; beyond, where k is at most an
/// eighth of N and finding the vectors took far longer.
const MOST_PRODUCTS: f64 = 2e9;
/// Residuals or products of eigenvectors above this are no small perturbation, and nothing is proved.
const SMALL: f64 = 0.05;

/// A bound on what rounding does to an entry of sum_k c_k T_k(L) by Clenshaw's recurrence, with rows of at
/// most `longest` entries and arithmetic of the given unit.
///
/// An error made in step k acts like a change of c_k x, and reaches the result as T_k(L) times it. As
/// |T_k(L)| <= 1, the errors of all steps add up without growing. Step k computes c_k x + 2 L b_(k+1) -
/// b_(k+2); with rows of m entries it is off by at most (m + 5) u (|c_k| + 2 |b_(k+1)| + |b_(k+2)|) in norm,
/// because L has no negative entries and norm 1; the entries of L add 6 u. And |b_k| is at most the
/// largest |sum_(j >= k) c_j U_(j-k)(E)| on [-1, 1], a polynomial that is evaluated at 2 d Chebyshev points
/// for degree d, where it is met up to the factor sqrt 2 (Ehlich and Zeller, "Schwankung von Polynomen
/// zwischen Gitterpunkten", 1964). Cost: 2 d^2 operations.
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
    SLACK * ((longest as f64 + 5.0) * unit + ENTRY) * sum
}

/// A bound on what twins, which share a column, add to it: P at their eigenvalue, a difference of two entries
/// of L, and two more roundings.
pub(super) fn twin_rounding(filter: &Filter, unit: f64) -> Option<f64> {
    let largest = filter.largest()?;
    let eigenvalue = 2.0 * ENTRY + 2.0 * UNIT;
    let evaluated = 2.0 * filter.evaluation_units()? * UNIT;
    Some(SLACK * (evaluated + 4.0 * unit * (1.0 + largest) + eigenvalue * filter.steepest(-1.0, 1.0)?))
}

/// A bound on the error of every entry of V P(E) V^T against the kernel of exactly the eigenvalues that the
/// range stands for; `None` where it cannot be had.
///
/// Let U be the orthonormal matrix nearest to V, r_a the columns of L U - U E and y_i the eigenvectors of L,
/// with eigenvalues l_i. With f = P on the eigenvalues that the range stands for and 0 on those left out,
///
///   y_i^T (f(L) U - U P(E))_a = (f(l_i) - P(E_a)) / (l_i - E_a) y_i^T r_a
///
/// so that column a of F = f(L) U - U P(E) is at most the largest of those quotients over i times |r_a| long.
/// Where U spans the whole space, F U^T is the error. Else its parts inside U and across give at most sqrt 2
/// |F|, and the rest at most max |P| s^2, s the sine of the angle between U and the exact subspace: s^2 <=
/// sum of (|r_a| / d_a)^2, d_a the distance from E_a to the first eigenvalue left out (Davis and Kahan). The
/// l_i of the range lie within rho = |L U - U E| of the E_a, one for each (Kahan). All norms are those of
/// Frobenius.
///
/// Cost: a product of L with the vectors, 3 N k^2 operations for their products with each other, and k^2
/// quotients.
///
/// References: C. Davis, W. Kahan, "The rotation of eigenvectors by a perturbation III", 1970; B. Parlett,
/// "The symmetric eigenvalue problem", 1998, theorem 11.5.1.
///
/// Pairs with next to no weight may count as left out: then what they would add is added, and the distances
/// to them count instead of their residuals. The smaller of the two bounds is given.
pub(super) fn eigenpairs_bound(
    transition: &Transition,
    weighted: &Weighted<'_>,
    filter: &Filter,
) -> Option<f64> {
    let whole = bound(transition, weighted, filter);
    let used = weighted.used();
    if used.is_empty() || used.len() == weighted.range.len() {
        return whole;
    }
    let uncertainty = weighted.spectrum.uncertainty();
    let mut left_out = 0f64;
    for at in (0..used.start).chain(used.end..weighted.range.len()) {
        let (low, high) = (weighted.energies[at] - uncertainty, weighted.energies[at] + uncertainty);
        let slope = filter.steepest(low.max(-1.0), high.min(1.0))?;
        left_out = left_out.max(weighted.weights[at].abs() + uncertainty * slope);
    }
    let part = bound(transition, &weighted.part(used), filter).map(|bound| bound + SLACK * left_out);
    [whole, part].into_iter().flatten().reduce(f64::min)
}

/// The bound for the pairs of a range, all others being left out.
fn bound(transition: &Transition, weighted: &Weighted<'_>, filter: &Filter) -> Option<f64> {
    let Weighted { spectrum, range, energies, weights, .. } = weighted;
    if range.is_empty() {
        return Some(0.0);
    }
    let (nodes, pairs) = (spectrum.nodes() as f64, range.len() as f64);
    if nodes * pairs * pairs > MOST_PRODUCTS && 8.0 * pairs > nodes {
        return None;
    }
    let (low, high) = beside(spectrum, range)?;
    let skews = skews(spectrum, range)?;
    let skew = norm(&skews);
    // (L U - U E)_a differs from (L V - V E)_a by at most twice the skew, to first order.
    let residuals: Vec<f64> = residuals(transition, weighted)
        .iter()
        .zip(&skews)
        .map(|(residual, skew)| SLACK * (residual + 2.0 * skew))
        .collect();
    let rho = norm(&residuals);
    if !(skew < SMALL && rho < SMALL) {
        return None;
    }
    let largest = weighted.largest();
    // As the entries of L are rounded, its eigenvalues may be nearer than those of the stored matrix.
    let distances: Vec<f64> =
        energies.iter().map(|&energy| (energy - low).min(high - energy) - ENTRY).collect();
    if distances.iter().any(|&distance| distance <= rho) {
        return None;
    }
    let columns = columns(weighted, filter, &residuals, &distances, rho)?;
    let angles: Vec<f64> = residuals.iter().zip(&distances).map(|(r, distance)| r / distance).collect();
    let subspace = if spectrum.is_complete() && range.len() == spectrum.nodes() {
        norm(&columns)
    } else {
        std::f64::consts::SQRT_2 * norm(&columns) + largest * norm(&angles).powi(2)
    };
    let basis: Vec<f64> = weights.iter().zip(&skews).map(|(weight, skew)| weight * skew).collect();
    let basis = 2.0 * norm(&basis) + largest * skew * skew;
    // Pairs with a weight below 1e-16 of the largest are left out of the sum.
    let sum = (pairs + 8.0) * UNIT * largest * (1.0 + skew) + 1e-16 * largest;
    let evaluated = weights.iter().map(|&weight| filter.evaluation(weight)).collect::<Option<Vec<f64>>>()?;
    let evaluated = evaluated.into_iter().fold(0.0, f64::max);
    Some(SLACK * (subspace + basis + sum + evaluated)).filter(|bound| bound.is_finite())
}

/// Bounds on the lengths of the columns of F = f(L) U - U P(E), given those of L U - U E, the distances to
/// the eigenvalues left out, and `rho`.
///
/// An entry of column a is (f(l) - P(E_a)) y^T u_a for an eigenpair (l, y) of L. Where l may meet E_a the
/// quotient (f(l) - P(E_a)) / (l - E_a) is at most the slope there. Else l lies within rho of some E_b, so
/// that f(l) differs from P(E_b) by at most rho times the slope at E_b. If no other eigenvalue is near E_b, y
/// differs from u_b by an angle whose sine t_b is at most |r_b| divided by the distance to the next one; then
/// y^T u_a is no larger than t_b either, as u_a and u_b are at right angles. Eigenvalues that are exactly 1
/// meet no other l than themselves.
fn columns(
    weighted: &Weighted<'_>,
    filter: &Filter,
    residuals: &[f64],
    distances: &[f64],
    rho: f64,
) -> Option<Vec<f64>> {
    let Weighted { energies, weights, ones, .. } = weighted;
    let uncertain = energies.len() - ones;
    let slope = |low: f64, high: f64| filter.steepest((low - rho).max(-1.0), (high + rho).min(1.0));
    let slopes = energies.iter().map(|&energy| slope(energy, energy)).collect::<Option<Vec<f64>>>()?;
    let near = 4.0 * rho;
    let sine = |b: usize| {
        let below = if b > 0 { energies[b] - energies[b - 1] } else { f64::INFINITY };
        let above = energies.get(b + 1).map_or(f64::INFINITY, |next| next - energies[b]);
        let gap = below.min(above).min(distances[b]);
        if gap > near { residuals[b] / (gap - rho) } else { f64::INFINITY }
    };
    let sines: Vec<f64> = (0..energies.len()).map(sine).collect();
    let scale = weighted.largest().max(f64::MIN_POSITIVE); // squares of the smallest numbers would be 0
    (0..energies.len())
        .into_par_iter()
        .map(|a| {
            let energy = energies[a];
            let start = energies.partition_point(|&other| other < energy - near);
            let end = energies.partition_point(|&other| other <= energy + near);
            let alone = start >= uncertain; // what lies so near is exactly 1, as this one is
            let close = if alone { 0.0 } else { slope(energies[start], energies[end - 1])? };
            let mut most = residuals[a] * close.max(weights[a].abs() / distances[a]);
            let mut others = 0.0;
            for b in (0..start).chain(end..energies.len()) {
                let change = (weights[b] - weights[a]).abs() + rho * slopes[b];
                let by_quotient = residuals[a] * change / ((energies[b] - energy).abs() - rho);
                let by_sine = change * sines[b];
                if by_sine < by_quotient && by_quotient > most {
                    others += (by_sine / scale).powi(2);
                } else {
                    most = most.max(by_quotient);
                }
            }
            Some(most.hypot(scale * f64::sqrt(others)))
        })
        .collect()
}

/// The norm of a vector, whose squares may be too small for a number.
fn norm(values: &[f64]) -> f64 {
    let largest = values.iter().fold(0.0, |most: f64, value| most.max(value.abs()));
    if largest == 0.0 || !largest.is_finite() {
        return largest;
    }
    largest * values.iter().map(|value| (value / largest).powi(2)).sum::<f64>().sqrt()
}

/// Bounds on the eigenvalues of L next to a range of pairs, below and above; infinite where there are none.
/// `None` where the spectrum is a part and it was not counted what lies beside it.
fn beside(spectrum: &Spectrum, range: &Range<usize>) -> Option<(f64, f64)> {
    let energies = &spectrum.eigenvalues()[range.clone()];
    let (below, above) = (spectrum.gap_below(range)?, spectrum.gap_above(range)?);
    Some((energies[0] - below, energies[range.len() - 1] + above))
}

/// The length of each column of L V - V E, with the rounding of the entries of L and of this sum.
fn residuals(transition: &Transition, weighted: &Weighted<'_>) -> Vec<f64> {
    let Weighted { spectrum, range, energies, .. } = weighted;
    let matrix = transition.matrix();
    let column = |pair: usize| {
        let (vector, energy) = (spectrum.vector(pair), energies[pair - range.start]);
        cpu::dispatch(Residual { matrix, vector, energy })
    };
    range.clone().into_par_iter().map(column).collect()
}

/// |L v - E v| with the rounding of the entries of L, the sums computed as if in twice the precision.
///
/// Reference: T. Ogita, S. Rump, S. Oishi, "Accurate sum and dot product", 2005, algorithm 5.3.
struct Residual<'a> {
    matrix: &'a Csr<f64>,
    vector: &'a [f64],
    energy: f64,
}

impl Loops for Residual<'_> {
    type Output = f64;

    #[inline(always)]
    fn run<const FUSED: bool>(self) -> f64 {
        let Self { matrix, vector, energy } = self;
        let mut square = 0.0;
        for row in 0..matrix.rows() {
            let (columns, values) = matrix.row(row);
            let mut sum = -energy * vector[row];
            let mut correction = error_of_product::<FUSED>(-energy, vector[row], sum);
            let mut size = 0.0;
            for (&column, &value) in columns.iter().zip(values) {
                let entry = vector[column as usize];
                let product = value * entry;
                let total = sum + product;
                let part = total - sum;
                correction += (sum - (total - part)) + (product - part);
                correction += error_of_product::<FUSED>(value, entry, product);
                sum = total;
                size += product.abs();
            }
            let length = columns.len() as f64 + 1.0;
            let rounding = ENTRY * size + (length * UNIT).powi(2) * (size + sum.abs());
            square += ((sum + correction).abs() * (1.0 + 2.0 * UNIT) + rounding).powi(2);
        }
        square.sqrt()
    }
}

/// `a * b - product` exactly, `product` being `a * b` rounded.
#[inline(always)]
fn error_of_product<const FUSED: bool>(a: f64, b: f64, product: f64) -> f64 {
    if FUSED {
        return a.mul_add(b, -product);
    }
    // Dekker: each factor as the sum of two numbers with half the digits.
    let (scaled_a, scaled_b) = (134_217_729.0 * a, 134_217_729.0 * b); // 2^27 + 1
    let (high_a, high_b) = (scaled_a - (scaled_a - a), scaled_b - (scaled_b - b));
    let (low_a, low_b) = (a - high_a, b - high_b);
    low_a * low_b - (((product - high_a * high_b) - low_a * high_b) - high_a * low_b)
}

/// The length of each column of V^T V - I, with the rounding of this sum; `None` if a vector is not of length
/// one.
///
/// V = H + T, H being V rounded to multiples of 2^-26. Sums of products of such numbers below 2 are exact in
/// double precision whatever their order. V^T V = H^T H + B + B^T with B = T^T (V - T / 2), whose own
/// rounding is 2^-27 of what it would be for V^T V.
fn skews(spectrum: &Spectrum, range: &Range<usize>) -> Option<Vec<f64>> {
    /// Rows taken at a time: H and T are held for so many only.
    const ROWS: usize = 512;
    /// Columns of a product that one thread makes.
    const COLUMNS: usize = 64;
    const QUANTUM: f64 = 1.0 / (1u64 << 26) as f64;
    let (nodes, pairs) = (spectrum.nodes(), range.len());
    // Columns of H^T H, from the diagonal down, and of B.
    let (mut exact, mut rest) = (vec![0.0; pairs * pairs], vec![0.0; pairs * pairs]);
    for start in (0..nodes).step_by(ROWS) {
        let height = ROWS.min(nodes - start);
        let zeros = || vec![0.0; height * pairs];
        let (mut high, mut tail, mut middle) = (zeros(), zeros(), zeros());
        (high.par_chunks_mut(height), tail.par_chunks_mut(height), middle.par_chunks_mut(height))
            .into_par_iter()
            .zip(range.clone())
            .for_each(|((high, tail, middle), pair)| {
                for (row, &value) in spectrum.vector(pair)[start..start + height].iter().enumerate() {
                    high[row] = (value / QUANTUM).round_ties_even() * QUANTUM;
                    tail[row] = value - high[row];
                    middle[row] = value - 0.5 * tail[row];
                }
            });
        let [high, tail, middle] =
            [&high, &tail, &middle].map(|numbers| MatRef::from_column_major_slice(numbers, height, pairs));
        (exact.par_chunks_mut(COLUMNS * pairs), rest.par_chunks_mut(COLUMNS * pairs))
            .into_par_iter()
            .enumerate()
            .for_each(|(block, (exact, rest))| {
                let (first, width) = (COLUMNS * block, exact.len() / pairs);
                let below = MatMut::from_column_major_slice_mut(exact, pairs, width)
                    .subrows_mut(first, pairs - first);
                let left = high.subcols(first, pairs - first).transpose();
                matmul(below, Accum::Add, left, high.subcols(first, width), 1.0, Par::Seq);
                let rest = MatMut::from_column_major_slice_mut(rest, pairs, width);
                matmul(rest, Accum::Add, tail.transpose(), middle.subcols(first, width), 1.0, Par::Seq);
            });
    }
    let exact = |a: usize, b: usize| exact[a.min(b) * pairs + a.max(b)];
    // T has entries up to 2^-27, so that its columns are no longer than sqrt N of that.
    let rounding = 2.0 * (nodes as f64 + 4.0) * UNIT * (0.5 * QUANTUM) * (nodes as f64).sqrt();
    let unit_length = (0..pairs).all(|a| exact(a, a) < 1.5);
    let column = |a: usize| {
        let entry = |b: usize| {
            let whole = exact(a, b) - f64::from(u8::from(a == b));
            (whole + (rest[a * pairs + b] + rest[b * pairs + a])).abs() + rounding
        };
        (0..pairs).map(entry).map(|value| value * value).sum::<f64>().sqrt()
    };
    unit_length.then(|| (0..pairs).into_par_iter().map(column).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Eigensolver, Graph, Watch};
    use std::sync::Arc;

    fn spectrum(graph: &Graph) -> (Transition, Spectrum) {
        let transition = Transition::new(graph);
        let spectrum = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap();
        (transition, spectrum)
    }

    /// Some numbers of a spectrum changed.
    fn changed(spectrum: &Spectrum, change: impl FnOnce(&mut Vec<f64>, &mut Vec<f64>)) -> Spectrum {
        let (mut values, mut vectors) = (spectrum.eigenvalues().to_vec(), spectrum.vectors().to_vec());
        change(&mut values, &mut vectors);
        Spectrum::from_parts(*spectrum.origin(), values, Arc::new(vectors), spectrum.report().clone())
    }

    fn lollipop() -> Graph {
        let edges = (0..5u64).flat_map(|i| (0..i).map(move |j| (i, j))).chain((4..30).map(|i| (i, i + 1)));
        Graph::from_edges(31, edges, EdgeRule::Undirected).unwrap()
    }

    #[test]
    fn the_error_of_a_product_is_exact_with_and_without_fused_arithmetic() {
        for (a, b) in [(1.0 + f64::EPSILON, 1.0 - f64::EPSILON), (0.1, 0.3), (-1.0 / 3.0, 7e-9), (0.0, 5.0)] {
            let product = a * b;
            assert_eq!(error_of_product::<false>(a, b, product), f64::mul_add(a, b, -product), "{a} {b}");
            assert_eq!(error_of_product::<true>(a, b, product), f64::mul_add(a, b, -product), "{a} {b}");
        }
    }

    #[test]
    fn norms_of_the_smallest_and_largest_numbers_are_no_nonsense() {
        assert_eq!(norm(&[3.0, -4.0]), 5.0);
        assert_eq!(norm(&[3e-190, 4e-190]), 5e-190);
        assert_eq!((norm(&[]), norm(&[0.0]), norm(&[1.0, f64::INFINITY])), (0.0, 0.0, f64::INFINITY));
    }

    #[test]
    fn products_of_eigenvectors_are_measured_far_below_the_unit_of_rounding() {
        let (_, spectrum) = spectrum(&lollipop());
        // A small entry can be changed by 1e-18; then its products with the other columns change.
        let small = |value: &f64| value.abs() > 1e-6 && value.abs() < 2f64.powi(-9);
        let at = spectrum.vectors().iter().position(small).unwrap();
        let moved = changed(&spectrum, |_, vectors| vectors[at] += 2f64.powi(-60));
        let before = skews(&spectrum, &(0..31)).unwrap();
        let after = skews(&moved, &(0..31)).unwrap();
        assert!(before.iter().all(|&skew| skew < 1e-14), "{before:?}");
        let seen = (0..31).filter(|&a| a != at / 31 && before[a] != after[a]).count();
        assert!(seen > 20, "a change of 1e-18 in one column is seen in {seen} others");
    }
}
