//! Filters: functions of the eigenvalue. A filter of L is a kernel, Q = sum over pairs of P(E_a) phi_a phi_a^T.
//!
//! | filter | P(E) | known as |
//! | --- | --- | --- |
//! | `gaussian` | exp(-(E - mu)^2 / 2 sigma^2) | quantum diffusion (QDC) |
//! | `band` | s(E - mu + gamma) s(mu + gamma - E), s the logistic function | band-pass diffusion (BPDC) |
//! | `ppr` | alpha / (1 - (1 - alpha) E) | personalised PageRank |
//! | `heat` | exp(-t (1 - E)) | heat kernel |
//! | custom | any function of E in [-1, 1] | |

use std::collections::BTreeMap;
use std::f64::consts::{FRAC_PI_2, PI};
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;

/// A function of the eigenvalue, with checked parameters.
///
/// ```
/// use qdc_core::Filter;
///
/// let filter = Filter::gaussian(0.3, 0.1)?;
/// assert_eq!(filter.evaluate(0.3), 1.0);
/// assert!(Filter::gaussian(0.3, 0.0).is_err());
/// let custom = Filter::custom("square", |energy| energy * energy);
/// assert_eq!(custom.evaluate(-0.5), 0.25);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Serialize, Deserialize)]
#[serde(try_from = "Stored", into = "Stored")]
pub struct Filter(Shape);

/// A filter as it is stored. A custom one keeps its name, so that it can be told apart, and cannot be read back.
#[derive(Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
enum Stored {
    Gaussian { mu: f64, sigma: f64 },
    Band { mu: f64, gamma: f64 },
    Ppr { alpha: f64 },
    Heat { time: f64 },
    Custom { called: String },
}

impl From<Filter> for Stored {
    fn from(filter: Filter) -> Self {
        match filter.0 {
            Shape::Gaussian { mu, sigma } => Self::Gaussian { mu, sigma },
            Shape::Band { mu, gamma } => Self::Band { mu, gamma },
            Shape::Ppr { alpha } => Self::Ppr { alpha },
            Shape::Heat { time } => Self::Heat { time },
            Shape::Custom { name, .. } => Self::Custom { called: name },
        }
    }
}

impl TryFrom<Stored> for Filter {
    type Error = Error;

    fn try_from(stored: Stored) -> Result<Self, Error> {
        match stored {
            Stored::Gaussian { mu, sigma } => Self::gaussian(mu, sigma),
            Stored::Band { mu, gamma } => Self::band(mu, gamma),
            Stored::Ppr { alpha } => Self::ppr(alpha),
            Stored::Heat { time } => Self::heat(time),
            Stored::Custom { called } => Err(Error::CustomFilter { name: called }),
        }
    }
}

/// Custom filters are equal if they have the same name and are the same function.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Shape::Custom { name: a, function: f }, Shape::Custom { name: b, function: g }) => {
                a == b && Arc::ptr_eq(f, g)
            }
            _ => self.name() == other.name() && self.parameters() == other.parameters(),
        }
    }
}

#[derive(Clone)]
enum Shape {
    Gaussian { mu: f64, sigma: f64 },
    Band { mu: f64, gamma: f64 },
    Ppr { alpha: f64 },
    Heat { time: f64 },
    Custom { name: String, function: Arc<dyn Fn(f64) -> f64 + Send + Sync> },
}

impl Filter {
    /// exp(-(E - mu)^2 / 2 sigma^2), with sigma > 0.
    ///
    /// A mu outside [-2, 2] is allowed: the spectrum then lies on the flank, and the report of the kernel warns.
    pub fn gaussian(mu: f64, sigma: f64) -> Result<Self, Error> {
        let mu = checked("mu", mu, mu.is_finite(), "a finite number")?;
        let sigma = checked("sigma", sigma, sigma > 0.0 && sigma.is_finite(), "finite and above 0")?;
        Ok(Self(Shape::Gaussian { mu, sigma }))
    }

    /// s(E - mu + gamma) s(mu + gamma - E) with s(x) = 1 / (1 + exp(-x)) and gamma >= 0.
    pub fn band(mu: f64, gamma: f64) -> Result<Self, Error> {
        let mu = checked("mu", mu, mu.is_finite(), "a finite number")?;
        let gamma = checked("gamma", gamma, gamma >= 0.0 && gamma.is_finite(), "finite and not negative")?;
        Ok(Self(Shape::Band { mu, gamma }))
    }

