//! Scores of predictions: accuracy, macro-F1 and ROC-AUC of logits on a set of vertices.
//!
//! ```text
//! accuracy  = share of vertices whose largest logit is that of their label
//! macro-F1  = mean over classes of 2 TP / (2 TP + FP + FN)
//! ROC-AUC   = (pairs ordered rightly + pairs tied / 2) / (positives * negatives)
//! ```

use qdc_core::Metric;

use crate::{Matrix, Real};

/// A metric with the scratch memory it needs, so that scoring allocates nothing after the first call.
///
/// ```
/// use qdc_nn::{Matrix, Metric, Scorer, Width};
///
/// let logits = Matrix::<f32>::from_dense(4, Width::single(2), &[0.0, 1.0, 0.0, 3.0, 0.0, 3.0, 0.0, -1.0]);
/// let labels = [0, 1, 0, 0];
/// let score = |metric| Scorer::new(metric).score(&logits, &labels, &[0, 1, 2, 3]);
/// assert_eq!(score(Metric::Accuracy), 0.5);
/// assert_eq!(score(Metric::Auc), (1.0 + 0.5 + 1.0) / 3.0); // above two vertices of class 0, level with one
/// ```
#[derive(Clone, Debug)]
pub struct Scorer {
    metric: Metric,
    /// Of each class: vertices that have it, vertices predicted to have it, and vertices of both kinds.
    counts: Vec<[u64; 3]>,
    /// Of each vertex: the logarithm of the sum of the exponentials of its logits.
    normalisers: Vec<f64>,
    /// Of each vertex: its score for a class, and whether it has the class.
    ranked: Vec<(f64, bool)>,
}

impl Scorer {
    /// A scorer by this metric.
    pub fn new(metric: Metric) -> Self {
        Self { metric, counts: Vec::new(), normalisers: Vec::new(), ranked: Vec::new() }
    }

    /// The score of `logits` on `vertices`; 0 for no vertices, and an ROC-AUC of 0 where only one class
    /// occurs ([`defined_on`] tells). Every label of `vertices` must be a class.
    ///
    /// With n vertices and C classes, accuracy and macro-F1 take O(n C), ROC-AUC of two classes O(n log n)
    /// and of more O(C n log n). Pairs are counted in whole numbers: the result is exact up to one rounding.
    pub fn score<T: Real>(&mut self, logits: &Matrix<T>, labels: &[u32], vertices: &[u32]) -> f64 {
        match self.metric {
            Metric::Accuracy => accuracy(logits, labels, vertices),
            Metric::F1 => self.macro_f1(logits, labels, vertices),
            Metric::Auc => self.auc(logits, labels, vertices),
        }
    }

    fn macro_f1<T: Real>(&mut self, logits: &Matrix<T>, labels: &[u32], vertices: &[u32]) -> f64 {
        self.counts.clear();
        self.counts.resize(logits.width().columns(), [0; 3]);
        for &vertex in vertices {
            let (label, guess) = (labels[vertex as usize], predicted(logits, vertex as usize));
            self.counts[label as usize][0] += 1;
            self.counts[guess as usize][1] += 1;
            if label == guess {
                self.counts[label as usize][2] += 1;
            }
        }
        // 2 TP + FP + FN is the number of vertices that have the class and of those predicted to have it.
        let f1 = |[actual, guessed, right]: [u64; 3]| 2.0 * right as f64 / (actual + guessed) as f64;
        let occurring = self.counts.iter().filter(|[actual, guessed, _]| actual + guessed > 0);
        mean(occurring.map(|&count| f1(count)))
    }

