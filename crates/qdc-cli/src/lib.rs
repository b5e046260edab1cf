//! `qdc`: quantum diffusion convolution on graphs, from the command line.
//!
//! Arguments are parsed here, resolved into a `Session`, and handed to one command. Data goes to stdout or a
//! file, talk goes to stderr; the exit status is 0 for success, 2 where the fault is in what was typed, 1
//! where it is in what was found, 128 plus the number of the signal that ended it.

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
mod signals;
mod training_arguments;
mod units;
mod window_arguments;

use std::ffi::OsString;

use clap::Parser;

use arguments::Arguments;

/// Runs the command line `arguments`, the program's name first, and gives the exit status.
///
/// A library function so that the Python package carries the same command line. Once per process: it sizes the
/// global thread pool and listens for signals.
pub fn run(arguments: impl IntoIterator<Item = OsString>) -> u8 {
    let typed: Vec<OsString> = arguments.into_iter().collect();
    let arguments = match Arguments::try_parse_from(&typed) {
        Ok(arguments) => arguments,
        Err(error) => {
            // What was typed cannot be read as a whole; the wish for JSON still can.
            let json = typed.iter().take_while(|word| *word != "--").any(|word| word == "--json");
            return failure::report_parsing(&error, json);
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
