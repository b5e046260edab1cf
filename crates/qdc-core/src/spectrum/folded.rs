//! The folded operator (B - mu)^2 and Rayleigh-Ritz around mu: what the iterative ways share.
//!
//! Ritz pairs are ranked by |(B - mu) v|, not by |theta - mu|: a mixture of pairs far above and far below mu
//! has a theta near mu, but cannot hide its distance.

use faer::{Mat, MatRef};
use rayon::prelude::*;

use super::assemble::Found;
use super::block::{Locked, Outcome, Reach};
use super::dense;
use super::groups::{self, GROUP_TOLERANCE};
use super::panels::{apply, inner, orthonormalize, times};
use super::structure;
use crate::chebyshev::Operator;
use crate::{Csr, Error, Watch};

/// The operator (B - mu)^2, as products with B - mu.
pub(super) struct Folded {
    /// B - mu.
    pub(super) operator: Operator<f64>,
    pub(super) mu: f64,
}

/// The largest |E - mu| there can be.
pub(super) fn bound(mu: f64) -> f64 {
    (1.0 + mu.abs()) * (1.0 + 1e-10)
}

impl Folded {
    pub(super) fn new(matrix: &Csr<f64>, mu: f64) -> Self {
        Self { operator: Operator::from_matrix(structure::shifted(matrix, mu)), mu }
    }

    /// The columns whose Rayleigh quotient lies within `radius` of mu.
    pub(super) fn inside(&self, block: MatRef<'_, f64>, radius: f64) -> Result<Mat<f64>, Error> {
        let image = apply(&self.operator, block)?;
        let quotient =
            |a: usize| -> f64 { block.col(a).iter().zip(image.col(a).iter()).map(|(v, w)| v * w).sum() };
        let kept: Vec<usize> = (0..block.ncols()).filter(|&a| quotient(a).abs() <= radius).collect();
        Ok(Mat::from_fn(block.nrows(), kept.len(), |row, at| block[(row, kept[at])]))
    }

    /// Rayleigh-Ritz in the span of a block.
    pub(super) fn ritz(&self, block: Mat<f64>, watch: &Watch) -> Result<Ritz, Error> {
        let basis = orthonormalize(block);
        watch.check()?;
        let image = apply(&self.operator, basis.as_ref())?;
        let (_, rotation) = dense::decompose_full(inner(basis.as_ref(), image.as_ref()), watch)?;
        let vectors = times(basis.as_ref(), rotation.as_ref());
        drop((basis, image));
        let image = apply(&self.operator, vectors.as_ref())?;
        let measured: Vec<(f64, f64, f64)> = (0..vectors.ncols())
            .into_par_iter()
            .map(|a| {
                let (vector, image) = (vectors.col(a), image.col(a));
                let value: f64 = vector.iter().zip(image.iter()).map(|(v, w)| v * w).sum();
                let square: f64 = image.iter().map(|w| w * w).sum();
                let residual: f64 =
                    vector.iter().zip(image.iter()).map(|(v, w)| (w - value * v).powi(2)).sum();
                (value + self.mu, square.sqrt(), residual.sqrt())
            })
            .collect();
        let mut order: Vec<usize> = (0..measured.len()).collect();
        order.sort_by(|&a, &b| measured[a].1.total_cmp(&measured[b].1));
        Ok(Ritz {
            mu: self.mu,
            values: order.iter().map(|&a| measured[a].0).collect(),
            distances: order.iter().map(|&a| measured[a].1).collect(),
            residuals: order.iter().map(|&a| measured[a].2).collect(),
            vectors: Mat::from_fn(vectors.nrows(), order.len(), |row, at| vectors[(row, order[at])]),
        })
    }
}

/// Ritz pairs, nearest first.
pub(super) struct Ritz {
    mu: f64,
    pub(super) values: Vec<f64>,
    /// |(B - mu) v|.
    pub(super) distances: Vec<f64>,
    /// |B v - theta v|.
    pub(super) residuals: Vec<f64>,
    pub(super) vectors: Mat<f64>,
}

impl Ritz {
    /// Pairs with residuals up to `tolerance` as (eigenvalue, position), ascending.
    fn converged(&self, tolerance: f64) -> Vec<(f64, usize)> {
        let mut pairs: Vec<(f64, usize)> = (0..self.values.len())
            .filter(|&a| self.residuals[a] <= tolerance)
            .map(|a| (self.values[a], a))
            .collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        pairs
    }

    /// The converged pairs, for a search to go on beside them.
    pub(super) fn lock(&self, tolerance: f64) -> Locked {
        let kept = self.converged(tolerance);
        let vectors =
            Mat::from_fn(self.vectors.nrows(), kept.len(), |row, at| self.vectors[(row, kept[at].1)]);
        Locked { vectors, distances: kept.iter().map(|pair| (pair.0 - self.mu).abs()).collect() }
    }

    /// The converged pairs within `goal` of mu, whole groups.
    pub(super) fn outcome(&self, goal: f64, tolerance: f64, applications: u64) -> Outcome {
        let pairs = self.converged(tolerance);
        let values: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let kept = groups::within(&values, self.mu, goal + GROUP_TOLERANCE);
        let vectors = Mat::from_fn(self.vectors.nrows(), kept.len(), |row, at| {
            self.vectors[(row, pairs[kept.start + at].1)]
        });
        let found = Found { values: values[kept].to_vec(), vectors };
        Outcome { found, counted: None, interval: None, converged: false, applications, shift: self.mu }
    }

    /// Two shifts between which exactly the pairs within `goal` of mu should lie.
    pub(super) fn shifts(&self, goal: f64, tolerance: f64, reach: Reach) -> [f64; 2] {
        let values: Vec<f64> = self.converged(tolerance).into_iter().map(|pair| pair.0).collect();
        let kept = groups::within(&values, self.mu, goal + GROUP_TOLERANCE);
        let low = values.get(kept.start).map_or(self.mu - goal, |value| value.min(self.mu - goal));
        let high = values[..kept.end].last().map_or(self.mu + goal, |value| value.max(self.mu + goal));
        match reach {
            Reach::Share(share) => [self.outside(low, -share), self.outside(high, share)],
            Reach::Tight => {
                let below = values[..kept.start].last().map_or(1e-6, |value| 0.5 * (low - value));
                let above = values.get(kept.end).map_or(1e-6, |value| 0.5 * (value - high));
                let margin = |gap: f64| gap.clamp(0.25 * GROUP_TOLERANCE, 1e-6);
                [low - margin(below), high + margin(above)]
            }
        }
    }

    /// A shift beyond an edge of the window, a signed share (negative below) of the way to the next settled
    /// Ritz value there. Where none has settled, any Ritz value or the end of the spectrum must do: the count
    /// will tell.
    fn outside(&self, edge: f64, share: f64) -> f64 {
        let gap = |a: usize| (self.values[a] - edge) * share.signum();
        let beyond = || (0..self.values.len()).filter(|&a| gap(a) > GROUP_TOLERANCE);
        let settled = beyond().filter(|&a| self.residuals[a] < 0.25 * gap(a));
        let next = settled.map(|a| gap(a) - self.residuals[a]).reduce(f64::min);
        let next = next.or_else(|| beyond().map(gap).reduce(f64::min));
        edge + share * next.unwrap_or(2.0 * (1.0 - edge * share.signum()).max(GROUP_TOLERANCE))
    }
}
