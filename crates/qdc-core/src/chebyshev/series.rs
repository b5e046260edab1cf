//! Chebyshev coefficients of a filter, and a bound on what a truncated series leaves out.
//!
//! P(x) = sum_k c_k T_k(x) on [-1, 1] with c_k = (2 - [k = 0]) / pi * integral of P(cos t) cos(k t) dt: the
//! first coefficient is already halved, so that the sum has no special term.

use std::f64::consts::PI;

use crate::{Error, Filter};

/// The most terms a series may have; a sharper filter belongs to the dense route.
const MOST_TERMS: usize = 1 << 14;

/// A truncated Chebyshev series of a filter on [-1, 1].
///
/// ```
/// use qdc_core::{Filter, chebyshev::Series};
///
/// let filter = Filter::gaussian(0.3, 0.1)?;
/// let series = Series::of(&filter, 1e-10)?;
/// assert!(series.degree() < 80);
/// assert!((series.evaluate(0.25) - filter.evaluate(0.25)).abs() <= series.tail());
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Series {
    coefficients: Vec<f64>,
    tail: f64,
    rounding: Option<f64>,
}

impl Series {
    /// The shortest series whose error on [-1, 1] is at most `tolerance`.
    ///
    /// The error is bounded by the magnitudes of the coefficients left out: those that were computed, by
    /// interpolation in `points` nodes, and those beyond, which also alias into the former. For the named
    /// filters the latter obey |c_k| <= 2 M rho^-k with M the maximum of |P| on an ellipse of Bernstein
    /// (Trefethen, "Approximation Theory and Approximation Practice", theorem 8.1), minimised over rho. For a
    /// custom filter they are estimated by the last quarter of those computed. What rounding in evaluating P
    /// allows (1e-15 or so) is the limit.
    ///
    /// # Errors
    /// If the tolerance is not a positive number, a filter is not finite, or its series would be too long.
    pub fn of(filter: &Filter, tolerance: f64) -> Result<Self, Error> {
        if !(tolerance > 0.0 && tolerance.is_finite()) {
            return Err(Error::Parameter {
                name: "tolerance",
                value: tolerance,
                requirement: "finite and above 0",
            });
        }
        let mut points = 32;
        loop {
            let all = interpolate(filter, points)?;
            let beyond = aliased_tail(filter, &all);
            let mut tail = 2.0 * beyond; // left out, and aliased into the ones kept
            let mut terms = points;
            while terms > 1 && tail + all[terms - 1].abs() <= tolerance {
                terms -= 1;
                tail += all[terms].abs();
            }
            // Half the nodes are kept in reserve: coefficients that have only just become small are not
            // trusted.
            if tail <= tolerance && terms <= points / 2 {
                let rounding = rounding(filter, &all);
                return Ok(Self { coefficients: all[..terms].to_vec(), tail, rounding });
            }
            if points >= MOST_TERMS {
                return Err(Error::FilterTooSharp { filter: filter.to_string(), terms: points, tolerance });
            }
            points *= 2;
        }
    }

    /// c_0, c_1, and so on; the first is already halved.
    pub fn coefficients(&self) -> &[f64] {
        &self.coefficients
    }

    /// The degree of the polynomial: one product with L for each.
    pub fn degree(&self) -> usize {
        self.coefficients.len() - 1
    }

    /// The most by which the series differs from the filter on [-1, 1], hence in any entry of P(L).
    pub fn tail(&self) -> f64 {
        self.tail
    }

    /// A bound on what rounding of the coefficients adds to [`Series::tail`]; `None` for a custom filter,
    /// whose tail is an estimate too.
    pub(crate) fn rounding(&self) -> Option<f64> {
        self.rounding
    }

    /// The series at one point.
    pub fn evaluate(&self, energy: f64) -> f64 {
        Self::sum(&self.coefficients, energy)
    }

    /// sum_k c_k T_k(x) for any coefficients.
    pub fn sum(coefficients: &[f64], x: f64) -> f64 {
        let (mut next, mut after) = (0.0, 0.0);
        for &coefficient in coefficients[1..].iter().rev() {
            (next, after) = (coefficient + 2.0 * x * next - after, next);
        }
        coefficients[0] + x * next - after
    }
}

/// The coefficients of the polynomial that meets the filter in `points` Chebyshev nodes cos((j + 1/2) pi /
/// points).
fn interpolate(filter: &Filter, points: usize) -> Result<Vec<f64>, Error> {
    // cos(k (j + 1/2) pi / points) = cosine[k (2 j + 1) mod 4 points]: a table instead of points^2 cosines
    let cosine: Vec<f64> = (0..4 * points).map(|at| (at as f64 * PI / (2 * points) as f64).cos()).collect();
    let mut values = Vec::with_capacity(points);
    for node in 0..points {
        let energy = cosine[2 * node + 1];
        let value = filter.evaluate(energy);
        if !value.is_finite() {
            return Err(Error::FilterNotFinite { filter: filter.to_string(), energy, value });
        }
        values.push(value);
    }
    let coefficient = |k: usize| {
        let sum: f64 =
            values.iter().enumerate().map(|(j, value)| value * cosine[k * (2 * j + 1) % (4 * points)]).sum();
        sum * if k == 0 { 1.0 } else { 2.0 } / points as f64
    };
    Ok((0..points).map(coefficient).collect())
}

