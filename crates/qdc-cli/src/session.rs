//! Resolved arguments: what every command needs and none should work out again.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use qdc_core::kernel::Spectra;
use qdc_core::{Resources, Watch};
use qdc_data::{DataDir, SpectrumCache};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::progress::Progress;
use crate::units::{self, Bytes};

/// The setting a command runs in.
pub(crate) struct Session {
    /// Progress and cancellation for long functions.
    pub(crate) watch: Watch,
    /// Memory a job may use.
    pub(crate) memory: Bytes,
    data_dir: Option<PathBuf>,
    json: bool,
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Starts the thread pool, listens for Ctrl-C, and fixes the limits.
    pub(crate) fn start(common: &Common) -> Result<Self, Failure> {
        let threads = common.threads.map_or(0, usize::from); // 0: one for each core
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .map_err(|error| Failure::new(format!("cannot start {threads} threads: {error}")))?;
        let stop = Arc::new(AtomicBool::new(false));
        let raised = Arc::clone(&stop);
        ctrlc::set_handler(move || {
            // The first Ctrl-C asks, the second insists.
            if raised.swap(true, Ordering::Relaxed) {
                qdc_data::output::abandon_all();
                std::process::exit(130);
            }
        })
        .map_err(|error| Failure::new(format!("cannot listen for Ctrl-C: {error}")))?;
        let free = units::available_memory().map_or(4_000_000_000, |bytes| bytes / 4 * 3);
        Ok(Self {
            watch: Watch::new(Progress::new(common.quiet, Arc::clone(&stop))),
            memory: common.memory.unwrap_or(Bytes(free)),
            data_dir: common.data_dir.clone(),
            json: common.json,
            quiet: common.quiet,
            stop,
        })
    }

    /// The same, without remarks on how things are computed.
    pub(crate) fn without_remarks(&self) -> Self {
        let progress = Progress::new(self.quiet, Arc::clone(&self.stop)).without_remarks();
        Self {
            watch: Watch::new(progress),
            memory: self.memory,
            data_dir: self.data_dir.clone(),
            json: self.json,
            quiet: self.quiet,
            stop: Arc::clone(&self.stop),
        }
    }

    /// The folder of datasets: the one named, or the user's cache folder.
    pub(crate) fn data_dir(&self) -> DataDir {
        self.data_dir.clone().map_or_else(DataDir::from_environment, DataDir::new)
    }

    /// What kernels may use: the memory allowed and the stored spectra.
    pub(crate) fn resources(&self) -> Resources {
        let spectra = Spectra::Stored(Arc::new(SpectrumCache::of(&self.data_dir())));
        Resources { memory: Some(self.memory.0), spectra, ..Resources::default() }
    }

    /// Whether stdout carries one JSON object.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Shows a command's result in the form asked for.
    pub(crate) fn show(&self, result: &impl Show) -> Result<(), Failure> {
        output::show(result, self.json)
    }
}
