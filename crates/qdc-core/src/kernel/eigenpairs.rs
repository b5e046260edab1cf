//! The route by eigenpairs: Q = V P(E) V^T from eigenpairs, a block of rows at a time.

use std::ops::Range;
use std::sync::{Arc, OnceLock};

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef, Par};
use rayon::prelude::*;

use super::accuracy::eigenpairs_bound;
use super::resources::Spectra;
use super::route::Problem;
use super::{Account, Accuracy, Plan, Recipe, Resources, Route, RowMaker, Sink};
use crate::chebyshev::{Operator, apply};
use crate::sparsify::Row;
use crate::spectrum::{GROUP_TOLERANCE, Prepared};
use crate::splitmix::scramble;
use crate::{Eigensolver, Error, Filter, Pairs, Sparsify, Spectrum, Transition, Watch};

/// Rows computed at a time.
const BLOCK: usize = 64;
/// Pairs whose filter is smaller than this share of the largest are skipped: together they move no entry by
/// more.
const NEGLIGIBLE: f64 = 1e-16;
/// Random probes for the trace of the filter.
const PROBES: usize = 64;
/// Up to this many vertices a full eigendecomposition takes milliseconds and leaves only rounding.
const SMALL: usize = 256;

/// The route, ready for a problem.
struct Eigenpairs {
    plan: Plan,
    recipe: Recipe,
    resources: Resources,
    transition: Arc<Transition>,
    /// How the pairs will be computed; `None` where they are at hand.
    prepared: Option<Prepared>,
    /// The pairs, once they are found or computed, and where they came from.
    spectrum: OnceLock<(Spectrum, String)>,
}

/// Prepares the route: takes pairs that are given, looks for stored ones, or chooses how they will be
/// computed.
pub(super) fn offer(problem: &Problem<'_>, watch: &Watch) -> Result<Box<dyn RowMaker>, Error> {
    if problem.recipe.pairs == Pairs::All {
        check_filter(&problem.recipe.filter)?;
        if problem.rival.is_some() && problem.route != Route::Dense {
            return Err(problem.unsuited("all pairs are found by the full decomposition"));
        }
    }
    let mut route = Eigenpairs {
        plan: Plan { route: problem.route, reason: String::new(), degree: None, flops: 0.0, memory: 0 },
        recipe: problem.recipe.clone(),
        resources: Resources { route: problem.route, ..problem.resources.clone() },
        transition: Arc::clone(&problem.transition),
        prepared: None,
        spectrum: OnceLock::new(),
    };
    // A route that is only compared with others does not open files.
    let known = if problem.rival.is_none() { route.at_hand(watch)? } else { None };
    let nodes = problem.transition.nodes() as f64;
    // Rows are symmetric; half of them are computed.
    let rows = |pairs: f64| nodes * nodes * pairs;
    if let Some((spectrum, reason)) = known {
        route.plan = Plan {
            route: spectrum.report().solver,
            flops: rows(route.recipe.pairs.among(spectrum.pairs()) as f64),
            memory: 8 * (problem.transition.nodes() * spectrum.pairs()) as u64, // the vectors, mapped or held
            reason: reason.clone(),
            ..route.plan
        };
        let _ = route.spectrum.set((spectrum, reason));
        return Ok(Box::new(route));
    }
    let prepared = route.solver().prepare(&problem.transition, watch)?;
    let small = problem.rival.is_some() && problem.transition.nodes() <= SMALL;
    let pairs = route.recipe.pairs.among(problem.transition.nodes()) as f64;
    route.plan = Plan {
        route: prepared.route(),
        reason: reason(problem, &prepared),
        flops: if small { 0.0 } else { prepared.flops() + rows(pairs) },
        memory: prepared.memory(),
        ..route.plan
    };
    route.prepared = Some(prepared);
    Ok(Box::new(route))
}

/// Why eigenpairs, and why by that method.
fn reason(problem: &Problem<'_>, prepared: &Prepared) -> String {
    let small = problem.transition.nodes() <= SMALL;
    match problem.recipe.pairs {
        Pairs::Nearest(_) => {
            format!("a window of pairs needs eigenpairs, by {}: {}", prepared.method(), prepared.reason())
        }
        Pairs::All if problem.rival.is_none() => "that solver was asked for".into(),
        Pairs::All if small => "a graph this small is decomposed outright".into(),
        Pairs::All => "no other route can do it or is faster".into(),
    }
}

