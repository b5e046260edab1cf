//! The local route: each row by itself over the vertices it reaches, for kernels of which only the large entries
//! are kept. Its work grows with the number of rows, not with its square.
//!
//! A row is a truncated recurrence (`series`), or pushing for personalised PageRank (`push`), on a sparse
//! vector (`field`): what is too small to matter at the accuracy asked for is not passed on. How much that is
//! follows from a sample of rows, computed exactly (`sample`): the cut, and that of hubs, is lowered until
//! the kept entries of the sample are as accurate as asked for. The report gives that measured error, and the
//! proved bound, which holds for every entry and is pessimistic.
//!
//! Only where [`super::Recipe::accuracy`] is given: the route never takes the place of an exact one unasked.

mod candidates;
mod field;
mod push;
mod sample;
mod series;

use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::route::Problem;
use super::{Account, Accuracy, Plan, Precision, RowMaker, Sink};
use crate::chebyshev::Series;
use crate::sparsify::{Row, Rule};
use crate::{Csr, Error, Filter, Pairs, Sparsify, Watch};
use candidates::Candidates;
use field::{Field, Links};
use push::Pushing;
use sample::Sample;
use series::Steps;

/// The share of the accuracy at which the search for a cut begins; measured.
const SHARE: f64 = 0.16;
/// The accuracy below which single precision does not do.
const LEAST: f64 = 1e-6;
/// Operations on panels that take the time of a link followed or a cell looked at; measured.
const COST: f64 = 64.0;
/// The rows of a task.
const TASK: usize = 16;
/// The candidates for each entry kept of a row's largest.
const CANDIDATES: usize = 2;

/// What a row took, and bounds on the error of its entries.
#[derive(Clone, Copy, Debug, Default)]
struct Tally {
    /// Of an entry as the walk leaves it.
    missing: f64,
    /// Of an entry with what its neighbours owe it.
    unsettled: f64,
    /// Rounding in single precision.
    rounding: f64,
    /// Links followed and cells looked at.
    work: usize,
}

impl Tally {
    /// The bound for any entry, settled or not.
    fn bound(&self) -> f64 {
        self.missing.max(self.unsettled) + self.rounding
    }
}

/// What decides whether a vertex passes on what it holds.
#[derive(Clone, Copy, Debug)]
struct Cut {
    /// For every row.
    all: f64,
    /// The share of it that is left to the rows of hubs, besides what their degree asks for.
    hubs: f64,
}

impl Cut {
    /// The lower of both.
    fn least(self, other: Self) -> Self {
        Self { all: self.all.min(other.all), hubs: self.hubs.min(other.hubs) }
    }
}

/// A way to walk, with its cut.
#[derive(Clone, Debug)]
enum Walk {
    Series(Steps),
    Push(Pushing),
}

impl Walk {
    fn new(filter: &Filter, series: &Series, cut: Cut, accuracy: f64) -> Self {
        match filter.ppr_alpha() {
            Some(alpha) => Self::Push(Pushing::new(alpha, cut, accuracy)),
            None => Self::Series(Steps::new(series, cut)),
        }
    }
}

/// The memory of one worker.
struct Walker {
    field: Field,
    pushers: [Vec<u32>; 2],
    candidates: Candidates,
}

impl Walker {
    fn new(links: &Links) -> Self {
        Self { field: Field::new(links), pushers: Default::default(), candidates: Candidates::default() }
    }

