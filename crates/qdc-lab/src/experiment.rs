//! An experiment as a record: all that decides its result, as one value with a hash.
//!
//! Two experiments with the same record give the same numbers on the same kind of machine. The route of a
//! kernel, the device, the number of threads and the memory allowed are no part of it.

use std::collections::BTreeMap;

use qdc_core::{Features, Metric, Recipe};
use qdc_data::{Dataset, hexadecimal};
use qdc_tune::{Distribution, Pruning, Sampler};
use serde::Serialize;
use serde_json::Value as Json;
use sha2::{Digest, Sha256};

use crate::hyperparameters::Value;
use crate::saved::graph_hash;
use crate::{Error, Model, Patience};

/// A dataset by name and by content.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DatasetIdentity {
    /// Its name.
    pub name: String,
    /// The hash of vertices, edges and weights.
    pub graph: String,
    /// The hash of the features.
    pub features: String,
    /// The hash of the labels.
    pub labels: String,
    /// The hash of the splits.
    pub splits: String,
}

impl DatasetIdentity {
    /// Hashes the parts of a dataset; reads each number once.
    pub fn of(dataset: &Dataset) -> Self {
        let mut graph = graph_hash(&dataset.graph);
        graph.truncate(DIGITS);
        let sets = dataset.splits.iter().flat_map(|split| [split.train(), split.validation(), split.test()]);
        Self {
            name: dataset.name.clone(),
            graph,
            features: features_hash(&dataset.features),
            labels: hash([dataset.labels.as_slice()]),
            splits: hash(sets),
        }
    }

    /// Checks that the data is that of a record: `written` is its `dataset`.
    ///
    /// # Errors
    /// With the part that differs and both hashes.
    pub fn check(&self, written: &Json) -> Result<(), Error> {
        let parts = [
            ("edges", &written["graph"], &self.graph),
            ("features", &written["features"], &self.features),
            ("labels", &written["labels"], &self.labels),
            ("splits", &written["splits"], &self.splits),
        ];
        match parts.into_iter().find(|(_, was, now)| *was != now.as_str()) {
            None => Ok(()),
            Some((part, was, now)) => Err(Error::OtherData {
                dataset: self.name.clone(),
                part: part.to_owned(),
                was: was.as_str().unwrap_or("none").to_owned(),
                now: now.clone(),
            }),
        }
    }
}

/// The hash of features: their shape and every number, sparse or dense.
pub fn features_hash(features: &Features) -> String {
    let bits = |values: &[f32]| -> Vec<u32> { values.iter().map(|value| value.to_bits()).collect() };
    let shape = [features.rows() as u32, features.columns() as u32];
    match features {
        Features::Dense { values, .. } => hash([&shape[..], &bits(values)]),
        Features::Sparse(matrix) => {
            let lengths: Vec<u32> =
                matrix.pointers().windows(2).map(|ends| (ends[1] - ends[0]) as u32).collect();
            hash([&shape[..], &lengths, matrix.indices(), &bits(matrix.values())])
        }
    }
}

/// Digits of a hash: the first 64 bits.
const DIGITS: usize = 16;

/// The hash of lists of numbers, each with its length.
fn hash<'a>(lists: impl IntoIterator<Item = &'a [u32]>) -> String {
    let mut digest = Sha256::new();
    for list in lists {
        digest.update((list.len() as u64).to_le_bytes());
        for numbers in list.chunks(1024) {
            let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
            digest.update(&bytes);
        }
    }
    written(&digest.finalize())
}

fn written(hash: &[u8]) -> String {
    hexadecimal(&hash[..DIGITS / 2])
}

/// How points of a space are chosen.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SearchIdentity {
    /// What is searched: names and distributions, in the order of the draws.
    pub space: Vec<(String, Distribution)>,
    /// Who proposes points.
    pub sampler: Sampler,
    /// Trial n may not look at the last `batch` - 1 trials.
    pub batch: u64,
    /// Whether hopeless trials are given up.
    pub pruning: Pruning,
    /// Entries that attention may weigh; trials with more are failures.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attention_limit: Option<usize>,
    /// Points that were tried first, because they were given.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub start: Vec<BTreeMap<String, Json>>,
}

