//! The k pairs nearest to mu without the others: Chebyshev-filtered block subspace iteration.
//!
//! A random block X of m > k columns is replaced by T_j((c - (B - mu)^2) / e) X, with c and e such that
//! eigenvalues farther than r from mu fall into [-1, 1], where |T_j| <= 1; those nearer grow like exp(j
//! acosh(...)), by twelve orders of magnitude where the k-th nearest lies. One Rayleigh-Ritz step in the
//! filtered block then gives the pairs. Multiplicity does no harm: a block of m columns holds m copies. Ritz
//! pairs are ranked by |(B - mu) v|, not by |theta - mu|, so that mixtures of pairs far above and far below
//! mu do not pass for near ones. What was found is compared with what is there, counted by inertia; if
//! something is missing the block grows.
//!
//! Cost: j is about 26 / r products of B with 1.5 k vectors, and 10 n (1.5 k)^2 operations for the algebra of
//! the block.

use faer::{Mat, MatRef};

use super::block::{Counter, Outcome, Wanted, everything};
use super::density::Density;
use super::folded::{Folded, bound};
use super::groups::GROUP_TOLERANCE;
use super::panels::{Panel, map_panels, product, random};
use super::plan::Survey;
use crate::chebyshev::{Operator, WIDTH_F64 as WIDTH};
use crate::simd::{Line, Rows, step};
use crate::{Csr, Error, Watch};

/// Residuals a pair must reach.
const TOLERANCE: f64 = 1e-9;
/// How much the first filter favours the wanted pairs.
const FIRST_GROWTH: f64 = 1e12;
/// Filters before giving up.
const ROUNDS: usize = 8;

/// The number of columns for `count` wanted pairs.
fn block_width(count: usize) -> usize {
    count + (count / 2).max(32)
}

/// How the first filter goes.
pub(super) struct Plan {
    /// Columns of the block.
    pub(super) width: usize,
    near: f64,
    far: f64,
    /// Of the polynomial in (B - mu)^2.
    pub(super) degree: usize,
}

impl Plan {
    pub(super) fn new(density: &Density, mu: f64, wanted: &Wanted) -> Self {
        let radius = density.radius(mu, wanted.count as f64, |radius| wanted.known_within(radius));
        let target = density.within(mu, radius);
        let width = block_width(target.ceil() as usize);
        let near = density.radius(mu, 1.03 * target + 8.0, |_| 0).min(1.1 * radius + 1e-3);
        let far = density.radius(mu, 0.95 * width as f64, |_| 0).max(1.05 * near);
        Self { width, near, far, degree: degree(mu, near, far, FIRST_GROWTH) }
    }
}

/// Finds every pair no farther from mu than the k-th nearest, with a certificate.
///
/// Blocks of which most pairs are wanted are decomposed in full.
pub(super) fn solve(
    matrix: &Csr<f64>,
    wanted: &Wanted,
    survey: &Survey,
    watch: &Watch,
) -> Result<Outcome, Error> {
    let rows = matrix.rows();
    let folded = Folded::new(matrix, wanted.mu);
    let refined = resolve(matrix, wanted, &survey.density, watch)?;
    let density = refined.as_ref().unwrap_or(&survey.density);
    let Plan { mut width, mut near, mut far, mut degree } = Plan::new(density, wanted.mu, wanted);
    if width * 3 > rows * 2 {
        return everything(matrix, wanted, watch);
    }
    let counter = Counter { matrix, symbolic: survey.symbolic.as_ref() };
    let mut block = random(rows, width, wanted.seed);
    let mut applications = density.applications();
    let mut last = None;
    for round in 0..ROUNDS {
        watch.note(&format!(
            "window round {round}: {width} columns, degree {}, pairs within {near:.5}, damped beyond {far:.5}",
            2 * degree
        ));
        let filtered = folded.filter(block.as_ref(), far, degree, watch)?;
        let ritz = folded.ritz(filtered, watch)?;
        applications += (width * (2 * degree + 2)) as u64;

        let goal = wanted.radius(&ritz.distances);
        let inside: Vec<usize> =
            (0..width).filter(|&a| ritz.distances[a] <= goal + GROUP_TOLERANCE).collect();
        let worst = inside.iter().map(|&a| ritz.residuals[a]).fold(0.0, f64::max);
        watch.note(&format!("window round {round}: largest residual within {goal:.5} is {worst:.1e}"));
        let mut outcome = ritz.outcome(goal, TOLERANCE, applications);
        let have = outcome.found.values.len();
        if worst <= TOLERANCE && have >= inside.len() {
            outcome.counted = Some(density.within(wanted.mu, goal).round() as usize);
            counter.certify(&ritz, goal, TOLERANCE, &mut outcome, watch)?;
            if outcome.converged {
                return Ok(outcome);
            }
        }
        let short = if counter.symbolic.is_some() { outcome.missing() } else { 0 };
        let growth =
            if short > 0 { FIRST_GROWTH } else { (worst / TOLERANCE * 1e3).clamp(1e3, FIRST_GROWTH) };
        let needed = block_width(inside.len().max(have + short).min(rows));
        if needed * 3 > rows * 2 {
            return everything(matrix, wanted, watch);
        }
        if short > 0 || needed > width {
            width = needed.max(width + width / 4);
        }
        block = widen(ritz.vectors.as_ref(), width, wanted.seed + 1 + round as u64);
        near = goal.clamp(1e-6, 2.0);
        far = density.radius(wanted.mu, 0.95 * width as f64, |_| 0).max(1.05 * near);
        degree = self::degree(wanted.mu, near, far, growth);
        last = Some(outcome);
    }
    Ok(last.expect("there was a round"))
}