    /// What a row keeps, and what it took. Entries that are found below a threshold by half the `margin`, or half the
    /// threshold, are still looked at.
    fn row(&mut self, walk: &Walk, links: &Links, row: u32, rule: &Rule, margin: f64) -> (Row, Tally) {
        let origin = links.position(row);
        let tally = match walk {
            Walk::Series(steps) => steps.row(links, origin, &mut self.field, &mut self.pushers),
            Walk::Push(pushing) => pushing.row(links, origin, &mut self.field, &mut self.pushers[0]),
        };
        let floor = (rule.floor() - 0.5 * margin).max(0.5 * rule.floor()) as f32;
        let first = rule.first_column(row);
        let Self { field, candidates, .. } = self;
        let most = match rule.sparsify {
            Sparsify::TopK(k) => k.saturating_mul(CANDIDATES).max(k.saturating_add(16)),
            _ => usize::MAX,
        };
        candidates.choose(field, most, floor, |value| rule.sign.size(value));
        let mut entries: Vec<(u32, f64)> = candidates
            .found()
            .iter()
            .map(|&(_, position)| (links.name(position), position))
            .filter(|&(name, _)| name >= first)
            .map(|(name, position)| (name, field.settled(links, position)))
            .collect();
        entries.sort_unstable_by_key(|entry| entry.0);
        (rule.keep_entries(row, entries.iter().copied()), tally)
    }
}

/// The route, ready for a problem.
struct Local {
    plan: Plan,
    links: Arc<Links>,
    walk: Walk,
    /// What the series leaves out, and the rounding of its coefficients; `None` for a custom filter.
    tail: Option<f64>,
    accuracy: f64,
    sample: Sample,
    /// Walkers that rest: making one takes as long as ten rows.
    resting: Mutex<Vec<Walker>>,
}

impl Local {
    /// Puts the rows at some places into the sink, and gives the bound of the worst.
    fn make_some(&self, places: &[usize], sink: &Sink) -> f64 {
        let rested = self.resting.lock().expect("nothing panics while it is held").pop();
        let mut walker = rested.unwrap_or_else(|| Walker::new(&self.links));
        let mut bound = 0f64;
        for &place in places {
            let row = sink.rows()[place];
            let (kept, tally) = walker.row(&self.walk, &self.links, row, sink.rule(), self.accuracy);
            sink.put_kept(place, kept);
            bound = bound.max(tally.bound());
        }
        self.resting.lock().expect("nothing panics while it is held").push(walker);
        bound
    }
}

/// Prepares the route: walks over a sample of rows, computes the same rows exactly, and finds the cut.
pub(super) fn offer(problem: &Problem<'_>, watch: &Watch) -> Result<Box<dyn RowMaker>, Error> {
    let Some(accuracy) = problem.recipe.accuracy else {
        return Err(Error::NoAccuracy);
    };
    if accuracy < LEAST {
        return Err(problem.unsuited("its single precision does not reach an accuracy below 1e-6"));
    }
    let needed = memory(problem.transition.matrix());
    if let Some(limit) = problem.resources.memory.filter(|&limit| needed > limit) {
        return Err(Error::Memory { what: "the local route", needed, limit });
    }
    let prepared = Prepared::new(problem, accuracy)?;
    if let Some(rival) = problem.rival
        && prepared.flops >= rival
    {
        return Err(problem.unsuited("another route takes less"));
    }
    let (cut, sample) = prepared.find_cut(problem, watch)?;
    let walk = prepared.walk(cut);
    let work = prepared.work(problem, &walk);
    let flops = COST * work * prepared.links.nodes() as f64;
    if problem.rival.is_some_and(|rival| flops >= rival) {
        return Err(problem.unsuited("another route takes less"));
    }
    let reason = format!(
        "{}a row takes {work:.0} steps over vertices and links at the accuracy {accuracy:e}",
        problem.asked(),
    );
    let plan = Plan {
        route: problem.route,
        reason,
        degree: matches!(walk, Walk::Series(_)).then(|| prepared.series.degree()),
        flops,
        memory: needed,
    };
    let tail = prepared.series.rounding().map(|rounding| prepared.series.tail() + rounding);
    let tail = if problem.recipe.filter.ppr_alpha().is_some() { Some(0.0) } else { tail };
    Ok(Box::new(Local {
        plan,
        walk,
        tail,
        accuracy,
        sample,
        links: prepared.links,
        resting: Mutex::default(),
    }))
}

