//! The watch of Python: signals, progress and threads for one long call.
//!
//! Only the thread that called us may run Python's signal handlers, so the work goes to a thread of its own with
//! the interpreter released, and the caller wakes up a few times a second to look for Ctrl-C and to report.

use std::collections::BTreeMap;
use std::ffi::CString;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use pyo3::exceptions::PyRuntimeWarning;
use pyo3::prelude::*;
use qdc_core::Watch;
use qdc_core::watch::{Observer, PhaseId};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::errors::{Problem, parameter_error};

/// How often the caller looks up.
const POLL: Duration = Duration::from_millis(50);
/// How long an interrupted call waits for its work to notice; after that the work is left to end by itself.
const PATIENCE: Duration = Duration::from_millis(300);

/// Threads of a call that names none; 0 means one for each core.
static DEFAULT_THREADS: AtomicUsize = AtomicUsize::new(0);

/// Sets how many threads a call uses that names none; `None` goes back to one for each core.
#[pyfunction]
#[pyo3(signature = (threads=None))]
pub(crate) fn set_threads(py: Python<'_>, threads: Option<isize>) -> PyResult<()> {
    DEFAULT_THREADS.store(checked_threads(py, threads)?.unwrap_or(0), Ordering::Relaxed);
    Ok(())
}

fn checked_threads(py: Python<'_>, threads: Option<isize>) -> PyResult<Option<usize>> {
    match threads {
        Some(count) if count < 1 => {
            Err(parameter_error(py, format!("threads = {count} is out of range: at least 1")))
        }
        Some(count) => {
            let (threads, warning) = qdc_core::sane_threads(count as usize);
            if let Some(warning) = warning {
                let warning = CString::new(warning).expect("digits and letters");
                PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &warning, 1)?;
            }
            Ok(Some(threads))
        }
        None => Ok(None),
    }
}

/// The keywords every long function takes.
#[derive(FromPyObject)]
pub(crate) struct Call {
    #[pyo3(item)]
    threads: Option<isize>,
    #[pyo3(item)]
    progress: Option<Py<PyAny>>,
}

impl Call {
    /// Runs `work` in a pool of its own, so that a forked child never waits for threads it does not have.
    pub(crate) fn run<T, E>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&Watch) -> Result<T, E> + Send + 'static,
    ) -> PyResult<T>
    where
        T: Send + 'static,
        E: Into<Problem> + Send,
    {
        self.run_beside(py, |pool, watch| pool.install(|| work(watch)))
    }

    /// Runs `work` beside a pool of its own, for work that waits for what it hands to the pool.
    pub(crate) fn run_beside<T, E>(
        self,
        py: Python<'_>,
        work: impl FnOnce(&ThreadPool, &Watch) -> Result<T, E> + Send + 'static,
    ) -> PyResult<T>
    where
        T: Send + 'static,
        E: Into<Problem>,
    {
        let threads = checked_threads(py, self.threads)?;
        let threads = threads.unwrap_or_else(|| DEFAULT_THREADS.load(Ordering::Relaxed));
        let shared = Arc::new(Shared { counting: self.progress.is_some(), ..Shared::default() });
        let (sender, receiver) = mpsc::channel();
        let watch = Watch::new(Bridge(Arc::clone(&shared)));
        let worker = thread::spawn(move || {
            let outcome = match ThreadPoolBuilder::new().num_threads(threads).build() {
                Ok(pool) => work(&pool, &watch).map_err(Into::into),
                Err(error) => Err(Problem::Threads(error.to_string())),
            };
            let _ = sender.send(outcome); // nobody listens any more if the call was abandoned
        });
        let (progress, looking) = (self.progress.as_ref(), Arc::clone(&shared));
        // Owns its end of the channel, which may not be shared.
        let wait = move || {
            let mut interruption: Option<(PyErr, Instant)> = None;
            let outcome = loop {
                match receiver.recv_timeout(POLL) {
                    Ok(outcome) => break Some(outcome),
                    Err(RecvTimeoutError::Disconnected) => match worker.join() {
                        Err(panic) => std::panic::resume_unwind(panic),
                        Ok(()) => unreachable!("the worker sends before it ends"),
                    },
                    Err(RecvTimeoutError::Timeout) => match &interruption {
                        Some((_, since)) if since.elapsed() > PATIENCE => break None,
                        Some(_) => {}
                        None => {
                            let looked = Python::attach(|py| {
                                py.check_signals()?;
                                looking.report(py, progress)
                            });
                            if let Err(error) = looked {
                                looking.stop.store(true, Ordering::Relaxed);
                                interruption = Some((error, Instant::now()));
                            }
                        }
                    },
                }
            };
            (outcome, interruption.map(|(error, _)| error))
        };
        match py.detach(wait) {
            (_, Some(error)) => Err(error),
            (Some(outcome), None) => {
                let value = outcome.map_err(|problem| problem.raise(py))?;
                shared.report(py, progress)?;
                Ok(value)
            }
            (None, None) => unreachable!("only an interrupted call is abandoned"),
        }
    }
}

/// What the worker threads write and the caller reads.
#[derive(Default)]
struct Shared {
    stop: AtomicBool,
    counting: bool,
    phases: Mutex<BTreeMap<PhaseId, Count>>,
}

struct Count {
    name: String,
    done: u64,
    total: u64,
    told: Option<u64>,
    over: bool,
}

impl Shared {
    fn with_phases(&self, change: impl FnOnce(&mut BTreeMap<PhaseId, Count>)) {
        if self.counting {
            change(&mut self.phases.lock().expect("nothing panics while it is held"));
        }
    }

    /// Tells `progress` what has changed since the last time.
    fn report(&self, py: Python<'_>, progress: Option<&Py<PyAny>>) -> PyResult<()> {
        let Some(progress) = progress else { return Ok(()) };
        let mut news = Vec::new();
        self.with_phases(|phases| {
            for count in phases.values_mut().filter(|count| count.told != Some(count.done)) {
                count.told = Some(count.done);
                news.push((count.name.clone(), count.done, count.total));
            }
            phases.retain(|_, count| !count.over);
        });
        for event in news {
            progress.call1(py, event)?;
        }
        Ok(())
    }
}

/// The observer handed to the core.
struct Bridge(Arc<Shared>);

impl Observer for Bridge {
    fn begin(&self, phase: PhaseId, name: &str, total: u64) {
        let count = Count { name: name.to_owned(), done: 0, total, told: None, over: false };
        self.0.with_phases(|phases| {
            phases.insert(phase, count);
        });
    }

    fn advance(&self, phase: PhaseId, steps: u64) {
        self.0.with_phases(|phases| {
            if let Some(count) = phases.get_mut(&phase) {
                count.done += steps;
            }
        });
    }

    fn end(&self, phase: PhaseId) {
        self.0.with_phases(|phases| {
            if let Some(count) = phases.get_mut(&phase) {
                count.over = true;
            }
        });
    }

    fn stop_requested(&self) -> bool {
        self.0.stop.load(Ordering::Relaxed)
    }
}
