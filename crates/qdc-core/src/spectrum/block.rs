//! One connected block of the reduced matrix B: what is wanted of it, what was found, and the proof that it
//! is all.

use std::sync::Arc;

use faer::Mat;

use super::assemble::Found;
use super::dense;
use super::factor::Symbolic;
use super::folded::Ritz;
use super::groups::GROUP_TOLERANCE;
use crate::kernel::Accelerator;
use crate::{Csr, Error, Watch};

/// Beyond this no eigenvalue lies: those of L are in [-1, 1], up to the rounding of its entries.
const END: f64 = 1.0 + 1e-9;

/// What to find in one block.
pub(super) struct Wanted {
    pub(super) mu: f64,
    /// Pairs wanted of the whole matrix.
    pub(super) count: usize,
    /// Distances from mu of the pairs known from elsewhere, ascending.
    pub(super) known: Vec<f64>,
    pub(super) seed: u64,
    pub(super) memory: Option<u64>,
    /// What decomposes matrices of this block's size, if not the CPU.
    pub(super) device: Option<Arc<dyn Accelerator>>,
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

/// When a search for pairs near mu has enough.
pub(super) enum Goal<'a> {
    /// The pairs wanted, and `beyond` more, which tell how wide the gap beside them is.
    Nearest { wanted: &'a Wanted, beyond: usize },
    /// So many pairs within this distance, which are known to be there.
    Within { count: usize, radius: f64 },
}

impl Goal<'_> {
    /// Whether enough pairs have settled, given those of the search as (distance, settled) and the distances
    /// of those locked before.
    pub(super) fn is_met(&self, found: &[(f64, bool)], locked: &[f64]) -> bool {
        match self {
            Self::Within { count, radius } => {
                let inside = |pair: &&(f64, bool)| pair.1 && pair.0 <= radius + GROUP_TOLERANCE;
                found.iter().filter(inside).count() >= *count
            }
            Self::Nearest { wanted, beyond } => {
                let mut all: Vec<(f64, bool)> =
                    found.iter().copied().chain(locked.iter().map(|&distance| (distance, true))).collect();
                all.sort_by(|a, b| a.0.total_cmp(&b.0));
                let distances: Vec<f64> = all.iter().map(|pair| pair.0).collect();
                let radius = wanted.radius(&distances);
                let needed = distances.partition_point(|&distance| distance <= radius + GROUP_TOLERANCE);
                radius.is_finite() && all.iter().take(needed + beyond).all(|pair| pair.1)
            }
        }
    }
}

/// Pairs that have converged; a search goes on orthogonal to them.
pub(super) struct Locked {
    /// Orthonormal.
    pub(super) vectors: Mat<f64>,
    /// Distances from mu.
    pub(super) distances: Vec<f64>,
}

impl Locked {
    pub(super) fn none(rows: usize) -> Self {
        Self { vectors: Mat::zeros(rows, 0), distances: Vec::new() }
    }
}

/// What was found in one block.
pub(super) struct Outcome {
    /// Converged pairs, eigenvalues ascending.
    pub(super) found: Found,
    /// How many there should be; `None` where nothing was counted.
    pub(super) counted: Option<usize>,
    /// The open interval in which nothing is missing, where that was proved by counting.
    pub(super) interval: Option<[f64; 2]>,
    /// Whether nothing is missing, as far as can be told.
    pub(super) converged: bool,
    pub(super) applications: u64,
    /// The shift really used.
    pub(super) shift: f64,
}

impl Outcome {
    /// Pairs that were not found although they were counted.
    pub(super) fn missing(&self) -> usize {
        self.counted.map_or(0, |counted| counted.saturating_sub(self.found.values.len()))
    }
}

/// The full decomposition of a block that is not worth an iteration, by a device where there is one for it.
pub(super) fn everything(matrix: &Csr<f64>, wanted: &Wanted, watch: &Watch) -> Result<Outcome, Error> {
    if let Some(device) = wanted.device.as_deref()
        && let Some((values, vectors)) = dense::decompose_on(device, matrix, watch)?
    {
        return Ok(whole(values, vectors, wanted));
    }
    if let Some(limit) = wanted.memory.filter(|&limit| dense::memory(matrix.rows()) > limit) {
        let needed = dense::memory(matrix.rows());
        return Err(Error::Memory { what: "the full eigendecomposition", needed, limit });
    }
    let (values, vectors) = dense::decompose(matrix, watch)?;
    Ok(whole(values, vectors, wanted))
}

