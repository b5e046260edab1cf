//! The hyper-parameters: names, ranges, defaults and meanings, in one table.
//!
//! The table feeds `--set`, help texts, search spaces, study files, Python and the documentation. A
//! [`Hyperparameters`] holds a checked value for every name that applies to its model; it cannot hold
//! another. Whoever uses them reads them as a struct of the types it needs ([`Hyperparameters::of_tower`]).

mod domain;
mod name;
mod table;

use std::collections::BTreeMap;

use serde::de::DeserializeOwned;
use serde::de::value::MapDeserializer;
use serde::{Serialize, Serializer};

use crate::{Error, Model};

pub use domain::{Domain, Value};
pub use name::Name;
pub use table::{Entry, Of, TABLE};

/// Of each pair one can be set, and the one set last counts: a row's largest entries or all above a
/// threshold, and the two kernels of GDC.
const RIVALS: [(&str, &str); 2] = [("epsilon", "top_k"), ("alpha", "time")];

/// Checked values for the hyper-parameters of one model.
///
/// ```
/// use qdc_lab::Hyperparameters;
///
/// #[derive(serde::Deserialize)]
/// struct Window { mu: f64, sigma: f64 }
///
/// let mut values = Hyperparameters::new("gcn/gcn+qdc/gcn+qdc".parse()?);
/// values.set("mu", "0.9")?; // of both kernels
/// values.set("tower3_mu", "-0.5")?;
/// let window: Window = values.of_tower(2);
/// assert_eq!((window.mu, window.sigma), (-0.5, 0.3)); // sigma has its default
/// assert_eq!(values.of_tower::<Window>(1).mu, 0.9);
/// assert!(values.set("heads", "4").is_err()); // a GCN has none
/// # Ok::<(), qdc_lab::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Hyperparameters {
    values: BTreeMap<Name, Value>,
    model: Model,
}

impl Hyperparameters {
    /// The defaults of `model`.
    pub fn new(model: Model) -> Self {
        // What is not set in a bank is the preset's.
        let own = |entry: &Entry| !model.is_bank() || entry.name == "preset";
        let default = |entry: &Entry| Some((Name { tower: None, line: entry.name }, entry.default.clone()?));
        let values =
            TABLE.iter().filter(|entry| entry.applies_to(&model) && own(entry)).filter_map(default).collect();
        Self { values, model }
    }

    /// The model they belong to.
    pub fn model(&self) -> &Model {
        &self.model
    }

    /// Sets one from text, as `--set name=value` does.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let (name, entry) = Name::read(name, &self.model)?;
        let value = entry.domain.parse(text).ok_or_else(|| wrong_value(name, entry, text))?;
        self.put(name, value);
        Ok(())
    }

    /// Sets one from a value, as searches and Python do.
    pub fn set_value(&mut self, name: &str, value: impl Into<Value>) -> Result<(), Error> {
        let value = value.into();
        if let Value::Text(text) = &value {
            return self.set(name, text);
        }
        let (name, entry) = Name::read(name, &self.model)?;
        let admitted = entry.domain.admit(&value);
        self.put(name, admitted.ok_or_else(|| wrong_value(name, entry, &value.to_string()))?);
        Ok(())
    }

    /// Sets one from what a TOML or JSON file holds; null leaves it alone.
    pub fn set_json(&mut self, name: &str, value: &serde_json::Value) -> Result<(), Error> {
        match Value::from_json(value) {
            Some(value) => self.set_value(name, value),
            None if value.is_null() => Ok(()),
            None => self.set(name, &value.to_string()),
        }
    }

    fn put(&mut self, name: Name, value: Value) {
        if let Some(rival) = rival(name.line) {
            self.values.remove(&Name { line: rival, ..name });
        }
        self.values.insert(name, value);
    }

    /// The value of a name, if it is set.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.values.get(&Name::read(name, &self.model).ok()?.0)
    }

    /// The value that counts for a name: a tower's own or, where it has none of its own, that of all towers.
    pub fn in_force(&self, name: &str) -> Option<&Value> {
        let (name, _) = Name::read(name, &self.model).ok()?;
        self.values.get(&name).or_else(|| self.values.get(&Name { tower: None, ..name }))
    }

    /// Every name that is set and its value, as they are written in files: in alphabetical order.
    pub fn written(&self) -> BTreeMap<String, Value> {
        self.values.iter().map(|(name, value)| (name.to_string(), value.clone())).collect()
    }

    /// Those of the whole model, as the fields of `T`.
    ///
    /// # Panics
    /// If `T` wants a field that the model has not, or in another type than the table's.
    pub fn of_model<T: DeserializeOwned>(&self) -> T {
        let own = self.values.iter().filter(|(name, _)| name.tower.is_none());
        self.fill(own.map(|(name, value)| (name.line, value.clone())).collect())
    }

    /// Those of a tower, counting from 0, as the fields of `T`: its own, and where it has none of its own,
    /// those of all towers.
    ///
    /// # Panics
    /// If `T` wants a field that the tower has not, or in another type than the table's.
    pub fn of_tower<T: DeserializeOwned>(&self, tower: usize) -> T {
        let applies = |line: &str| {
            let entry = TABLE.iter().find(|entry| entry.name == line);
            entry.is_some_and(|entry| entry.applies_to_tower(self.model.towers()[tower]))
        };
        let mut values: BTreeMap<&'static str, Value> = BTreeMap::new();
        for wanted in [None, Some(tower)] {
            for (name, value) in self.values.iter().filter(|(name, _)| name.tower == wanted) {
                if wanted.is_some()
                    && let Some(rival) = rival(name.line)
                {
                    values.remove(rival);
                }
                if applies(name.line) {
                    values.insert(name.line, value.clone());
                }
            }
        }
        self.fill(values)
    }

    fn fill<T: DeserializeOwned>(&self, values: BTreeMap<&'static str, Value>) -> T {
        let fields = MapDeserializer::<_, serde::de::value::Error>::new(values.into_iter());
        T::deserialize(fields).unwrap_or_else(|error| panic!("{}: {error}", self.model))
    }
}

