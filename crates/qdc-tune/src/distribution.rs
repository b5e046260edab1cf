//! What a parameter may be, written as Optuna writes it.
//!
//! A value has two forms: the *external* one a user sees (a number, a string) and the *internal* one, a
//! double, that samplers and databases use (a category is the index of its choice).

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::{Error, Result};

/// One choice of a category: a number, a string, a truth value or nothing.
pub type Choice = Value;

/// The set a parameter is drawn from.
///
/// ```
/// use qdc_tune::Distribution;
/// let learning_rate = Distribution::log_uniform(1e-4, 1e-1)?;
/// assert!(learning_rate.contains(0.01));
/// assert!(Distribution::uniform(1.0, 0.0).is_err());
/// # Ok::<(), qdc_tune::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "name", content = "attributes")]
#[non_exhaustive]
pub enum Distribution {
    /// One of a list.
    #[serde(rename = "CategoricalDistribution")]
    Categorical {
        /// The choices, in order; the internal value is the index.
        choices: Vec<Choice>,
    },
    /// A real number in [low, high], drawn evenly or evenly in its logarithm, in steps where one is given.
    #[serde(rename = "FloatDistribution")]
    Float {
        /// The step, if any.
        step: Option<f64>,
        /// The least value.
        low: f64,
        /// The greatest value.
        high: f64,
        /// Whether to draw in log space.
        log: bool,
    },
    /// A whole number in [low, high] in steps.
    #[serde(rename = "IntDistribution")]
    Integer {
        /// Whether to draw in log space.
        log: bool,
        /// The step.
        step: i64,
        /// The least value.
        low: i64,
        /// The greatest value.
        high: i64,
    },
}

impl Distribution {
    /// One of `choices`.
    pub fn categorical<C: Into<Choice>>(choices: impl IntoIterator<Item = C>) -> Result<Self> {
        Self::Categorical { choices: choices.into_iter().map(Into::into).collect() }.checked()
    }

    /// A real number, evenly from [low, high].
    pub fn uniform(low: f64, high: f64) -> Result<Self> {
        Self::Float { step: None, low, high, log: false }.checked()
    }

    /// A real number from [low, high], its logarithm evenly.
    pub fn log_uniform(low: f64, high: f64) -> Result<Self> {
        Self::Float { step: None, low, high, log: true }.checked()
    }

    /// A whole number, evenly from low..=high.
    pub fn integer(low: i64, high: i64) -> Result<Self> {
        Self::Integer { log: false, step: 1, low, high }.checked()
    }

    /// A whole number from low..=high, its logarithm about evenly.
    pub fn log_integer(low: i64, high: i64) -> Result<Self> {
        Self::Integer { log: true, step: 1, low, high }.checked()
    }

    /// Refuses what cannot be drawn from: low above high, a logarithm of what is not positive, no choices.
    pub fn checked(self) -> Result<Self> {
        let problem = match &self {
            Self::Categorical { choices } if choices.is_empty() => Some("it has no choices".into()),
            Self::Categorical { choices }
                if choices.iter().any(|choice| choice.is_array() || choice.is_object()) =>
            {
                Some("a choice is a number, a string, true, false or null".into())
            }
            Self::Float { low, high, .. } if !(low.is_finite() && high.is_finite()) => {
                Some(format!("low {low} and high {high} must be finite"))
            }
            Self::Float { low, high, .. } if low > high => Some(format!("low {low} is above high {high}")),
            Self::Float { low, log: true, .. } if *low <= 0.0 => {
                Some(format!("low {low} has no logarithm; it must be above 0"))
            }
            Self::Float { step: Some(_), log: true, .. } => Some("log and step exclude each other".into()),
            Self::Float { step: Some(step), .. } if !(*step > 0.0 && step.is_finite()) => {
                Some(format!("step {step} must be above 0"))
            }
            Self::Integer { low, high, .. } if low > high => Some(format!("low {low} is above high {high}")),
            Self::Integer { low, log: true, .. } if *low < 1 => {
                Some(format!("low {low} must be at least 1 in log space"))
            }
            Self::Integer { step, .. } if *step < 1 => Some(format!("step {step} must be at least 1")),
            Self::Integer { step, log: true, .. } if *step != 1 => Some("log needs step 1".into()),
            _ => None,
        };
        match problem {
            Some(problem) => Err(Error::Distribution { problem }),
            None => Ok(self),
        }
    }

    /// Whether only one value is possible, so that there is nothing to draw.
    pub fn is_single(&self) -> bool {
        match self {
            Self::Categorical { choices } => choices.len() == 1,
            Self::Float { low, high, step: None, .. } => low == high,
            Self::Float { low, high, step: Some(step), .. } => high - low < *step,
            Self::Integer { low, high, step, .. } => high - low < *step,
        }
    }

