//! `qdc completions`: tab completion for the user's shell.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::output;
use crate::session::Session;

/// Print a completion script for a shell
#[derive(Debug, Args)]
pub(crate) struct Completions {
    /// The shell, such as bash, zsh or fish
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(self, _session: &Session) -> Result<(), Failure> {
        let mut script = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "qdc", &mut script);
        output::write(&script)
    }
}
