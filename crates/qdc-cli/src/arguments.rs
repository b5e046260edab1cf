//! What the user may type: the options every command takes, and the list of commands.

use std::ffi::OsString;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};

use crate::commands::Command;
use crate::units::Bytes;

/// Quantum diffusion convolution on graphs.
///
/// Replaces the graph under a graph neural network by a better one: a sparse, normalised kernel that tells
/// how often a quantum particle starting at one vertex is seen at another, through a window on the spectrum.
#[derive(Debug, Parser)]
#[command(name = "qdc", version, propagate_version = true, arg_required_else_help = true)]
pub(crate) struct Arguments {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// Options of every command.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Common options")]
pub(crate) struct Common {
    /// Print one JSON object on stdout
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Worker threads [default: one for each core]; results do not depend on it
    #[arg(long, global = true, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) threads: Option<u16>,
    /// Memory a job may use, such as 4GB [default: three quarters of what is free]
    #[arg(long, global = true, value_name = "SIZE")]
    pub(crate) memory: Option<Bytes>,
    /// No progress, no remarks, no warnings; errors still show
    #[arg(long, short, global = true)]
    pub(crate) quiet: bool,
    /// Folder where datasets lie or are fetched to [default: the user's cache folder]
    #[arg(long, global = true, value_name = "DIR", env = "QDC_DATA")]
    pub(crate) data_dir: Option<OsString>,
    /// Folder where spectra are kept for other commands [default: the user's cache folder]
    #[arg(long, global = true, value_name = "DIR", env = "QDC_CACHE")]
    pub(crate) cache_dir: Option<OsString>,
}

/// Parses one of a few words, which help and completion then list.
pub(crate) fn words<T: std::str::FromStr<Err = String> + Clone + Send + Sync + 'static>(
    names: &'static [&'static str],
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(names).try_map(|word| word.parse::<T>())
}
