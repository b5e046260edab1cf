//! The memory that reading a file or making a graph may take.
//!
//! A [`Budget`] is a limit. Each file or graph opens an [`Account`] on it, counts there what it holds, and
//! allocates through it, so that neither a small file that unpacks to terabytes nor a number in a generator's
//! name can exhaust the memory or end the process: both are [`Error::Memory`], with the file, the array, and
//! the bytes.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::Error;

/// The most bytes one reading or making may hold.
///
/// ```
/// use qdc_data::{Budget, DataDir, EdgeReading};
///
/// let folder = DataDir::from_environment().within(Budget::bytes(1_000_000));
/// let error = qdc_data::open("cycle:1000000", &folder, EdgeReading::default()).unwrap_err();
/// assert!(matches!(error, qdc_data::Error::Memory { allowed: 1_000_000, .. }));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    limit: u64,
}

impl Budget {
    /// So many bytes.
    pub const fn bytes(limit: u64) -> Self {
        Self { limit }
    }

    /// Three quarters of the memory this process can have: what is free, what its control group leaves, and
    /// what its address-space limit leaves, whichever is least. Four gigabytes where the system tells none of
    /// them.
    pub fn of_this_machine() -> Self {
        let available = [free_memory(), group_memory(), address_space()].into_iter().flatten().min();
        Self { limit: available.map_or(4_000_000_000, |bytes| bytes / 4 * 3) }
    }

    /// The limit in bytes.
    pub fn limit(self) -> u64 {
        self.limit
    }

    /// Whether `what` of the file `path` may hold so many bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] if that is more than the limit.
    pub fn allow(self, path: &Path, what: &str, bytes: u64) -> Result<(), Error> {
        self.account(path).charge::<u8>(what, usize::try_from(bytes).unwrap_or(usize::MAX))
    }

    /// An account for one file, or for what is called `path`.
    pub(crate) fn account(self, path: &Path) -> Account {
        Account { path: path.into(), budget: self, held: AtomicU64::new(0) }
    }
}

impl Default for Budget {
    fn default() -> Self {
        Self::of_this_machine()
    }
}

/// What one file or graph holds of its [`Budget`].
#[derive(Debug)]
pub(crate) struct Account {
    path: PathBuf,
    budget: Budget,
    held: AtomicU64,
}

impl Account {
    /// Counts `count` values of type `T`, which `what` is about to hold.
    pub(crate) fn charge<T>(&self, what: &str, count: usize) -> Result<(), Error> {
        let asked = (count as u64).saturating_mul(size_of::<T>().max(1) as u64);
        let held = self.held.load(Ordering::Relaxed);
        if held.saturating_add(asked) > self.budget.limit {
            return Err(self.refusal(what, asked));
        }
        self.held.store(held + asked, Ordering::Relaxed);
        Ok(())
    }

    /// Counts `count` values of type `T` as given back.
    pub(crate) fn release<T>(&self, count: usize) {
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        let held = self.held.load(Ordering::Relaxed);
        self.held.store(held.saturating_sub(bytes), Ordering::Relaxed);
    }

    /// An empty vector with room for `count` values, counted.
    pub(crate) fn room<T>(&self, what: &str, count: usize) -> Result<Vec<T>, Error> {
        self.charge::<T>(what, count)?;
        let mut values = Vec::new();
        let bytes = (count as u64).saturating_mul(size_of::<T>() as u64);
        values.try_reserve_exact(count).map_err(|_| self.refusal(what, bytes))?;
        Ok(values)
    }

    /// Appends a value to a vector that grows with its file; its whole capacity is counted.
    #[inline]
    pub(crate) fn push<T>(&self, what: &str, values: &mut Vec<T>, value: T) -> Result<(), Error> {
        if values.len() == values.capacity() {
            self.grow(what, values, 1)?;
        }
        values.push(value);
        Ok(())
    }

    /// Makes room for `more` values, at least doubling the capacity.
    #[cold]
    pub(crate) fn grow<T>(&self, what: &str, values: &mut Vec<T>, more: usize) -> Result<(), Error> {
        let before = values.capacity();
        let more = more.max(values.len()).max(64);
        self.charge::<T>(what, more)?;
        let bytes = (more as u64).saturating_mul(size_of::<T>() as u64);
        values.try_reserve_exact(more).map_err(|_| self.refusal(what, bytes))?;
        self.release::<T>(more - (values.capacity() - before).min(more));
        Ok(())
    }

    /// Counts what `Graph::from_edges` and its like need for so many vertices and listed edges: the edges
    /// sorted, the merged ones, and the adjacency with both orientations, 32 bytes a vertex and 72 an edge.
    pub(crate) fn charge_graph(&self, nodes: usize, edges: usize) -> Result<(), Error> {
        self.charge::<[u64; 4]>("the graph's vertices", nodes)?;
        self.charge::<[u64; 9]>("the graph's edges", edges)
    }

    fn refusal(&self, what: &str, asked: u64) -> Error {
        Error::Memory {
            path: self.path.clone(),
            what: what.into(),
            asked,
            held: self.held.load(Ordering::Relaxed),
            allowed: self.budget.limit,
        }
    }
}

