//! The published way: LOBPCG on the folded operator F = (B - mu)^2, whose smallest pairs are those nearest to
//! mu.
//!
//! Few pairs are found in one block, of as many vectors and some guards. Many are found slice by slice: the
//! window is cut where eigenvalues have been counted, and each slice has its own mu and block. What is found
//! is locked; if the count says that pairs are missing, the search goes on beside what is locked, with the
//! shift nudged by 1e-6 where a round brought nothing new.
//!
//! The preconditioner is F^-1 in two solves with a sparse factorisation of B - s, s beside mu. Where that
//! does not fit in memory there is none, and a search takes thousands of steps instead of tens.

use faer::{Mat, MatRef};

use super::block::{Counter, Goal, Locked, Outcome, Wanted, everything, join};
use super::factor::{Factors, Inverse};
use super::folded::Folded;
use super::panels::random;
use super::plan::Survey;
use super::search::Search;
use crate::{Csr, Error, Watch};

/// Residual of B a pair must reach.
const TOLERANCE: f64 = 1e-9;
/// Pairs sought in one block.
const BLOCK: usize = 64;
/// Slices may hold this many pairs before they are cut again.
const SLICE: usize = 80;
/// The narrowest slice: what is left is one degenerate group.
const NARROW: f64 = 1e-7;
/// Rounds that bring nothing new before giving up; each moves the shift.
const NUDGES: usize = 5;
/// How far each nudge goes.
const NUDGE: f64 = 1e-6;

/// Vectors beside those sought: they take the slow convergence at the edge of the block.
pub(super) fn guards(count: usize) -> usize {
    8 + count / 4
}

/// Finds every pair no farther from mu than the k-th nearest, with a certificate.
pub(super) fn solve(
    matrix: &Csr<f64>,
    wanted: &Wanted,
    survey: &Survey,
    watch: &Watch,
) -> Result<Outcome, Error> {
    let rows = matrix.rows();
    let counter = Counter { matrix, symbolic: survey.symbolic.as_ref() };
    let exact = Folded::new(matrix, wanted.mu); // the window is around mu, wherever a shift is
    if counter.symbolic.is_none() {
        watch.note(&format!(
            "lobpcg without preconditioner, because no factorisation fits in memory: expect about {} steps",
            survey.filter_degree(wanted)
        ));
    }
    let mut task = Task { counter, wanted, survey, shift: wanted.mu, seed: wanted.seed, applications: 0 };
    let mut locked = Locked::none(rows);
    let (mut missing, mut nudges) = (None, 0);
    loop {
        let found = match missing {
            None if locked.distances.is_empty() && task.is_large() => task.slices(watch)?,
            None => {
                let left = survey.count.saturating_sub(locked.distances.len()).clamp(1, BLOCK);
                task.search(&Goal::Nearest { wanted, beyond: 1 }, left, &locked, watch)?
            }
            Some((count, radius)) => {
                let goal = Goal::Within { count: usize::min(count, BLOCK), radius };
                task.search(&goal, count.min(BLOCK), &locked, watch)?
            }
        };
        if 3 * (locked.vectors.ncols() + 2 * BLOCK) > 2 * rows {
            return everything(matrix, wanted, watch);
        }
        let before = locked.distances.len();
        let ritz = exact.ritz(join(&[locked.vectors.as_ref(), found.as_ref()]), watch)?;
        task.applications += 2 * ritz.values.len() as u64;
        let goal = wanted.radius(&ritz.distances);
        let reach = goal.min(ritz.distances.last().copied().unwrap_or(0.0));
        let mut outcome = ritz.outcome(reach, TOLERANCE, task.applications);
        outcome.shift = task.shift;
        let mut enough = goal.is_finite();
        if enough {
            task.counter.certify(&ritz, reach, TOLERANCE, &mut outcome, watch)?;
            // Without a count, pairs inside that did not converge are all that can be seen to be missing.
            let inside = ritz.distances.iter().filter(|&&distance| distance <= reach).count();
            enough = outcome.converged && outcome.found.values.len() >= inside;
        }
        outcome.converged = enough;
        if enough {
            return Ok(outcome);
        }
        locked = ritz.lock(TOLERANCE);
        missing = (goal.is_finite() && outcome.missing() > 0).then(|| (outcome.missing(), reach));
        if locked.distances.len() <= before {
            if nudges == NUDGES {
                return Ok(outcome);
            }
            nudges += 1;
            task.shift = wanted.mu + nudges as f64 * NUDGE;
            watch.note(&format!("lobpcg found nothing new; it goes on with the shift at {}", task.shift));
        }
    }
}

/// What all searches of a block share.
struct Task<'a> {
    counter: Counter<'a>,
    wanted: &'a Wanted,
    survey: &'a Survey,
    shift: f64,
    seed: u64,
    applications: u64,
}

