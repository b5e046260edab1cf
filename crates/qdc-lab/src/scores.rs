//! What the scores of a run come to.

use std::collections::BTreeMap;

use qdc_nn::training::Scores;

/// Means over splits and seeds.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Mean test score over splits and seeds.
    pub test_mean: f64,
    /// The standard deviation (ddof 0) of the test score over the splits, each by its mean over the seeds.
    pub test_std: f64,
    /// Mean validation score over splits and seeds.
    pub validation_mean: f64,
    /// The test score of each split, by number: its mean over the seeds.
    pub test: Vec<f64>,
    /// How many seeds each split was trained with, at most.
    pub seeds: usize,
}

impl Summary {
    /// Summarises scores of any splits and seeds; 0 of nothing.
    pub fn of(scores: &[Scores]) -> Self {
        let mut by_split: BTreeMap<usize, Vec<&Scores>> = BTreeMap::new();
        for one in scores {
            by_split.entry(one.split).or_default().push(one);
        }
        let means = |score: fn(&Scores) -> f64| -> Vec<f64> {
            by_split.values().map(|same| mean(same.iter().map(|one| score(one)))).collect()
        };
        let test = means(|one| one.test);
        let test_mean = mean(test.iter().copied());
        let variance = mean(test.iter().map(|value| (value - test_mean).powi(2)));
        Self {
            test_mean,
            test_std: variance.sqrt(),
            validation_mean: mean(means(|one| one.validation).into_iter()),
            seeds: by_split.values().map(Vec::len).max().unwrap_or(0),
            test,
        }
    }
}

/// The mean, in the order given; 0 of nothing.
fn mean(values: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = values.len().max(1) as f64;
    values.sum::<f64>() / count
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deviations_are_over_splits_and_means_over_both() {
        let one =
            |split, seed, test| Scores { split, seed, test, validation: 2.0 * test, ..Scores::default() };
        let summary = Summary::of(&[one(0, 0, 0.1), one(1, 0, 0.5), one(0, 1, 0.3), one(1, 1, 0.7)]);
        assert_eq!(summary.seeds, 2);
        assert!((summary.test[0] - 0.2).abs() < 1e-15 && (summary.test[1] - 0.6).abs() < 1e-15);
        assert!((summary.test_mean - 0.4).abs() < 1e-15 && (summary.validation_mean - 0.8).abs() < 1e-15);
        assert!((summary.test_std - 0.2).abs() < 1e-15, "{}", summary.test_std);
        assert_eq!(Summary::of(&[]).test_mean, 0.0);
    }
}
