//! A watch: progress out, "should I stop?" in.
//!
//! Every long function takes a [`Watch`]. The same code then serves a progress bar, Ctrl-C in a terminal,
//! Python's signals and a silent test, and knows nothing of any of them.

use std::sync::Arc;

use crate::{Error, Remedy};

/// Who looks on: shows progress, and may ask for a stop.
///
/// Methods are called from worker threads. Phases may be nested or run side by side; `phase` tells them
/// apart.
pub trait Observer: Send + Sync {
    /// A phase of `total` steps begins.
    fn begin(&self, phase: PhaseId, name: &str, total: u64);
    /// `steps` more steps of a phase are done.
    fn advance(&self, phase: PhaseId, steps: u64);
    /// A phase is over, finished or not.
    fn end(&self, phase: PhaseId);
    /// Something worth a line, such as why a solver was picked.
    fn note(&self, _message: &str) {}
    /// A remark with what can be done about it, which each front end words; by default only the remark.
    fn advise(&self, message: &str, _remedy: Remedy) {
        self.note(message);
    }
    /// Whether the work should be abandoned; asked often, so it must be cheap.
    fn stop_requested(&self) -> bool;
}

/// Identifies one phase of work to its [`Observer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhaseId(u64);

/// Handed to every long function: reports progress and says whether to go on.
///
/// ```
/// use qdc_core::Watch;
///
/// fn long_work(watch: &Watch) -> Result<u64, qdc_core::Error> {
///     let phase = watch.phase("summing", 10);
///     let mut sum = 0;
///     for i in 0..10 {
///         sum += i;
///         phase.advance(1)?; // Err(Interrupted) once a stop was requested
///     }
///     Ok(sum)
/// }
/// assert_eq!(long_work(&Watch::silent()).unwrap(), 45);
/// ```
#[derive(Clone, Default)]
pub struct Watch {
    observer: Option<Arc<dyn Observer>>,
}

impl Watch {
    /// Shows nothing and never stops.
    pub fn silent() -> Self {
        Self::default()
    }

    /// Reports to `observer` and stops when it asks.
    pub fn new(observer: impl Observer + 'static) -> Self {
        Self { observer: Some(Arc::new(observer)) }
    }

    /// Begins a phase of `total` steps; it ends when the returned guard is dropped.
    pub fn phase(&self, name: &str, total: u64) -> Phase<'_> {
        use std::sync::atomic::{AtomicU64, Ordering};
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let id = PhaseId(NEXT.fetch_add(1, Ordering::Relaxed));
        if let Some(observer) = &self.observer {
            observer.begin(id, name, total);
        }
        Phase { watch: self, id }
    }

    /// Passes a remark on to whoever looks on.
    pub fn note(&self, message: &str) {
        if let Some(observer) = &self.observer {
            observer.note(message);
        }
    }

    /// Passes a remark on with what can be done about it.
    pub fn advise(&self, message: &str, remedy: Remedy) {
        if let Some(observer) = &self.observer {
            observer.advise(message, remedy);
        }
    }

    /// `Err(Error::Interrupted)` once a stop was requested.
    ///
    /// # Errors
    /// [`Error::Interrupted`].
    pub fn check(&self) -> Result<(), Error> {
        if self.stop_requested() { Err(Error::Interrupted) } else { Ok(()) }
    }

    /// Whether a stop was requested.
    pub fn stop_requested(&self) -> bool {
        self.observer.as_ref().is_some_and(|observer| observer.stop_requested())
    }
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.observer.is_some() { "Watch(observed)" } else { "Watch(silent)" })
    }
}

/// A phase of work in progress, from [`Watch::phase`].
#[derive(Debug)]
pub struct Phase<'a> {
    watch: &'a Watch,
    id: PhaseId,
}

impl Phase<'_> {
    /// Records `steps` done, and says whether to go on.
    ///
    /// # Errors
    /// [`Error::Interrupted`] once a stop was requested.
    pub fn advance(&self, steps: u64) -> Result<(), Error> {
        if let Some(observer) = &self.watch.observer {
            observer.advance(self.id, steps);
        }
        self.watch.check()
    }
}

impl Drop for Phase<'_> {
    fn drop(&mut self) {
        if let Some(observer) = &self.watch.observer {
            observer.end(self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicU64, Ordering};

    struct StopAfter {
        limit: u64,
        done: AtomicU64,
    }

    impl Observer for StopAfter {
        fn begin(&self, _: PhaseId, _: &str, _: u64) {}
        fn advance(&self, _: PhaseId, steps: u64) {
            self.done.fetch_add(steps, Ordering::Relaxed);
        }
        fn end(&self, _: PhaseId) {}
        fn stop_requested(&self) -> bool {
            self.done.load(Ordering::Relaxed) >= self.limit
        }
    }

    #[test]
    fn a_requested_stop_surfaces_as_interrupted() {
        let watch = Watch::new(StopAfter { limit: 3, done: AtomicU64::new(0) });
        let phase = watch.phase("test", 10);
        assert!(phase.advance(1).is_ok());
        assert!(phase.advance(1).is_ok());
        assert!(matches!(phase.advance(1), Err(Error::Interrupted)));
    }
}