/// Refuses a filter that is not finite somewhere on [-1, 1], as the polynomial route does.
fn check_filter(filter: &Filter) -> Result<(), Error> {
    for at in -32..=32 {
        let energy = f64::from(at) / 32.0;
        let value = filter.evaluate(energy);
        if !value.is_finite() {
            return Err(Error::FilterNotFinite { filter: filter.to_string(), energy, value });
        }
    }
    Ok(())
}

impl Eigenpairs {
    /// Pairs that need not be computed, and where they come from.
    fn at_hand(&self, watch: &Watch) -> Result<Option<(Spectrum, String)>, Error> {
        match &self.resources.spectra {
            Spectra::Given(spectrum) => {
                spectrum.origin().check(&self.transition)?;
                Ok(Some((spectrum.clone(), "from a spectrum computed before".into())))
            }
            // The iterative solvers were asked for by name and do their own work.
            Spectra::Stored(store) if matches!(self.resources.route, Route::Auto | Route::Dense) => {
                let found = store.find(&self.transition, watch);
                Ok(found.map(|spectrum| (spectrum, "from a stored spectrum".into())))
            }
            _ => Ok(None),
        }
    }

    /// The pairs: at hand, or computed now; complete ones are stored where there is a store.
    fn spectrum(&self, watch: &Watch) -> Result<&(Spectrum, String), Error> {
        if let Some(known) = self.spectrum.get() {
            return Ok(known);
        }
        let known = match self.at_hand(watch)? {
            Some(known) => known,
            None => (self.compute(watch)?, self.plan.reason.clone()),
        };
        Ok(self.spectrum.get_or_init(|| known))
    }

    /// The solver of the pairs.
    fn solver(&self) -> Eigensolver {
        // A decomposition finds all pairs anyway; stored, they serve every filter and every window after this
        // one.
        let stored = matches!(self.resources.spectra, Spectra::Stored(_));
        let pairs =
            if stored && self.resources.route == Route::Dense { Pairs::All } else { self.recipe.pairs };
        Eigensolver::new()
            .pairs(pairs)
            .around(self.recipe.centre())
            .solver(self.resources.route)
            .memory(self.resources.memory)
            .accelerator(self.resources.accelerator.clone())
    }

    fn compute(&self, watch: &Watch) -> Result<Spectrum, Error> {
        let spectrum = match &self.prepared {
            Some(prepared) => prepared.solve(&self.transition, watch)?,
            None => self.solver().solve(&self.transition, watch)?,
        };
        if let Spectra::Stored(store) = &self.resources.spectra
            && spectrum.is_complete()
        {
            store.keep(&self.transition, &spectrum, watch);
        }
        Ok(spectrum)
    }