    /// Whether an internal value belongs here.
    pub fn contains(&self, internal: f64) -> bool {
        match self {
            Self::Categorical { choices } => {
                internal >= 0.0 && internal.fract() == 0.0 && (internal as usize) < choices.len()
            }
            Self::Float { low, high, step: None, .. } => (*low..=*high).contains(&internal),
            Self::Float { low, high, step: Some(step), .. } => {
                let steps = (internal - low) / step;
                (*low..=*high).contains(&internal) && (steps - steps.round()).abs() < 1e-8
            }
            Self::Integer { low, high, step, .. } => {
                (*low as f64..=*high as f64).contains(&internal)
                    && internal.fract() == 0.0
                    && (internal as i64 - low) % step == 0
            }
        }
    }

    /// The value a user sees.
    pub fn external(&self, internal: f64) -> Value {
        match self {
            Self::Categorical { choices } => choices.get(internal as usize).cloned().unwrap_or(Value::Null),
            Self::Float { .. } => json!(internal),
            Self::Integer { .. } => json!(internal as i64),
        }
    }

    /// The internal form of what a user gave; `None` if it does not belong here.
    pub fn internal(&self, external: &Value) -> Option<f64> {
        match self {
            Self::Categorical { choices } => {
                choices.iter().position(|choice| same(choice, external)).map(|index| index as f64)
            }
            Self::Float { .. } | Self::Integer { .. } => {
                external.as_f64().filter(|&value| self.contains(value))
            }
        }
    }

    /// As Optuna stores it: `{"name": "FloatDistribution", "attributes": {...}}`.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).expect("a distribution is plain data")
    }

    /// Reads what Optuna stored.
    pub fn from_json(text: &str) -> Result<Self> {
        serde_json::from_str::<Self>(text)
            .map_err(|error| Error::Distribution { problem: format!("{error} in {text}") })?
            .checked()
    }

    /// A short form for people: `[0.1, 1]`, `log [0.001, 0.1]`, `{1, 2}`.
    pub fn describe(&self) -> String {
        match self {
            Self::Categorical { choices } => {
                let names: Vec<String> = choices
                    .iter()
                    .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
                    .collect();
                format!("{{{}}}", names.join(", "))
            }
            Self::Float { low, high, log, step } => {
                let step = step.map_or_else(String::new, |step| format!(" step {step}"));
                format!("{}[{low}, {high}]{step}", if *log { "log " } else { "" })
            }
            Self::Integer { low, high, log, step } => {
                let step = if *step == 1 { String::new() } else { format!(" step {step}") };
                format!("integer {}[{low}, {high}]{step}", if *log { "log " } else { "" })
            }
        }
    }
}

/// Equal as Python sees it: 1 and 1.0 are the same choice.
fn same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && other.is_number() && one.as_f64() == other.as_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distributions_are_written_as_optuna_writes_them() {
        // Optuna 3.6.1 and 5.0.0, trial_params.distribution_json
        let text =
            r#"{"name": "IntDistribution", "attributes": {"log": false, "step": 1, "low": 1, "high": 5}}"#;
        let integer = Distribution::integer(1, 5).unwrap();
        assert_eq!(Distribution::from_json(text).unwrap(), integer);
        assert_eq!(integer.to_json(), text.replace(": ", ":").replace(", ", ","));
        let text =
            r#"{"name": "CategoricalDistribution", "attributes": {"choices": ["concat", null, true, 1.5]}}"#;
        let category = Distribution::from_json(text).unwrap();
        assert_eq!(category.internal(&json!(1.5)), Some(3.0));
        assert_eq!(category.external(1.0), Value::Null);
        let text = r#"{"name": "FloatDistribution", "attributes": {"step": null, "low": 1e-07, "high": 0.1, "log": true}}"#;
        assert_eq!(Distribution::from_json(text).unwrap(), Distribution::log_uniform(1e-7, 0.1).unwrap());
    }

    #[test]
    fn what_cannot_be_drawn_from_is_refused() {
        assert!(Distribution::uniform(1.0, 0.5).is_err());
        assert!(Distribution::uniform(0.0, f64::NAN).is_err());
        assert!(Distribution::log_uniform(0.0, 1.0).is_err());
        assert!(Distribution::integer(3, 2).is_err());
        assert!(Distribution::categorical(Vec::<Choice>::new()).is_err());
        assert!(Distribution::categorical([json!([1])]).is_err());
        assert!(Distribution::from_json(r#"{"name": "UnheardOf", "attributes": {}}"#).is_err());
    }

    #[test]
    fn one_and_one_point_nought_are_the_same_choice() {
        let layers = Distribution::categorical([1, 2]).unwrap();
        assert_eq!(layers.internal(&json!(2.0)), Some(1.0));
        assert_eq!(layers.internal(&json!(3)), None);
    }
}
