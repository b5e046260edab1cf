//! The command line, carried by the package.

use std::ffi::OsString;

use pyo3::prelude::*;

/// Runs `qdc` with these arguments, the program's name first, and gives the exit status. Once per process.
#[pyfunction]
pub(crate) fn command_line(py: Python<'_>, arguments: Vec<OsString>) -> u8 {
    py.detach(|| qdc_cli::run(arguments))
}
