//! Trials that a Python function runs in other processes.

use std::collections::BTreeMap;
use std::fmt;

use pyo3::prelude::*;
use qdc_core::Watch;
use qdc_lab::Error;
use qdc_lab::tune::{TrialRecord, Workers};
use serde_json::Value;

use crate::filter::Raised;

/// A function of (point, stopped) that gives the record of the trial at the point, both as JSON, or None once
/// `stopped()` is true. It is called from the thread of each trial.
pub(crate) struct Elsewhere {
    pub(crate) train: Py<PyAny>,
    /// The first exception it raised, which ends the search.
    pub(crate) raised: Raised,
}

impl fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl Workers for Elsewhere {
    fn run(&self, point: &BTreeMap<String, Value>, watch: &Watch) -> Result<TrialRecord, Error> {
        let unreadable = |error: serde_json::Error| Error::LostWorker { problem: error.to_string() };
        let point = serde_json::to_string(point).map_err(unreadable)?;
        let given = Python::attach(|py| {
            let given = self.train.call1(py, (point, Stopped(watch.clone())));
            given.and_then(|given| given.extract::<Option<String>>(py)).map_err(|error| {
                let problem = error.to_string();
                self.raised.lock().expect("nothing panics while it is held").get_or_insert(error);
                Error::LostWorker { problem }
            })
        })?;
        match given {
            Some(record) => serde_json::from_str(&record).map_err(unreadable),
            None => Err(qdc_core::Error::Interrupted.into()),
        }
    }
}

/// Whether a trial is to stop.
#[pyclass(frozen, module = "qdc._core")]
struct Stopped(Watch);

#[pymethods]
impl Stopped {
    fn __call__(&self) -> bool {
        self.0.stop_requested()
    }
}
