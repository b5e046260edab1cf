//! What error bounds have to know about a filter: how steep and how large it is, and how its series falls.

use std::f64::consts::{FRAC_PI_2, PI};

use super::{Filter, Shape};

impl Filter {
    /// A bound on |P'| between two values of [-1, 1]; `None` for a custom filter.
    ///
    /// | filter | largest slope |
    /// | --- | --- |
    /// | `gaussian` | d / sigma^2 exp(-d^2 / 2 sigma^2) with d the distance to mu nearest to sigma |
    /// | `band` | 1/4, the largest slope of the logistic function, bounds it |
    /// | `ppr` | alpha (1 - alpha) / (1 - (1 - alpha) E)^2 at the upper end |
    /// | `heat` | t exp(-t (1 - E)) at the upper end |
    /// | `sum` | sum of abs(w_i) times those of the terms bounds it |
    pub fn steepest(&self, low: f64, high: f64) -> Option<f64> {
        match &self.0 {
            Shape::Gaussian { mu, sigma } => {
                let nearest =
                    if low <= *mu && *mu <= high { 0.0 } else { (low - mu).abs().min((high - mu).abs()) };
                let farthest = (low - mu).abs().max((high - mu).abs());
                let distance = sigma.clamp(nearest, farthest) / sigma;
                Some(distance * (-0.5 * distance * distance).exp() / sigma)
            }
            Shape::Band { .. } => Some(0.25),
            Shape::Ppr { alpha } => {
                let value = self.evaluate(high);
                Some((1.0 - alpha) / alpha * value * value)
            }
            Shape::Heat { time } => Some(time * self.evaluate(high)),
            Shape::Custom { .. } => None,
            Shape::Sum(terms) => weighed(terms, |filter| filter.steepest(low, high)),
        }
    }

    /// The largest |P| on [-1, 1], or for a sum a bound on it; `None` for a custom filter.
    pub(crate) fn largest(&self) -> Option<f64> {
        match &self.0 {
            Shape::Gaussian { mu, .. } | Shape::Band { mu, .. } => Some(self.evaluate(mu.clamp(-1.0, 1.0))),
            Shape::Ppr { .. } | Shape::Heat { .. } => Some(1.0),
            Shape::Custom { .. } => None,
            Shape::Sum(terms) => weighed(terms, Self::largest),
        }
    }

    /// A bound on the mean of |P| over Chebyshev nodes whose mean of P is given; `None` for a custom filter.
    ///
    /// The named filters are positive, so that the two are the same.
    pub(crate) fn mean_magnitude(&self, mean: f64) -> Option<f64> {
        match &self.0 {
            Shape::Sum(_) => self.largest(),
            Shape::Custom { .. } => None,
            _ => Some(mean.abs()),
        }
    }

    /// Evaluating P is off by at most this many units of rounding; `None` for a custom filter.
    ///
    /// Of a named filter it is a few roundings of a number not above 1, and z exp(-z) is nowhere steep in the
    /// relative error of z. Each term of a sum adds that, a product and a sum, times its weight.
    pub(crate) fn evaluation_units(&self) -> Option<f64> {
        match &self.0 {
            Shape::Custom { .. } => None,
            Shape::Sum(terms) => {
                weighed(terms, |filter| Some(filter.evaluation_units()? + terms.len() as f64 + 1.0))
            }
            _ => Some(16.0),
        }
    }

    /// By how much P computed as `value` may be off; `None` for a custom filter.
    ///
    /// Of a named filter some roundings of the value, and some of an exponent that is the logarithm of the
    /// value.
    pub(crate) fn evaluation(&self, value: f64) -> Option<f64> {
        let unit = 0.5 * f64::EPSILON;
        match &self.0 {
            Shape::Custom { .. } | Shape::Sum(_) => Some(self.evaluation_units()? * unit),
            _ if value == 0.0 => Some(f64::MIN_POSITIVE),
            _ => Some(unit * value * (16.0 + 8.0 * value.ln().abs())),
        }
    }

    /// The largest ln |P(z)| on the ellipse of Bernstein with foci -1, 1 and half axes (rho + 1/rho)/2 and
    /// (rho - 1/rho)/2; infinite where P is not analytic inside it, `None` where nothing is known.
    ///
    /// The Chebyshev coefficients then obey |c_k| <= 2 M rho^-k with M the exponential of this.
    pub(crate) fn log_maximum_on_ellipse(&self, rho: f64) -> Option<f64> {
        let (wide, high) = (0.5 * (rho + 1.0 / rho), 0.5 * (rho - 1.0 / rho));
        match &self.0 {
            // Re (z - mu)^2 >= (distance of mu to the ellipse's shadow)^2 - high^2
            Shape::Gaussian { mu, sigma } => {
                let aside = (mu.abs() - wide).max(0.0);
                Some((high * high - aside * aside) / (2.0 * sigma * sigma))
            }
            // |s(x + iy)| <= 1 for |y| <= pi/2 and <= 1 / sin|y| up to the poles at |y| = pi
            Shape::Band { .. } => Some(match high {
                high if high <= FRAC_PI_2 => 0.0,
                high if high < PI => -2.0 * high.sin().ln(),
                _ => f64::INFINITY,
            }),
            Shape::Ppr { alpha } => {
                let nearest = 1.0 - (1.0 - alpha) * wide;
                Some(if nearest > 0.0 { (alpha / nearest).ln() } else { f64::INFINITY })
            }
            Shape::Heat { time } => Some(time * (wide - 1.0)),
            Shape::Custom { .. } => None,
            // ln sum |w_i| M_i, without overflow of the exponentials
            Shape::Sum(terms) => {
                let logs: Vec<f64> = terms
                    .iter()
                    .filter(|(weight, _)| *weight != 0.0)
                    .map(|(weight, filter)| Some(weight.abs().ln() + filter.log_maximum_on_ellipse(rho)?))
                    .collect::<Option<_>>()?;
                let highest = logs.iter().copied().fold(f64::NEG_INFINITY, f64::max);
                let rest: f64 = logs.iter().map(|log| (log - highest).exp()).sum();
                Some(if highest.is_finite() { highest + rest.ln() } else { highest })
            }
        }
    }
}

