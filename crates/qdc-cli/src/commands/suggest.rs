//! `qdc suggest`: where in the spectrum to look, from the training labels alone.

use clap::Args;
use qdc_core::homophily::{Suggestion, suggest};
use serde::Serialize;

use crate::failure::Failure;
use crate::graph_arguments::DatasetArguments;
use crate::output::Show;
use crate::session::Session;

/// Suggest mu and sigma for a dataset, from its training labels alone
#[derive(Debug, Args)]
pub(crate) struct Suggest {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// The split whose training labels are used
    #[arg(long, value_name = "I", default_value_t = 0)]
    split_number: usize,
}

#[derive(Serialize)]
struct Suggested<'a> {
    dataset: &'a str,
    split: usize,
    #[serde(flatten)]
    suggestion: Suggestion,
}

impl Show for Suggested<'_> {
    fn text(&self) -> String {
        let Suggestion { mu, sigma, reason, windows, .. } = &self.suggestion;
        let mut text =
            format!("mu {mu:.2} sigma {sigma:.2}\nbecause {reason}\n\n    mu  sigma  agreement  homophily\n");
        for window in windows {
            text += &format!(
                "{:6.2} {:6.2}  {:9.3}  {:.3} +- {:.3}\n",
                window.mu, window.sigma, window.agreement, window.homophily, window.spread
            );
        }
        text
    }
}

impl Suggest {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let dataset = self.dataset.load(session)?;
        let Some(split) = dataset.splits.get(self.split_number) else {
            return Err(Failure::usage(format!(
                "there is no split {}: {} has {}, counted from 0",
                self.split_number,
                dataset.name,
                dataset.splits.len()
            )));
        };
        let mut training = vec![None; dataset.graph.nodes()];
        for &vertex in split.train() {
            training[vertex as usize] = Some(dataset.labels[vertex as usize]);
        }
        let suggestion = suggest(&dataset.graph, &training, self.dataset.seed(), &session.watch)?;
        session.show(&Suggested { dataset: &dataset.name, split: self.split_number, suggestion })
    }
}