/// All that decides a result.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Experiment {
    /// The version of the program.
    pub version: String,
    /// The dataset.
    pub dataset: DatasetIdentity,
    /// The splits trained.
    pub splits: Vec<usize>,
    /// The model.
    pub model: Model,
    /// Every hyper-parameter that is not searched.
    pub hyperparameters: BTreeMap<String, Value>,
    /// How long to train.
    pub schedule: Patience,
    /// What the scores are measured by.
    pub metric: Metric,
    /// The seeds every split is trained with.
    pub seeds: Vec<u64>,
    /// The recipe of each tower's kernel, where the hyper-parameters decide it; none in a search.
    pub recipes: Vec<Option<Recipe>>,
    /// The hash of a kernel that was given in the place of those.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    /// How points are chosen, in a search.
    pub search: Option<SearchIdentity>,
}

impl Experiment {
    /// The version of the program that writes records.
    pub const VERSION: &str = env!("CARGO_PKG_VERSION");

    /// The record as JSON.
    pub fn json(&self) -> Json {
        serde_json::to_value(self).expect("a record is plain data")
    }

    /// The record's hash: equal exactly for equal records.
    pub fn hash(&self) -> String {
        written(&Sha256::digest(self.json().to_string().as_bytes()))
    }
}

/// Where two records differ.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The part, such as `seeds` or `hyperparameters.hidden`.
    pub part: String,
    /// What it is in the one.
    pub one: String,
    /// What it is in the other.
    pub other: String,
}

/// The first part in which two records differ, with both values.
pub fn difference(one: &Json, other: &Json) -> Option<Difference> {
    first_difference("", one, other)
}

fn first_difference(part: &str, one: &Json, other: &Json) -> Option<Difference> {
    if one == other {
        return None;
    }
    if let (Json::Object(one), Json::Object(other)) = (one, other) {
        let names = one.keys().chain(other.keys().filter(|name| !one.contains_key(*name)));
        let inner = |name: &String| {
            let part = if part.is_empty() { name.clone() } else { format!("{part}.{name}") };
            let of = |side: &serde_json::Map<String, Json>| side.get(name).cloned().unwrap_or(Json::Null);
            first_difference(&part, &of(one), &of(other))
        };
        return names.into_iter().find_map(inner);
    }
    let shown = |value: &Json| match value {
        Json::Null => "nothing".to_owned(),
        Json::String(text) => text.clone(),
        Json::Array(items) if items.len() == 1 => items[0].to_string(),
        other => other.to_string(),
    };
    Some(Difference { part: part.to_owned(), one: shown(one), other: shown(other) })
}

#[cfg(test)]
mod tests {
    use qdc_core::Csr;
    use serde_json::json;

    use super::*;

    #[test]
    fn the_first_difference_is_named_with_both_values() {
        let one = json!({ "a": 1, "b": { "c": [3], "d": "x" } });
        assert_eq!(difference(&one, &one), None);
        let found = difference(&one, &json!({ "a": 1, "b": { "c": [4], "d": "y" } })).unwrap();
        assert_eq!((found.part.as_str(), found.one.as_str(), found.other.as_str()), ("b.c", "3", "4"));
        let found = difference(&one, &json!({ "a": 1 })).unwrap();
        assert_eq!((found.part.as_str(), found.other.as_str()), ("b", "nothing"));
        let found = difference(&json!({}), &json!({ "new": "x" })).unwrap();
        assert_eq!((found.part.as_str(), found.one.as_str(), found.other.as_str()), ("new", "nothing", "x"));
    }

    #[test]
    fn features_are_told_apart_by_every_number_and_by_their_shape() {
        let dense = |columns, values: [f32; 4]| Features::Dense { columns, values: values.to_vec() };
        let sparse = |columns: [u32; 2], pointers: [usize; 3]| {
            Features::Sparse(Csr::new(2, 2, pointers.to_vec(), columns.to_vec(), vec![1.0, 2.0]).unwrap())
        };
        let all = [
            dense(2, [1.0, 2.0, 3.0, 4.0]),
            dense(2, [1.0, 2.0, 4.0, 3.0]),
            dense(4, [1.0, 2.0, 3.0, 4.0]),
            sparse([0, 1], [0, 1, 2]),
            sparse([0, 1], [0, 2, 2]),
            sparse([1, 0], [0, 1, 2]),
        ];
        for (at, one) in all.iter().enumerate() {
            assert_eq!(features_hash(one), features_hash(&one.clone()));
            assert!(all[..at].iter().all(|other| features_hash(other) != features_hash(one)), "{at}");
        }
    }
}
