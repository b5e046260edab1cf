//! Filters: functions of the eigenvalue. A filter of L is a kernel, Q = sum over pairs of P(E_a) phi_a
//! phi_a^T.
//!
//! | filter | P(E) | known as |
//! | --- | --- | --- |
//! | `gaussian` | exp(-(E - mu)^2 / 2 sigma^2) | quantum diffusion (QDC) |
//! | `band` | s(E - mu + gamma) s(mu + gamma - E), s the logistic function | band-pass diffusion (BPDC) |
//! | `ppr` | alpha / (1 - (1 - alpha) E) | personalised PageRank |
//! | `heat` | exp(-t (1 - E)) | heat kernel |
//! | custom | any function of E in [-1, 1] | |
//! | `sum` | sum over terms of w_i P_i(E) | |

mod bounds;
mod stored;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::Error;
use stored::Stored;

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

/// Custom filters are equal if they have the same name and are the same function.
impl PartialEq for Filter {
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Shape::Custom { name: a, function: f }, Shape::Custom { name: b, function: g }) => {
                a == b && Arc::ptr_eq(f, g)
            }
            (Shape::Sum(one), Shape::Sum(other)) => one == other,
            _ => self.name() == other.name() && self.parameters() == other.parameters(),
        }
    }
}

#[derive(Clone)]
enum Shape {
    Gaussian {
        mu: f64,
        sigma: f64,
    },
    Band {
        mu: f64,
        gamma: f64,
    },
    Ppr {
        alpha: f64,
    },
    Heat {
        time: f64,
    },
    Custom {
        name: String,
        function: Arc<dyn Fn(f64) -> f64 + Send + Sync>,
    },
    /// Weights and filters that are no sums themselves; at least one.
    Sum(Vec<(f64, Filter)>),
}

impl Filter {
    /// exp(-(E - mu)^2 / 2 sigma^2), with sigma > 0.
    ///
    /// A mu outside [-2, 2] is allowed: the spectrum then lies on the flank, and the report of the kernel
    /// warns.
    ///
    /// # Errors
    /// If mu is not finite, or sigma not finite and above 0.
    pub fn gaussian(mu: f64, sigma: f64) -> Result<Self, Error> {
        let mu = checked("mu", mu, mu.is_finite(), "a finite number")?;
        let sigma = checked("sigma", sigma, sigma > 0.0 && sigma.is_finite(), "finite and above 0")?;
        Ok(Self(Shape::Gaussian { mu, sigma }))
    }

    /// s(E - mu + gamma) s(mu + gamma - E) with s(x) = 1 / (1 + exp(-x)) and gamma >= 0.
    ///
    /// # Errors
    /// If mu is not finite, or gamma negative or not finite.
    pub fn band(mu: f64, gamma: f64) -> Result<Self, Error> {
        let mu = checked("mu", mu, mu.is_finite(), "a finite number")?;
        let gamma = checked("gamma", gamma, gamma >= 0.0 && gamma.is_finite(), "finite and not negative")?;
        Ok(Self(Shape::Band { mu, gamma }))
    }

    /// alpha / (1 - (1 - alpha) E), with 0 < alpha <= 1: personalised PageRank.
    ///
    /// # Errors
    /// If alpha is not above 0 and at most 1.
    pub fn ppr(alpha: f64) -> Result<Self, Error> {
        let alpha = checked("alpha", alpha, alpha > 0.0 && alpha <= 1.0, "above 0 and at most 1")?;
        Ok(Self(Shape::Ppr { alpha }))
    }

    /// exp(-t (1 - E)), with t >= 0.
    ///
    /// # Errors
    /// If t is negative or not finite.
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

    /// w_1 P_1(E) + w_2 P_2(E) + ..., with finite weights of either sign; a sum among the terms becomes its
    /// own terms.
    ///
    /// ```
    /// use qdc_core::Filter;
    ///
    /// let (smooth, rough) = (Filter::gaussian(1.0, 0.5)?, Filter::gaussian(-1.0, 0.5)?);
    /// let both = Filter::sum([(1.0, smooth.clone()), (-0.5, rough.clone())])?;
    /// assert_eq!(both.evaluate(0.3), smooth.evaluate(0.3) - 0.5 * rough.evaluate(0.3));
    /// # Ok::<(), qdc_core::Error>(())
    /// ```
    ///
    /// # Errors
    /// If there is no term, or a weight is not finite.
    pub fn sum(terms: impl IntoIterator<Item = (f64, Self)>) -> Result<Self, Error> {
        let mut flat = Vec::new();
        for (weight, filter) in terms {
            let weight = checked("weight", weight, weight.is_finite(), "a finite number")?;
            match filter.0 {
                Shape::Sum(inner) => flat.extend(inner.into_iter().map(|(own, term)| (weight * own, term))),
                _ => flat.push((weight, filter)),
            }
        }
        checked("number of terms", flat.len() as f64, !flat.is_empty(), "at least 1")?;
        let total: f64 = flat.iter().map(|(weight, _)| weight.abs()).sum();
        checked("sum of weights", total, total.is_finite(), "a finite number")?;
        Ok(Self(Shape::Sum(flat)))
    }

