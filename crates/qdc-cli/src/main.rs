//! `qdc`: quantum diffusion convolution on graphs, from the command line.
//!
//! Arguments are parsed here, resolved into a [`session::Session`], and handed to one command. Data goes to stdout
//! or a file, talk goes to stderr; the exit status is 0 for success, 1 when input, data or environment is at
//! fault, 2 for wrong usage.

#![allow(clippy::print_stdout, clippy::print_stderr)] // the one crate that prints

mod arguments;
mod commands;
mod failure;
mod output;
mod progress;
mod session;
mod units;

use std::process::ExitCode;

use clap::Parser;

use arguments::Arguments;

fn main() -> ExitCode {
    let arguments = Arguments::parse(); // exits with 2 on wrong usage
    let json = arguments.common.json;
    let outcome = session::Session::start(&arguments.common)
        .and_then(|session| commands::run(arguments.command, &session));
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(json),
    }
}
