//! The route by eigenpairs, Q = V P(E) V^T: where the pairs come from, and what is said of them.

use std::sync::{Arc, OnceLock};

use super::accuracy::eigenpairs_bound;
use super::resources::Spectra;
use super::route::Problem;
use super::weighted::Weighted;
use super::{Accelerator, Account, Accuracy, MadeWhole, Plan, Recipe, Resources, Route, RowMaker, Sink};
use crate::chebyshev::{Operator, apply};
use crate::spectrum::{GROUP_TOLERANCE, Prepared};
use crate::splitmix::scramble;
use crate::{Eigensolver, Error, Filter, Pairs, Spectrum, Transition, Watch};

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
    /// Why eigenpairs, if they are computed.
    reason: String,
    /// The operations that all rows take once there are pairs.
    rows: f64,
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
        reason: String::new(),
        rows: 0.0,
    };
    // A route that is only compared with others does not open files.
    let known = if problem.rival.is_none() { route.at_hand(watch)? } else { None };
    let nodes = problem.transition.nodes() as f64;
    let among = known.as_ref().map_or(problem.transition.nodes(), |(spectrum, _)| spectrum.pairs());
    // Rows are symmetric; half of them are computed.
    route.rows = nodes * nodes * route.recipe.pairs.among(among) as f64;
    // Asking whether a device takes the rows may open it: not for a route that is only compared with others.
    let told = |route: &Eigenpairs, reason: &str| match problem.rival {
        None => route.with_device(reason),
        Some(_) => reason.to_owned(),
    };
    if let Some((spectrum, reason)) = known {
        route.plan = Plan {
            route: spectrum.report().solver,
            flops: route.rows,
            memory: 8 * (problem.transition.nodes() * spectrum.pairs()) as u64, // the vectors, mapped or held
            reason: told(&route, &reason),
            ..route.plan
        };
        let _ = route.spectrum.set((spectrum, reason));
        return Ok(Box::new(route));
    }
    let prepared = route.solver().prepare(&problem.transition, watch)?;
    let small = problem.rival.is_some() && problem.transition.nodes() <= SMALL;
    route.reason = reason(problem, &prepared);
    route.plan = Plan {
        route: prepared.route(),
        reason: told(&route, &route.reason),
        flops: if small { 0.0 } else { prepared.flops() + route.rows },
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
    /// The device that makes the rows, where it is worth it.
    fn device(&self) -> Option<&dyn Accelerator> {
        self.resources.accelerator.as_deref().filter(|device| device.takes(self.rows))
    }

    /// A reason, and where rows are made if not on the CPU.
    fn with_device(&self, reason: &str) -> String {
        match self.device() {
            Some(device) => format!("{reason}, rows on {}", device.name()),
            None => reason.to_owned(),
        }
    }

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
            None => (self.compute(watch)?, self.reason.clone()),
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
        let plan =
            Plan { route: spectrum.report().solver, reason: self.with_device(reason), ..self.plan.clone() };
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
        if let Some(device) = self.device() {
            match weighted.make_on(device, sink, watch) {
                Err(Error::Device { problem }) if device.yields() => {
                    watch.note(&format!("the rest on the CPU: {problem}"));
                }
                other => other?,
            }
        }
        weighted.make(sink, watch)?; // what the device has made is not made again
        self.account(&weighted, reason, watch)
    }

    fn resident(&self, recipe: &Recipe, watch: &Watch) -> Result<Option<MadeWhole>, Error> {
        let Some(device) = self.device() else { return Ok(None) };
        let (spectrum, reason) = self.spectrum(watch)?;
        let weighted = self.weigh(spectrum)?;
        let made = weighted.make_whole_on(device, &recipe.rule(), watch)?;
        made.map(|matrix| Ok((matrix, self.account(&weighted, reason, watch)?))).transpose()
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
