//! The folded operator (B - mu)^2 and Rayleigh-Ritz around mu: what the iterative routes share.
//!
//! Ritz pairs are ranked by |(B - mu) v|, not by |theta - mu|: a mixture of pairs far above and far below mu has a theta
//! near mu, but cannot hide its distance.

use faer::Mat;
use rayon::prelude::*;

use super::assemble::Found;
use super::dense;
use super::groups::{self, GROUP_TOLERANCE};
use super::inertia::Inertia;
use super::panels::{apply, inner, orthonormalize, times};
use super::structure;
use crate::chebyshev::Operator;
use crate::{Csr, Error, Watch};

/// What to find in one block.
pub(super) struct Wanted {
    pub(super) mu: f64,
    /// Pairs wanted of the whole matrix.
    pub(super) count: usize,
    /// Distances from mu of the pairs known from elsewhere, ascending.
    pub(super) known: Vec<f64>,
    pub(super) seed: u64,
    pub(super) memory: Option<u64>,
}

impl Wanted {
    /// The distance within which `count` pairs lie, those known and those of this block (ascending) together;
    /// infinite if there are not so many.
    pub(super) fn radius(&self, distances: &[f64]) -> f64 {
        let (mut ours, mut theirs) = (distances.iter().peekable(), self.known.iter().peekable());
        let mut radius = f64::INFINITY;
        for _ in 0..self.count {
            let from_ours = match (ours.peek(), theirs.peek()) {
                (Some(a), Some(b)) => a <= b,
                (ours, _) => ours.is_some(),
            };
            radius = match if from_ours { ours.next() } else { theirs.next() } {
                Some(&distance) => distance,
                None => return f64::INFINITY,
            };
        }
        radius
    }

    /// The number of pairs known within `radius`.
    pub(super) fn known_within(&self, radius: f64) -> usize {
        self.known.partition_point(|&distance| distance <= radius)
    }
}

/// What was found in one block.
pub(super) struct Outcome {
    /// Converged pairs, eigenvalues ascending.
    pub(super) found: Found,
    /// How many there should be; `None` where nothing was counted.
    pub(super) counted: Option<usize>,
    /// Whether the count is exact.
    pub(super) exact: bool,
    /// Whether nothing is missing.
    pub(super) converged: bool,
    pub(super) applications: u64,
    /// The shift really used.
    pub(super) shift: f64,
}

/// The full decomposition of a block that is not worth an iteration.
pub(super) fn everything(matrix: &Csr<f64>, wanted: &Wanted, watch: &Watch) -> Result<Outcome, Error> {
    if let Some(limit) = wanted.memory.filter(|&limit| dense::memory(matrix.rows()) > limit) {
        let needed = dense::memory(matrix.rows());
        return Err(Error::Memory { what: "the full eigendecomposition", needed, limit });
    }
    let (values, vectors) = dense::decompose(matrix, watch)?;
    let counted = Some(values.len());
    let found = Found { values, vectors };
    Ok(Outcome { found, counted, exact: true, converged: true, applications: 0, shift: wanted.mu })
}

/// Compares what was found within `goal` of mu with what is there; says whether nothing is missing.
pub(super) fn certify(
    outcome: &mut Outcome,
    inertia: Option<&Inertia<'_>>,
    shifts: [f64; 2],
    rows: usize,
    watch: &Watch,
) -> Result<(), Error> {
    let below = |inertia: &Inertia<'_>, shift: f64| match shift {
        shift if shift <= -1.001 => Ok(Some(0)),
        shift if shift >= 1.001 => Ok(Some(rows)),
        shift => inertia.below(shift, watch),
    };
    let counted = match inertia {
        Some(inertia) => below(inertia, shifts[1])?
            .zip(below(inertia, shifts[0])?)
            .and_then(|(high, low)| high.checked_sub(low)),
        None => None,
    };
    outcome.exact = counted.is_some();
    outcome.converged = counted.is_none_or(|counted| counted == outcome.found.values.len());
    outcome.counted = counted.or(outcome.counted);
    Ok(())
}

/// The operator (B - mu)^2, as products with B - mu.
pub(super) struct Folded {
    /// B - mu.
    pub(super) operator: Operator<f64>,
    pub(super) mu: f64,
}

impl Folded {
    pub(super) fn new(matrix: &Csr<f64>, mu: f64) -> Self {
        Self { operator: Operator::from_matrix(structure::shifted(matrix, mu)), mu }
    }

    /// The largest |E - mu| there can be.
    pub(super) fn bound(&self) -> f64 {
        (1.0 + self.mu.abs()) * (1.0 + 1e-10)
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
            values: order.iter().map(|&a| measured[a].0).collect(),
            distances: order.iter().map(|&a| measured[a].1).collect(),
            residuals: order.iter().map(|&a| measured[a].2).collect(),
            vectors: Mat::from_fn(vectors.nrows(), order.len(), |row, at| vectors[(row, order[at])]),
        })
    }
}

/// Ritz pairs, nearest first.
pub(super) struct Ritz {
    pub(super) values: Vec<f64>,
    /// |(B - mu) v|.
    pub(super) distances: Vec<f64>,
    /// |B v - theta v|.
    pub(super) residuals: Vec<f64>,
    pub(super) vectors: Mat<f64>,
}

impl Ritz {
    /// Converged pairs as (eigenvalue, position), ascending.
    fn converged(&self, tolerance: f64) -> Vec<(f64, usize)> {
        let mut pairs: Vec<(f64, usize)> = (0..self.values.len())
            .filter(|&a| self.residuals[a] <= tolerance)
            .map(|a| (self.values[a], a))
            .collect();
        pairs.sort_by(|a, b| a.0.total_cmp(&b.0));
        pairs
    }

    /// The converged pairs within `goal` of mu, whole groups.
    pub(super) fn outcome(&self, mu: f64, goal: f64, tolerance: f64, applications: u64) -> Outcome {
        let pairs = self.converged(tolerance);
        let values: Vec<f64> = pairs.iter().map(|pair| pair.0).collect();
        let kept = groups::within(&values, mu, goal + GROUP_TOLERANCE);
        let vectors = Mat::from_fn(self.vectors.nrows(), kept.len(), |row, at| {
            self.vectors[(row, pairs[kept.start + at].1)]
        });
        let found = Found { values: values[kept].to_vec(), vectors };
        Outcome { found, counted: None, exact: false, converged: false, applications, shift: mu }
    }

    /// Two shifts between which exactly the pairs within `goal` of mu lie, each in a gap of the spectrum.
    pub(super) fn shifts(&self, mu: f64, goal: f64, tolerance: f64) -> [f64; 2] {
        let values: Vec<f64> = self.converged(tolerance).into_iter().map(|pair| pair.0).collect();
        let kept = groups::within(&values, mu, goal + GROUP_TOLERANCE);
        let low = values.get(kept.start).map_or(mu - goal, |value| value.min(mu - goal));
        let high = values[..kept.end].last().map_or(mu + goal, |value| value.max(mu + goal));
        let below = values[..kept.start].last().map_or(1e-6, |value| 0.5 * (low - value));
        let above = values.get(kept.end).map_or(1e-6, |value| 0.5 * (value - high));
        let margin = |gap: f64| gap.clamp(0.25 * GROUP_TOLERANCE, 1e-6);
        [low - margin(below), high + margin(above)]
    }
}