/// What rounding can do to the polynomial with the coefficients computed from as many nodes, on [-1, 1].
///
/// Errors e of the values at n nodes (of evaluation, and of the node times the slope) change the polynomial
/// by at most sqrt(2 n) e, as the discrete cosines are orthogonal. Summing n products is off by (n + 3) u
/// times the mean of |P|, twice, for each coefficient.
fn rounding(filter: &Filter, computed: &[f64]) -> Option<f64> {
    let unit = 0.5 * f64::EPSILON;
    let points = computed.len() as f64;
    let values = unit * (filter.evaluation_units()? + 4.0 * filter.steepest(-1.0, 1.0)?);
    let mean = filter.mean_magnitude(computed[0])? + points * unit;
    Some(1.1 * ((2.0 * points).sqrt() * values + 2.0 * points * (points + 3.0) * unit * mean))
}

/// A bound on the sum of |c_k| for k beyond the computed ones; an estimate for custom filters.
fn aliased_tail(filter: &Filter, computed: &[f64]) -> f64 {
    let terms = computed.len() as f64;
    // The bound at rho - 1 = 2^-10 ... 2^10 in steps of a tenth of an octave; every rho gives a valid one.
    let bounds = (-100..=100).map(|step| 1.0 + 2f64.powf(f64::from(step) / 10.0)).filter_map(|rho| {
        let log_maximum = filter.log_maximum_on_ellipse(rho)?;
        Some((2f64.ln() + log_maximum - (terms - 1.0) * rho.ln() - (rho - 1.0).ln()).exp())
    });
    bounds
        .reduce(f64::min)
        .unwrap_or_else(|| computed[computed.len() * 3 / 4..].iter().map(|value| value.abs()).sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_first_coefficient_is_halved_once() {
        // x^2 = (T_0 + T_2) / 2, and a constant is its own series.
        let square = Series::of(&Filter::custom("square", |x| x * x), 1e-12).unwrap();
        assert_eq!(square.degree(), 2);
        for (found, expected) in square.coefficients().iter().zip([0.5, 0.0, 0.5]) {
            assert!((found - expected).abs() < 1e-15);
        }
        let constant = Series::of(&Filter::heat(0.0).unwrap(), 1e-12).unwrap();
        assert_eq!((constant.degree(), constant.coefficients()[0]), (0, 1.0));
    }

    #[test]
    fn coefficients_of_page_rank_are_geometric() {
        // alpha / (1 - b x), b = 1 - alpha: c_k = (2 - [k = 0]) alpha r^k / sqrt(1 - b^2), r = (1 - sqrt(1 -
        // b^2)) / b
        let (alpha, b) = (0.15, 0.85f64);
        let root = (1.0 - b * b).sqrt();
        let ratio = (1.0 - root) / b;
        let series = Series::of(&Filter::ppr(alpha).unwrap(), 1e-10).unwrap();
        for (k, coefficient) in series.coefficients().iter().enumerate() {
            let expected = if k == 0 { 1.0 } else { 2.0 } * alpha / root * ratio.powi(k as i32);
            assert!((coefficient - expected).abs() < 1e-14, "{k}");
        }
        assert!((35..45).contains(&series.degree()), "{}", series.degree());
    }

    #[test]
    fn a_step_is_too_sharp_and_a_pole_is_not_finite() {
        let step = Filter::custom("step", |x| f64::from(u8::from(x > 0.1)));
        assert!(matches!(Series::of(&step, 1e-10), Err(Error::FilterTooSharp { .. })));
        let nan = Filter::custom("nan", |x| (x - 0.9).sqrt());
        assert!(matches!(Series::of(&nan, 1e-10), Err(Error::FilterNotFinite { .. })));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn the_error_is_below_the_stated_tail(
            which in 0..5, a in -1.5f64..1.5, b in 0.02f64..2.0, x in -1.0f64..=1.0, digits in 2i32..12,
        ) {
            let filter = match which {
                0 => Filter::gaussian(a, b),
                1 => Filter::band(a, b),
                2 => Filter::ppr(b / 2.0),
                3 => Filter::sum([
                    (-2.0 * a, Filter::gaussian(a, b).unwrap()),
                    (0.5, Filter::heat(5.0 * b).unwrap()),
                ]),
                _ => Filter::heat(20.0 * b),
            }.unwrap();
            let series = Series::of(&filter, 10f64.powi(-digits)).unwrap();
            prop_assert!(series.tail() <= 10f64.powi(-digits));
            let error = (series.evaluate(x) - filter.evaluate(x)).abs();
            prop_assert!(error <= series.tail() + 2e-14, "{error:e} above {:e}", series.tail());
        }
    }
}
