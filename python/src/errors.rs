//! Errors of the crates as exceptions of `qdc.errors`, one class per family, the hint in the message.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::remedy;
use crate::spectrum::Spectrum;

/// Anything a crate can report.
pub(crate) enum Problem {
    Core(qdc_core::Error),
    Data(qdc_data::Error),
    Lab(qdc_lab::Error),
    /// A solver failed on this graph; what it has may be worth keeping.
    Eigenpairs {
        error: qdc_core::Error,
        graph: Arc<qdc_core::Graph>,
        self_loop: f64,
    },
    /// A Python function we were handed raised.
    Raised(PyErr),
    /// The thread pool could not start.
    Threads(String),
}

impl From<qdc_core::Error> for Problem {
    fn from(error: qdc_core::Error) -> Self {
        Self::Core(error)
    }
}

impl From<qdc_data::Error> for Problem {
    fn from(error: qdc_data::Error) -> Self {
        match error {
            qdc_data::Error::Core(error) => Self::Core(error),
            error => Self::Data(error),
        }
    }
}

impl From<qdc_lab::Error> for Problem {
    fn from(error: qdc_lab::Error) -> Self {
        match error {
            qdc_lab::Error::Core(error) => Self::Core(error),
            qdc_lab::Error::Data(error) => error.into(),
            error => Self::Lab(error),
        }
    }
}

impl Problem {
    /// The exception to raise.
    pub(crate) fn raise(self, py: Python<'_>) -> PyErr {
        match self {
            Self::Core(error) => core_error(py, &error),
            Self::Data(error) => exception(py, "DataError", error.to_string(), remedy::data_hint(&error)),
            Self::Lab(error) if error.is_interruption() => core_error(py, &qdc_core::Error::Interrupted),
            Self::Lab(error) => {
                let over = matches!(error, qdc_lab::Error::OverMemory { .. });
                let family = if over { "MemoryLimitError" } else { "ParameterError" };
                exception(py, family, error.to_string(), remedy::lab_hint(&error))
            }
            Self::Eigenpairs { error, graph, self_loop } => {
                let raised = core_error(py, &error);
                let qdc_core::Error::Unconverged { partial, .. } = error else { return raised };
                let partial = Spectrum { spectrum: Arc::new(*partial), graph, self_loop };
                let attach = || -> PyResult<()> {
                    let class = py.import("qdc._spectrum")?.getattr("Spectrum")?;
                    raised.value(py).setattr("partial", class.call_method1("_of", (partial,))?)
                };
                attach().err().unwrap_or(raised)
            }
            Self::Raised(error) => error,
            Self::Threads(message) => exception(py, "QdcError", message, None),
        }
    }
}

fn core_error(py: Python<'_>, error: &qdc_core::Error) -> PyErr {
    use qdc_core::Error;
    let family = match error {
        Error::EmptyGraph
        | Error::VertexOutOfRange { .. }
        | Error::BadWeight { .. }
        | Error::Asymmetric { .. }
        | Error::ConflictingWeights { .. }
        | Error::TooManyVertices { .. }
        | Error::MalformedMatrix { .. } => "GraphError",
        Error::SplitVertexOutOfRange { .. } | Error::OverlappingSplit { .. } => "DataError",
        Error::Memory { .. } | Error::KernelMemory { .. } => "MemoryLimitError",
        Error::Unconverged { .. } | Error::Eigendecomposition { .. } => "ConvergenceError",
        Error::Interrupted => return pyo3::exceptions::PyKeyboardInterrupt::new_err("interrupted"),
        _ => "ParameterError", // a length, a range or a choice that does not fit
    };
    exception(py, family, error.to_string(), remedy::hint(error))
}

/// A parameter out of its range.
pub(crate) fn parameter_error(py: Python<'_>, message: String) -> PyErr {
    exception(py, "ParameterError", message, None)
}

/// Something that cannot be a graph.
pub(crate) fn graph_error(py: Python<'_>, message: String, hint: &str) -> PyErr {
    exception(py, "GraphError", message, Some(hint.to_owned()))
}

/// `qdc.errors.FAMILY(message, hint)`.
fn exception(py: Python<'_>, family: &str, message: String, hint: Option<String>) -> PyErr {
    let build = || -> PyResult<PyErr> {
        let class = py.import("qdc.errors")?.getattr(family)?;
        Ok(PyErr::from_value(class.call1((message, hint))?))
    };
    build().unwrap_or_else(|error| error)
}