/// All pairs of a block.
fn whole(values: Vec<f64>, vectors: Mat<f64>, wanted: &Wanted) -> Outcome {
    Outcome {
        counted: Some(values.len()),
        found: Found { values, vectors },
        interval: Some([f64::MIN, f64::MAX]),
        converged: true,
        applications: 0,
        shift: wanted.mu,
    }
}

/// Counts eigenvalues of one block by inertia.
pub(super) struct Counter<'a> {
    pub(super) matrix: &'a Csr<f64>,
    /// `None` where a factorisation does not fit in memory: nothing is counted then.
    pub(super) symbolic: Option<&'a Symbolic>,
}

impl Counter<'_> {
    /// The number of eigenvalues below `shift`, where it can be had.
    pub(super) fn below(&self, shift: f64, watch: &Watch) -> Result<Option<usize>, Error> {
        match self.symbolic {
            _ if shift <= -END => Ok(Some(0)),
            _ if shift >= END => Ok(Some(self.matrix.rows())),
            Some(symbolic) => symbolic.below(self.matrix, shift, watch),
            None => Ok(None),
        }
    }

    /// The number of eigenvalues between two shifts, where it can be had.
    pub(super) fn between(&self, shifts: [f64; 2], watch: &Watch) -> Result<Option<usize>, Error> {
        let low = self.below(shifts[0], watch)?;
        Ok(self.below(shifts[1], watch)?.zip(low).and_then(|(high, low)| high.checked_sub(low)))
    }

    /// Compares the converged pairs within `goal` of mu with what is there.
    ///
    /// Shifts half way to the next Ritz values outside are tried first, because they prove a wide gap. If a
    /// pair that no Ritz value showed lies there, shifts close to the window count it, and each side is
    /// widened as far as its count stays the same.
    pub(super) fn certify(
        &self,
        ritz: &Ritz,
        goal: f64,
        tolerance: f64,
        outcome: &mut Outcome,
        watch: &Watch,
    ) -> Result<(), Error> {
        let found = outcome.found.values.len();
        let shifts = |reach: Reach| ritz.shifts(goal, tolerance, reach);
        let counts =
            |shifts: [f64; 2]| Ok::<_, Error>([self.below(shifts[0], watch)?, self.below(shifts[1], watch)?]);
        let total =
            |[low, high]: [Option<usize>; 2]| high.zip(low).and_then(|(high, low)| high.checked_sub(low));
        let wide = shifts(Reach::Share(0.5));
        let counted = counts(wide)?;
        if total(counted) == Some(found) {
            outcome.counted = Some(found);
            (outcome.converged, outcome.interval) = (true, Some(open(wide)));
            return Ok(());
        }
        let mut proved = shifts(Reach::Tight);
        let close = counts(proved)?;
        outcome.counted = total(close).or(outcome.counted);
        outcome.converged = total(close).is_none_or(|counted| counted == found);
        if total(close) == Some(found) {
            for side in 0..2 {
                for share in [0.5, 0.05, 0.005] {
                    let shift = shifts(Reach::Share(share))[side];
                    let count = if share == 0.5 { counted[side] } else { self.below(shift, watch)? };
                    if count == close[side] {
                        proved[side] = shift;
                        break;
                    }
                }
            }
            outcome.interval = Some(open(proved));
        }
        Ok(())
    }
}

/// The interval between two shifts; nothing lies beyond an end of the spectrum.
fn open([low, high]: [f64; 2]) -> [f64; 2] {
    [if low <= -END { f64::MIN } else { low }, if high >= END { f64::MAX } else { high }]
}

/// How far outside the window the shifts lie that count it.
#[derive(Clone, Copy)]
pub(super) enum Reach {
    /// This share of the way to the next Ritz value.
    Share(f64),
    /// At most 1e-6 away.
    Tight,
}

/// Blocks of vectors side by side.
pub(super) fn join(blocks: &[faer::MatRef<'_, f64>]) -> Mat<f64> {
    let rows = blocks[0].nrows();
    let mut out = Mat::zeros(rows, blocks.iter().map(faer::MatRef::ncols).sum());
    let mut at = 0;
    for block in blocks {
        out.as_mut().subcols_mut(at, block.ncols()).copy_from(block);
        at += block.ncols();
    }
    out
}