    /// alpha / (1 - (1 - alpha) E), with 0 < alpha <= 1: personalised PageRank.
    pub fn ppr(alpha: f64) -> Result<Self, Error> {
        let alpha = checked("alpha", alpha, alpha > 0.0 && alpha <= 1.0, "above 0 and at most 1")?;
        Ok(Self(Shape::Ppr { alpha }))
    }

    /// exp(-t (1 - E)), with t >= 0.
    pub fn heat(time: f64) -> Result<Self, Error> {
        let time = checked("time", time, time >= 0.0 && time.is_finite(), "finite and not negative")?;
        Ok(Self(Shape::Heat { time }))
    }

    /// Any function, to be evaluated on [-1, 1], under a name for reports.
    ///
    /// The Chebyshev route needs it smooth; a step belongs to the dense route.
    pub fn custom(name: impl Into<String>, function: impl Fn(f64) -> f64 + Send + Sync + 'static) -> Self {
        Self(Shape::Custom { name: name.into(), function: Arc::new(function) })
    }

    /// P(E).
    pub fn evaluate(&self, energy: f64) -> f64 {
        match &self.0 {
            Shape::Gaussian { mu, sigma } => {
                let distance = (energy - mu) / sigma;
                (-0.5 * distance * distance).exp()
            }
            Shape::Band { mu, gamma } => logistic(energy - mu + gamma) * logistic(mu + gamma - energy),
            // 1 - (1 - alpha) E, without cancellation where E is near 1
            Shape::Ppr { alpha } => alpha / (alpha + (1.0 - alpha) * (1.0 - energy)),
            Shape::Heat { time } => (-time * (1.0 - energy)).exp(),
            Shape::Custom { function, .. } => function(energy),
        }
    }

    /// `gaussian`, `band`, `ppr`, `heat`, or the name given to a custom filter.
    pub fn name(&self) -> &str {
        match &self.0 {
            Shape::Gaussian { .. } => "gaussian",
            Shape::Band { .. } => "band",
            Shape::Ppr { .. } => "ppr",
            Shape::Heat { .. } => "heat",
            Shape::Custom { name, .. } => name,
        }
    }

    /// The parameters by the names users type; empty for a custom filter.
    pub fn parameters(&self) -> BTreeMap<String, f64> {
        let named: &[(&str, f64)] = &match self.0 {
            Shape::Gaussian { mu, sigma } => vec![("mu", mu), ("sigma", sigma)],
            Shape::Band { mu, gamma } => vec![("mu", mu), ("gamma", gamma)],
            Shape::Ppr { alpha } => vec![("alpha", alpha)],
            Shape::Heat { time } => vec![("time", time)],
            Shape::Custom { .. } => vec![],
        };
        named.iter().map(|&(name, value)| (name.to_owned(), value)).collect()
    }

    /// The centre of the filter, where the nearest pairs are looked for: mu, or 1 for PageRank and heat.
    pub fn centre(&self) -> Option<f64> {
        match self.0 {
            Shape::Gaussian { mu, .. } | Shape::Band { mu, .. } => Some(mu),
            Shape::Ppr { .. } | Shape::Heat { .. } => Some(1.0),
            Shape::Custom { .. } => None,
        }
    }