impl Serialize for Hyperparameters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written().serialize(serializer)
    }
}

fn rival(line: &str) -> Option<&'static str> {
    RIVALS.iter().find_map(|&(one, other)| match line {
        line if line == one => Some(other),
        line if line == other => Some(one),
        _ => None,
    })
}

fn wrong_value(name: Name, entry: &Entry, text: &str) -> Error {
    let requirement = entry.domain.to_string();
    Error::HyperparameterValue { name: name.to_string(), value: text.into(), requirement }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;

    #[derive(Deserialize)]
    struct Layers {
        layers: usize,
        hidden: usize,
        dropout: f64,
    }

    #[derive(Debug, PartialEq, Deserialize)]
    struct Kept {
        epsilon: Option<f64>,
        top_k: Option<usize>,
        pairs: qdc_core::Pairs,
    }

    fn values(model: &str, set: &[(&str, &str)]) -> Hyperparameters {
        let mut values = Hyperparameters::new(model.parse().unwrap());
        set.iter().for_each(|(name, value)| values.set(name, value).unwrap());
        values
    }

    #[test]
    fn every_default_lies_in_its_own_domain() {
        for entry in &TABLE {
            let Some(value) = entry.default.clone() else { continue };
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
        assert_eq!(values.of_tower::<Layers>(0).hidden, 32);
        values.set_value("pairs", "512").unwrap();
        assert_eq!(values.of_tower::<Kept>(0).pairs, qdc_core::Pairs::Nearest(512));
    }

    #[test]
    fn of_two_ways_to_sparsify_the_one_said_last_counts() {
        let mut values = Hyperparameters::new("gcn+qdc".parse().unwrap());
        values.set("top_k", "64").unwrap();
        assert!(values.get("epsilon").is_none());
        values.set("epsilon", "0.01").unwrap();
        assert!(values.get("top_k").is_none());
    }

    #[test]
    fn a_tower_has_its_own_values_and_shares_the_rest() {
        let set = [("layers", "3"), ("tower2_hidden", "8"), ("tower3_dropout", "0.1"), ("qdc_layers", "1")];
        let values = values("gcn/gcn+qdc/gcn+qdc", &set);
        let of = |tower| {
            let Layers { layers, hidden, dropout } = values.of_tower(tower);
            (layers, hidden, dropout)
        };
        assert_eq!((of(0), of(1), of(2)), ((3, 64, 0.5), (1, 8, 0.5), (3, 64, 0.1)));
        let written = values.written();
        assert_eq!(written["qdc_hidden"], Value::Integer(8));
        assert_eq!(written["tower3_dropout"], Value::Real(0.1));
    }

    #[test]
    fn a_towers_own_rule_takes_the_place_of_the_shared_one() {
        let values = values("gcn/gcn+qdc/gcn+qdc", &[("tower3_top_k", "16"), ("epsilon", "0.2")]);
        let shared = Kept { epsilon: Some(0.2), top_k: None, pairs: qdc_core::Pairs::All };
        assert_eq!(values.of_tower::<Kept>(1), shared);
        assert_eq!(values.of_tower::<Kept>(2), Kept { epsilon: None, top_k: Some(16), ..shared });
    }

    #[test]
    fn a_tower_has_only_what_its_rewiring_has() {
        let mut values = Hyperparameters::new("gcn/gcn+qdc".parse().unwrap());
        for absent in ["tower1_mu", "tower3_mu", "tower0_mu", "qdc_learning_rate", "qdc_heads"] {
            let error = values.set(absent, "0.1").unwrap_err();
            assert!(error.to_string().contains(absent), "{error}");
        }
        values.set("tower1_self_loop", "2").unwrap();
        assert_eq!(values.get("tower1_self_loop"), Some(&Value::Real(2.0)));
        assert_eq!(values.get("self_loop"), Some(&Value::Real(1.0)));
    }

    #[test]
    fn infinity_is_a_word_in_files_and_a_number_to_whoever_uses_it() {
        #[derive(Deserialize)]
        struct Flow {
            tau: f64,
        }
        let mut values = Hyperparameters::new("gcn+sdrf".parse().unwrap());
        assert_eq!(values.of_tower::<Flow>(0).tau, f64::INFINITY);
        assert_eq!(serde_json::to_value(&values).unwrap()["tau"], "inf");
        values.set_json("tau", &serde_json::json!("inf")).unwrap();
        assert_eq!(values.get("tau"), Some(&Value::Real(f64::INFINITY)));
    }
}
