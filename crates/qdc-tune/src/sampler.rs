//! Who proposes the next point.
//!
//! A suggestion is a function of the space, the finished trials a sampler may look at, the trials under way,
//! and two random streams; nothing else is remembered but caches. [`crate::Study`] gives every trial streams
//! of its own, from the study's seed and the trial's number, so that results do not depend on who asks when.

mod gaussians;
mod history;
mod normal;
mod parzen;
mod random;
mod tpe;

use serde::{Deserialize, Serialize};

use crate::random_state::mix;
use crate::{RandomState, Space};

pub use history::History;

/// How points are proposed.
///
/// Cost of a suggestion after n trials: O(24 n) per parameter for both kinds of TPE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Sampler {
    /// At random.
    Random,
    /// TPE, one parameter at a time: Optuna 3.6's default, and the published setting.
    #[default]
    Tpe,
    /// TPE over all parameters jointly, trials under way counted as bad: Optuna 5's default.
    TpeMultivariate,
}

impl Sampler {
    /// Drawing at random.
    pub fn random() -> Self {
        Self::Random
    }

    /// TPE as Optuna 3.6 does it.
    pub fn tpe() -> Self {
        Self::Tpe
    }

    /// TPE as Optuna 5 does it.
    pub fn tpe_multivariate() -> Self {
        Self::TpeMultivariate
    }

    /// The next point, as internal values in the order of the space. `running` are the points under way.
    pub fn suggest(
        self,
        space: &Space,
        history: &mut History,
        running: &[Vec<f64>],
        streams: &mut Streams,
    ) -> Vec<f64> {
        match self {
            Self::Random => random::suggest(space, streams),
            Self::Tpe => tpe::independent(space, history, streams),
            Self::TpeMultivariate => tpe::joint(space, history, running, streams),
        }
    }
}

/// The two random streams of a sampler: one for random draws, one for the estimator.
#[derive(Debug, Clone)]
pub struct Streams {
    /// Draws made without an estimator.
    pub startup: RandomState,
    /// Draws made with one.
    pub main: RandomState,
}

impl Streams {
    /// Both streams from one seed, as Optuna's `TPESampler(seed=...)`.
    pub fn new(seed: u32) -> Self {
        Self { startup: RandomState::new(seed), main: RandomState::new(seed) }
    }

    /// The streams of one trial of a study.
    pub fn of_trial(seed: u64, number: u64) -> Self {
        Self::new(mix(seed, number))
    }
}
