//! Several trained networks asked together: the mean of their class probabilities.

use std::collections::BTreeMap;

use qdc_core::Metric;
use qdc_data::Dataset;
use qdc_nn::{Matrix, Scorer, Width};
use serde::{Deserialize, Serialize};

use crate::Scores;
use crate::run::Run;
use crate::scores::Summary;

/// The scores of networks asked together; they stand beside those of a single network, never in their place.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Ensemble {
    /// How many networks are asked on each split, at most.
    #[serde(rename = "ensemble_members")]
    pub members: usize,
    /// Mean test score over the splits.
    #[serde(rename = "ensemble_test_mean")]
    pub test_mean: f64,
    /// Its standard deviation (ddof 0) over the splits.
    #[serde(rename = "ensemble_test_std")]
    pub test_std: f64,
    /// Mean validation score over the splits.
    #[serde(rename = "ensemble_validation_mean")]
    pub validation_mean: f64,
    /// The test score on each split, in the order of their numbers.
    #[serde(rename = "ensemble_test")]
    pub test: Vec<f64>,
}

impl Ensemble {
    /// Asks all networks of some runs together, split by split: seeds of one run, or the runs of several trials.
    ///
    /// The class probabilities of the networks trained on a split are averaged and scored on its vertices.
    /// The runs must have kept their probabilities ([`crate::Keep::probabilities`]); `None` where none has
    /// any.
    pub fn of(runs: &[&Run], dataset: &Dataset, metric: Metric) -> Option<Self> {
        let mut by_split: BTreeMap<usize, Vec<&[f32]>> = BTreeMap::new();
        for run in runs {
            for (scores, shares) in run.record.splits.iter().zip(&run.probabilities) {
                by_split.entry(scores.split).or_default().extend(shares.as_deref());
            }
        }
        by_split.retain(|_, members| !members.is_empty());
        let members = by_split.values().map(Vec::len).max()?;
        let score = |(&split, members): (&usize, &Vec<&[f32]>)| {
            let logits = logarithms_of_mean(members, dataset.classes);
            let mut scorer = Scorer::new(metric);
            let masks = &dataset.splits[split];
            let mut on = |vertices| scorer.score(&logits, &dataset.labels, vertices);
            Scores { split, validation: on(masks.validation()), test: on(masks.test()), ..Scores::default() }
        };
        let scores: Vec<Scores> = by_split.iter().map(score).collect();
        let Summary { test_mean, test_std, validation_mean, test, .. } = Summary::of(&scores);
        Some(Self { members, test_mean, test_std, validation_mean, test })
    }
}

/// The logarithms of the mean probabilities: logits whose softmax is that mean.
fn logarithms_of_mean(members: &[&[f32]], classes: usize) -> Matrix<f64> {
    let mean = |at: usize| {
        let sum: f64 = members.iter().map(|shares| f64::from(shares[at])).sum();
        (sum / members.len() as f64).max(f64::MIN_POSITIVE).ln()
    };
    let values: Vec<f64> = (0..members[0].len()).map(mean).collect();
    Matrix::from_dense(values.len() / classes, Width::single(classes), &values)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_are_averaged_not_votes_nor_logits() {
        // Two lean to class 0 by a little, one to class 1 for certain: the mean says 1, a vote 0.
        let members: [&[f32]; 3] = [&[0.6, 0.4], &[0.55, 0.45], &[0.0, 1.0]];
        let logits = logarithms_of_mean(&members, 2);
        let shares = qdc_nn::probabilities(&logits, 0);
        assert!((shares[0] - 1.15 / 3.0).abs() < 1e-7 && (shares[1] - 1.85 / 3.0).abs() < 1e-7, "{shares:?}");
        assert_eq!(qdc_nn::predicted(&logits, 0), 1);
        let certain: [&[f32]; 1] = [&[0.0, 1.0]];
        let shares = qdc_nn::probabilities(&logarithms_of_mean(&certain, 2), 0);
        assert!(shares[0] < 1e-300 && shares[1] == 1.0, "{shares:?}");
    }
}
