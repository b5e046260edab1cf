//! Memory as a limit: what a run takes, counted before it is built, and a budget that runs share.

use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use qdc_core::{Features, Watch};
use qdc_data::Dataset;
use qdc_nn::{Architecture, Footprint, MatrixShape, Shape};

use crate::Error;

/// What the program takes before it has read anything: code, stacks, and the buffers of dense products.
const PROGRAM: u64 = 24 << 20;
/// One part in so many is added to what is counted: what the allocator holds besides.
const SLACK: u64 = 16;
/// Bytes of an entry of a sparse matrix in double precision: column and value.
const ENTRY: u64 = 4 + 8;

/// What the program and a dataset take, whatever is trained.
pub(crate) fn of_dataset(dataset: &Dataset) -> u64 {
    let nodes = dataset.graph.nodes() as u64;
    let features = match &dataset.features {
        Features::Sparse(matrix) => 8 * matrix.entries() as u64 + 8 * nodes,
        Features::Dense { values, .. } => 4 * values.len() as u64,
    };
    PROGRAM + features + dataset.graph.memory() + 4 * nodes * (1 + dataset.splits.len() as u64)
}

/// The sizes of a dataset, and of the matrices of a model.
pub(crate) fn shape(dataset: &Dataset, matrices: Vec<MatrixShape>) -> Shape {
    let feature_entries = match &dataset.features {
        Features::Sparse(matrix) => Some(matrix.entries()),
        Features::Dense { .. } => None,
    };
    Shape { nodes: dataset.graph.nodes(), features: dataset.features.columns(), feature_entries, matrices }
}

/// What a run takes besides the dataset.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Needs {
    /// While rewirings are made.
    making: u64,
    /// While networks are trained.
    training: Footprint,
    /// Results that are kept: the weights of every run.
    results: u64,
}

impl Needs {
    /// `making` is what the rewirings take while they are made; the weights of `kept` runs are kept.
    pub(crate) fn of(
        architecture: &Architecture,
        shape: &Shape,
        batch_nodes: Option<usize>,
        making: u64,
        kept: usize,
    ) -> Self {
        let training = match batch_nodes {
            Some(nodes) => Footprint::in_batches(architecture, shape, nodes),
            None => Footprint::of(architecture, shape),
        };
        Self { making, ..Self::counted(training, kept) }
    }

    /// While something of this size is made.
    pub(crate) fn of_making(making: u64) -> Self {
        Self { making, ..Self::default() }
    }

    /// With a footprint that is known; the weights of `kept` runs are kept.
    pub(crate) fn counted(training: Footprint, kept: usize) -> Self {
        let copies = if kept > 0 { kept as u64 + 1 } else { 0 }; // a better step's beside those of the one before
        Self { making: 0, training, results: training.weights.saturating_mul(copies) }
    }

    /// With `at_once` networks in training at the same time.
    pub(crate) fn with(&self, at_once: usize) -> u64 {
        let counted = self.making.max(self.training.of_runs(at_once)).saturating_add(self.results);
        counted.saturating_add(counted / SLACK)
    }

    /// How many networks can be trained at once in this much memory; at least one, at most `wanted`.
    fn at_once(&self, free: u64, wanted: usize) -> usize {
        let counted = free / (SLACK + 1) * SLACK;
        let for_runs = counted.saturating_sub(self.training.of_runs(0)).saturating_sub(self.results);
        (for_runs / self.training.run.max(1)).clamp(1, wanted.max(1) as u64) as usize
    }
}

/// Bytes of a sparse matrix in double precision.
pub(crate) fn of_matrix(entries: usize) -> u64 {
    (entries as u64).saturating_mul(ENTRY)
}

/// The memory that runs share.
#[derive(Debug)]
pub(crate) struct Budget {
    /// `None`: no limit.
    limit: Option<u64>,
    /// Taken before any run.
    base: u64,
    taken: Mutex<u64>,
    freed: Condvar,
    /// Held by the one run whose size is not yet known for certain. It may have to wait for others to end,
    /// and those wait for nothing.
    sizing: Mutex<()>,
}

/// Memory that is held for later use and can be given up: gives the bytes it freed, 0 if there is nothing left.
pub(crate) trait Spare {
    /// Bytes held.
    fn held(&self) -> u64;
    /// Gives up a part.
    fn give_up(&self) -> u64;
}

impl Budget {
    /// At most `limit` bytes for what is taken already (`base`) and all runs; `None`: no limit.
    pub(crate) fn new(limit: Option<u64>, base: u64) -> Self {
        Self { limit, base, taken: Mutex::new(0), freed: Condvar::new(), sizing: Mutex::new(()) }
    }

