//! Giving up trials that look hopeless.

/// Whether trials that look hopeless are given up early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Pruning {
    /// Never: the published setting.
    #[default]
    Off,
    /// When a report is worse than the median of the reports of earlier complete trials at the same step; not
    /// before step `warm_up`, and not before `startup` complete trials (Optuna's median rule).
    Median {
        /// Complete trials needed first.
        startup: usize,
        /// Steps without pruning.
        warm_up: i64,
    },
}

impl Pruning {
    /// Whether a trial that is this good at `step` is given up, where complete trials were as good as
    /// `others` at that step; more is better.
    pub(crate) fn gives_up(self, step: i64, goodness: f64, mut others: Vec<f64>) -> bool {
        let Self::Median { startup, warm_up } = self else { return false };
        if step < warm_up || others.len() < startup.max(1) {
            return false;
        }
        others.sort_by(f64::total_cmp);
        let middle = others.len() / 2;
        let median =
            if others.len() % 2 == 1 { others[middle] } else { 0.5 * (others[middle - 1] + others[middle]) };
        goodness < median
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_worse_than_the_median_goes_but_not_too_early() {
        let rule = Pruning::Median { startup: 3, warm_up: 5 };
        assert!(rule.gives_up(5, 1.9, vec![3.0, 1.0, 2.0]));
        assert!(!rule.gives_up(5, 2.0, vec![3.0, 1.0, 2.0]));
        assert!(rule.gives_up(5, 2.4, vec![4.0, 3.0, 1.0, 2.0])); // the median of four lies between two
        assert!(!rule.gives_up(4, 0.0, vec![3.0, 1.0, 2.0]));
        assert!(!rule.gives_up(5, 0.0, vec![3.0, 1.0]));
        assert!(!Pruning::Off.gives_up(5, 0.0, vec![3.0, 1.0, 2.0]));
    }
}
