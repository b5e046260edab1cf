//! The numerics of qdc: quantum diffusion convolution on graphs.
//!
//! Read them as the data flows: [`graph`] -> [`transition`], the matrix L -> [`spectrum`] or [`chebyshev`] ->
//! [`filter`] -> [`kernel`] -> [`sparsify`] -> [`normalize`]. [`rewire`] is the other way to change a graph
//! (SDRF); [`mod@homophily`], [`dynamics`] and [`bank`] look at L. [`cpu`] chooses the instruction set for
//! all of them.
//!
//! The crate reads no files, holds no clock and no global random state. Long functions take a [`Watch`] and
//! return a report of what was really done.

#![warn(clippy::missing_errors_doc)]

pub mod bank;
pub mod chebyshev;
pub mod cpu;
pub mod csr;
pub mod defaults;
pub mod dynamics;
mod error;
mod features;
pub mod filter;
pub mod graph;
pub mod hash;
pub mod homophily;
pub mod kernel;
pub mod lanczos;
mod metric;
pub mod nearest;
pub mod normalize;
pub mod order;
mod remedy;
pub mod rewire;
mod scalar;
mod simd;
pub mod sparsify;
pub mod spectrum;
mod split;
pub mod splitmix;
mod stored;
mod threads;
pub mod transition;
mod twins;
pub mod watch;

pub use bank::FilterBank;
pub use csr::Csr;
pub use dynamics::Dynamics;
pub use error::Error;
pub use features::Features;
pub use filter::Filter;
pub use graph::{EdgeRule, Graph, Symmetrize};
pub use homophily::{Homophily, homophily};
pub use kernel::{BuiltKernel, Job, KernelReport, Precision, Recipe, Resources, Route, Shard};
pub use metric::Metric;
pub use normalize::Normalize;
pub use remedy::Remedy;
pub use scalar::Scalar;
pub use sparsify::{Sign, Sparsify};
pub use spectrum::{Eigensolver, Pairs, Spectrum};
pub use split::{Split, UNLABELLED, known_labels};
pub use stored::Shared;
pub use threads::sane_threads;
pub use transition::Transition;
pub use watch::{Observer, Watch};