    /// Counts `bytes` more as taken before any run.
    pub(crate) fn with_base(mut self, bytes: u64) -> Self {
        self.base = self.base.saturating_add(bytes);
        self
    }

    /// What runs may take together; `None`: no limit.
    pub(crate) fn for_runs(&self) -> Option<u64> {
        self.limit.map(|limit| limit.saturating_sub(self.base))
    }

    /// Refuses what could not fit if it were alone.
    ///
    /// # Errors
    /// With the figure that would do.
    pub(crate) fn check(&self, needs: &Needs) -> Result<(), Error> {
        let needed = self.base.saturating_add(needs.with(1));
        match self.limit {
            Some(limit) if needed > limit => Err(Error::OverMemory { needed, limit, at_least: false }),
            _ => Ok(()),
        }
    }

    /// Refuses a part of what is needed that is over the limit by itself.
    ///
    /// # Errors
    /// With a figure that will not be enough.
    pub(crate) fn check_part(&self, bytes: u64) -> Result<(), Error> {
        match self.limit {
            Some(limit) if bytes > limit => {
                Err(Error::OverMemory { needed: self.base.saturating_add(bytes), limit, at_least: true })
            }
            _ => Ok(()),
        }
    }

    /// The right to learn how large a run is and to make its rewirings; without a limit there is nothing to
    /// wait for. `spare` is given up before the run waits.
    pub(crate) fn size<'a>(&'a self, spare: &'a dyn Spare) -> Sizing<'a> {
        let alone = self.limit.map(|_| self.sizing.lock().unwrap_or_else(std::sync::PoisonError::into_inner));
        Sizing { budget: self, spare, alone, bytes: 0 }
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().expect("nothing panics while it is held")
    }
}

/// A run that is being sized: it holds what it takes so far.
pub(crate) struct Sizing<'a> {
    budget: &'a Budget,
    spare: &'a dyn Spare,
    alone: Option<MutexGuard<'a, ()>>,
    bytes: u64,
}

impl<'a> Sizing<'a> {
    /// Takes what one network needs; gives up spare memory for it, and waits as long as other runs hold the
    /// rest.
    ///
    /// # Errors
    /// If it would not fit alone, or the watch asks to stop.
    pub(crate) fn take(&mut self, needs: &Needs, watch: &Watch) -> Result<(), Error> {
        let budget = self.budget;
        budget.check(needs)?;
        let Some(all) = budget.for_runs() else { return Ok(()) };
        let wanted = needs.with(1);
        let mut taken = budget.taken();
        *taken -= std::mem::take(&mut self.bytes);
        while taken.saturating_add(wanted).saturating_add(self.spare.held()) > all {
            if self.spare.give_up() > 0 {
                continue;
            }
            watch.check()?;
            let waited = budget.freed.wait_timeout(taken, Duration::from_millis(50));
            taken = waited.expect("nothing panics while it is held").0;
        }
        *taken += wanted;
        self.bytes = wanted;
        Ok(())
    }

    /// Ends the sizing of a run that was taken in: takes what training `wanted` networks at once needs, or as
    /// many of them as fit beside other runs. Gives the share, and their number.
    pub(crate) fn settle(mut self, needs: &Needs, wanted: usize) -> (Share<'a>, usize) {
        let budget = self.budget;
        self.alone = None;
        let Some(all) = budget.for_runs() else { return (Share { budget, bytes: 0 }, wanted.max(1)) };
        let mut taken = budget.taken();
        *taken -= std::mem::take(&mut self.bytes);
        let fit = || needs.at_once(all.saturating_sub(*taken).saturating_sub(self.spare.held()), wanted);
        let mut at_once = fit();
        while at_once < wanted && self.spare.give_up() > 0 {
            at_once = fit();
        }
        let bytes = needs.with(at_once);
        *taken += bytes;
        drop(taken);
        budget.freed.notify_all();
        (Share { budget, bytes }, at_once)
    }
}

impl Drop for Sizing<'_> {
    fn drop(&mut self) {
        *self.budget.taken() -= self.bytes;
        self.budget.freed.notify_all();
    }
}

