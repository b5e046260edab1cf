//! The watch of the command line: progress bars on a terminal, remarks on stderr, a stop at Ctrl-C.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use qdc_core::watch::{Observer, PhaseId};

use crate::output;

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
        let style =
            ProgressStyle::with_template("{msg:24} {wide_bar} {pos}/{len} {elapsed} (about {eta} left)")
                .expect("the template is a constant");
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

    fn stop_requested(&self) -> bool {
        self.stop.load(Ordering::Relaxed)
    }
}