/// The sum of |w_i| times a bound of each term.
fn weighed(terms: &[(f64, Filter)], bound: impl Fn(&Filter) -> Option<f64>) -> Option<f64> {
    terms.iter().map(|(weight, filter)| Some(weight.abs() * bound(filter)?)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Terms of either sign.
    fn sum() -> Filter {
        let terms = [
            (-1.5, Filter::gaussian(0.3, 0.2).unwrap()),
            (0.75, Filter::heat(5.0).unwrap()),
            (0.5, Filter::band(0.1, 0.3).unwrap()),
        ];
        Filter::sum(terms).unwrap()
    }

    #[test]
    fn bounds_of_a_sum_are_those_of_its_terms_weighed_and_a_custom_term_has_none() {
        let (one, two) = (Filter::gaussian(0.3, 0.2).unwrap(), Filter::ppr(0.15).unwrap());
        let both = Filter::sum([(-2.0, one.clone()), (0.5, two.clone())]).unwrap();
        let slope = |filter: &Filter| filter.steepest(-1.0, 1.0).unwrap();
        assert!((slope(&both) - 2.0 * slope(&one) - 0.5 * slope(&two)).abs() < 1e-12);
        assert_eq!((both.largest(), both.mean_magnitude(-0.1)), (Some(2.5), Some(2.5)));
        assert_eq!(one.mean_magnitude(-0.1), Some(0.1));
        assert_eq!((one.evaluation_units(), both.evaluation_units()), (Some(16.0), Some(2.5 * 19.0)));
        let log = |filter: &Filter| filter.log_maximum_on_ellipse(1.1).unwrap();
        let expected = (2.0 * log(&one).exp() + 0.5 * log(&two).exp()).ln();
        assert!((log(&both) - expected).abs() < 1e-12);
        assert_eq!(Filter::sum([(0.0, two)]).unwrap().log_maximum_on_ellipse(1.1), Some(f64::NEG_INFINITY));
        let custom = Filter::sum([(1.0, one), (1.0, Filter::custom("square", |x| x * x))]).unwrap();
        assert_eq!(
            (custom.steepest(-1.0, 1.0), custom.largest(), custom.evaluation_units()),
            (None, None, None)
        );
        assert_eq!((custom.mean_magnitude(0.5).is_none(), custom.log_maximum_on_ellipse(1.1)), (true, None));
    }

    #[test]
    fn no_chord_is_steeper_than_the_steepest_slope_which_is_nearly_met() {
        let filters = [
            Filter::gaussian(0.3, 0.2).unwrap(),
            Filter::gaussian(3.0, 0.5).unwrap(),
            Filter::gaussian(0.3, 1e-6).unwrap(),
            Filter::band(0.1, 0.3).unwrap(),
            Filter::ppr(0.15).unwrap(),
            Filter::ppr(1e-8).unwrap(),
            Filter::heat(5.0).unwrap(),
            Filter::heat(1e6).unwrap(),
            sum(),
        ];
        for filter in filters {
            for (low, high) in [(-1.0, 1.0), (-0.5, 0.1), (0.29, 0.31), (0.999, 1.0)] {
                let steepest = filter.steepest(low, high).unwrap();
                let mut met = 0f64;
                for i in 0..20_000 {
                    let at = |i: i32| low + (high - low) * f64::from(i) / 20_000.0;
                    let chord = (filter.evaluate(at(i + 1)) - filter.evaluate(at(i))) / (at(i + 1) - at(i));
                    met = met.max(chord.abs());
                }
                assert!(
                    met <= steepest * (1.0 + 1e-6) + 1e-9,
                    "{filter} on {low}..{high}: {met} above {steepest}"
                );
                let smooth = !matches!(filter.name(), "band" | "sum") && steepest * (high - low) < 100.0;
                assert!(
                    !smooth || met >= 0.9 * steepest,
                    "{filter} on {low}..{high}: {met} below {steepest}"
                );
            }
            let largest = filter.largest().unwrap();
            assert!((0..=2000).all(|i| filter.evaluate(f64::from(i) / 1000.0 - 1.0).abs() <= largest));
        }
    }

    #[test]
    fn on_the_ellipse_no_value_exceeds_the_stated_maximum() {
        // On the real axis the ellipse reaches out to its wide half axis, where the filters can be evaluated.
        let filters = [
            Filter::gaussian(0.3, 0.2).unwrap(),
            Filter::gaussian(3.0, 0.5).unwrap(),
            Filter::band(0.1, 0.3).unwrap(),
            Filter::ppr(0.15).unwrap(),
            Filter::heat(5.0).unwrap(),
            sum(),
        ];
        for filter in filters {
            for rho in [1.01f64, 1.2, 1.5] {
                let bound = filter.log_maximum_on_ellipse(rho).unwrap();
                for end in [-1.0, 1.0] {
                    let value = filter.evaluate(end * 0.5 * (rho + 1.0 / rho)).abs().ln();
                    assert!(value <= bound + 1e-12, "{filter} at {rho}: {value} above {bound}");
                }
            }
        }
    }
}