    /// What is allowed but probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        match self.0 {
            Shape::Gaussian { mu, .. } | Shape::Band { mu, .. } if mu.abs() > 2.0 => vec![format!(
                "mu = {mu} lies outside [-2, 2], far from the spectrum (-1, 1]: the kernel sees only the filter's flank"
            )],
            _ => vec![],
        }
    }

    /// The largest |P'| between two values of [-1, 1], in closed form; `None` for a custom filter.
    ///
    /// | filter | largest slope |
    /// | --- | --- |
    /// | `gaussian` | d / sigma^2 exp(-d^2 / 2 sigma^2) with d the distance to mu nearest to sigma |
    /// | `band` | 1/4, the largest slope of the logistic function, bounds it |
    /// | `ppr` | alpha (1 - alpha) / (1 - (1 - alpha) E)^2 at the upper end |
    /// | `heat` | t exp(-t (1 - E)) at the upper end |
    pub fn steepest(&self, low: f64, high: f64) -> Option<f64> {
        match self.0 {
            Shape::Gaussian { mu, sigma } => {
                let nearest =
                    if low <= mu && mu <= high { 0.0 } else { (low - mu).abs().min((high - mu).abs()) };
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
        }
    }

    /// The largest |P| on [-1, 1], in closed form; `None` for a custom filter.
    pub(crate) fn largest(&self) -> Option<f64> {
        match self.0 {
            Shape::Gaussian { mu, .. } | Shape::Band { mu, .. } => Some(self.evaluate(mu.clamp(-1.0, 1.0))),
            Shape::Ppr { .. } | Shape::Heat { .. } => Some(1.0),
            Shape::Custom { .. } => None,
        }
    }

    /// The teleport probability, if this is personalised PageRank.
    pub(crate) fn ppr_alpha(&self) -> Option<f64> {
        match self.0 {
            Shape::Ppr { alpha } => Some(alpha),
            _ => None,
        }
    }

    /// The largest ln |P(z)| on the ellipse of Bernstein with foci -1, 1 and half axes (rho + 1/rho)/2 and
    /// (rho - 1/rho)/2; infinite where P is not analytic inside it, `None` where nothing is known.
    ///
    /// The Chebyshev coefficients then obey |c_k| <= 2 M rho^-k with M the exponential of this.
    pub(crate) fn log_maximum_on_ellipse(&self, rho: f64) -> Option<f64> {
        let (wide, high) = (0.5 * (rho + 1.0 / rho), 0.5 * (rho - 1.0 / rho));
        match self.0 {
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
        }
    }
}

impl fmt::Debug for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Filter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parameters: Vec<String> =
            self.parameters().iter().map(|(name, value)| format!("{name} {value}")).collect();
        write!(f, "{}({})", self.name(), parameters.join(", "))
    }
}

fn checked(name: &'static str, value: f64, holds: bool, requirement: &'static str) -> Result<f64, Error> {
    if holds { Ok(value) } else { Err(Error::Parameter { name, value, requirement }) }
}

fn logistic(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_out_of_range_are_refused_by_name() {
        let cases: [(Result<Filter, Error>, &str); 8] = [
            (Filter::gaussian(0.0, 0.0), "sigma"),
            (Filter::gaussian(0.0, -1.0), "sigma"),
            (Filter::gaussian(f64::NAN, 1.0), "mu"),
            (Filter::gaussian(0.0, f64::NAN), "sigma"),
            (Filter::band(0.0, -0.1), "gamma"),
            (Filter::ppr(0.0), "alpha"),
            (Filter::ppr(1.5), "alpha"),
            (Filter::heat(-1.0), "time"),
        ];
        for (case, expected) in cases {
            assert!(matches!(case, Err(Error::Parameter { name, .. }) if name == expected), "{expected}");
        }
    }

    #[test]
    fn a_centre_far_from_the_spectrum_is_allowed_with_a_warning() {
        assert_eq!(Filter::gaussian(2.5, 1.0).unwrap().warnings().len(), 1);
        assert!(Filter::gaussian(-2.0, 1.0).unwrap().warnings().is_empty());
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
                let smooth = !matches!(filter.name(), "band") && steepest * (high - low) < 100.0;
                assert!(
                    !smooth || met >= 0.9 * steepest,
                    "{filter} on {low}..{high}: {met} below {steepest}"
                );
            }
            let largest = filter.largest().unwrap();
            assert!((0..=2000).all(|i| filter.evaluate(f64::from(i) / 1000.0 - 1.0) <= largest));
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
        ];
        for filter in filters {
            for rho in [1.01f64, 1.2, 1.5] {
                let bound = filter.log_maximum_on_ellipse(rho).unwrap();
                for end in [-1.0, 1.0] {
                    let value = filter.evaluate(end * 0.5 * (rho + 1.0 / rho)).ln();
                    assert!(value <= bound + 1e-12, "{filter} at {rho}: {value} above {bound}");
                }
            }
        }
    }
}
