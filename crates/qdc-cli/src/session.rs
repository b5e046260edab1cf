//! Resolved arguments: what every command needs and none should work out again.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use qdc_core::kernel::Spectra;
use qdc_core::{Resources, Watch};
use qdc_data::{Budget, DataDir, SpectrumCache};

use crate::arguments::Common;
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::progress::Progress;
use crate::signals;
use crate::units::Bytes;

/// The setting a command runs in.
pub(crate) struct Session {
    /// Progress and cancellation for long functions.
    pub(crate) watch: Watch,
    /// Memory a job may use.
    pub(crate) memory: Bytes,
    data_dir: Option<PathBuf>,
    cache_dir: Option<PathBuf>,
    json: bool,
    quiet: bool,
    stop: Arc<AtomicBool>,
}

impl Session {
    /// Starts the thread pool, listens for signals, and fixes the limits.
    pub(crate) fn start(common: &Common) -> Result<Self, Failure> {
        let stop = Arc::new(AtomicBool::new(false));
        signals::listen(Arc::clone(&stop), common.json)
            .map_err(|error| Failure::new(format!("cannot listen for signals: {error}")))?;
        let named =
            |folder: &Option<OsString>| folder.clone().filter(|name| !name.is_empty()).map(PathBuf::from);
        let session = Self {
            watch: Watch::new(Progress::new(common.quiet, Arc::clone(&stop))),
            memory: common.memory.unwrap_or_else(|| Bytes(Budget::of_this_machine().limit())),
            data_dir: named(&common.data_dir),
            cache_dir: named(&common.cache_dir),
            json: common.json,
            quiet: common.quiet,
            stop,
        };
        let threads = common.threads.map_or(0, |threads| session.sane_threads(threads)); // 0: one for each core
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .map_err(|error| Failure::new(format!("cannot start {threads} threads: {error}")))?;
        Ok(session)
    }

    /// The number of threads asked for, or the most this machine has a use for.
    fn sane_threads(&self, asked: u16) -> usize {
        let (threads, warning) = qdc_core::sane_threads(asked.into());
        warning.into_iter().for_each(|warning| self.warn(&warning));
        threads
    }

    /// The same, without remarks on how things are computed.
    pub(crate) fn without_remarks(&self) -> Self {
        let progress = Progress::new(self.quiet, Arc::clone(&self.stop)).without_remarks();
        Self {
            watch: Watch::new(progress),
            memory: self.memory,
            data_dir: self.data_dir.clone(),
            cache_dir: self.cache_dir.clone(),
            json: self.json,
            quiet: self.quiet,
            stop: Arc::clone(&self.stop),
        }
    }

    /// Says on stderr what is allowed but probably not meant, unless `--quiet` was given.
    pub(crate) fn warn(&self, warning: &str) {
        if !self.quiet {
            output::say(&format!("warning: {warning}"));
        }
    }

    /// The folder of datasets: the one named, or the user's cache folder.
    pub(crate) fn data_dir(&self) -> DataDir {
        self.data_dir.clone().map_or_else(DataDir::from_environment, DataDir::new).within(self.budget())
    }

    /// What reading a file or making a graph may hold.
    pub(crate) fn budget(&self) -> Budget {
        Budget::bytes(self.memory.0)
    }

    /// The spectra kept on disk, in the folder named or the user's cache folder.
    pub(crate) fn spectra(&self) -> SpectrumCache {
        let folder = self.cache_dir.clone().unwrap_or_else(qdc_data::cache_folder);
        SpectrumCache::new(folder.join("spectra"))
    }

    /// What kernels may use: the memory allowed and the stored spectra.
    pub(crate) fn resources(&self) -> Resources {
        let spectra = Spectra::Stored(Arc::new(self.spectra()));
        Resources { memory: Some(self.memory.0), spectra, ..Resources::default() }
    }

    /// Whether stdout carries one JSON object.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// Shows a command's result in the form asked for; on stderr where stdout carries the result itself.
    pub(crate) fn show(&self, result: &impl Show) -> Result<(), Failure> {
        // With `-o -` the result itself went to stdout; what is said about it is talk.
        if qdc_data::output::finished().iter().any(|path| path.as_os_str() == "-") {
            if !self.quiet {
                output::say(result.text().trim_end());
            }
            return Ok(());
        }
        output::show(result, self.json)
    }
}
