//! How many worker threads a machine has a use for.

/// The most worker threads for each core. Results do not depend on them, and more only cost.
const THREADS_PER_CORE: usize = 8;

/// The number of threads to start where `asked` are asked for, and, where that is fewer, words that say so.
///
/// ```
/// assert_eq!(qdc_core::sane_threads(1), (1, None));
/// let (threads, warning) = qdc_core::sane_threads(65_535);
/// assert!(threads < 65_535 && warning.unwrap().contains("65535 threads are more than"));
/// ```
pub fn sane_threads(asked: usize) -> (usize, Option<String>) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let most = THREADS_PER_CORE * cores;
    let warning = (asked > most)
        .then(|| format!("{asked} threads are more than {cores} cores can use; {most} are started"));
    (most.min(asked), warning)
}