    fn auc<T: Real>(&mut self, logits: &Matrix<T>, labels: &[u32], vertices: &[u32]) -> f64 {
        let classes = logits.width().columns();
        if classes == 2 {
            // The logarithm of the odds of class 1, which orders vertices as its probability does.
            let odds = |vertex: u32| {
                let row = logits.row(vertex as usize);
                (row[1].to_f64() - row[0].to_f64(), labels[vertex as usize] == 1)
            };
            self.ranked.clear();
            self.ranked.extend(vertices.iter().map(|&vertex| odds(vertex)));
            return ranked_auc(&mut self.ranked).unwrap_or(0.0);
        }
        self.normalisers.clear();
        self.normalisers.extend(vertices.iter().map(|&vertex| {
            let row = &logits.row(vertex as usize)[..classes];
            let highest = row.iter().map(|z| z.to_f64()).fold(f64::NEG_INFINITY, f64::max);
            highest + row.iter().map(|z| (z.to_f64() - highest).exp()).sum::<f64>().ln()
        }));
        let (mut sum, mut count) = (0.0, 0usize);
        for class in 0..classes {
            // The logarithm of the probability of the class.
            let log_probability = |(&vertex, normaliser): (&u32, &f64)| {
                let logit = logits.row(vertex as usize)[class].to_f64();
                (logit - normaliser, labels[vertex as usize] as usize == class)
            };
            self.ranked.clear();
            self.ranked.extend(vertices.iter().zip(&self.normalisers).map(log_probability));
            if let Some(auc) = ranked_auc(&mut self.ranked) {
                sum += auc;
                count += 1;
            }
        }
        sum / count.max(1) as f64
    }
}

/// Whether a metric says something about a set of vertices: ROC-AUC needs vertices of two classes.
pub fn defined_on(metric: Metric, labels: &[u32], vertices: &[u32]) -> bool {
    let label = |vertex: &u32| labels[*vertex as usize];
    metric != Metric::Auc || vertices.iter().any(|vertex| label(vertex) != label(&vertices[0]))
}

/// The ROC-AUC of scores with their truth, which are sorted; `None` where all are of one kind. O(n log n).
fn ranked_auc(scores: &mut [(f64, bool)]) -> Option<f64> {
    scores.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
    let (mut positives, mut negatives, mut twice_below) = (0u64, 0u64, 0u64);
    for tied in scores.chunk_by(|a, b| a.0 == b.0) {
        let above = tied.iter().filter(|(_, positive)| *positive).count() as u64;
        let level = tied.len() as u64 - above;
        twice_below += above * (2 * negatives + level);
        positives += above;
        negatives += level;
    }
    let pairs = positives * negatives;
    (pairs > 0).then(|| twice_below as f64 / (2 * pairs) as f64)
}

/// The share of `vertices` whose largest logit is that of their label; of equal logits the first counts.
fn accuracy<T: Real>(logits: &Matrix<T>, labels: &[u32], vertices: &[u32]) -> f64 {
    let right = vertices.iter().filter(|&&v| predicted(logits, v as usize) == labels[v as usize]).count();
    right as f64 / vertices.len().max(1) as f64
}

/// The class of the largest logit of a vertex; of equal ones the first.
pub fn predicted<T: Real>(logits: &Matrix<T>, vertex: usize) -> u32 {
    let row = &logits.row(vertex)[..logits.width().columns()];
    let mut best = 0;
    for (class, value) in row.iter().enumerate() {
        if *value > row[best] {
            best = class;
        }
    }
    best as u32
}

/// The probabilities of the classes of a vertex: exp(z_k) / sum of exp(z_j).
pub fn probabilities<T: Real>(logits: &Matrix<T>, vertex: usize) -> Vec<f64> {
    let row = &logits.row(vertex)[..logits.width().columns()];
    let highest = row.iter().map(|z| z.to_f64()).fold(f64::NEG_INFINITY, f64::max);
    let powers: Vec<f64> = row.iter().map(|z| (z.to_f64() - highest).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / sum).collect()
}

