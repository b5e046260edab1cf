//! The k pairs nearest to mu by shift-invert block Lanczos: fast where B - mu can be factorised.
//!
//! The pairs of B nearest to s are those of (B - s)^-1 farthest from 0, and a Krylov space of (B - s)^-1 over
//! a block of eight random vectors finds them first, at about two columns for each pair. The basis is kept
//! whole and orthogonalised twice against itself. s lies a little beside mu, so that mu may be an eigenvalue.
//!
//! A Krylov space over b vectors holds at most b copies of an eigenvalue. What was found is therefore counted
//! by inertia; if copies are missing, the search goes on, orthogonal to what is locked, with fresh vectors.
//!
//! Cost: three factorisations (one to solve with, two to count), about 2 k solves, and 10 n (2 k)^2
//! operations.
//!
//! Reference: R. G. Grimes, J. G. Lewis, H. D. Simon, "A shifted block Lanczos algorithm for solving sparse
//! symmetric generalized eigenproblems", 1994.

use faer::linalg::matmul::matmul;
use faer::{Accum, Mat, MatRef};

use super::block::{Counter, Goal, Locked, Outcome, Wanted, everything, join};
use super::dense::{self, parts};
use super::factor::Inverse;
use super::folded::Folded;
use super::panels::{inner, orthonormalize, random, times};
use super::plan::Survey;
use crate::{Csr, Error, Watch};

/// Residuals a pair must reach.
const TOLERANCE: f64 = 1e-9;
/// Residuals at which the search itself stops: what Rayleigh-Ritz makes of them is no worse.
const SETTLED: f64 = 5e-10;
/// Residuals up to which Ritz vectors are kept: the pairs next to the window tell how wide the gap beside it
/// is.
const VAGUE: f64 = 1e-4;
/// Vectors that start a Krylov space.
const BLOCK: usize = 8;
/// The most vectors that start one when copies are missing.
const WIDEST: usize = 64;
/// Krylov spaces before giving up.
const ROUNDS: usize = 12;
/// Pairs beyond the window that should be there too: they tell how wide the gap beside it is.
const BEYOND: usize = 2;

/// The number of columns that finding `count` pairs is expected to take (measured).
pub(super) fn columns(count: usize) -> usize {
    9 * (count + BEYOND) / 4 + 20 * BLOCK
}

/// Finds every pair no farther from mu than the k-th nearest, with a certificate.
///
/// # Panics
/// If the survey found that no factorisation fits.
pub(super) fn solve(
    matrix: &Csr<f64>,
    wanted: &Wanted,
    survey: &Survey,
    watch: &Watch,
) -> Result<Outcome, Error> {
    let rows = matrix.rows();
    let symbolic = survey.symbolic.as_ref().expect("a factorisation that fits");
    let folded = Folded::new(matrix, wanted.mu);
    let counter = Counter { matrix, symbolic: Some(symbolic) };
    let inverse = Inverse::beside(matrix, wanted.mu, (survey.centre, survey.radius), symbolic, watch)?;
    let mut locked = Locked::none(rows);
    let mut applications = 0;
    let mut missing = None;
    let mut last = None;
    for round in 0..ROUNDS {
        if 2 * (locked.vectors.ncols() + 2 * WIDEST) > rows {
            return everything(matrix, wanted, watch); // a Krylov space would have no room
        }
        let (goal, width, expected) = match missing {
            None => (Goal::Nearest { wanted, beyond: BEYOND }, BLOCK, survey.count),
            Some((count, radius)) => {
                let width = usize::next_multiple_of(count, BLOCK).clamp(BLOCK, WIDEST);
                (Goal::Within { count, radius }, width, count)
            }
        };
        let start = random(rows, width, wanted.seed + round as u64);
        let mut space = Krylov::new(&inverse, locked.vectors.as_ref(), start);
        let found = space.grow(&goal, expected, &locked.distances, watch)?;
        applications += space.solves;
        let ritz = folded.ritz(join(&[locked.vectors.as_ref(), found.as_ref()]), watch)?;
        applications += 2 * ritz.values.len() as u64;
        let goal = wanted.radius(&ritz.distances);
        let reach = goal.min(ritz.distances.last().copied().unwrap_or(0.0));
        let mut outcome = ritz.outcome(reach, TOLERANCE, applications);
        counter.certify(&ritz, reach, TOLERANCE, &mut outcome, watch)?;
        watch.note(&format!(
            "shift-invert round {round}: {} pairs within {reach:.3e} from {} columns, {} counted",
            outcome.found.values.len(),
            space.width(),
            outcome.counted.map_or("none".into(), |counted| counted.to_string()),
        ));
        outcome.converged &= goal.is_finite() && outcome.interval.is_some();
        if outcome.converged {
            return Ok(outcome);
        }
        locked = ritz.lock(TOLERANCE);
        missing = (outcome.missing() > 0).then(|| (outcome.missing(), reach));
        last = Some(outcome);
    }
    Ok(last.expect("there was a round"))
}

/// Ritz pairs of a Krylov space.
struct Projection {
    /// Distance from mu, and residual of B.
    pairs: Vec<(f64, f64)>,
    /// From the basis to the Ritz vectors.
    rotation: Mat<f64>,
}

/// A basis of the Krylov space, orthogonal to what is locked, and the projection of the inverse on it.
struct Krylov<'a> {
    inverse: &'a Inverse<'a>,
    /// What is locked, then the blocks Q_1, Q_2, ... side by side, so that a new block is made orthogonal to
    /// all of them by two products; the last block has not been multiplied yet.
    basis: Mat<f64>,
    /// Columns that fit in its memory.
    room: usize,
    /// Columns of it that are locked.
    locked: usize,
    /// Columns of a block.
    block: usize,
    /// Q_j^T A Q_j.
    diagonal: Vec<Mat<f64>>,
    /// A Q_j = ... + Q_(j+1) R_j.
    below: Vec<Mat<f64>>,
    solves: u64,
}

