//! The hyper-parameters: names, ranges, defaults and meanings, in one table.
//!
//! The table feeds `--set`, help texts, search spaces, study files, Python and the documentation. A
//! [`Hyperparameters`] holds a checked value for every name that applies to its model; it cannot hold another.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::closest::by_closeness;
use crate::model::{NetworkKind, RewiringKind};
use crate::{Error, Model};

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
    fn admit(self, value: &Value) -> Option<Value> {
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

    fn parse(self, text: &str) -> Option<Value> {
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

/// A line of the table.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// The values it can take.
    pub domain: Domain,
    /// The value where nothing is said; none: unset.
    pub default: Default,
    /// What it is, in a few words.
    pub meaning: &'static str,
    /// Which models have it.
    applies: fn(Model) -> bool,
}

impl Entry {
    /// Whether `model` has this hyper-parameter.
    pub fn applies_to(&self, model: Model) -> bool {
        (self.applies)(model)
    }
}

/// A default.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Default {
    /// A whole number.
    Integer(u64),
    /// A real number.
    Real(f64),
    /// A word.
    Text(&'static str),
    /// Nothing; the meaning says what that means.
    Unset,
}

const fn reals(low: f64, high: f64, low_included: bool, high_included: bool) -> Domain {
    Domain::Real { low, high, low_included, high_included }
}

fn network(model: Model) -> bool {
    model.network() != NetworkKind::Mlp
}
fn kernel(model: Model) -> bool {
    model.uses(|kind| matches!(kind, RewiringKind::Gdc | RewiringKind::Bpdc | RewiringKind::Qdc))
}
fn windowed(model: Model) -> bool {
    model.uses(|kind| matches!(kind, RewiringKind::Bpdc | RewiringKind::Qdc))
}
fn gat(model: Model) -> bool {
    model.network() == NetworkKind::Gat
}
fn sdrf(model: Model) -> bool {
    model.uses(|kind| kind == RewiringKind::Sdrf)
}
fn gdc(model: Model) -> bool {
    model.uses(|kind| kind == RewiringKind::Gdc)
}

const INFINITY: f64 = f64::INFINITY;

/// Every hyper-parameter.
#[rustfmt::skip]
pub const TABLE: [Entry; 28] = {
    use qdc_core::defaults as core;
    use Domain::{Choice, CountOr, Integer};
    [
        Entry { name: "layers", domain: Integer { low: 1, high: 64 }, default: Default::Integer(2), meaning: "number of layers", applies: |_| true },
        Entry { name: "hidden", domain: Integer { low: 1, high: 16384 }, default: Default::Integer(64), meaning: "columns of a hidden layer; of each head, in an attention", applies: |_| true },
        Entry { name: "heads", domain: Integer { low: 1, high: 256 }, default: Default::Integer(4), meaning: "heads of an attention", applies: gat },
        Entry { name: "dropout", domain: reals(0.0, 1.0, true, false), default: Default::Real(0.5), meaning: "share of each layer's input, and of attention, dropped in training", applies: |_| true },
        Entry { name: "learning_rate", domain: reals(0.0, 10.0, false, true), default: Default::Real(0.01), meaning: "learning rate of Adam", applies: |_| true },
        Entry { name: "weight_decay", domain: reals(0.0, 10.0, true, true), default: Default::Real(5e-4), meaning: "L2 decay of all parameters", applies: |_| true },
        Entry { name: "features", domain: Choice(&["raw", "row"]), default: Default::Text("raw"), meaning: "features as they are, or with rows that sum to 1", applies: |_| true },
        Entry { name: "mu", domain: reals(-2.0, 2.0, true, true), default: Default::Real(core::MU), meaning: "centre of the filter", applies: windowed },
        Entry { name: "sigma", domain: reals(0.0, 100.0, false, true), default: Default::Real(core::SIGMA), meaning: "width of the Gaussian filter", applies: |m| m.uses(|k| k == RewiringKind::Qdc) },
        Entry { name: "gamma", domain: reals(0.0, 100.0, false, true), default: Default::Real(core::GAMMA), meaning: "half width of the band filter", applies: |m| m.uses(|k| k == RewiringKind::Bpdc) },
        Entry { name: "alpha", domain: reals(0.0, 1.0, false, true), default: Default::Real(core::ALPHA), meaning: "teleport probability of PageRank", applies: gdc },
        Entry { name: "time", domain: reals(0.0, 1000.0, false, true), default: Default::Unset, meaning: "time of the heat kernel; where it is set, the heat kernel takes the place of PageRank", applies: gdc },
        Entry { name: "epsilon", domain: reals(0.0, INFINITY, false, false), default: Default::Real(core::EPSILON), meaning: "entries of the kernel below it are dropped", applies: kernel },
        Entry { name: "top_k", domain: Integer { low: 1, high: u32::MAX as u64 }, default: Default::Unset, meaning: "where it is set, the largest entries of each row are kept instead", applies: kernel },
        Entry { name: "pairs", domain: CountOr("all"), default: Default::Text("all"), meaning: "eigenpairs that enter the kernel: the nearest to mu, or all", applies: windowed },
        Entry { name: "sign", domain: Choice(&["positive", "absolute"]), default: Default::Text("positive"), meaning: "whether entries are compared by value or by magnitude", applies: kernel },
        Entry { name: "normalize", domain: Choice(&["sym", "row", "col", "none"]), default: Default::Text("sym"), meaning: "how the kernel is normalised", applies: kernel },
        Entry { name: "self_loop", domain: reals(0.0, 1000.0, true, true), default: Default::Real(core::SELF_LOOP), meaning: "weight of the self-loops in the transition matrix", applies: network },
        Entry { name: "edge_values", domain: Choice(&["ignore", "multiply", "bias"]), default: Default::Text("ignore"), meaning: "what the matrix's values do in an attention", applies: gat },
        Entry { name: "combinator", domain: Choice(&["concat", "add"]), default: Default::Text("concat"), meaning: "how two towers meet", applies: Model::is_multiscale },
        Entry { name: "qdc_layers", domain: Integer { low: 1, high: 64 }, default: Default::Unset, meaning: "layers of the second tower; unset: as many as the first", applies: Model::is_multiscale },
        Entry { name: "qdc_hidden", domain: Integer { low: 1, high: 16384 }, default: Default::Unset, meaning: "hidden columns of the second tower; unset: as the first", applies: Model::is_multiscale },
        Entry { name: "qdc_heads", domain: Integer { low: 1, high: 256 }, default: Default::Unset, meaning: "heads of the second tower; unset: as the first", applies: |m| gat(m) && m.is_multiscale() },
        Entry { name: "qdc_dropout", domain: reals(0.0, 1.0, true, false), default: Default::Unset, meaning: "dropout of the second tower; unset: as the first", applies: Model::is_multiscale },
        Entry { name: "iterations", domain: Integer { low: 0, high: 10_000_000 }, default: Default::Integer(core::ITERATIONS as u64), meaning: "edges SDRF adds at most", applies: sdrf },
        Entry { name: "tau", domain: reals(0.0, INFINITY, false, true), default: Default::Real(core::TAU), meaning: "how sharply SDRF prefers the best edge; inf: always the best", applies: sdrf },
        Entry { name: "removal_bound", domain: reals(-INFINITY, INFINITY, false, true), default: Default::Real(core::REMOVAL_BOUND), meaning: "curvature above which SDRF removes an edge; inf: never", applies: sdrf },
        Entry { name: "variant", domain: Choice(&["formula", "code"]), default: Default::Text("formula"), meaning: "the curvature of SDRF: the published formula, or the published program's", applies: sdrf },
    ]
};

/// Checked values for the hyper-parameters of one model.
///
/// ```
/// use qdc_lab::Hyperparameters;
///
/// let mut values = Hyperparameters::new("gcn+qdc".parse()?);
/// values.set("mu", "0.3")?;
/// assert_eq!(values.real("mu"), 0.3);
/// assert_eq!(values.real("sigma"), 0.3); // the default
/// assert!(values.set("heads", "4").is_err()); // a GCN has none
/// # Ok::<(), qdc_lab::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(transparent)]
pub struct Hyperparameters {
    values: BTreeMap<&'static str, Shown>,
    #[serde(skip)]
    model: Model,
}

/// A value, shown in JSON as a number where JSON can.
#[derive(Clone, Debug, PartialEq)]
struct Shown(Value);

impl Serialize for Shown {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match &self.0 {
            Value::Real(x) if !x.is_finite() => serializer.serialize_str(&x.to_string()),
            value => value.serialize(serializer),
        }
    }
}