/// Bytes of the links, and of the walkers or of the sample.
fn memory(matrix: &Csr<f64>) -> u64 {
    let (shared, each) = Links::memory(matrix);
    shared + (each * rayon::current_num_threads() as u64).max(sample::memory(matrix, each))
}

/// The operations that the route would take at an accuracy, from walks over a few rows; `None` where it cannot
/// make the kernel.
pub(super) fn estimate(problem: &Problem<'_>, accuracy: f64) -> Option<f64> {
    Prepared::new(problem, accuracy).ok().map(|prepared| prepared.flops)
}

/// The route before the cut is known.
struct Prepared {
    filter: Filter,
    series: Series,
    links: Arc<Links>,
    accuracy: f64,
    /// The operations at the first cut.
    flops: f64,
}

impl Prepared {
    fn new(problem: &Problem<'_>, accuracy: f64) -> Result<Self, Error> {
        let recipe = problem.recipe;
        if recipe.pairs != Pairs::All {
            return Err(Error::NoEigenpairs);
        }
        if recipe.sparsify == Sparsify::None {
            return Err(problem.unsuited("it makes the large entries only, of a threshold or of top-k"));
        }
        let series = Series::of(&recipe.filter, SHARE * accuracy)?;
        let links = Arc::new(Links::of(problem.transition.matrix()));
        let mut prepared = Self { filter: recipe.filter.clone(), series, links, accuracy, flops: 0.0 };
        let work = prepared.work(problem, &prepared.walk(prepared.first_cut()));
        prepared.flops = COST * work * prepared.links.nodes() as f64;
        Ok(prepared)
    }

    fn first_cut(&self) -> Cut {
        Cut { all: SHARE * self.accuracy, hubs: 1.0 }
    }

    fn walk(&self, cut: Cut) -> Walk {
        Walk::new(&self.filter, &self.series, cut, self.accuracy)
    }

    /// Links followed and cells looked at for a row, on average.
    fn work(&self, problem: &Problem<'_>, walk: &Walk) -> f64 {
        let rows = sample::ordinary(&self.links);
        let mut walker = Walker::new(&self.links);
        let rule = Rule { upper: false, ..problem.recipe.rule() };
        let work = |&row: &u32| walker.row(walk, &self.links, row, &rule, self.accuracy).1.work as f64;
        rows.iter().map(work).sum::<f64>() / rows.len().max(1) as f64
    }

    /// The cut at which the kept entries of the sample are accurate enough.
    fn find_cut(&self, problem: &Problem<'_>, watch: &Watch) -> Result<(Cut, Sample), Error> {
        let rule = Rule { upper: false, ..problem.recipe.rule() };
        let make = |walker: &mut Walker, cut, row| {
            walker.row(&self.walk(cut), &self.links, row, &rule, self.accuracy).0
        };
        sample::find_cut(problem, &rule, &self.links, (self.first_cut(), self.accuracy), make, watch)
    }
}

impl RowMaker for Local {
    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn make(&self, sink: &Sink, watch: &Watch) -> Result<Account, Error> {
        let places: Vec<usize> = (0..sink.rows().len()).filter(|&place| !sink.is_put(place)).collect();
        let phase = watch.phase("kernel rows", places.len() as u64);
        let bound = places
            .par_chunks(TASK)
            .map(|task| {
                let bound = self.make_some(task, sink);
                phase.advance(task.len() as u64)?;
                Ok(bound)
            })
            .try_reduce(|| 0.0, |a, b| Ok(f64::max(a, b)))?;
        let accuracy = Accuracy {
            bound: self.tail.map(|tail| tail + bound),
            estimate: Some(self.sample.error()),
            how: Some(self.sample.to_string()),
        };
        Ok(Account { precision: Precision::F32, ..Account::new(self.plan(), accuracy) })
    }
}
