//! The commands, one file each.

mod cache;
mod completions;
mod data;
mod demo;
mod devices;
mod dynamics;
mod figure;
mod homophily;
mod kernel;
mod merge;
mod predict;
mod report;
mod sdrf;
mod space;
mod spectrum;
mod story;
mod stream;
mod studies;
mod study;
mod suggest;
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
    Sdrf(sdrf::SdrfCommand),
    Spectrum(spectrum::SpectrumCommand),
    Homophily(homophily::Homophily),
    Suggest(suggest::Suggest),
    Dynamics(dynamics::DynamicsCommand),
    Train(train::Train),
    Predict(predict::Predict),
    Tune(tune::Tune),
    Space(space::Space),
    Study(study::StudyCommand),
    Table(table::Table),
    Figure(figure::FigureCommand),
    Report(report::ReportCommand),
    Cache(cache::Cache),
    Devices(devices::Devices),
    Completions(completions::Completions),
}

/// Runs one command.
pub(crate) fn run(command: Command, session: &Session) -> Result<(), Failure> {
    match command {
        Command::Demo(command) => command.run(session),
        Command::Data(command) => command.run(session),
        Command::Kernel(command) => command.run(session),
        Command::Merge(command) => command.run(session),
        Command::Sdrf(command) => command.run(session),
        Command::Spectrum(command) => command.run(session),
        Command::Homophily(command) => command.run(session),
        Command::Suggest(command) => command.run(session),
        Command::Dynamics(command) => command.run(session),
        Command::Train(command) => command.run(session),
        Command::Predict(command) => command.run(session),
        Command::Tune(command) => command.run(session),
        Command::Space(command) => command.run(session),
        Command::Study(command) => command.run(session),
        Command::Table(command) => command.run(session),
        Command::Figure(command) => command.run(session),
        Command::Report(command) => command.run(session),
        Command::Cache(command) => command.run(session),
        Command::Devices(command) => command.run(session),
        Command::Completions(command) => command.run(session),
    }
}
