//! The commands, one file each.

mod cache;
mod completions;
mod data;
mod demo;
mod homophily;
mod kernel;
mod merge;
mod predict;
mod space;
mod spectrum;
mod table;
mod train;
mod tune;

use clap::Subcommand;

use crate::failure::Failure;
use crate::session::Session;

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(demo::Demo),
    Data(data::Data),
    Kernel(kernel::Kernel),
    Merge(merge::Merge),
    Spectrum(spectrum::SpectrumCommand),
    Homophily(homophily::Homophily),
    Cache(cache::Cache),
    Train(train::Train),
    Predict(predict::Predict),
    Space(space::Space),
    Table(table::Table),
    Tune(tune::Tune),
    Completions(completions::Completions),
}

/// Runs one command.
pub(crate) fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Demo(command) => command.run(session),
        Command::Kernel(command) => command.run(session),
        Command::Merge(command) => command.run(session),
        Command::Spectrum(command) => command.run(session),
        Command::Data(command) => command.run(session),
        Command::Homophily(command) => command.run(session),
        Command::Cache(command) => command.run(session),
        Command::Train(command) => command.run(session),
        Command::Predict(command) => command.run(session),
        Command::Space(command) => command.run(session),
        Command::Table(command) => command.run(session),
        Command::Tune(command) => command.run(session),
        Command::Completions(command) => command.run(session),
    }
}
