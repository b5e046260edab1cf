//! Values of hyper-parameters and the domains they come from.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A value of a hyper-parameter.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// A choice, or a word such as `all`.
    Text(String),
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => write!(f, "{value}"),
            Self::Real(value) => write!(f, "{value}"),
            Self::Text(value) => f.write_str(value),
        }
    }
}

impl From<f64> for Value {
    fn from(value: f64) -> Self {
        Self::Real(value)
    }
}

impl From<u64> for Value {
    fn from(value: u64) -> Self {
        Self::Integer(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.into())
    }
}

/// The values a hyper-parameter can take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Domain {
    /// Whole numbers of this range.
    Integer {
        /// The least.
        low: u64,
        /// The greatest.
        high: u64,
    },
    /// Real numbers of this range; the ends may be excluded.
    Real {
        /// The least.
        low: f64,
        /// The greatest.
        high: f64,
        /// Whether `low` itself is allowed.
        low_included: bool,
        /// Whether `high` itself is allowed.
        high_included: bool,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number of at least 1, or this word.
    CountOr(&'static str),
}

impl Domain {
    /// Brings a value into the domain, if it lies in it.
    pub(super) fn admit(self, value: &Value) -> Option<Value> {
        match (self, value) {
            (Self::Integer { low, high }, Value::Integer(n)) => {
                (low..=high).contains(n).then(|| value.clone())
            }
            (Self::Real { low, high, low_included, high_included }, number) => {
                let x = match number {
                    Value::Integer(n) => *n as f64,
                    Value::Real(x) => *x,
                    Value::Text(_) => return None,
                };
                let above = x > low || (low_included && x == low);
                let below = x < high || (high_included && x == high);
                (above && below).then_some(Value::Real(x))
            }
            (Self::Integer { .. }, Value::Real(x)) if x.fract() == 0.0 && *x >= 0.0 && *x < 1e15 => {
                self.admit(&Value::Integer(*x as u64)) // 64.0, as study files store it
            }
            (Self::Choice(words), Value::Text(word)) => words.contains(&word.as_str()).then(|| value.clone()),
            (Self::CountOr(_), Value::Integer(n)) => (*n >= 1).then(|| value.clone()),
            (Self::CountOr(other), Value::Text(word)) => (word == other).then(|| value.clone()),
            _ => None,
        }
    }

    /// The value `text` stands for, if it lies in the domain.
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        let value = match self {
            Self::Choice(_) => Value::Text(text.into()),
            Self::Integer { .. } | Self::CountOr(_) => {
                text.parse().map_or_else(|_| Value::Text(text.into()), Value::Integer)
            }
            Self::Real { .. } => Value::Real(text.parse().ok()?),
        };
        self.admit(&value)
    }
}

impl fmt::Display for Domain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Integer { low, high } => write!(f, "a whole number from {low} to {high}"),
            Self::Real { low, high, low_included, high_included } => {
                let (left, right) =
                    (if low_included { "[" } else { "(" }, if high_included { "]" } else { ")" });
                write!(f, "a number in {left}{low}, {high}{right}")
            }
            Self::Choice(words) => write!(f, "one of {}", words.join(", ")),
            Self::CountOr(word) => write!(f, "a whole number from 1, or {word}"),
        }
    }
}
