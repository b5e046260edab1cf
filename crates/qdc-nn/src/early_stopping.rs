//! When to stop, and which step was the best.

use serde::{Deserialize, Serialize};

/// The rule: stop when validation has not improved for `patience` steps, but not within the first `warm_up` steps.
///
/// Improved means a higher accuracy, or the same accuracy at a lower loss.
///
/// ```
/// use qdc_nn::{EarlyStopping, Validation, Verdict};
///
/// let mut progress = EarlyStopping { patience: 2, warm_up: 0 }.start();
/// let validation = |accuracy, loss| Validation { accuracy, loss };
/// assert_eq!(progress.observe(validation(0.5, 1.0)), Verdict::Improved);
/// assert_eq!(progress.observe(validation(0.5, 0.9)), Verdict::Improved); // the tie-break
/// assert_eq!(progress.observe(validation(0.4, 0.1)), Verdict::Continue);
/// assert_eq!(progress.observe(validation(0.5, 0.9)), Verdict::Stop);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyStopping {
    /// Steps without improvement after which training ends.
    pub patience: usize,
    /// Steps in which it never ends.
    pub warm_up: usize,
}

impl EarlyStopping {
    /// Never stops.
    pub const NEVER: Self = Self { patience: usize::MAX, warm_up: 0 };

    /// Begins to watch a training.
    pub fn start(self) -> Progress {
        Progress { rule: self, step: 0, best: None }
    }
}

/// How well a network does on the validation set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Validation {
    /// Share of vertices classified rightly.
    pub accuracy: f64,
    /// Mean cross-entropy.
    pub loss: f64,
}

impl Validation {
    fn better_than(self, other: Self) -> bool {
        self.accuracy > other.accuracy || (self.accuracy == other.accuracy && self.loss < other.loss)
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

/// The course of a training, as the rule sees it.
#[derive(Clone, Debug)]
pub struct Progress {
    rule: EarlyStopping,
    step: usize,
    best: Option<(usize, Validation)>,
}

impl Progress {
    /// Takes note of the next step.
    pub fn observe(&mut self, validation: Validation) -> Verdict {
        self.step += 1;
        match self.best {
            Some((best_step, best)) if !validation.better_than(best) => {
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
        let mut progress = EarlyStopping { patience: 3, warm_up: 10 }.start();
        let mut last = 0;
        for step in 1..100 {
            let accuracy = if step == 2 { 0.9 } else { 0.5 };
            last = step;
            if progress.observe(Validation { accuracy, loss: 1.0 }) == Verdict::Stop {
                break;
            }
        }
        assert_eq!(last, 11);
        assert_eq!(progress.best().unwrap().0, 2);
    }
}
