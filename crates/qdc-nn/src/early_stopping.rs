//! When to stop, and which step was the best.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What decides which of two steps is better on validation: `stop` in options and files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Criterion {
    /// The higher score by the metric; of equal scores the lower loss. The published rule.
    #[default]
    Metric,
    /// The lower loss; of equal losses the higher score.
    Loss,
}

impl FromStr for Criterion {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "metric" => Ok(Self::Metric),
            "loss" => Ok(Self::Loss),
            _ => Err(format!("'{text}' is neither metric nor loss")),
        }
    }
}

/// The rule: stop when validation has not improved for `patience` steps, but not within the first `warm_up`
/// steps.
///
/// ```
/// use qdc_nn::{Criterion, EarlyStopping, Validation, Verdict};
///
/// let rule = EarlyStopping { patience: 2, warm_up: 0, criterion: Criterion::Metric };
/// let mut stopping = rule.start();
/// let validation = |score, loss| Validation { score, loss };
/// assert_eq!(stopping.observe(validation(0.5, 1.0)), Verdict::Improved);
/// assert_eq!(stopping.observe(validation(0.5, 0.9)), Verdict::Improved); // the tie-break
/// assert_eq!(stopping.observe(validation(0.4, 0.1)), Verdict::Continue);
/// assert_eq!(stopping.observe(validation(0.5, 0.9)), Verdict::Stop);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct EarlyStopping {
    /// Steps without improvement after which training ends.
    pub patience: usize,
    /// Steps in which it never ends.
    pub warm_up: usize,
    /// What counts as an improvement.
    #[serde(default, rename = "stop")]
    pub criterion: Criterion,
}

impl EarlyStopping {
    /// Never stops.
    pub const NEVER: Self = Self { patience: usize::MAX, warm_up: 0, criterion: Criterion::Metric };

    /// Begins to watch a training.
    pub fn start(self) -> Stopping {
        Stopping { rule: self, step: 0, best: None }
    }
}

impl Default for EarlyStopping {
    /// The published rule.
    fn default() -> Self {
        Self { patience: 50, warm_up: 0, criterion: Criterion::Metric }
    }
}

/// How well a network does on the validation set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// The score by the metric of the training.
    pub score: f64,
    /// Mean cross-entropy.
    pub loss: f64,
}

impl Validation {
    fn better_than(self, other: Self, criterion: Criterion) -> bool {
        match criterion {
            Criterion::Metric => {
                self.score > other.score || (self.score == other.score && self.loss < other.loss)
            }
            Criterion::Loss => {
                self.loss < other.loss || (self.loss == other.loss && self.score > other.score)
            }
        }
    }
}

/// What an observation means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The best step so far.
    Improved,
    /// Not the best; go on.
    Continue,
    /// Not the best, and patience is at its end.
    Stop,
}

/// The rule applied to the steps of one training.
#[derive(Clone, Debug)]
pub struct Stopping {
    rule: EarlyStopping,
    step: usize,
    best: Option<(usize, Validation)>,
}

impl Stopping {
    /// Takes note of the next step.
    pub fn observe(&mut self, validation: Validation) -> Verdict {
        self.step += 1;
        match self.best {
            Some((best_step, best)) if !validation.better_than(best, self.rule.criterion) => {
                let waited = self.step - best_step >= self.rule.patience;
                if waited && self.step > self.rule.warm_up { Verdict::Stop } else { Verdict::Continue }
            }
            _ => {
                self.best = Some((self.step, validation));
                Verdict::Improved
            }
        }
    }

    /// The best step (counting from 1) and how it did.
    pub fn best(&self) -> Option<(usize, Validation)> {
        self.best
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_warm_up_delays_the_end_but_not_the_choice_of_the_best_step() {
        let mut stopping = EarlyStopping { patience: 3, warm_up: 10, ..EarlyStopping::default() }.start();
        let mut last = 0;
        for step in 1..100 {
            let score = if step == 2 { 0.9 } else { 0.5 };
            last = step;
            if stopping.observe(Validation { score, loss: 1.0 }) == Verdict::Stop {
                break;
            }
        }
        assert_eq!(last, 11);
        assert_eq!(stopping.best().unwrap().0, 2);
    }

    #[test]
    fn the_criterion_decides_between_score_and_loss_and_the_other_breaks_ties() {
        let course = [(0.5, 1.0), (0.6, 1.2), (0.4, 0.8), (0.6, 1.1), (0.5, 0.8)];
        for (criterion, best) in [(Criterion::Metric, 4), (Criterion::Loss, 5)] {
            let mut stopping = EarlyStopping { criterion, ..EarlyStopping::NEVER }.start();
            for (score, loss) in course {
                stopping.observe(Validation { score, loss });
            }
            assert_eq!(stopping.best().unwrap().0, best, "{criterion:?}");
        }
    }

    #[test]
    fn criteria_are_read_by_name_and_a_rule_without_one_is_the_published_one() {
        assert_eq!("loss".parse(), Ok(Criterion::Loss));
        assert_eq!("metric".parse(), Ok(Criterion::Metric));
        assert!("score".parse::<Criterion>().is_err());
        let rule: EarlyStopping = serde_json::from_str(r#"{"patience":50,"warm_up":0}"#).unwrap();
        assert_eq!(rule, EarlyStopping::default());
    }
}
