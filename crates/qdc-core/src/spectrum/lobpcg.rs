//! The published way: LOBPCG on the folded operator F = (B - mu)^2, whose smallest pairs are those nearest to mu.
//!
//! Sixteen vectors at a time. Each step finds the best vectors in the span of the iterate X, the residual W and the
//! last direction P; that basis is cleared of what is locked and orthonormalised by reflections, twice, so that
//! converged directions cannot spoil it. The leading converged vectors are locked, the rest go on. In the end
//! Rayleigh-Ritz with B itself, in the span of what is locked, separates pairs on either side of mu, which F cannot tell apart.
//!
//! F squares the condition number and there is no preconditioner, so this is slow: it is here because the
//! published results were made with it. On failure the shift is nudged by 1e-6, at most five times.

use faer::{Mat, MatRef};

use super::dense;
use super::folded::{Folded, Outcome, Wanted, certify, everything};
use super::groups::GROUP_TOLERANCE;
use super::inertia::Inertia;
use super::panels::{apply, inner, orthonormalize, random, times};
use crate::{Csr, Error, Watch};

/// Vectors worked on at a time.
const BLOCK: usize = 16;
/// Residual of F at which a vector is locked.
const LOCK: f64 = 1e-12;
/// Residual of B a pair must reach in the end.
const TOLERANCE: f64 = 1e-7;
/// Steps for one batch of vectors before an attempt fails.
const STEPS: usize = 1500;
/// Shifts tried after the first.
const NUDGES: usize = 5;
/// How far each nudge goes.
const NUDGE: f64 = 1e-6;

/// Finds every pair no farther from mu than the k-th nearest, with a certificate.
pub(super) fn solve(matrix: &Csr<f64>, wanted: &Wanted, watch: &Watch) -> Result<Outcome, Error> {
    if !worth_it(matrix.rows(), wanted.count) {
        return everything(matrix, wanted, watch);
    }
    let inertia = Inertia::new(matrix, wanted.memory);
    let mut applications = 0;
    let mut last = None;
    for nudge in 0..=NUDGES {
        let shift = wanted.mu + nudge as f64 * NUDGE;
        if nudge > 0 {
            watch.note(&format!("lobpcg did not converge; again with the shift at {shift}"));
        }
        let mut outcome = attempt(matrix, wanted, shift, inertia.as_ref(), watch)?;
        applications += outcome.applications;
        outcome.applications = applications;
        outcome.shift = shift;
        if outcome.converged {
            return Ok(outcome);
        }
        last = Some(outcome);
    }
    Ok(last.expect("there was an attempt"))
}

/// Whether the wanted pairs and a working basis leave most of the space free.
fn worth_it(rows: usize, count: usize) -> bool {
    rows > 4 * BLOCK && count + 6 * BLOCK < rows
}

fn attempt(
    matrix: &Csr<f64>,
    wanted: &Wanted,
    shift: f64,
    inertia: Option<&Inertia<'_>>,
    watch: &Watch,
) -> Result<Outcome, Error> {
    let rows = matrix.rows();
    let mut search = Search {
        folded: Folded::new(matrix, shift),
        locked: Mat::zeros(rows, 0),
        iterate: random(rows, BLOCK, wanted.seed),
        applications: 0,
    };
    let exact = Folded::new(matrix, wanted.mu); // the window is around mu, wherever the shift is
    let mut needed = wanted.count.min(BLOCK);
    loop {
        let going = search.batch(watch)?;
        let have = search.locked.ncols();
        if !worth_it(rows, have) {
            return everything(matrix, wanted, watch);
        }
        if going && have < needed {
            continue;
        }
        if have == 0 {
            let ritz = exact.ritz(search.iterate.clone(), watch)?;
            return Ok(Outcome {
                converged: false,
                ..ritz.outcome(wanted.mu, 0.0, 0.0, search.applications)
            });
        }
        let ritz = exact.ritz(search.locked.clone(), watch)?;
        let goal = wanted.radius(&ritz.distances);
        let enough = goal.is_finite() && ritz.distances.last().is_some_and(|&last| last >= goal);
        if going && !enough {
            needed = have + 1;
            continue;
        }
        let goal = goal.min(ritz.distances[have - 1]);
        let mut outcome = ritz.outcome(wanted.mu, goal, TOLERANCE, search.applications);
        certify(&mut outcome, inertia, ritz.shifts(wanted.mu, goal, TOLERANCE), rows, watch)?;
        // A count cannot be right if pairs that should be inside did not converge.
        let inside = ritz.distances.iter().filter(|&&distance| distance <= goal + GROUP_TOLERANCE).count();
        outcome.converged &= enough && outcome.found.values.len() >= inside;
        let short = outcome.counted.map_or(0, |counted| counted.saturating_sub(outcome.found.values.len()));
        if outcome.converged || !going || short == 0 {
            return Ok(outcome);
        }
        needed = have + short; // a group cut by the k-th pair: lock the rest of it
    }
}

