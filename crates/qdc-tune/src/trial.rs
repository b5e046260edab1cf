//! Trials: points tried, and what came of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::Distribution;

/// Which values are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Direction {
    /// Small ones.
    Minimize,
    /// Large ones.
    Maximize,
}

impl Direction {
    /// A number that is larger the better the value is.
    pub fn goodness(self, value: f64) -> f64 {
        match self {
            Self::Minimize => -value,
            Self::Maximize => value,
        }
    }
}

/// Where a trial stands. The numbers are Optuna's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Being evaluated.
    Running = 0,
    /// Evaluated.
    Complete = 1,
    /// Given up early because it looked hopeless.
    Pruned = 2,
    /// Could not be evaluated.
    Failed = 3,
    /// Queued: parameters are known, nobody works on it yet.
    Waiting = 4,
}

impl State {
    /// Whether nothing more will come.
    pub fn is_finished(self) -> bool {
        matches!(self, Self::Complete | Self::Pruned | Self::Failed)
    }

    /// Optuna's word for it.
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Running => "RUNNING",
            Self::Complete => "COMPLETE",
            Self::Pruned => "PRUNED",
            Self::Failed => "FAIL",
            Self::Waiting => "WAITING",
        }
    }

    pub(crate) fn from_word(word: &str) -> Option<Self> {
        [Self::Running, Self::Complete, Self::Pruned, Self::Failed, Self::Waiting]
            .into_iter()
            .find(|state| state.word() == word)
    }

    pub(crate) fn from_number(number: u64) -> Option<Self> {
        [Self::Running, Self::Complete, Self::Pruned, Self::Failed, Self::Waiting]
            .get(number as usize)
            .copied()
    }
}

/// A trial as it is stored.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// The database's key; `number` counts within the study.
    pub id: i64,
    /// 0, 1, 2, ... within the study.
    pub number: u64,
    /// Where it stands.
    pub state: State,
    /// The value, once complete.
    pub value: Option<f64>,
    /// Names, distributions and internal values.
    pub parameters: BTreeMap<String, (Distribution, f64)>,
    /// What was reported along the way, by step.
    pub intermediate: BTreeMap<i64, f64>,
    /// What the user attached.
    pub user_attributes: BTreeMap<String, Value>,
    /// What the machinery attached.
    pub system_attributes: BTreeMap<String, Value>,
    /// When it began and ended, in the database's words (UTC).
    pub times: (Option<String>, Option<String>),
}

impl Trial {
    /// A parameter as users see it.
    pub fn parameter(&self, name: &str) -> Option<Value> {
        self.parameters.get(name).map(|(distribution, internal)| distribution.external(*internal))
    }

    /// All parameters as users see them.
    pub fn parameters(&self) -> BTreeMap<String, Value> {
        self.parameters
            .iter()
            .map(|(name, (distribution, internal))| (name.clone(), distribution.external(*internal)))
            .collect()
    }
}
