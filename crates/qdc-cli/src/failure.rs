//! How a command fails: what happened, what to do about it, and the exit status.
//!
//! One rule for the status: 2 where the fault is in what was typed, 1 where it is in what was found (files,
//! data, the machine), 128 plus the signal's number for an interruption. A reader of our output that went
//! away is no failure.

use std::sync::{Mutex, PoisonError};

use serde_json::{Map, Value, json};

use crate::{output, remedy, signals};

/// The end of a command that did not succeed.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: Kind,
    message: String,
    hint: Option<String>,
    /// What stands beside the error in JSON.
    fields: Map<String, Value>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Files, data or the machine are at fault.
    Found,
    /// What was typed is at fault.
    Typed,
    /// A signal came.
    Interrupted,
    /// Whoever read our output has enough: success.
    ReaderGone,
}

impl Failure {
    /// Files, data or the machine are at fault.
    pub(crate) fn new(message: impl Into<String>) -> Self {
        Self { kind: Kind::Found, message: message.into(), hint: None, fields: Map::new() }
    }

    /// What was typed is at fault.
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { kind: Kind::Typed, ..Self::new(message) }
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

    /// Adds the fields of a result that is there although the command failed.
    pub(crate) fn with(mut self, result: &impl serde::Serialize) -> Self {
        if let Ok(Value::Object(fields)) = serde_json::to_value(result) {
            self.fields = fields;
        }
        self
    }

    /// What happened.
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// A signal asked for a stop.
    pub(crate) fn interrupted() -> Self {
        Self { kind: Kind::Interrupted, ..Self::new(format!("interrupted; {}", signals::left_behind())) }
    }

    /// Stdout could not be written.
    pub(crate) fn output(error: &std::io::Error) -> Self {
        if error.kind() == std::io::ErrorKind::BrokenPipe {
            return Self { kind: Kind::ReaderGone, ..Self::new("the reader of stdout went away") };
        }
        Self::new(format!("cannot write to stdout: {error}"))
            .hint("free some space, or send the output elsewhere".to_owned())
    }

    /// Prints the failure (as JSON on stdout too, where that was asked for) and gives the exit status.
    ///
    /// What cannot be printed is dropped: the status still tells.
    pub(crate) fn report(&self, json: bool) -> u8 {
        static REPORTED: Mutex<bool> = Mutex::new(false);
        let status = match self.kind {
            Kind::Found => 1,
            Kind::Typed => 2,
            Kind::Interrupted => signals::status(),
            Kind::ReaderGone => 0,
        };
        // A signal may end the process while the command itself reports the same: whoever comes second waits
        // until the first has said everything, for its return ends the process.
        let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
        if self.kind == Kind::ReaderGone || std::mem::replace(&mut *reported, true) {
            return status;
        }
        let hint = self.hint.as_deref().or(match self.kind {
            Kind::Typed => Some("qdc COMMAND --help tells what may be typed"),
            Kind::Found => Some("check the file or the place that is named"),
            Kind::Interrupted | Kind::ReaderGone => None,
        });
        output::say(&format!("error: {}", self.message));
        if let Some(hint) = hint {
            output::say(&format!("hint: {hint}"));
        }
        if json {
            let mut object = self.fields.clone();
            object.insert("error".into(), json!(self.message));
            object.insert("hint".into(), json!(hint));
            object.insert("code".into(), json!(status));
            output::write_json(&object).ok();
        }
        status
    }
}

/// Reports what clap has to say: help and version on stdout with status 0, wrong usage on stderr with 2.
pub(crate) fn report_parsing(error: &clap::Error, json: bool) -> u8 {
    if !error.use_stderr() {
        return match error.print() {
            Ok(()) => 0,
            Err(error) => Failure::output(&error).report(false),
        };
    }
    error.print().ok(); // stderr: if it cannot be written, the status still tells
    if json {
        let text = error.render().to_string();
        let mut parts = text.split("\n\n").map(str::trim);
        let message = parts.next().unwrap_or_default();
        let message = message.strip_prefix("error: ").unwrap_or(message);
        let tip = parts.find_map(|part| part.strip_prefix("tip: "));
        let hint = tip.unwrap_or("qdc --help lists the commands, qdc COMMAND --help their options");
        output::write_json(&json!({ "error": message, "hint": hint, "code": error.exit_code() })).ok();
    }
    error.exit_code() as u8
}

impl From<qdc_core::Error> for Failure {
    fn from(error: qdc_core::Error) -> Self {
        use qdc_core::Error;
        let failure = match &error {
            Error::Interrupted => return Self::interrupted(),
            // Files cannot cause these: their contents are checked, and named, where they are read.
            Error::Parameter { .. }
            | Error::RowRange { .. }
            | Error::UnknownVertex { .. }
            | Error::NoEigenpairs
            | Error::NoAccuracy => Self::usage,
            _ => Self::new,
        };
        failure(error.to_string()).hint(remedy::hint(&error))
    }
}

impl From<qdc_data::Error> for Failure {
    fn from(error: qdc_data::Error) -> Self {
        match error {
            qdc_data::Error::Core(error) => error.into(),
            qdc_data::Error::Write { source, .. } if source.kind() == std::io::ErrorKind::BrokenPipe => {
                Self::output(&source)
            }
            error => {
                let failure = if error.is_usage() { Self::usage } else { Self::new };
                failure(error.to_string()).hint(error.hint()).hint(error.core().and_then(remedy::hint))
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
        match error {
            error if error.is_interruption() => Self::interrupted(),
            qdc_lab::Error::Data(error) => error.into(),
            qdc_lab::Error::Core(error) => error.into(),
            error => {
                let failure = if error.is_usage() { Self::usage } else { Self::new };
                failure(error.to_string()).hint(error.hint()).hint(error.core().and_then(remedy::hint))
            }
        }
    }
}

impl From<qdc_plot::Error> for Failure {
    fn from(error: qdc_plot::Error) -> Self {
        Self::new(error.to_string()).hint(error.hint())
    }
}