    /// The pairs asked for, with the filter's value at each.
    fn weigh<'a>(&self, spectrum: &'a Spectrum) -> Result<Weighted<'a>, Error> {
        let range = match self.recipe.pairs {
            Pairs::All if spectrum.is_complete() => 0..spectrum.pairs(),
            Pairs::All => {
                let (expected, found) = (spectrum.nodes(), spectrum.pairs());
                return Err(Error::LengthMismatch { what: "pairs of a complete spectrum", expected, found });
            }
            Pairs::Nearest(k) => spectrum.nearest(self.recipe.centre(), k),
        };
        let filter = &self.recipe.filter;
        // Rounding can put an eigenvalue beyond the ends of the spectrum, where a filter may have its pole.
        let mut energies: Vec<f64> =
            spectrum.eigenvalues()[range.clone()].iter().map(|energy| energy.clamp(-1.0, 1.0)).collect();
        // Each component has one eigenvalue 1, where PageRank and heat are steepest.
        let ones = self.transition.ones();
        let last = energies.iter().rev().take_while(|&&energy| energy > 1.0 - GROUP_TOLERANCE).count();
        let whole = !range.is_empty() && spectrum.gap_above(&range) == Some(f64::INFINITY);
        let ones = if last == ones && whole { ones } else { 0 };
        let end = energies.len();
        energies[end - ones..].fill(1.0);
        let weights: Vec<f64> = energies.iter().map(|&energy| filter.evaluate(energy)).collect();
        if let Some(at) = weights.iter().position(|weight| !weight.is_finite()) {
            let (filter, energy, value) = (filter.to_string(), energies[at], weights[at]);
            return Err(Error::FilterNotFinite { filter, energy, value });
        }
        Ok(Weighted { spectrum, range, energies, ones, weights })
    }

    fn account(&self, weighted: &Weighted<'_>, reason: &str, watch: &Watch) -> Result<Account, Error> {
        let Weighted { spectrum, range, weights, .. } = weighted;
        let filter = &self.recipe.filter;
        let used: f64 = weights.iter().sum();
        let complete = spectrum.is_complete();
        let all: Option<f64> = if complete {
            Some(spectrum.eigenvalues().iter().map(|&energy| filter.evaluate(energy.clamp(-1.0, 1.0))).sum())
        } else {
            match trace(filter, &self.transition, watch) {
                Ok(all) => Some(all.max(used)),
                Err(Error::FilterTooSharp { .. }) => None, // then the share is not known
                Err(error) => return Err(error),
            }
        };
        let mut warnings = Vec::new();
        let mut pairs = self.recipe.pairs;
        if let Pairs::Nearest(asked) = pairs {
            pairs = Pairs::Nearest(range.len());
            if asked > spectrum.nodes() {
                let nodes = spectrum.nodes();
                warnings.push(format!("{asked} pairs were lowered to the {nodes} there are"));
            }
        }
        let largest = weighted.largest();
        let proved = eigenpairs_bound(&self.transition, weighted, filter);
        // A bound that is no smaller than the entries can be proves nothing.
        let accuracy = match proved.filter(|&bound| bound < largest || bound == 0.0) {
            Some(bound) => Accuracy::proved(bound),
            None => {
                let how = "residuals and orthogonality of the eigenpairs, to first order, as if the window stood apart";
                Accuracy::estimated(weighted.error_estimate(filter).min(2.0 * largest), how)
            }
        };
        let plan = Plan { route: spectrum.report().solver, reason: reason.to_owned(), ..self.plan.clone() };
        Ok(Account {
            pairs,
            residual_max: Some(spectrum.report().residual_max),
            captured_mass: all.and_then(|all| share(used, all)),
            captured_mass_estimated: !complete,
            warnings,
            ..Account::new(plan, accuracy)
        })
    }
}

impl RowMaker for Eigenpairs {
    fn plan(&self) -> Plan {
        self.plan.clone()
    }

    fn make(&self, sink: &Sink, watch: &Watch) -> Result<Account, Error> {
        let (spectrum, reason) = self.spectrum(watch)?;
        let weighted = self.weigh(spectrum)?;
        weighted.make(sink, watch)?;
        self.account(&weighted, reason, watch)
    }
}

/// The pairs of a spectrum that enter a kernel, with their weights.
pub(super) struct Weighted<'a> {
    pub(super) spectrum: &'a Spectrum,
    pub(super) range: Range<usize>,
    /// The eigenvalues, within [-1, 1].
    pub(super) energies: Vec<f64>,
    /// How many of the last eigenvalues are exactly 1.
    pub(super) ones: usize,
    /// P at each of them.
    pub(super) weights: Vec<f64>,
}

