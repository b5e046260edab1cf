//! The learned window: a Gaussian filter whose mu and sigma are parameters.
//!
//! f(L; mu, sigma) = sum_k c_k T_k(L). Only the coefficients depend on mu and sigma, so the derivatives of a
//! loss are d loss / d mu = sum_k (d c_k / d mu) <dy, T_k(L) x>, and the scalar products come out of the
//! backward pass anyway.

use std::f64::consts::PI;

use crate::Real;

/// Where a learned window starts, and within which bounds it moves.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LearnedWindow {
    /// The centre at the start.
    pub mu: f64,
    /// The width at the start.
    pub sigma: f64,
    /// Learning rate of both, as a multiple of that of the weights.
    pub rate: f64,
}

impl LearnedWindow {
    /// The centre stays within these.
    pub const MU: (f64, f64) = (-1.5, 1.5);
    /// The width stays within these; below the lower one a series grows long.
    pub const SIGMA: (f64, f64) = (0.02, 4.0);
    /// The usual rate.
    pub const RATE: f64 = 5.0;

    /// A window that starts here and moves at the usual rate.
    pub const fn new(mu: f64, sigma: f64) -> Self {
        Self { mu, sigma, rate: Self::RATE }
    }

    /// The same at another rate.
    pub const fn at_rate(self, rate: f64) -> Self {
        Self { rate, ..self }
    }
}

/// The longest series there can be: enough for the smallest width.
const MOST_POINTS: usize = 1024;

/// The Chebyshev coefficients of a Gaussian and their derivatives by mu and sigma, in memory that is taken once.
pub(crate) struct WindowSeries {
    tolerance: f64,
    points: usize,
    cosine: Vec<f64>,
    values: Vec<[f64; 3]>,
    /// c_k, d c_k / d mu and d c_k / d sigma.
    terms: [Vec<f64>; 3],
}

impl WindowSeries {
    /// For the precision `T`.
    pub(crate) fn new<T: Real>() -> Self {
        let tolerance = if size_of::<T>() == 8 { 1e-13 } else { 1e-7 };
        let room = || Vec::with_capacity(MOST_POINTS);
        Self {
            tolerance,
            points: 0,
            cosine: Vec::with_capacity(4 * MOST_POINTS),
            values: Vec::with_capacity(MOST_POINTS),
            terms: [room(), room(), room()],
        }
    }

    /// Computes them by interpolation in Chebyshev nodes, as many as the width asks for, and drops those too
    /// small to matter.
    pub(crate) fn set(&mut self, mu: f64, sigma: f64) {
        let points = ((16.0 / sigma) as usize + 32).next_power_of_two().min(MOST_POINTS);
        if points != self.points {
            self.points = points;
            self.cosine.clear();
            self.cosine.extend((0..4 * points).map(|at| (at as f64 * PI / (2 * points) as f64).cos()));
        }
        self.values.clear();
        for node in 0..points {
            let distance = (self.cosine[2 * node + 1] - mu) / sigma;
            let value = (-0.5 * distance * distance).exp();
            self.values.push([value, value * distance / sigma, value * distance * distance / sigma]);
        }
        for (which, terms) in self.terms.iter_mut().enumerate() {
            terms.clear();
            for k in 0..points / 2 {
                let cosine = |j: usize| self.cosine[k * (2 * j + 1) % (4 * points)];
                let sum: f64 =
                    self.values.iter().enumerate().map(|(j, value)| value[which] * cosine(j)).sum();
                terms.push(sum * if k == 0 { 1.0 } else { 2.0 } / points as f64);
            }
        }
        let mut count = points / 2;
        let mut left_out = [0.0; 3];
        while count > 1 {
            let more = [0, 1, 2].map(|which| left_out[which] + self.terms[which][count - 1].abs());
            if more.iter().any(|&sum| sum > self.tolerance) {
                break;
            }
            left_out = more;
            count -= 1;
        }
        self.terms.iter_mut().for_each(|terms| terms.truncate(count));
    }

    /// c_k.
    pub(crate) fn coefficients(&self) -> &[f64] {
        &self.terms[0]
    }

    /// The derivatives by mu and sigma of a sum of c_k moment_k.
    pub(crate) fn slopes(&self, moments: &[f64]) -> [f64; 2] {
        [1, 2].map(|which| self.terms[which].iter().zip(moments).map(|(slope, moment)| slope * moment).sum())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdc_core::Filter;
    use qdc_core::chebyshev::Series;

    #[test]
    fn the_series_is_the_gaussian_and_its_slopes_are_its_derivatives() {
        let mut series = WindowSeries::new::<f64>();
        for (mu, sigma) in [(0.5, 0.5), (1.5, 0.1), (-1.5, 4.0), (0.2, 0.05), (1.0, 0.02)] {
            for x in [-1.0, -0.3, 0.21, 0.97, 1.0] {
                let filter = |mu: f64, sigma: f64| Filter::gaussian(mu, sigma).unwrap().evaluate(x);
                series.set(mu, sigma);
                let found = Series::sum(series.coefficients(), x);
                assert!((found - filter(mu, sigma)).abs() < 1e-11, "{mu} {sigma} {x}");
                let powers: Vec<f64> =
                    (0..series.coefficients().len()).map(|k| (k as f64 * x.acos()).cos()).collect();
                let [by_mu, by_sigma] = series.slopes(&powers);
                let h = 1e-6;
                let expected_mu = (filter(mu + h, sigma) - filter(mu - h, sigma)) / (2.0 * h);
                let expected_sigma = (filter(mu, sigma + h) - filter(mu, sigma - h)) / (2.0 * h);
                assert!((by_mu - expected_mu).abs() < 1e-6 / sigma, "{by_mu} {expected_mu}");
                assert!((by_sigma - expected_sigma).abs() < 1e-6 / sigma, "{by_sigma} {expected_sigma}");
            }
        }
        assert!(WindowSeries::new::<f32>().tolerance > series.tolerance);
    }
}