/// The state of one attempt.
struct Search {
    folded: Folded,
    /// Orthonormal, converged.
    locked: Mat<f64>,
    /// X.
    iterate: Mat<f64>,
    applications: u64,
}

impl Search {
    /// Iterates until half a block has converged, and locks it. `false` if that did not happen in time.
    fn batch(&mut self, watch: &Watch) -> Result<bool, Error> {
        let phase = watch.phase("lobpcg", STEPS as u64);
        let mut basis = self.clear(self.iterate.as_ref());
        for _ in 0..STEPS {
            let image = self.square(basis.as_ref())?;
            let (values, rotation) = dense::decompose_full(inner(basis.as_ref(), image.as_ref()), watch)?;
            let best = rotation.as_ref().subcols(0, BLOCK);
            let iterate = times(basis.as_ref(), best);
            let image = times(image.as_ref(), best);
            let residual = Mat::from_fn(iterate.nrows(), BLOCK, |row, column| {
                image[(row, column)] - values[column] * iterate[(row, column)]
            });
            let done = (0..BLOCK).take_while(|&column| residual.col(column).norm_l2() <= LOCK).count();
            if done >= BLOCK / 2 {
                self.locked = join(&[self.locked.as_ref(), iterate.as_ref().subcols(0, done)]);
                // Those on the way go on; their places are taken by fresh ones.
                let fresh = random(iterate.nrows(), done, self.locked.ncols() as u64);
                self.iterate = join(&[iterate.as_ref().subcols(done, BLOCK - done), fresh.as_ref()]);
                return Ok(true);
            }
            // P is what the step added to X: the part of it outside the old X, which leads the basis.
            let direction = if basis.ncols() > BLOCK {
                let added = rotation.as_ref().subcols(0, BLOCK).subrows(BLOCK, basis.ncols() - BLOCK);
                times(basis.as_ref().subcols(BLOCK, basis.ncols() - BLOCK), added)
            } else {
                Mat::zeros(basis.nrows(), 0)
            };
            basis = self.clear(join(&[iterate.as_ref(), residual.as_ref(), direction.as_ref()]).as_ref());
            self.iterate = iterate;
            phase.advance(1)?;
        }
        Ok(false)
    }

    /// An orthonormal basis of the block, orthogonal to what is locked.
    fn clear(&self, block: MatRef<'_, f64>) -> Mat<f64> {
        let mut basis = scaled(block);
        for _ in 0..2 {
            if self.locked.ncols() > 0 {
                let overlap = inner(self.locked.as_ref(), basis.as_ref());
                basis -= times(self.locked.as_ref(), overlap.as_ref());
            }
            basis = orthonormalize(basis);
        }
        basis
    }

    /// (B - mu)^2 X.
    fn square(&mut self, block: MatRef<'_, f64>) -> Result<Mat<f64>, Error> {
        self.applications += 2 * block.ncols() as u64;
        let once = apply(&self.folded.operator, block)?;
        apply(&self.folded.operator, once.as_ref())
    }
}

/// Columns of length one, those of length 0 left alone.
fn scaled(block: MatRef<'_, f64>) -> Mat<f64> {
    let norms: Vec<f64> = (0..block.ncols()).map(|column| block.col(column).norm_l2()).collect();
    Mat::from_fn(block.nrows(), block.ncols(), |row, column| {
        if norms[column] > 0.0 { block[(row, column)] / norms[column] } else { 0.0 }
    })
}

/// Blocks side by side.
fn join(blocks: &[MatRef<'_, f64>]) -> Mat<f64> {
    let rows = blocks[0].nrows();
    let mut out = Mat::zeros(rows, blocks.iter().map(MatRef::ncols).sum());
    let mut at = 0;
    for block in blocks {
        out.as_mut().subcols_mut(at, block.ncols()).copy_from(block);
        at += block.ncols();
    }
    out
}
