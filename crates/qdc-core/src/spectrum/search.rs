//! One block of LOBPCG: the best vectors in the span of the iterate X, the preconditioned residual W and the
//! last direction P, step after step.
//!
//! [X P W] is orthonormal: W is orthogonalised, and the new X and P are rotations of the old basis with
//! orthonormal columns. So G = B - mu is applied to the new W only; G X and G P are rotated like X and P,
//! without loss. The Rayleigh quotient of F = G^2 is (G S)^T (G S), which is not squared in precision. After
//! each step X is rotated once more so that its columns are Ritz vectors of B, whose residuals decide what
//! has converged. Vectors that have converged stay in the basis and get no further W or P (soft locking).
//!
//! Reference: J. A. Duersch, M. Shao, C. Yang, M. Gu, "A robust and efficient implementation of LOBPCG",
//! 2018.

use faer::{Mat, MatRef};

use super::block::{Goal, join};
use super::dense;
use super::factor::Factors;
use super::folded::Folded;
use super::panels::{apply, inner, orthonormalize, times};
use crate::{Error, Watch};

/// Residual of B at which a vector needs no further work.
const SETTLED: f64 = 1e-10;
/// Residual up to which vectors are given back: the pairs next to the window tell how wide the gap beside it
/// is.
const VAGUE: f64 = 1e-4;
/// Steps of a search with a preconditioner, and without.
const STEPS: [usize; 2] = [120, 3000];
/// Steps without progress after which a search gives what it has.
const PATIENCE: usize = 30;

/// The state of a search.
pub(super) struct Search<'a> {
    folded: &'a Folded,
    inverse: Option<&'a Factors<'a>>,
    locked: MatRef<'a, f64>,
    /// X, Ritz vectors of B.
    iterate: Mat<f64>,
    /// G X.
    image: Mat<f64>,
    /// P.
    direction: Mat<f64>,
    /// G P.
    direction_image: Mat<f64>,
    /// |G x| and |G x - h x| of each column.
    measured: Vec<(f64, f64)>,
    /// Products with B.
    pub(super) applications: u64,
}

impl<'a> Search<'a> {
    pub(super) fn new(
        folded: &'a Folded,
        inverse: Option<&'a Factors<'a>>,
        locked: MatRef<'a, f64>,
        start: Mat<f64>,
    ) -> Result<Self, Error> {
        let rows = start.nrows();
        let start = inverse.map_or(start.clone(), |inverse| inverse.solve(start.as_ref()));
        let iterate = clear(start, &[locked]);
        let image = apply(&folded.operator, iterate.as_ref())?;
        let applications = iterate.ncols() as u64;
        let none = || Mat::zeros(rows, 0);
        let (direction, direction_image, measured) = (none(), none(), Vec::new());
        Ok(Self {
            folded,
            inverse,
            locked,
            iterate,
            image,
            direction,
            direction_image,
            measured,
            applications,
        })
    }

    /// Steps until the goal is met, the `count` nearest vectors have converged, or nothing moves; gives the
    /// vectors that have converged or nearly so.
    pub(super) fn run(
        &mut self,
        goal: &Goal<'_>,
        count: usize,
        locked: &[f64],
        watch: &Watch,
    ) -> Result<Mat<f64>, Error> {
        let most = STEPS[usize::from(self.inverse.is_none())];
        let phase = watch.phase("lobpcg", most as u64);
        self.rotate(watch)?;
        let (mut best, mut since) = ((0, f64::INFINITY), 0);
        for _ in 0..most {
            let settled = |at: usize| self.measured[at].1 <= SETTLED;
            let pairs: Vec<(f64, bool)> =
                (0..self.measured.len()).map(|at| (self.measured[at].0, settled(at))).collect();
            let mut order: Vec<usize> = (0..pairs.len()).collect();
            order.sort_by(|&a, &b| pairs[a].0.total_cmp(&pairs[b].0));
            if goal.is_met(&pairs, locked) || order[..count].iter().all(|&at| settled(at)) {
                break;
            }
            let done = order[..count].iter().filter(|&&at| settled(at)).count();
            let worst = order[..count].iter().map(|&at| self.measured[at].1).fold(0.0, f64::max);
            if done > best.0 || worst < 0.7 * best.1 {
                (best, since) = ((done.max(best.0), worst.min(best.1)), 0);
            } else {
                since += 1;
            }
            if since > PATIENCE && self.inverse.is_some() {
                break;
            }
            self.step(watch)?;
            phase.advance(1)?;
        }
        let kept: Vec<usize> = (0..self.measured.len()).filter(|&at| self.measured[at].1 <= VAGUE).collect();
        Ok(columns(self.iterate.as_ref(), &kept))
    }

