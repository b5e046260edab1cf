//! The hyper-parameters: names, ranges, defaults and meanings, in one table.
//!
//! The table feeds `--set`, help texts, search spaces, study files, Python and the documentation. A
//! [`Hyperparameters`] holds a checked value for every name that applies to its model; it cannot hold another.

mod domain;
mod table;

use std::collections::BTreeMap;

use serde::Serialize;

use crate::closest::by_closeness;
use crate::{Error, Model};

pub use domain::{Domain, Value};
pub use table::{Default, Entry, TABLE};

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
            .filter_map(|entry| Some((entry.name, Shown(entry.default.value()?))))
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
            let Some(value) = entry.default.value() else { continue };
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
