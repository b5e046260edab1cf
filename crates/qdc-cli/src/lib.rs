//! `qdc`: quantum diffusion convolution on graphs, from the command line.
//!
//! Arguments are parsed here, resolved into a `Session`, and handed to one command. Data goes to stdout
//! or a file, talk goes to stderr; the exit status is 0 for success, 1 when input, data or environment is at
//! fault, 2 for wrong usage.

#![allow(clippy::print_stdout, clippy::print_stderr)] // the one crate that prints

mod arguments;
mod commands;
mod device_argument;
mod failure;
mod graph_arguments;
mod kernel_arguments;
mod model_argument;
mod output;
mod progress;
mod remedy;
mod session;
mod training_arguments;
mod units;
mod window_arguments;

use std::ffi::OsString;

use clap::Parser;

use arguments::Arguments;

/// Runs the command line `arguments`, the program's name first, and gives the exit status.
///
/// A library function so that the Python package carries the same command line. Once per process: it sizes the
/// global thread pool and listens for Ctrl-C.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let arguments = match Arguments::try_parse_from(arguments) {
        Ok(arguments) => arguments,
        Err(error) => {
            // Help and version come this way too: to stdout, with status 0; wrong usage goes to stderr, with 2.
            return if error.print().is_ok() { error.exit_code() as u8 } else { 0 };
        }
    };
    let json = arguments.common.json;
    let outcome = session::Session::start(&arguments.common)
        .and_then(|session| commands::run(arguments.command, &session));
    match outcome {
        Ok(()) => 0,
        Err(failure) => failure.report(json),
    }
}