impl<'a> Krylov<'a> {
    fn new(inverse: &'a Inverse<'a>, locked: MatRef<'_, f64>, start: Mat<f64>) -> Self {
        let mut space = Self {
            inverse,
            basis: locked.to_owned(),
            room: locked.ncols(),
            locked: locked.ncols(),
            block: start.ncols(),
            diagonal: Vec::new(),
            below: Vec::new(),
            solves: 0,
        };
        let (first, _) = space.orthogonal(start);
        space.append(&first);
        space
    }

    /// Columns multiplied so far.
    fn width(&self) -> usize {
        self.diagonal.len() * self.block
    }

    /// The blocks that were multiplied.
    fn multiplied(&self) -> MatRef<'_, f64> {
        self.basis.as_ref().subcols(self.locked, self.width())
    }

    /// The block that was not.
    fn last(&self) -> MatRef<'_, f64> {
        self.basis.as_ref().subcols(self.locked + self.width(), self.block)
    }

    fn append(&mut self, block: &Mat<f64>) {
        let (rows, columns) = (self.basis.nrows(), self.basis.ncols());
        if columns + self.block > self.room {
            self.room = columns + columns / 2 + self.block;
            self.basis.reserve(rows, self.room);
        }
        self.basis.resize_with(rows, columns + self.block, |row, column| block[(row, column - columns)]);
    }

    /// Grows until the goal is met or the space is large, and gives the Ritz vectors that have settled or
    /// nearly so.
    ///
    /// About `expected` pairs are sought; those locked lie at the given distances from mu.
    fn grow(
        &mut self,
        goal: &Goal<'_>,
        expected: usize,
        locked: &[f64],
        watch: &Watch,
    ) -> Result<Mat<f64>, Error> {
        let room = (self.basis.nrows() - self.locked).saturating_sub(2 * WIDEST);
        let most = (3 * columns(expected)).min(room);
        let mut next_look = (expected + expected / 4 + BLOCK).min(most);
        let phase = watch.phase("shift-invert", most as u64);
        loop {
            self.extend();
            let width = self.width();
            phase.advance(self.block as u64)?;
            if width < next_look && width < most {
                continue;
            }
            next_look = width + width / 10;
            let Projection { pairs, rotation } = self.project(watch)?;
            let settled: Vec<(f64, bool)> =
                pairs.iter().map(|&(distance, residual)| (distance, residual <= SETTLED)).collect();
            if goal.is_met(&settled, locked) || width >= most {
                let kept: Vec<usize> = (0..pairs.len()).filter(|&at| pairs[at].1 <= VAGUE).collect();
                let chosen = Mat::from_fn(width, kept.len(), |row, at| rotation[(row, kept[at])]);
                return Ok(times(self.multiplied(), chosen.as_ref()));
            }
        }
    }

    /// One more block: A Q_j, its part in the space taken off.
    fn extend(&mut self) {
        let image = self.inverse.factors.solve(self.last());
        self.solves += self.block as u64;
        let diagonal = inner(self.last(), image.as_ref());
        let (next, below) = self.orthogonal(image);
        self.diagonal.push(diagonal);
        self.append(&next);
        self.below.push(below);
    }

    /// A block as (orthonormal and orthogonal to everything before) times (small matrix).
    ///
    /// Taken off, orthonormalised, and both once more: what the first pass leaves, the second takes off a block
    /// of unit columns, so that the rest is of the size of rounding (J. L. Barlow, A. Smoktunowicz,
    /// "Reorthogonalized block classical Gram-Schmidt", 2013).
    fn orthogonal(&self, mut block: Mat<f64>) -> (Mat<f64>, Mat<f64>) {
        let mut pass = || {
            let overlap = inner(self.basis.as_ref(), block.as_ref());
            matmul(block.as_mut(), Accum::Add, self.basis.as_ref(), overlap.as_ref(), -1.0, parts());
            let basis = orthonormalize(block.clone());
            let triangle = inner(basis.as_ref(), block.as_ref());
            block = basis;
            triangle
        };
        let first = pass();
        let factor = times(pass().as_ref(), first.as_ref());
        (block, factor)
    }

    /// Rayleigh-Ritz with the inverse.
    fn project(&self, watch: &Watch) -> Result<Projection, Error> {
        let width = self.width();
        let mut projected = Mat::<f64>::zeros(width, width);
        let mut at = 0;
        for (step, diagonal) in self.diagonal.iter().enumerate() {
            let size = diagonal.ncols();
            projected.as_mut().submatrix_mut(at, at, size, size).copy_from(diagonal);
            if step + 1 < self.diagonal.len() {
                let below = &self.below[step];
                projected.as_mut().submatrix_mut(at + size, at, below.nrows(), size).copy_from(below);
            }
            at += size;
        }
        let (thetas, rotation) = dense::decompose_full(projected, watch)?;
        let coupling = self.below.last().expect("one for each block");
        let size = coupling.ncols();
        let left = times(coupling.as_ref(), rotation.as_ref().subrows(width - size, size));
        let pairs = thetas.iter().enumerate().map(|(at, &theta)| {
            // A residual r of the inverse is one of |(B - s) r| / theta for B.
            let residual = 2.0 * left.col(at).norm_l2() / theta.abs();
            (self.inverse.distance(theta), residual)
        });
        Ok(Projection { pairs: pairs.collect(), rotation })
    }
}