/// The mean of what there is; 0 of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0usize), |(sum, count), value| (sum + value, count + 1));
    sum / count.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Width;
    use proptest::prelude::*;

    fn score(metric: Metric, logits: &Matrix<f64>, labels: &[u32], vertices: &[u32]) -> f64 {
        Scorer::new(metric).score(logits, labels, vertices)
    }

    #[test]
    fn scores_are_those_of_scikit_learn() {
        // roc_auc_score and f1_score(average="macro") of scikit-learn 1.9.1 on the same numbers.
        for (classes, accuracy, f1, auc) in [
            (2, 12.0 / 27.0, 0.441_379_310_344_827_6, 0.483_516_483_516_483_6),
            (4, 9.0 / 27.0, 0.327_505_827_505_827_5, 0.516_666_666_666_666_7),
        ] {
            let logit = |v: usize, k: usize| ((7 * v + 5 * k + 3 * v * k) % 11) as f64 / 4.0 - 1.0;
            let values: Vec<f64> = (0..40).flat_map(|v| (0..classes).map(move |k| logit(v, k))).collect();
            let logits = Matrix::from_dense(40, Width::single(classes), &values);
            let labels: Vec<u32> = (0..40).map(|v| ((5 * v + v * v / 3) % classes) as u32).collect();
            let vertices: Vec<u32> = (0..40).filter(|v| v % 3 != 1).collect();
            let found = Metric::ALL.map(|metric| score(metric, &logits, &labels, &vertices));
            for (found, expected) in found.iter().zip([accuracy, f1, auc]) {
                assert!((found - expected).abs() < 1e-15, "{classes} classes: {found} for {expected}");
            }
        }
    }

    #[test]
    fn classes_that_neither_label_nor_prediction_names_do_not_count() {
        // Predictions 0 1 1 1 4 3 for labels 0 0 1 1 3 3; class 2 does not occur.
        let guesses = [0, 1, 1, 1, 4, 3];
        let values: Vec<f64> =
            guesses.iter().flat_map(|&guess| (0..5).map(move |k| f64::from(k == guess))).collect();
        let logits = Matrix::from_dense(6, Width::single(5), &values);
        let (labels, all) = ([0, 0, 1, 1, 3, 3], [0, 1, 2, 3, 4, 5]);
        let f1 = score(Metric::F1, &logits, &labels, &all);
        assert!((f1 - 0.533_333_333_333_333_3).abs() < 1e-15, "{f1}"); // scikit-learn's
        // One against the rest for 0 (3/4 and a tie of 2 pairs in 8), 1 and 3.
        let auc = score(Metric::Auc, &logits, &labels, &all);
        assert!((auc - (0.75 + 0.875 + 0.75) / 3.0).abs() < 1e-15, "{auc}");
    }

    #[test]
    fn nothing_to_compare_scores_nothing_and_is_known_before() {
        let logits = Matrix::<f64>::zeros(3, Width::single(2));
        for metric in Metric::ALL {
            assert_eq!(score(metric, &logits, &[0, 0, 1], &[]), 0.0);
            assert_eq!(defined_on(metric, &[0, 0, 1], &[0, 1]), metric != Metric::Auc);
            assert!(defined_on(metric, &[0, 0, 1], &[0, 2]));
        }
        assert_eq!(score(Metric::Auc, &logits, &[0, 0, 1], &[0, 1]), 0.0);
        assert_eq!(score(Metric::Auc, &logits, &[0, 0, 1], &[0, 1, 2]), 0.5, "all scores are equal");
    }

    #[test]
    fn a_vertex_is_given_the_first_of_its_largest_logits_and_probabilities_sum_to_one() {
        let logits = Matrix::from_dense(2, Width::single(3), &[1.0, 2.0, 2.0, 1000.0, 1000.0, -1000.0]);
        assert_eq!((predicted(&logits, 0), predicted(&logits, 1)), (1, 0));
        assert_eq!(probabilities(&logits, 1), [0.5, 0.5, 0.0]);
        let first = probabilities(&logits, 0);
        assert!((first.iter().sum::<f64>() - 1.0).abs() < 1e-15);
        assert!((first[1] / first[0] - std::f64::consts::E).abs() < 1e-14);
    }

    proptest! {
        #[test]
        fn roc_auc_counts_pairs_exactly_with_many_ties(
            scored in proptest::collection::vec((-3i8..4, any::<bool>()), 2..120),
        ) {
            let (mut twice, mut pairs) = (0u64, 0u64);
            for &(positive, _) in scored.iter().filter(|vertex| vertex.1) {
                for &(negative, _) in scored.iter().filter(|vertex| !vertex.1) {
                    pairs += 1;
                    twice += match positive.cmp(&negative) {
                        std::cmp::Ordering::Greater => 2,
                        std::cmp::Ordering::Equal => 1,
                        std::cmp::Ordering::Less => 0,
                    };
                }
            }
            prop_assume!(pairs > 0);
            let values: Vec<f64> = scored.iter().flat_map(|vertex| [0.5, f64::from(vertex.0)]).collect();
            let logits = Matrix::from_dense(scored.len(), Width::single(2), &values);
            let labels: Vec<u32> = scored.iter().map(|vertex| u32::from(vertex.1)).collect();
            let vertices: Vec<u32> = (0..scored.len() as u32).collect();
            let auc = score(Metric::Auc, &logits, &labels, &vertices);
            prop_assert_eq!(auc, twice as f64 / (2 * pairs) as f64);
        }
    }
}
