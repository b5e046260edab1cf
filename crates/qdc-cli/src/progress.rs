//! The watch of the command line: progress bars on a terminal, remarks on stderr, a stop at Ctrl-C.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{
    HumanDuration, MultiProgress, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use qdc_core::Remedy;
use qdc_core::watch::{Observer, PhaseId};

use crate::{output, remedy};

/// Shows phases as bars; where stderr is no terminal, or `--quiet` was given, it shows nothing.
pub(crate) struct Progress {
    bars: MultiProgress,
    phases: Mutex<BTreeMap<PhaseId, ProgressBar>>,
    remarks: bool,
    stop: Arc<AtomicBool>,
}

impl Progress {
    /// `stop` is raised by Ctrl-C.
    pub(crate) fn new(quiet: bool, stop: Arc<AtomicBool>) -> Self {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        Self {
            bars: MultiProgress::with_draw_target(target),
            phases: Mutex::default(),
            remarks: !quiet,
            stop,
        }
    }

    /// Bars, but no remarks.
    pub(crate) fn without_remarks(self) -> Self {
        Self { remarks: false, ..self }
    }

    fn phase(&self, phase: PhaseId) -> Option<ProgressBar> {
        self.phases.lock().expect("no bar panics while it is held").get(&phase).cloned()
    }
}

impl Observer for Progress {
    fn begin(&self, phase: PhaseId, name: &str, total: u64) {
        let style = ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len} {elapsed}{left}")
            .expect("the template is a constant")
            .with_key("left", |state: &ProgressState, out: &mut dyn fmt::Write| {
                if let Some(left) = left(state.elapsed(), state.pos(), state.len().unwrap_or(0)) {
                    let _ = write!(out, " (about {} left)", HumanDuration(left));
                }
            });
        let bar = self.bars.add(ProgressBar::new(total).with_style(style).with_message(name.to_owned()));
        bar.enable_steady_tick(Duration::from_millis(200));
        self.phases.lock().expect("no bar panics while it is held").insert(phase, bar);
    }

    fn advance(&self, phase: PhaseId, steps: u64) {
        if let Some(bar) = self.phase(phase) {
            bar.inc(steps);
        }
    }

    fn end(&self, phase: PhaseId) {
        if let Some(bar) = self.phases.lock().expect("no bar panics while it is held").remove(&phase) {
            bar.finish_and_clear();
            self.bars.remove(&bar);
        }
    }

    fn note(&self, message: &str) {
        if self.remarks {
            self.bars.suspend(|| output::say(message));
        }
    }

    fn advise(&self, message: &str, remedy: Remedy) {
        match remedy::words(remedy) {
            Some(words) => self.note(&format!("{message}: {words}")),
            None => self.note(message),
        }
    }

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}

/// The time that is left at the mean pace so far; `None` before the first step. (A pace of the last seconds, as bars
/// usually show, jumps where steps come in large portions.)
fn left(elapsed: Duration, done: u64, all: u64) -> Option<Duration> {
    (done > 0).then(|| elapsed.mul_f64(all.saturating_sub(done) as f64 / done as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_follows_from_the_mean_pace() {
        assert_eq!(left(Duration::from_secs(10), 25, 100), Some(Duration::from_secs(30)));
        assert_eq!(left(Duration::from_secs(10), 100, 100), Some(Duration::ZERO));
        assert_eq!(left(Duration::from_secs(10), 0, 100), None, "nothing is known yet");
    }
}