impl Hyperparameters {
    /// The defaults of `model`.
    pub fn new(model: Model) -> Self {
        let values = TABLE
            .iter()
            .filter(|entry| entry.applies_to(model))
            .filter_map(|entry| {
                let value = match entry.default {
                    Default::Integer(value) => Value::Integer(value),
                    Default::Real(value) => Value::Real(value),
                    Default::Text(value) => Value::Text(value.into()),
                    Default::Unset => return None,
                };
                Some((entry.name, Shown(value)))
            })
            .collect();
        Self { values, model }
    }

    /// The model they belong to.
    pub fn model(&self) -> Model {
        self.model
    }

    /// Sets one from text, as `--set name=value` does.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let entry = self.entry(name)?;
        let value = entry.domain.parse(text).ok_or_else(|| wrong_value(entry, text))?;
        self.put(entry.name, value);
        Ok(())
    }

    /// Sets one from a value, as searches and Python do.
    pub fn set_value(&mut self, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        let entry = self.entry(name)?;
        let value = value.into();
        match (&value, entry.domain.admit(&value)) {
            (_, Some(value)) => self.put(entry.name, value),
            (Value::Text(text), None) => return self.set(name, &text.clone()),
            (value, None) => return Err(wrong_value(entry, &value.to_string())),
        }
        Ok(())
    }

    fn put(&mut self, name: &'static str, value: Value) {
        // A row's largest entries, or all above a threshold: the one said last counts. Likewise the two kernels of GDC.
        for (one, other) in [("epsilon", "top_k"), ("top_k", "epsilon"), ("alpha", "time"), ("time", "alpha")]
        {
            if name == one {
                self.values.remove(other);
            }
        }
        self.values.insert(name, Shown(value));
    }

    fn entry(&self, name: &str) -> Result<&'static Entry, Error> {
        let names =
            || TABLE.iter().filter(|entry| entry.applies_to(self.model)).map(|entry| entry.name.to_owned());
        let known = || by_closeness(name, names().collect());
        match TABLE.iter().find(|entry| entry.name == name) {
            Some(entry) if entry.applies_to(self.model) => Ok(entry),
            Some(_) => Err(Error::NotOfThisModel {
                name: name.into(),
                model: self.model.to_string(),
                known: known(),
            }),
            None => Err(Error::UnknownHyperparameter { name: name.into(), known: known() }),
        }
    }

    /// The value of a name, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(name).map(|shown| &shown.0)
    }

    /// Every name that is set and its value, in alphabetical order.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Value)> {
        self.values.iter().map(|(&name, shown)| (name, &shown.0))
    }

    /// A whole number.
    ///
    /// # Panics
    /// If the model has no such number set: the table says which it has.
    pub fn integer(&self, name: &str) -> usize {
        self.optional_integer(name).unwrap_or_else(|| panic!("{} has no whole number {name}", self.model))
    }

    /// A whole number, if it is set.
    pub fn optional_integer(&self, name: &str) -> Option<usize> {
        match self.get(name)? {
            Value::Integer(value) => Some(*value as usize),
            _ => None,
        }
    }

    /// A real number.
    ///
    /// # Panics
    /// If the model has no such number set.
    pub fn real(&self, name: &str) -> f64 {
        self.optional_real(name).unwrap_or_else(|| panic!("{} has no number {name}", self.model))
    }

    /// A real number, if it is set.
    pub fn optional_real(&self, name: &str) -> Option<f64> {
        match self.get(name)? {
            Value::Real(value) => Some(*value),
            _ => None,
        }
    }

    /// A word.
    ///
    /// # Panics
    /// If the model has no such word set.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Value::Text(value)) => value,
            _ => panic!("{} has no word {name}", self.model),
        }
    }
}

