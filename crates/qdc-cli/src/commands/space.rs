//! `qdc space`: what a search would search.

use clap::{Args, Subcommand};
use qdc_lab::Model;
use qdc_lab::tune::SearchSpace;
use serde::Serialize;

use crate::failure::Failure;
use crate::model_argument::model;
use crate::output::Show;
use crate::session::Session;

/// Show search spaces
#[derive(Debug, Args)]
pub(crate) struct Space {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// Print the parameters of a space and their ranges
    Show {
        /// paper, wide, or a TOML file
        #[arg(value_name = "SPACE")]
        space: String,
        /// The model [default: all of them]
        #[arg(long, value_name = "MODEL", value_parser = model)]
        model: Option<Model>,
    },
}

impl Space {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let Action::Show { space, model } = self.action;
        let models = model.map_or_else(Model::all, |model| vec![model]);
        let spaces =
            models.into_iter().map(|model| SearchSpace::named(&space, model)).collect::<Result<_, _>>()?;
        session.show(&Spaces { spaces })
    }
}

#[derive(Serialize)]
struct Spaces {
    spaces: Vec<SearchSpace>,
}

impl Show for Spaces {
    fn text(&self) -> String {
        self.spaces.iter().map(SearchSpace::text).collect::<Vec<String>>().join("\n")
    }
}
