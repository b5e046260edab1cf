//! Which way a block takes to its pairs, and what that will cost.
//!
//! Three ways lead to the pairs nearest to mu: the full decomposition, a polynomial filter, and shift-invert
//! Lanczos. Which is the fastest depends on the number of rows, on how many eigenvalues lie in the window and
//! how narrow it is (estimated), and on how far the factors fill in (known exactly before a number is
//! computed). The estimate is of operations, each kind weighed by the rate that was measured for it; no clock
//! is asked, so that the same call takes the same way. Ways that do not fit in memory are left out.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::block::Wanted;
use super::density::Density;
use super::factor::Symbolic;
use super::{dense, filter, lanczos, lobpcg};
use crate::chebyshev::Operator;
use crate::{Csr, Error, Watch};

/// Blocks up to this size are decomposed in full: it takes milliseconds.
pub(super) const SMALL: usize = 400;

/// Operations in a second of one core, by kind. `bench/spectrum/RESULTS.md` has the runs they were set and
/// checked by (`cargo run --release -p qdc-core --example eigensolvers`): the full decomposition comes out
/// within a third of its estimate, the filter between two thirds and once and a half where it converges,
/// shift-invert up to twice and a half on small blocks.
mod rate {
    /// The full decomposition, counted as 9 n^3.
    pub(super) const DECOMPOSITION: f64 = 25e9;
    /// The same on a device (an H200), and the seconds until it is ready.
    pub(super) const DEVICE_DECOMPOSITION: f64 = 2e12;
    pub(super) const DEVICE_START: f64 = 1.0;
    /// Dense products and reflections on tall blocks.
    pub(super) const ALGEBRA: f64 = 20e9;
    /// Products of B with panels of sixteen columns.
    pub(super) const PRODUCT: f64 = 6e9;
    /// Sparse factorisations.
    pub(super) const FACTORISATION: f64 = 15e9;
    /// Solves with the factors.
    pub(super) const SOLVE: f64 = 4e9;
    /// Seconds for a row of a factorisation or of a solve of sixteen columns, whatever its length.
    pub(super) const ROW: f64 = 1e-6;
}

/// A way to the eigenpairs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Method {
    /// The full symmetric eigendecomposition.
    Dense,
    /// Subspace iteration with a Chebyshev polynomial of (L - mu)^2 as filter.
    Filter,
    /// Block Lanczos on (L - mu)^-1, by a sparse factorisation.
    ShiftInvert,
    /// LOBPCG on (L - mu)^2, the published way.
    Lobpcg,
}

impl Method {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Dense => "dense",
            Self::Filter => "filter",
            Self::ShiftInvert => "shift-invert",
            Self::Lobpcg => "lobpcg",
        }
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// What a way would take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub(super) method: Method,
    /// Multiplications and additions.
    pub(super) flops: f64,
    /// Seconds of one core of the machine the rates were measured on.
    pub(super) seconds: f64,
    pub(super) memory: u64,
}

impl Cost {
    pub(super) fn dense(rows: usize) -> Self {
        let flops = 9.0 * (rows as f64).powi(3);
        let (seconds, memory) = (flops / rate::DECOMPOSITION, dense::memory(rows));
        Self { method: Method::Dense, flops, seconds, memory }
    }

    /// The same by a device.
    pub(super) fn dense_on_a_device(rows: usize) -> Self {
        let seconds = rate::DEVICE_START + Self::dense(rows).flops / rate::DEVICE_DECOMPOSITION;
        Self { seconds, memory: dense::memory_beside_a_device(rows), ..Self::dense(rows) }
    }
}

/// What is known about a block before its pairs are computed.
pub(super) struct Survey {
    /// About how far from mu the pairs wanted lie.
    pub(super) radius: f64,
    /// About how many pairs of this block lie so near.
    pub(super) count: usize,
    /// Where a shift finds them fastest: mu, or among them where nearly all lie on one side of mu.
    pub(super) centre: f64,
    pub(super) density: Density,
    /// The order and fill of a factorisation, where the factors fit in memory.
    pub(super) symbolic: Option<Symbolic>,
}