impl Task<'_> {
    /// Whether the pairs are too many for one block, and can be counted.
    fn is_large(&self) -> bool {
        self.survey.count > SLICE && self.counter.symbolic.is_some()
    }

    /// One search around the shift, orthogonal to what is locked; the vectors that converged.
    fn search(
        &mut self,
        goal: &Goal<'_>,
        count: usize,
        locked: &Locked,
        watch: &Watch,
    ) -> Result<Mat<f64>, Error> {
        let solve_at = (self.survey.centre + (self.shift - self.wanted.mu), self.survey.radius);
        self.around(self.shift, solve_at, goal, count, locked, watch)
    }

    /// A search around any centre, preconditioned by a factorisation at a point and radius.
    fn around(
        &mut self,
        centre: f64,
        solve_at: (f64, f64),
        goal: &Goal<'_>,
        count: usize,
        locked: &Locked,
        watch: &Watch,
    ) -> Result<Mat<f64>, Error> {
        let matrix = self.counter.matrix;
        let inverse = match self.counter.symbolic {
            Some(symbolic) => Some(Inverse::beside(matrix, centre, solve_at, symbolic, watch)?),
            None => None,
        };
        let folded = Folded::new(matrix, centre);
        let start = random(matrix.rows(), count + guards(count), self.seed);
        self.seed += 1;
        let preconditioner: Option<&Factors<'_>> = inverse.as_ref().map(|inverse| &inverse.factors);
        let mut search = Search::new(&folded, preconditioner, locked.vectors.as_ref(), start)?;
        let found = search.run(goal, count, &locked.distances, watch)?;
        self.applications += search.applications;
        Ok(found)
    }

    /// The window, cut into slices of up to eighty pairs, and the vectors of all of them.
    fn slices(&mut self, watch: &Watch) -> Result<Mat<f64>, Error> {
        let radius = self.radius(watch)?;
        let (low, high) = (self.wanted.mu - radius, self.wanted.mu + radius);
        let mut slices = Vec::new();
        if let Some((below, above)) = self.counter.below(low, watch)?.zip(self.counter.below(high, watch)?) {
            self.cut([(low, below), (high, above)], &mut slices, watch)?;
        }
        let none = Locked::none(self.counter.matrix.rows());
        let phase = watch.phase("lobpcg slices", slices.len() as u64);
        let mut found = vec![none.vectors.clone()];
        for (low, high, count) in slices {
            let (centre, half) = (0.5 * (low + high), 0.5 * (high - low));
            let goal = Goal::Within { count, radius: half };
            let block = self.around(centre, (centre, half), &goal, count, &none, watch)?;
            // Guards that converged belong to the neighbouring slices.
            let inside = Folded::new(self.counter.matrix, centre).inside(block.as_ref(), half)?;
            found.push(inside);
            phase.advance(1)?;
        }
        let blocks: Vec<MatRef<'_, f64>> = found.iter().map(Mat::as_ref).collect();
        Ok(join(&blocks))
    }

    /// A radius around mu that holds at least the pairs wanted, and not many more.
    fn radius(&self, watch: &Watch) -> Result<f64, Error> {
        let mut radius = 1.02 * self.survey.radius;
        for _ in 0..8 {
            let shifts = [self.wanted.mu - radius, self.wanted.mu + radius];
            let Some(counted) = self.counter.between(shifts, watch)? else {
                radius *= 1.001;
                continue;
            };
            let have = (counted + self.wanted.known_within(radius)) as f64;
            let wanted = self.wanted.count as f64;
            if have >= wanted + 2.0 {
                break;
            }
            radius *= (1.05 * wanted / have.max(1.0)).clamp(1.02, 2.0);
        }
        Ok(radius)
    }

    /// Halves an interval, given with the counts below its ends, until each part holds few pairs or is
    /// narrow.
    fn cut(
        &self,
        [(low, below), (high, above)]: [(f64, usize); 2],
        slices: &mut Vec<(f64, f64, usize)>,
        watch: &Watch,
    ) -> Result<(), Error> {
        let count = above.saturating_sub(below);
        if count == 0 {
            return Ok(());
        }
        if count <= SLICE || high - low < NARROW {
            slices.push((low, high, count));
            return Ok(());
        }
        // A little off the middle, where symmetric graphs have eigenvalues.
        let middle = low + 0.4987 * (high - low);
        match self.counter.below(middle, watch)? {
            Some(between) => {
                self.cut([(low, below), (middle, between)], slices, watch)?;
                self.cut([(middle, between), (high, above)], slices, watch)
            }
            None => {
                slices.push((low, high, count));
                Ok(())
            }
        }
    }
}
