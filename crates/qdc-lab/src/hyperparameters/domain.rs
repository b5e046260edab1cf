//! Values of hyper-parameters and the domains they come from.

use std::borrow::Cow;
use std::fmt;

use serde::de::value::Error as ValueError;
use serde::de::{IntoDeserializer, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer, forward_to_deserialize_any};

/// A value of a hyper-parameter.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Value {
    /// A whole number.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// A choice, or a word such as `all`.
    Text(Cow<'static, str>),
}

impl Value {
    /// A word.
    pub const fn word(word: &'static str) -> Self {
        Self::Text(Cow::Borrowed(word))
    }

    /// The value that JSON or TOML gives; none for null, a list or a table.
    pub fn from_json(value: &serde_json::Value) -> Option<Self> {
        match value {
            serde_json::Value::String(text) => Some(Self::Text(text.clone().into())),
            serde_json::Value::Bool(flag) => Some(Self::Text(flag.to_string().into())),
            serde_json::Value::Number(number) => {
                number.as_u64().map(Self::Integer).or_else(|| number.as_f64().map(Self::Real))
            }
            _ => None,
        }
    }
}

/// Numbers as numbers where JSON has them, infinity as a word.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Integer(value) => serializer.serialize_u64(*value),
            Self::Real(value) if value.is_finite() => serializer.serialize_f64(*value),
            Self::Real(value) => serializer.serialize_str(&value.to_string()),
            Self::Text(value) => serializer.serialize_str(value),
        }
    }
}

/// A value is read as what the field it fills wants: see [`super::Hyperparameters::of_tower`].
impl<'de> IntoDeserializer<'de> for Value {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

impl<'de> Deserializer<'de> for Value {
    type Error = ValueError;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        match self {
            Self::Integer(value) => visitor.visit_u64(value),
            Self::Real(value) => visitor.visit_f64(value),
            Self::Text(Cow::Borrowed(word)) => visitor.visit_str(word),
            Self::Text(Cow::Owned(text)) => visitor.visit_string(text),
        }
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, ValueError> {
        visitor.visit_some(self)
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, ValueError> {
        self.to_string().into_deserializer().deserialize_enum(name, variants, visitor)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct
        newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
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
        Self::Text(value.to_owned().into())
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
            (Self::Choice(words), Value::Text(word)) => words.contains(&&**word).then(|| value.clone()),
            (Self::CountOr(_), Value::Integer(n)) => (*n >= 1).then(|| value.clone()),
            (Self::CountOr(other), Value::Text(word)) => (word == other).then(|| value.clone()),
            _ => None,
        }
    }

    /// The value `text` stands for, if it lies in the domain.
    pub(super) fn parse(self, text: &str) -> Option<Value> {
        let value = match self {
            Self::Choice(_) => text.into(),
            Self::Integer { .. } | Self::CountOr(_) => {
                text.parse().map_or_else(|_| text.into(), Value::Integer)
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