/// A density resolved finely enough to see the window; `None` if the one at hand is.
fn resolve(
    matrix: &Csr<f64>,
    wanted: &Wanted,
    coarse: &Density,
    watch: &Watch,
) -> Result<Option<Density>, Error> {
    let sees = |density: &Density| {
        let radius = density.radius(wanted.mu, wanted.count as f64, |radius| wanted.known_within(radius));
        radius > 3.0 * density.resolution()
    };
    if sees(coarse) {
        return Ok(None);
    }
    let operator = Operator::from_matrix(matrix.clone());
    for degree in [512, 1024, 2048] {
        let density = Density::new(&operator, degree, wanted.seed, watch)?;
        if sees(&density) {
            return Ok(Some(density));
        }
    }
    Density::new(&operator, 4096, wanted.seed, watch).map(Some)
}

/// The block with random columns added, or the farthest taken away.
fn widen(block: MatRef<'_, f64>, width: usize, seed: u64) -> Mat<f64> {
    let fresh = random(block.nrows(), width, seed);
    Mat::from_fn(block.nrows(), width, |row, column| {
        if column < block.ncols() { block[(row, column)] } else { fresh[(row, column)] }
    })
}

/// The j for which T_j is at least `growth` at distance `near`, when it stays below 1 beyond `far`.
fn degree(mu: f64, near: f64, far: f64, growth: f64) -> usize {
    let x = 1.0 + 2.0 * (far * far - near * near) / (bound(mu).powi(2) - far * far).max(1e-3);
    ((2.0 * growth).ln() / x.acosh()).ceil().clamp(2.0, 20_000.0) as usize
}

impl Folded {
    /// T_degree(((B - mu)^2 - c) / e) X.
    fn filter(
        &self,
        block: MatRef<'_, f64>,
        far: f64,
        degree: usize,
        watch: &Watch,
    ) -> Result<Mat<f64>, Error> {
        let bound = bound(self.mu).powi(2).max(1.01 * far * far);
        let (centre, half) = (0.5 * (bound + far * far), 0.5 * (bound - far * far));
        let phase = watch.phase("filtering", (block.ncols().div_ceil(WIDTH) * degree) as u64);
        map_panels(block, |panel| {
            let mut before = panel;
            let mut image = vec![Line::ZERO; before.len()];
            product(&self.operator, &before, &mut image);
            let mut current: Panel = vec![Line::ZERO; before.len()];
            product(&self.operator, &image, &mut current);
            for (next, first) in current.iter_mut().zip(&before) {
                (0..WIDTH).for_each(|lane| next[lane] = (next[lane] - centre * first[lane]) / half);
            }
            for _ in 1..degree {
                product(&self.operator, &current, &mut image);
                for (old, new) in before.iter_mut().zip(&current) {
                    (0..WIDTH).for_each(|lane| old[lane] += 2.0 * centre / half * new[lane]);
                }
                step(&self.operator, Rows::All, 2.0 / half, &image, &mut before);
                std::mem::swap(&mut before, &mut current);
                phase.advance(1)?;
            }
            Ok(current)
        })
    }
}
