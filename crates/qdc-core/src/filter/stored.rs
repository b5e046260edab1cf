//! Filters as they are stored: by name, with their parameters.

use serde::{Deserialize, Serialize};

use super::{Filter, Shape};
use crate::Error;
use crate::hash::Digest;

/// A filter as it is stored. A custom one keeps its name, so that it can be told apart, and cannot be read back.
#[derive(Serialize, Deserialize)]
#[serde(tag = "name", rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Stored {
    Gaussian { mu: f64, sigma: f64 },
    Band { mu: f64, gamma: f64 },
    Ppr { alpha: f64 },
    Heat { time: f64 },
    Custom { called: String },
    Sum { terms: Vec<Term> },
}

/// A term of a sum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Term {
    weight: f64,
    filter: Filter,
}

impl From<Filter> for Stored {
    fn from(filter: Filter) -> Self {
        match filter.0 {
            Shape::Gaussian { mu, sigma } => Self::Gaussian { mu, sigma },
            Shape::Band { mu, gamma } => Self::Band { mu, gamma },
            Shape::Ppr { alpha } => Self::Ppr { alpha },
            Shape::Heat { time } => Self::Heat { time },
            Shape::Custom { name, .. } => Self::Custom { called: name },
            Shape::Sum(terms) => {
                let terms = terms.into_iter().map(|(weight, filter)| Term { weight, filter });
                Self::Sum { terms: terms.collect() }
            }
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
            Stored::Sum { terms } => {
                Self::sum(terms.into_iter().map(|Term { weight, filter }| (weight, filter)))
            }
        }
    }
}

impl Filter {
    /// Adds everything that tells this filter from another to a hash; of a custom one the name.
    pub(crate) fn digest(&self, digest: Digest) -> Digest {
        let own = self
            .terms()
            .iter()
            .fold(digest.text(self.name()), |digest, (weight, filter)| filter.digest(digest.number(*weight)));
        if !self.terms().is_empty() {
            return own.text("end");
        }
        self.parameters().iter().fold(own, |digest, (name, value)| digest.text(name).number(*value))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_reads_back_and_is_checked() {
        let sum = Filter::sum([
            (0.5, Filter::gaussian(1.0, 0.25).unwrap()),
            (-2.0, Filter::ppr(0.1).unwrap()),
            (1.0, Filter::heat(3.0).unwrap()),
        ])
        .unwrap();
        let json = serde_json::to_string(&sum).unwrap();
        assert_eq!(serde_json::from_str::<Filter>(&json).unwrap(), sum, "{json}");
        assert!(
            json.starts_with(r#"{"name":"sum","terms":[{"weight":0.5,"filter":{"name":"gaussian""#),
            "{json}"
        );
        for (bad, word) in [
            (json.replace("0.25", "-0.25"), "sigma = -0.25"),
            (json.replace("weight", "heft"), "heft"),
            (r#"{"name":"sum","terms":[]}"#.to_owned(), "number of terms"),
        ] {
            let error = serde_json::from_str::<Filter>(&bad).unwrap_err().to_string();
            assert!(error.contains(word), "{error}");
        }
    }
}
