//! How a command fails: what happened, what to do about it, and the exit status.

use crate::remedy;

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Input, data or environment at fault: exit status 1.
    Environment,
    /// The command was used wrongly: exit status 2.
    Usage,
    /// Ctrl-C: exit status 130, as shells expect.
    Interrupted,
    /// Whoever read our output has enough: success.
    BrokenPipe,
}

impl Failure {
    /// Input, data or environment is at fault.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { kind: Kind::Environment, message: message.into(), hint: None }
    }

    /// The command was used wrongly.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Usage, ..Self::new(message) }
    }

    /// Adds what the user can do.
    pub(crate) fn hint(mut self, hint: impl Into<Option<String>>) -> Self {
        self.hint = hint.into().or(self.hint);
        self
    }

    /// Adds one more thing the user can do or know.
    pub(crate) fn and_hint(mut self, more: &str) -> Self {
        self.hint = Some(self.hint.map_or_else(|| more.to_owned(), |hint| format!("{hint}; {more}")));
        self
    }

    /// What happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Ctrl-C.
    pub(crate) fn interrupted() -> Self {
        Self { kind: Kind::Interrupted, ..Self::new("interrupted; nothing was written") }
    }

    /// Output could not be written.
    pub(crate) fn output(error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            Self { kind: Kind::BrokenPipe, ..Self::new("broken pipe") }
        } else {
            Self::new(format!("cannot write to stdout: {error}"))
        }
    }

    /// Prints the failure (as JSON on stdout too, where that was asked for) and gives the exit status.
    pub(crate) fn report(&self, json: bool) -> u8 {
        if self.kind == Kind::BrokenPipe {
            return 0;
        }
        eprintln!("error: {}", self.message);
        if let Some(hint) = &self.hint {
            eprintln!("hint: {hint}");
        }
        if json {
            println!("{}", serde_json::json!({ "error": self.message, "hint": self.hint }));
        }
        match self.kind {
            Kind::Environment | Kind::BrokenPipe => 1,
            Kind::Usage => 2,
            Kind::Interrupted => 130,
        }
    }
}

impl From<qdc_core::Error> for Failure {
    fn from(error: qdc_core::Error) -> Self {
        match error {
            qdc_core::Error::Interrupted => Self::interrupted(),
            error => Self::new(error.to_string()).hint(remedy::hint(&error)),
        }
    }
}

impl From<qdc_data::Error> for Failure {
    fn from(error: qdc_data::Error) -> Self {
        match error {
            qdc_data::Error::Core(error) => error.into(),
            error => {
                Self::new(error.to_string()).hint(error.hint()).hint(error.core().and_then(remedy::hint))
            }
        }
    }
}

impl From<qdc_cuda::Error> for Failure {
    fn from(error: qdc_cuda::Error) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<qdc_tune::Error> for Failure {
    fn from(error: qdc_tune::Error) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}

impl From<qdc_lab::Error> for Failure {
    fn from(error: qdc_lab::Error) -> Self {
        if error.is_interruption() {
            return Self::interrupted();
        }
        let failure = if error.is_usage() { Self::usage } else { Self::new };
        failure(error.to_string()).hint(error.hint()).hint(error.core().and_then(remedy::hint))
    }
}

impl From<qdc_plot::Error> for Failure {
    fn from(error: qdc_plot::Error) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}