/// A part of a budget; given back when dropped.
#[derive(Debug)]
pub(crate) struct Share<'a> {
    budget: &'a Budget,
    bytes: u64,
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        *self.budget.taken() -= self.bytes;
        self.budget.freed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    /// In sixteenths of what is counted with the slack: 16 become 17.
    fn needs(making: u64, shared: u64, run: u64) -> Needs {
        let training = Footprint { shared: 16 * shared, run: 16 * run, ..Footprint::default() };
        Needs { making: 16 * making, ..Needs::counted(training, 0) }
    }

    fn budget(limit: u64, base: u64) -> Budget {
        Budget::new(Some(17 * limit), 17 * base)
    }

    fn taken(budget: &Budget) -> u64 {
        assert_eq!(*budget.taken() % 17, 0);
        *budget.taken() / 17
    }

    /// Holds some bytes, and gives up seventeen hundred at a time.
    struct Held(Cell<u64>);

    impl Spare for Held {
        fn held(&self) -> u64 {
            self.0.get()
        }
        fn give_up(&self) -> u64 {
            let part = self.0.get().min(1700);
            self.0.set(self.0.get() - part);
            part
        }
    }

    struct Nothing;
    const NOTHING: Nothing = Nothing;

    impl Spare for Nothing {
        fn held(&self) -> u64 {
            0
        }
        fn give_up(&self) -> u64 {
            0
        }
    }

    fn sized<'a>(budget: &'a Budget, needs: &Needs, wanted: usize) -> (Share<'a>, usize) {
        let mut sizing = budget.size(&NOTHING);
        sizing.take(needs, &Watch::silent()).unwrap();
        sizing.settle(needs, wanted)
    }

    #[test]
    fn a_run_gets_as_many_networks_at_once_as_fit() {
        let budget = budget(1100, 100);
        let needs = needs(0, 200, 150);
        let (share, at_once) = sized(&budget, &needs, 10);
        assert_eq!((at_once, taken(&budget)), (5, 950));
        drop(share);
        let (share, at_once) = sized(&budget, &needs, 2);
        assert_eq!((at_once, taken(&budget)), (2, 500));
        drop(share);
        assert_eq!(taken(&budget), 0);
        assert_eq!(sized(&Budget::new(None, 100), &needs, 7).1, 7);
    }

    #[test]
    fn results_that_are_kept_count_too() {
        let budget = budget(1000, 0);
        let kept = Needs { results: 16 * 300, ..needs(0, 200, 100) };
        assert_eq!(kept.with(2), 17 * 700);
        assert_eq!(sized(&budget, &kept, 10).1, 5);
        assert!(budget.check(&Needs { results: 16 * 701, ..kept }).is_err());
    }

    #[test]
    fn what_does_not_fit_alone_is_refused_with_the_figure() {
        let budget = budget(1000, 100);
        for (needs, figure) in [(needs(901, 0, 0), 1001), (needs(10, 600, 400), 1100)] {
            let error = budget.size(&NOTHING).take(&needs, &Watch::silent()).unwrap_err();
            let Error::OverMemory { needed, limit, at_least } = error else { panic!("{error}") };
            assert_eq!((needed, limit, at_least), (17 * figure, 17_000, false));
        }
        assert!(budget.check_part(17_000).is_ok());
        let error = budget.check_part(17_001).unwrap_err();
        assert!(matches!(error, Error::OverMemory { at_least: true, needed: 18_701, .. }), "{error}");
        assert_eq!(sized(&budget, &needs(900, 500, 400), 3).1, 1);
        assert_eq!(taken(&budget), 0);
    }

    #[test]
    fn spare_memory_is_given_up_before_a_run_waits_and_no_more_than_needed() {
        let budget = budget(1000, 0);
        let spare = Held(Cell::new(17 * 450));
        let mut sizing = budget.size(&spare);
        sizing.take(&needs(700, 0, 0), &Watch::silent()).unwrap();
        assert_eq!((spare.held() / 17, taken(&budget)), (250, 700));
        let (_share, at_once) = sizing.settle(&needs(0, 100, 400), 2);
        assert_eq!((spare.held() / 17, at_once), (50, 2));
    }

    #[test]
    fn a_run_waits_for_memory_that_another_holds() {
        let budget = budget(1000, 0);
        let half = needs(0, 0, 600);
        let (first, _) = sized(&budget, &half, 1);
        std::thread::scope(|scope| {
            let second = scope.spawn(|| sized(&budget, &half, 1).0.bytes / 17);
            assert_eq!(taken(&budget), 600, "the second run waits");
            drop(first);
            assert_eq!(second.join().unwrap(), 600);
        });
    }

    #[test]
    fn a_run_that_turns_out_larger_takes_more_and_a_failed_one_gives_all_back() {
        let budget = budget(1000, 0);
        let mut sizing = budget.size(&NOTHING);
        sizing.take(&needs(300, 0, 0), &Watch::silent()).unwrap();
        sizing.take(&needs(0, 0, 800), &Watch::silent()).unwrap();
        assert_eq!(taken(&budget), 800);
        assert!(sizing.take(&needs(1200, 0, 0), &Watch::silent()).is_err());
        drop(sizing);
        assert_eq!(taken(&budget), 0);
    }
}
