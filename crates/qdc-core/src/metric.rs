//! Metrics: how well predictions fit labels.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// What a network is scored by on a set of vertices; always from 0 to 1, higher is better.
///
/// ```
/// use qdc_core::Metric;
///
/// assert_eq!("auc".parse(), Ok(Metric::Auc));
/// assert_eq!(Metric::F1.to_string(), "f1");
/// assert!("recall".parse::<Metric>().is_err());
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Metric {
    /// The share of vertices whose most probable class is their label.
    #[default]
    Accuracy,
    /// Macro-F1: the mean over classes of 2 TP / (2 TP + FP + FN). Classes that neither a label nor a
    /// prediction names are left out.
    F1,
    /// ROC-AUC: the probability that a vertex of a class is given a higher score for it than a vertex of
    /// another class; equal scores count half. Of two classes, the score of class 1 decides; of more, the
    /// mean over classes of one against the rest.
    Auc,
}

impl Metric {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Accuracy, Self::F1, Self::Auc];

    /// The name users type.
    pub fn name(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::F1 => "f1",
            Self::Auc => "auc",
        }
    }

    /// The name in a title or on an axis.
    pub fn title(self) -> &'static str {
        match self {
            Self::Accuracy => "accuracy",
            Self::F1 => "macro-F1",
            Self::Auc => "ROC-AUC",
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Metric {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known = Self::ALL.into_iter().find(|metric| metric.name() == text);
        known.ok_or_else(|| format!("'{text}' is not a metric: accuracy, f1 or auc"))
    }
}