impl Weighted<'_> {
    /// The largest |P| at the pairs.
    pub(super) fn largest(&self) -> f64 {
        self.weights.iter().fold(0.0, |most, weight| most.max(weight.abs()))
    }

    /// The positions within the range from the first to the last pair that is not skipped.
    pub(super) fn used(&self) -> Range<usize> {
        let least = NEGLIGIBLE * self.largest();
        let used = |weight: &f64| weight.abs() > least;
        match (self.weights.iter().position(used), self.weights.iter().rposition(used)) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..0,
        }
    }

    /// Some of the pairs, by their positions within the range.
    pub(super) fn part(&self, part: Range<usize>) -> Self {
        Self {
            spectrum: self.spectrum,
            range: self.range.start + part.start..self.range.start + part.end,
            energies: self.energies[part.clone()].to_vec(),
            ones: if part.end == self.range.len() { self.ones.min(part.len()) } else { 0 },
            weights: self.weights[part].to_vec(),
        }
    }

    /// Makes the rows wanted, in blocks that lie the same whichever rows are asked for, so that their bits do
    /// too.
    fn make(&self, sink: &Sink, watch: &Watch) -> Result<(), Error> {
        let (nodes, rule) = (self.spectrum.nodes(), sink.rule());
        let used = self.used();
        let weights = &self.weights[used.clone()];
        let start = self.range.start + used.start;
        let vectors = MatRef::from_column_major_slice(
            &self.spectrum.vectors()[start * nodes..(start + weights.len()) * nodes],
            nodes,
            weights.len(),
        );
        let phase = watch.phase("kernel rows", sink.rows().len() as u64);
        let mut blocks: Vec<(usize, &[u32])> = Vec::new();
        for block in sink.rows().chunk_by(|a, b| *a as usize / BLOCK == *b as usize / BLOCK) {
            let place = blocks.last().map_or(0, |last| last.0 + last.1.len());
            blocks.push((place, block));
        }
        blocks.par_iter().try_for_each(|&(place, block)| {
            let top = block[0] as usize / BLOCK * BLOCK;
            let height = BLOCK.min(nodes - top);
            let right = Mat::from_fn(weights.len(), height, |a, r| weights[a] * vectors[(top + r, a)]);
            let product = |columns: Range<usize>| {
                let mut out = Mat::<f64>::zeros(columns.len(), height);
                let left = vectors.subrows(columns.start, columns.len());
                matmul(&mut out, Accum::Replace, left, &right, 1.0, Par::Seq);
                out
            };
            // Above the diagonal always the same product; what lies below only where the rule looks at it.
            let above = product(top..nodes);
            let whole = !rule.upper || matches!(rule.sparsify, Sparsify::TopK(_));
            let below = product(0..if whole { top } else { 0 });
            for (at, &row) in block.iter().enumerate() {
                let lane = row as usize - top;
                let kept: Row = if whole {
                    let values = [below.col_as_slice(lane), above.col_as_slice(lane)].concat();
                    rule.keep_row(row, 0, &values)
                } else {
                    rule.keep_row(row, top as u32, above.col_as_slice(lane))
                };
                sink.put_kept(place + at, kept);
            }
            phase.advance(block.len() as u64)
        })
    }

    /// What residuals and loss of orthogonality do to first order: |P'| at the eigenvalues times the norm of
    /// all residuals, and the largest P times the loss of orthogonality. The gap beside the window is left
    /// out.
    fn error_estimate(&self, filter: &Filter) -> f64 {
        let report = self.spectrum.report();
        let residuals = report.residual_max.max(f64::EPSILON) * (self.range.len() as f64).sqrt();
        let slope = |energy: f64| {
            let (low, high) = ((energy - residuals).max(-1.0), (energy + residuals).min(1.0));
            let chord = || (filter.evaluate(high) - filter.evaluate(low)).abs() / (high - low);
            filter.steepest(low, high).unwrap_or_else(chord)
        };
        let uncertain = &self.energies[..self.energies.len() - self.ones];
        let steepest = uncertain.iter().map(|&energy| slope(energy)).fold(0.0, f64::max);
        steepest * residuals + self.largest() * report.orthogonality.max(f64::EPSILON)
    }
}

/// `part / whole`, where that means something.
fn share(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// An estimate of the trace of P(L): the mean of z^T P(L) z over random sign vectors z from a fixed seed.
fn trace(filter: &Filter, transition: &Transition, watch: &Watch) -> Result<f64, Error> {
    let nodes = transition.nodes();
    let sign = |at: usize| if scramble(at as u64) & 1 == 0 { 1.0 } else { -1.0 };
    let probes: Vec<f64> = (0..nodes * PROBES).map(sign).collect();
    let series = crate::chebyshev::Series::of(filter, 1e-6)?;
    let images = apply(&Operator::new(transition), series.coefficients(), &probes, PROBES, watch)?;
    Ok(probes.iter().zip(&images).map(|(a, b)| a * b).sum::<f64>() / PROBES as f64)
}