/// A file's whole content.
///
/// # Errors
/// [`Error::Memory`] if it is larger than `budget`; [`Error::Read`] if it cannot be read.
pub fn read_file(path: &Path, budget: Budget) -> Result<Vec<u8>, Error> {
    use std::io::Read;
    let fail = |source| Error::Read { path: path.into(), source };
    let mut file = std::fs::File::open(path).map_err(fail)?;
    let found = file.metadata().map_err(fail)?;
    if found.is_dir() {
        return Err(fail(std::io::ErrorKind::IsADirectory.into()));
    }
    let account = budget.account(path);
    let mut bytes: Vec<u8> = account.room("the file", usize::try_from(found.len()).unwrap_or(usize::MAX))?;
    // A pipe or a device has no size: it is read up to the budget.
    (&mut file).take(budget.limit.saturating_add(1)).read_to_end(&mut bytes).map_err(fail)?;
    if bytes.len() as u64 > budget.limit {
        return Err(account.refusal("the file", bytes.len() as u64));
    }
    Ok(bytes)
}

/// The text of a file, counted against `budget`.
///
/// # Errors
/// [`Error::Read`], [`Error::Memory`], and [`Error::Malformed`] where it is no UTF-8.
pub fn read_text(path: &Path, budget: Budget) -> Result<String, Error> {
    String::from_utf8(read_file(path, budget)?).map_err(|error| {
        Error::malformed(path, format!("byte {}", error.utf8_error().valid_up_to()), "this is no UTF-8 text")
            .remedy("write the file as UTF-8")
    })
}

/// Memory that can be had without swapping.
fn free_memory() -> Option<u64> {
    kilobytes("/proc/meminfo", "MemAvailable:")
}

/// What the control group leaves this process (cgroup version 2, then 1).
fn group_memory() -> Option<u64> {
    let number = |file: &str| std::fs::read_to_string(file).ok()?.trim().parse::<u64>().ok();
    let left = |limit: &str, used: &str| Some(number(limit)?.saturating_sub(number(used)?));
    left("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current").or_else(|| {
        left("/sys/fs/cgroup/memory/memory.limit_in_bytes", "/sys/fs/cgroup/memory/memory.usage_in_bytes")
    })
}

/// What the limit on addresses (`ulimit -v`) leaves this process.
fn address_space() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/self/limits").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    let limit: u64 = line.split_whitespace().next()?.parse().ok()?; // "unlimited" is no number
    Some(limit.saturating_sub(kilobytes("/proc/self/status", "VmSize:").unwrap_or(0)))
}

/// The bytes that a file of `/proc` gives in kilobytes after `key`; `None` where the system does not tell.
pub fn kilobytes(file: &str, key: &str) -> Option<u64> {
    let text = std::fs::read_to_string(file).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let kilobytes: u64 = line.trim().trim_end_matches("kB").trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_held_counts_and_what_is_given_back_does_not() {
        let account = Budget::bytes(100).account(Path::new("file.npz"));
        account.charge::<u64>("array 'a'", 10).unwrap();
        let error = account.room::<u32>("array 'b'", 6).unwrap_err();
        let Error::Memory { what, asked, held, allowed, .. } = &error else { panic!("{error}") };
        assert_eq!((what.as_str(), *asked, *held, *allowed), ("array 'b'", 24, 80, 100));
        assert!(error.to_string().contains("file.npz, array 'b'"), "{error}");
        let hint = error.hint().unwrap();
        assert!(hint.contains("--memory") && hint.contains("the file is damaged"), "{hint}");
        account.release::<u64>(10);
        assert_eq!(account.room::<u32>("array 'b'", 6).unwrap().capacity(), 6);
        assert!(account.charge::<u64>("array 'c'", usize::MAX).is_err());
    }

    #[test]
    fn a_generated_graph_is_not_called_a_damaged_file() {
        let account = Budget::bytes(100).account(Path::new("er:n=1000,p=0"));
        let hint = account.room::<u64>("vertices", 1000).unwrap_err().hint().unwrap();
        assert_eq!(hint, "raise --memory, or ask for a smaller graph");
    }

    #[test]
    fn a_vector_grows_up_to_the_budget_and_no_further() {
        let account = Budget::bytes(8 * 1000).account(Path::new("file.csv"));
        let mut values: Vec<u64> = Vec::new();
        let error = (0..).find_map(|value| account.push("edges", &mut values, value).err()).unwrap();
        assert!(matches!(error, Error::Memory { .. }));
        assert!((500..=1000).contains(&values.len()), "{}", values.len());
        assert!(values.iter().copied().eq(0..values.len() as u64));
    }

    #[test]
    fn room_that_the_machine_does_not_have_is_an_error_too() {
        let account = Budget::bytes(u64::MAX).account(Path::new("file"));
        assert!(matches!(account.room::<u64>("all", usize::MAX / 16), Err(Error::Memory { .. })));
        assert!(Budget::of_this_machine().limit() > 1 << 20);
    }
}
