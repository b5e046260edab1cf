//! The kernel Q = sum over pairs of P(E_a) phi_a phi_a^T, sparsified and normalised.
//!
//! A [`Recipe`] says which kernel. [`Recipe::prepare`] makes it a [`Job`] for a graph and the [`Resources`]
//! at hand; the job plans, builds and makes row ranges. Rows come by one of several [`Route`]s, which agree
//! within their stated error: a polynomial in L (`polynomial`), sparse elimination for PageRank
//! (`elimination`, `pagerank`), eigenpairs (`eigenpairs`), or walks over the vertices a row reaches
//! (`local`). Every route is a [`RowMaker`] that puts rows into a [`Sink`]; the sink sparsifies them as they
//! come. Only the dense route, or `Sparsify::None`, stores N^2 numbers.

mod accelerator;
mod accuracy;
mod eigenpairs;
mod elimination;
mod finish;
mod job;
mod joining;
mod local;
mod pagerank;
mod panels;
mod plan;
mod polynomial;
mod recipe;
mod report;
mod resident;
mod resources;
mod route;
mod shard;
mod sink;
mod weighted;

pub use accelerator::{Accelerator, Candidates, ColumnPart, ColumnSource, ColumnWork};
pub use job::Job;
pub use joining::{Joined, Joining};
pub use plan::Plan;
pub use recipe::{Precision, Recipe};
pub use report::KernelReport;
pub use resident::{MadeWhole, Resident, ResidentKernel, RowSums, WholeWork};
pub use resources::{Remembered, Resources, Spectra, SpectrumStore};
pub use route::{Account, Accuracy, Route, RowMaker};
pub use shard::{Shard, ShardManifest};
pub use sink::Sink;

use crate::Csr;

/// A finished kernel and how it was made.
#[derive(Clone, Debug)]
pub struct BuiltKernel {
    /// The sparse, normalised kernel; symmetric unless normalised by rows or columns.
    pub matrix: Csr<f64>,
    /// What was really done.
    pub report: KernelReport,
}
