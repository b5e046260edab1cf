//! The commands, one file each.

mod completions;
mod homophily;

use clap::Subcommand;

use crate::failure::Failure;
use crate::session::Session;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Homophily(homophily::Homophily),
    Completions(completions::Completions),
}

/// Runs one command.
pub(crate) fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Homophily(command) => command.run(session),
        Command::Completions(command) => command.run(session),
    }
}
