//! SIGINT, SIGTERM and SIGHUP: the first one asks the work to stop, and the process ends within a second of it.
//!
//! Work looks at the stop flag between its steps and ends by itself, with its own words. Where a step takes
//! longer (a factorisation, a stalled read), or a second signal comes, the process ends here: temporary files
//! are removed first, and the exit status is 128 plus the signal's number either way.

use std::sync::atomic::{AtomicBool, AtomicI32, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::failure::Failure;

/// How long work may take to notice that it should stop.
const GRACE: Duration = Duration::from_millis(800);

/// SIGINT, whose number is the same everywhere.
const INTERRUPT: i32 = 2;

/// How often the count of signals is looked at.
const LOOK: Duration = Duration::from_millis(20);

/// The first signal that came, 0 for none.
static RECEIVED: AtomicI32 = AtomicI32::new(0);
/// How many came.
static COUNT: AtomicUsize = AtomicUsize::new(0);
static SAVED: Mutex<Option<String>> = Mutex::new(None);

/// The exit status after an interruption: 130 for Ctrl-C, 143 for SIGTERM, 129 for SIGHUP.
pub(crate) fn status() -> u8 {
    let signal = match RECEIVED.load(Ordering::Relaxed) {
        0 => INTERRUPT,
        signal => signal,
    };
    128 + signal as u8
}

/// States what an interruption from now on leaves behind, where that is more than whole files.
pub(crate) fn promise(saved: impl Into<String>) {
    *SAVED.lock().unwrap_or_else(PoisonError::into_inner) = Some(saved.into());
}

/// What an interrupted command leaves behind.
pub(crate) fn left_behind() -> String {
    if let Some(saved) = &*SAVED.lock().unwrap_or_else(PoisonError::into_inner) {
        return saved.clone();
    }
    let files = qdc_data::output::finished();
    if files.is_empty() {
        return "nothing was written".into();
    }
    let names: Vec<String> = files.iter().map(|file| file.display().to_string()).collect();
    format!("written before that: {}", names.join(", "))
}

/// Raises `stop` at the first signal and ends the process at the second, or when the grace is over.
#[cfg(unix)]
pub(crate) fn listen(stop: Arc<AtomicBool>, json: bool) -> std::io::Result<()> {
    handlers::install();
    std::thread::Builder::new().name("signals".into()).spawn(move || {
        let mut since: Option<std::time::Instant> = None;
        loop {
            std::thread::sleep(LOOK);
            let count = COUNT.load(Ordering::Relaxed);
            if count > 0 {
                stop.store(true, Ordering::Relaxed);
                let since = *since.get_or_insert_with(std::time::Instant::now);
                if count > 1 || since.elapsed() > GRACE {
                    end(json);
                }
            }
        }
    })?;
    Ok(())
}

/// The handlers: they only count, which is all a handler may safely do; a thread looks at the count.
#[cfg(unix)]
#[allow(unsafe_code)]
mod handlers {
    use super::{COUNT, Ordering, RECEIVED};

    extern "C" fn count(signal: libc::c_int) {
        RECEIVED.compare_exchange(0, signal, Ordering::Relaxed, Ordering::Relaxed).ok();
        COUNT.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn install() {
        let handler = count as extern "C" fn(libc::c_int) as libc::sighandler_t;
        // SAFETY: the handler touches two atomics and nothing else, so it may run at any point of any thread.
        unsafe {
            libc::signal(libc::SIGINT, handler);
            libc::signal(libc::SIGTERM, handler);
            libc::signal(libc::SIGXFSZ, libc::SIG_IGN); // a file grown too large is an error of its write
            if libc::signal(libc::SIGHUP, handler) == libc::SIG_IGN {
                libc::signal(libc::SIGHUP, libc::SIG_IGN); // as nohup wanted
            }
        }
    }
}

/// Raises `stop` at the first Ctrl-C and ends the process at the second.
#[cfg(not(unix))]
pub(crate) fn listen(stop: Arc<AtomicBool>, json: bool) -> std::io::Result<()> {
    ctrlc::set_handler(move || {
        if stop.swap(true, Ordering::Relaxed) {
            end(json);
        }
    })
    .map_err(std::io::Error::other)
}

/// Ends the process at once, leaving no temporary file.
fn end(json: bool) -> ! {
    qdc_data::output::abandon_all();
    let status = Failure::interrupted().report(json);
    std::process::exit(i32::from(status));
}
