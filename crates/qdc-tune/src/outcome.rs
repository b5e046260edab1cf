//! What a study hands out and what it gets back.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::State;

/// A point to try.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The trial's number in its study.
    pub trial: u64,
    /// Parameters as users see them.
    pub parameters: BTreeMap<String, Value>,
    /// A finished trial with exactly the same parameters, if there is one.
    pub duplicate_of: Option<u64>,
    pub(crate) id: i64,
}

impl Asked {
    /// A numeric parameter.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.parameters.get(name).and_then(Value::as_f64)
    }

    /// The storage's key of the trial.
    pub fn id(&self) -> i64 {
        self.id
    }
}

/// What came of a trial.
#[derive(Debug, Clone, PartialEq)]
pub struct Outcome {
    pub(crate) state: State,
    pub(crate) value: Option<f64>,
    pub(crate) attributes: BTreeMap<String, Value>,
}

impl Outcome {
    /// It has a value.
    pub fn complete(value: f64) -> Self {
        Self { state: State::Complete, value: Some(value), attributes: BTreeMap::new() }
    }

    /// It was given up early; its last report counts.
    pub fn pruned() -> Self {
        Self { state: State::Pruned, value: None, attributes: BTreeMap::new() }
    }

    /// It could not be evaluated. The sampler counts it as bad.
    pub fn failed(reason: impl Into<String>) -> Self {
        let attributes = BTreeMap::from([("failure".to_owned(), Value::String(reason.into()))]);
        Self { state: State::Failed, value: None, attributes }
    }

    /// Attaches something to the trial.
    pub fn with(mut self, key: &str, value: impl Into<Value>) -> Self {
        self.attributes.insert(key.to_owned(), value.into());
        self
    }
}
