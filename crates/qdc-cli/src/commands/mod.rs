//! The commands, one file each.

mod completions;

use clap::Subcommand;

use crate::failure::Failure;
use crate::session::Session;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Completions(completions::Completions),
}

/// Runs one command.
pub(crate) fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Completions(command) => command.run(session),
    }
}