    /// The weights and filters of a sum; nothing for any other filter.
    pub fn terms(&self) -> &[(f64, Self)] {
        match &self.0 {
            Shape::Sum(terms) => terms,
            _ => &[],
        }
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
            Shape::Sum(terms) => terms.iter().map(|(weight, filter)| weight * filter.evaluate(energy)).sum(),
        }
    }

    /// `gaussian`, `band`, `ppr`, `heat`, `sum`, or the name given to a custom filter.
    pub fn name(&self) -> &str {
        match &self.0 {
            Shape::Gaussian { .. } => "gaussian",
            Shape::Band { .. } => "band",
            Shape::Ppr { .. } => "ppr",
            Shape::Heat { .. } => "heat",
            Shape::Custom { name, .. } => name,
            Shape::Sum(_) => "sum",
        }
    }

    /// The parameters by the names users type; empty for a custom filter. Those of a sum have the number of
    /// their term: `weight_1`, `mu_1`, and so on.
    pub fn parameters(&self) -> BTreeMap<String, f64> {
        let named = match &self.0 {
            Shape::Gaussian { mu, sigma } => vec![("mu", *mu), ("sigma", *sigma)],
            Shape::Band { mu, gamma } => vec![("mu", *mu), ("gamma", *gamma)],
            Shape::Ppr { alpha } => vec![("alpha", *alpha)],
            Shape::Heat { time } => vec![("time", *time)],
            Shape::Custom { .. } => vec![],
            Shape::Sum(terms) => {
                let numbered = terms.iter().enumerate().flat_map(|(at, (weight, filter))| {
                    let own = filter.parameters().into_iter().chain([("weight".to_owned(), *weight)]);
                    own.map(move |(name, value)| (format!("{name}_{}", at + 1), value))
                });
                return numbered.collect();
            }
        };
        named.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
    }

    /// The centre of the filter, where the nearest pairs are looked for: mu, or 1 for PageRank and heat; of a
    /// sum that of the term with the largest |weight|, the first of equals.
    pub fn centre(&self) -> Option<f64> {
        match &self.0 {
            Shape::Gaussian { mu, .. } | Shape::Band { mu, .. } => Some(*mu),
            Shape::Ppr { .. } | Shape::Heat { .. } => Some(1.0),
            Shape::Custom { .. } => None,
            Shape::Sum(terms) => {
                let heavier = |one: &(f64, Self), other: &(f64, Self)| one.0.abs() >= other.0.abs();
                terms.iter().reduce(|one, other| if heavier(one, other) { one } else { other })?.1.centre()
            }
        }
    }

    /// What is allowed but probably not meant.
    pub fn warnings(&self) -> Vec<String> {
        match &self.0 {
            Shape::Gaussian { mu, .. } | Shape::Band { mu, .. } if mu.abs() > 2.0 => vec![format!(
                "mu = {mu} lies outside [-2, 2], far from the spectrum (-1, 1]: the kernel sees only the filter's flank"
            )],
            Shape::Sum(terms) => terms.iter().flat_map(|(_, filter)| filter.warnings()).collect(),
            _ => vec![],
        }
    }

    /// The teleport probability, if this is personalised PageRank.
    pub(crate) fn ppr_alpha(&self) -> Option<f64> {
        match self.0 {
            Shape::Ppr { alpha } => Some(alpha),
            _ => None,
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
        if let Shape::Sum(terms) = &self.0 {
            let terms: Vec<String> =
                terms.iter().map(|(weight, filter)| format!("{weight} {filter}")).collect();
            return write!(f, "{}", terms.join(" + "));
        }
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
    fn a_sum_is_the_weighted_sum_of_its_terms_and_flat() {
        let (one, two, heat) = (
            Filter::gaussian(0.9, 0.2).unwrap(),
            Filter::band(-0.4, 0.1).unwrap(),
            Filter::heat(2.0).unwrap(),
        );
        let inner = Filter::sum([(2.0, one.clone()), (-3.0, two.clone())]).unwrap();
        let sum = Filter::sum([(0.5, inner.clone()), (0.25, heat.clone())]).unwrap();
        assert_eq!(sum.terms(), [(1.0, one.clone()), (-1.5, two.clone()), (0.25, heat.clone())]);
        assert!(one.terms().is_empty());
        for energy in [-1.0, -0.3, 0.4, 1.0] {
            let expected = one.evaluate(energy) - 1.5 * two.evaluate(energy) + 0.25 * heat.evaluate(energy);
            assert!((sum.evaluate(energy) - expected).abs() < 1e-15);
        }
        assert_eq!((sum.name(), sum.centre(), inner.centre()), ("sum", Some(-0.4), Some(-0.4)));
        assert_eq!(
            sum.to_string(),
            "1 gaussian(mu 0.9, sigma 0.2) + -1.5 band(gamma 0.1, mu -0.4) + 0.25 heat(time 2)"
        );
        let parameters = sum.parameters();
        assert_eq!((parameters["weight_2"], parameters["mu_2"], parameters["time_3"]), (-1.5, -0.4, 2.0));
        assert_eq!(parameters.len(), 8);
        assert_ne!(sum, Filter::sum([(0.5, inner), (0.3, heat)]).unwrap());
        let level = Filter::sum([(1.0, Filter::gaussian(0.1, 1.0).unwrap()), (-1.0, one)]).unwrap();
        assert_eq!(level.centre(), Some(0.1)); // the first of equals
    }

    #[test]
    fn a_sum_of_nothing_or_with_endless_weights_is_refused() {
        let heat = || Filter::heat(1.0).unwrap();
        let far = Filter::sum([(1.0, Filter::gaussian(3.0, 1.0).unwrap()), (1.0, heat())]).unwrap();
        assert_eq!(far.warnings().len(), 1);
        for (terms, expected) in [
            (vec![], "number of terms"),
            (vec![(f64::NAN, heat())], "weight"),
            (vec![(f64::MAX, heat()), (f64::MAX, heat())], "sum of weights"),
        ] {
            let found = Filter::sum(terms);
            assert!(matches!(found, Err(Error::Parameter { name, .. }) if name == expected), "{expected}");
        }
    }
}