    fn step(&mut self, watch: &Watch) -> Result<(), Error> {
        let active: Vec<usize> =
            (0..self.measured.len()).filter(|&at| self.measured[at].1 > SETTLED).collect();
        let width = self.iterate.ncols();
        let fresh = self.fresh(&active)?;
        let fresh_image = apply(&self.folded.operator, fresh.as_ref())?;
        self.applications += (active.len() + fresh.ncols()) as u64;
        let basis = join(&[self.iterate.as_ref(), self.direction.as_ref(), fresh.as_ref()]);
        let image = join(&[self.image.as_ref(), self.direction_image.as_ref(), fresh_image.as_ref()]);
        let (_, rotation) = dense::decompose_full(inner(image.as_ref(), image.as_ref()), watch)?;
        let best = rotation.as_ref().subcols(0, width);
        self.iterate = times(basis.as_ref(), best);
        self.image = times(image.as_ref(), best);
        let turn = self.rotate(watch)?;
        // P: what the step added to X, the part of the rotation outside the old X, made orthogonal to the new
        // X.
        let best = times(best, turn.as_ref());
        let active: Vec<usize> = (0..width).filter(|&at| self.measured[at].1 > SETTLED).collect();
        let added =
            Mat::from_fn(
                best.nrows(),
                active.len(),
                |row, at| {
                    if row < width { 0.0 } else { best[(row, active[at])] }
                },
            );
        let added = clear(added, &[best.as_ref()]);
        self.direction = times(basis.as_ref(), added.as_ref());
        self.direction_image = times(image.as_ref(), added.as_ref());
        Ok(())
    }

    /// The preconditioned residuals of the active vectors, orthonormal and orthogonal to all else.
    fn fresh(&self, active: &[usize]) -> Result<Mat<f64>, Error> {
        let mut residual = apply(&self.folded.operator, columns(self.image.as_ref(), active).as_ref())?;
        for (at, &column) in active.iter().enumerate() {
            let quotient = self.measured[column].0.powi(2);
            let vector = self.iterate.col(column);
            for (out, &value) in residual.as_mut().col_mut(at).iter_mut().zip(vector.iter()) {
                *out -= quotient * value;
            }
        }
        if let Some(inverse) = self.inverse {
            residual = inverse.solve(inverse.solve(residual.as_ref()).as_ref());
        }
        Ok(clear(residual, &[self.locked, self.iterate.as_ref(), self.direction.as_ref()]))
    }

    /// Turns X so that its columns are Ritz vectors of B, and measures them; gives the rotation.
    fn rotate(&mut self, watch: &Watch) -> Result<Mat<f64>, Error> {
        let projected = inner(self.iterate.as_ref(), self.image.as_ref());
        let (values, turn) = dense::decompose_full(projected, watch)?;
        self.iterate = times(self.iterate.as_ref(), turn.as_ref());
        self.image = times(self.image.as_ref(), turn.as_ref());
        self.measured = (0..values.len())
            .map(|at| {
                let (vector, image) = (self.iterate.col(at), self.image.col(at));
                let square: f64 = image.iter().map(|value| value * value).sum();
                let residual: f64 =
                    vector.iter().zip(image.iter()).map(|(v, g)| (g - values[at] * v).powi(2)).sum();
                (square.sqrt(), residual.sqrt())
            })
            .collect();
        Ok(turn)
    }
}

/// An orthonormal basis of the block, orthogonal to `others`, each of them orthonormal.
fn clear(block: Mat<f64>, others: &[MatRef<'_, f64>]) -> Mat<f64> {
    let mut block = scaled(block);
    for _ in 0..2 {
        for other in others.iter().filter(|other| other.ncols() > 0) {
            let overlap = inner(*other, block.as_ref());
            block -= times(*other, overlap.as_ref());
        }
        block = orthonormalize(block);
    }
    block
}

/// Columns of length one, those of length 0 left alone.
fn scaled(mut block: Mat<f64>) -> Mat<f64> {
    for column in 0..block.ncols() {
        let norm = block.col(column).norm_l2();
        if norm > 0.0 {
            block.as_mut().col_mut(column).iter_mut().for_each(|value| *value /= norm);
        }
    }
    block
}

/// Some columns of a block.
fn columns(block: MatRef<'_, f64>, chosen: &[usize]) -> Mat<f64> {
    Mat::from_fn(block.nrows(), chosen.len(), |row, at| block[(row, chosen[at])])
}