impl Survey {
    /// A density of degree 256 and an ordering: some hundredths of what the pairs will take.
    pub(super) fn new(matrix: &Csr<f64>, wanted: &Wanted, watch: &Watch) -> Result<Self, Error> {
        let operator = Operator::from_matrix(matrix.clone());
        let density = Density::new(&operator, 256, wanted.seed, watch)?;
        let radius = density.radius(wanted.mu, wanted.count as f64, |radius| wanted.known_within(radius));
        let count = density.within(wanted.mu, radius).ceil() as usize;
        let symbolic = Symbolic::new(matrix)
            .filter(|symbolic| wanted.memory.is_none_or(|limit| symbolic.memory() <= limit));
        let middle = density.middle(wanted.mu, radius);
        let centre = if (middle - wanted.mu).abs() > 0.5 * radius { middle } else { wanted.mu };
        Ok(Self { radius, count, centre, density, symbolic })
    }

    /// Two counts by inertia, which every iterative way ends with.
    fn counting(&self, rows: usize) -> (f64, f64) {
        self.symbolic.as_ref().map_or((0.0, 0.0), |symbolic| {
            let flops = 2.0 * symbolic.flops();
            (flops, flops / rate::FACTORISATION + 2.0 * rows as f64 * rate::ROW)
        })
    }

    pub(super) fn filter(&self, matrix: &Csr<f64>, wanted: &Wanted) -> Cost {
        let plan = filter::Plan::new(&self.density, wanted.mu, wanted);
        let (rows, width) = (matrix.rows() as f64, plan.width as f64);
        // Most windows need one round; some a second one, with half the degree.
        let products = 1.125 * 4.0 * (plan.degree * matrix.entries()) as f64 * width;
        let algebra = 1.5 * (11.0 * rows * width * width + 12.0 * width.powi(3));
        let (counted, counting) = self.counting(matrix.rows());
        Cost {
            method: Method::Filter,
            flops: products + algebra + counted,
            seconds: products / rate::PRODUCT + algebra / rate::ALGEBRA + counting,
            memory: (5.0 * 8.0 * rows * width) as u64 + self.symbolic.as_ref().map_or(0, Symbolic::memory),
        }
    }

    /// `None` where the factors do not fit.
    pub(super) fn shift_invert(&self, matrix: &Csr<f64>) -> Option<Cost> {
        let symbolic = self.symbolic.as_ref()?;
        let (rows, width) = (matrix.rows() as f64, lanczos::columns(self.count) as f64);
        let solves = 4.0 * symbolic.entries() as f64 * width;
        let algebra = 10.0 * rows * width * width + 30.0 * width.powi(3);
        let (counted, counting) = self.counting(matrix.rows());
        let seconds = solves / rate::SOLVE
            + rows * (width / 16.0) * rate::ROW
            + algebra / rate::ALGEBRA
            + 1.5 * counting;
        Some(Cost {
            method: Method::ShiftInvert,
            flops: solves + algebra + 1.5 * counted,
            seconds,
            memory: (3.0 * 8.0 * rows * width) as u64 + symbolic.memory(),
        })
    }

    /// Eight steps of the whole block with a preconditioner, as vectors that have converged take no more
    /// part; as many as the degree of a filter without.
    pub(super) fn lobpcg(&self, matrix: &Csr<f64>, wanted: &Wanted) -> Cost {
        let (rows, count) = (matrix.rows() as f64, self.count as f64);
        let block = self.count.clamp(1, 64);
        let width = (block + lobpcg::guards(block)) as f64;
        let searches = (count / 64.0).ceil().max(1.0);
        let (steps, entries) = match &self.symbolic {
            Some(symbolic) => (8.0, symbolic.entries() as f64),
            None => (self.filter_degree(wanted) as f64, 0.0),
        };
        let solves = searches * steps * 8.0 * entries * width;
        let products = searches * steps * 4.0 * matrix.entries() as f64 * width;
        let algebra = searches * steps * 60.0 * rows * width * width;
        let (counted, counting) = self.counting(matrix.rows());
        Cost {
            method: Method::Lobpcg,
            flops: solves + products + algebra + searches * counted,
            seconds: solves / rate::SOLVE
                + products / rate::PRODUCT
                + algebra / rate::ALGEBRA
                + searches * counting,
            memory: (8.0 * rows * (10.0 * width + count)) as u64
                + self.symbolic.as_ref().map_or(0, Symbolic::memory),
        }
    }

    /// The degree in B of a polynomial that separates the window, and about the steps LOBPCG takes without
    /// preconditioner.
    pub(super) fn filter_degree(&self, wanted: &Wanted) -> usize {
        2 * filter::Plan::new(&self.density, wanted.mu, wanted).degree
    }
}