fn wrong_value(entry: &Entry, text: &str) -> Error {
    Error::HyperparameterValue { name: entry.name, value: text.into(), requirement: entry.domain.to_string() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_lies_in_its_own_domain() {
        for entry in &TABLE {
            let value = match entry.default {
                Default::Integer(value) => Value::Integer(value),
                Default::Real(value) => Value::Real(value),
                Default::Text(value) => Value::Text(value.into()),
                Default::Unset => continue,
            };
            assert_eq!(entry.domain.admit(&value), Some(value.clone()), "{}", entry.name);
            assert_eq!(entry.domain.parse(&value.to_string()), Some(value), "{}", entry.name);
        }
        let mut names: Vec<_> = TABLE.iter().map(|entry| entry.name).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), TABLE.len());
    }

    #[test]
    fn an_unknown_name_lists_the_known_ones_with_the_closest_first() {
        let mut values = Hyperparameters::new("gcn+qdc".parse().unwrap());
        let error = values.set("learnig_rate", "0.1").unwrap_err();
        assert_eq!(error.to_string(), "there is no hyper-parameter 'learnig_rate'");
        assert!(error.hint().unwrap().starts_with("known: learning_rate, "), "{:?}", error.hint());
        let error = values.set("heads", "4").unwrap_err();
        assert!(error.to_string().contains("gcn+qdc"), "{error}");
    }

    #[test]
    fn values_out_of_range_are_refused_with_the_range() {
        let mut values = Hyperparameters::new("gcn+qdc".parse().unwrap());
        for (name, bad) in [
            ("dropout", "1"),
            ("sigma", "0"),
            ("hidden", "0"),
            ("hidden", "2.5"),
            ("pairs", "some"),
            ("sign", "negative"),
            ("mu", "NaN"),
            ("epsilon", "inf"),
            ("learning_rate", "fast"),
        ] {
            let error = values.set(name, bad).unwrap_err();
            assert!(error.to_string().contains(name) && error.to_string().contains(bad), "{error}");
        }
        values.set_value("hidden", 32.0).unwrap();
        assert_eq!(values.integer("hidden"), 32);
        values.set_value("pairs", "512").unwrap();
        assert_eq!(values.optional_integer("pairs"), Some(512));
    }

    #[test]
    fn of_two_ways_to_sparsify_the_one_said_last_counts() {
        let mut values = Hyperparameters::new("gcn+qdc".parse().unwrap());
        values.set("top_k", "64").unwrap();
        assert!(values.get("epsilon").is_none());
        values.set("epsilon", "0.01").unwrap();
        assert!(values.get("top_k").is_none());
    }
}
