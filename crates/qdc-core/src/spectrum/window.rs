//! The k pairs nearest to mu without the others: Chebyshev-filtered block subspace iteration.
//!
//! A random block X of m > k columns is replaced by T_j((c - (B - mu)^2) / e) X, with c and e such that eigenvalues
//! farther than r from mu fall into [-1, 1], where |T_j| <= 1; those nearer grow like exp(j acosh(...)), by twelve orders of magnitude
//! where the k-th nearest lies. One Rayleigh-Ritz step in the filtered block then gives the pairs. Multiplicity does no
//! harm: a block of m columns holds m copies. Ritz pairs are ranked by |(B - mu) v|, not by |theta - mu|, so that mixtures of pairs
//! far above and far below mu do not pass for near ones. What was found is compared with what is there, counted by
//! inertia; if something is missing the block grows.
//!
//! Cost: j is about 26 / r products of B with 1.5 k vectors, and 10 n (1.5 k)^2 operations for the algebra of the block.

use faer::{Mat, MatRef};

use super::dense;
use super::density::Density;
use super::folded::{Folded, Outcome, Wanted, certify, everything};
use super::groups::GROUP_TOLERANCE;
use super::inertia::Inertia;
use super::panels::{Panel, map_panels, product, random};
use crate::chebyshev::{Operator, WIDTH_F64 as WIDTH};
use crate::lines::{Line, Rows, step};
use crate::{Csr, Error, Watch};

/// Residuals a pair must reach.
const TOLERANCE: f64 = 1e-9;
/// How much the first filter favours the wanted pairs.
const FIRST_GROWTH: f64 = 1e12;
/// Filters before giving up.
const ROUNDS: usize = 8;
/// Blocks up to this size are decomposed in full.
pub(super) const SMALL: usize = 400;

/// The number of columns for `count` wanted pairs.
fn block_width(count: usize) -> usize {
    count + (count / 2).max(32)
}

/// How the first filter would go.
struct Plan {
    width: usize,
    near: f64,
    far: f64,
    degree: usize,
}

impl Plan {
    fn new(density: &Density, folded: &Folded, wanted: &Wanted) -> Self {
        let known = |radius: f64| wanted.known_within(radius);
        let radius = density.radius(wanted.mu, wanted.count as f64, known);
        let target = density.within(wanted.mu, radius);
        let width = block_width(target.ceil() as usize);
        let near = density.radius(wanted.mu, 1.03 * target + 8.0, |_| 0).min(1.1 * radius + 1e-3);
        let far = density.radius(wanted.mu, 0.95 * width as f64, |_| 0).max(1.05 * near);
        Self { width, near, far, degree: folded.degree(near, far, FIRST_GROWTH) }
    }

    /// Whether the full decomposition of so many rows would be faster: 10 n^3 operations against two rounds of
    /// filter (whose operations take four times as long) and algebra of the block.
    fn loses(&self, rows: usize, entries: usize) -> bool {
        let (rows, width) = (rows as f64, self.width as f64);
        let filter = 4.0 * (2 * self.degree * entries) as f64 * 2.0 * width;
        let algebra = 11.0 * rows * width * width + 12.0 * width.powi(3);
        1.5 * filter + 2.0 * algebra > 10.0 * rows.powi(3)
    }
}

/// Finds every pair no farther from mu than the k-th nearest, with a certificate.
///
/// Blocks that are small, or of which most pairs are wanted, are decomposed in full; with `fastest` so are those for
/// which that takes less time.
pub(super) fn solve(
    matrix: &Csr<f64>,
    wanted: &Wanted,
    fastest: bool,
    watch: &Watch,
) -> Result<Outcome, Error> {
    let rows = matrix.rows();
    if rows <= SMALL {
        return everything(matrix, wanted, watch);
    }
    let folded = Folded::new(matrix, wanted.mu);
    let density = estimate(matrix, wanted, watch)?;
    let Plan { mut width, mut near, mut far, mut degree } = {
        let plan = Plan::new(&density, &folded, wanted);
        let fits = wanted.memory.is_none_or(|limit| dense::memory(rows) <= limit);
        if plan.width * 3 > rows * 2 || (fastest && fits && plan.loses(rows, matrix.entries())) {
            return everything(matrix, wanted, watch);
        }
        plan
    };
    let mut block = random(rows, width, wanted.seed);
    let mut applications = density.applications();
    let inertia = Inertia::new(matrix, wanted.memory);
    if inertia.is_none() {
        watch.note(
            "the factorisation that would count eigenvalues does not fit in memory: they are estimated",
        );
    }
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
        let mut outcome = ritz.outcome(wanted.mu, goal, TOLERANCE, applications);
        let have = outcome.found.values.len();
        if worst <= TOLERANCE && have >= inside.len() {
            outcome.counted = Some(density.within(wanted.mu, goal).round() as usize);
            let shifts = ritz.shifts(wanted.mu, goal, TOLERANCE);
            certify(&mut outcome, inertia.as_ref(), shifts, rows, watch)?;
            if outcome.converged {
                return Ok(outcome);
            }
        }
        let short =
            outcome.counted.filter(|_| outcome.exact).map_or(0, |counted| counted.saturating_sub(have));
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
        degree = folded.degree(near, far, growth);
        last = Some(outcome);
    }
    Ok(last.expect("there was a round"))
}

/// The density, resolved finely enough to see the window.
fn estimate(matrix: &Csr<f64>, wanted: &Wanted, watch: &Watch) -> Result<Density, Error> {
    let operator = Operator::from_matrix(matrix.clone());
    let mut degree = 256;
    loop {
        let density = Density::new(&operator, degree, wanted.seed, watch)?;
        let radius = density.radius(wanted.mu, wanted.count as f64, |radius| wanted.known_within(radius));
        if degree >= 4096 || radius > 3.0 * density.resolution() {
            return Ok(density);
        }
        degree *= 2;
    }
}

/// The block with random columns added, or the farthest taken away.
fn widen(block: MatRef<'_, f64>, width: usize, seed: u64) -> Mat<f64> {
    let fresh = random(block.nrows(), width, seed);
    Mat::from_fn(block.nrows(), width, |row, column| {
        if column < block.ncols() { block[(row, column)] } else { fresh[(row, column)] }
    })
}

impl Folded {
    /// The j for which T_j is at least `growth` at distance `near`, when it stays below 1 beyond `far`.
    fn degree(&self, near: f64, far: f64, growth: f64) -> usize {
        let x = 1.0 + 2.0 * (far * far - near * near) / (self.bound().powi(2) - far * far).max(1e-3);
        ((2.0 * growth).ln() / x.acosh()).ceil().clamp(2.0, 20_000.0) as usize
    }

    /// T_degree(((B - mu)^2 - c) / e) X.
    fn filter(
        &self,
        block: MatRef<'_, f64>,
        far: f64,
        degree: usize,
        watch: &Watch,
    ) -> Result<Mat<f64>, Error> {
        let bound = self.bound().powi(2).max(1.01 * far * far);
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
