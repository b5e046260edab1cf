//! Heartbeats: a thread that says every few seconds that the trials under way are being worked on.
//!
//! It has a connection of its own, so that neither a busy search nor a slow one keeps it from beating.

use std::collections::BTreeSet;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::storage::Storage;

/// How often the thread beats: a dozen times within the grace after which a worker counts as gone.
pub(crate) const EVERY: Duration = Duration::from_secs(5);

/// The thread; it ends when this is dropped.
pub(crate) struct Heartbeat {
    trials: Arc<Mutex<BTreeSet<i64>>>,
    stop: Option<mpsc::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl Heartbeat {
    /// Beats through `storage` until dropped.
    pub(crate) fn start(mut storage: Box<dyn Storage>, every: Duration) -> Self {
        let trials = Arc::new(Mutex::new(BTreeSet::new()));
        let (stop, stopped) = mpsc::channel();
        let under_way = Arc::clone(&trials);
        let thread = thread::spawn(move || {
            while stopped.recv_timeout(every) == Err(RecvTimeoutError::Timeout) {
                let trials: Vec<i64> = lock(&under_way).iter().copied().collect();
                // The next beat makes up for one that fails; the study itself meets the same trouble and
                // reports it.
                storage.heartbeat(&trials).ok();
            }
        });
        Self { trials, stop: Some(stop), thread: Some(thread) }
    }

    /// From now on beats for this trial too.
    pub(crate) fn add(&self, trial: i64) {
        lock(&self.trials).insert(trial);
    }

    /// Beats for this trial no longer.
    pub(crate) fn remove(&self, trial: i64) {
        lock(&self.trials).remove(&trial);
    }
}

impl Drop for Heartbeat {
    fn drop(&mut self) {
        self.stop.take(); // a closed channel ends the thread
        if let Some(thread) = self.thread.take() {
            thread.join().ok();
        }
    }
}

fn lock(trials: &Mutex<BTreeSet<i64>>) -> std::sync::MutexGuard<'_, BTreeSet<i64>> {
    trials.lock().unwrap_or_else(PoisonError::into_inner)
}
