//! What can go wrong in the core, and what to do about it.
//!
//! Anything a file or a user can cause is an [`Error`]; a wrong length or shape handed over by the programmer
//! panics (see CONTRIBUTING, "Errors").

use crate::Remedy;

/// An error of the core, carrying the values that caused it.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A graph needs at least one vertex.
    #[error("the graph has no vertices")]
    EmptyGraph,

    /// An edge names a vertex that does not exist.
    #[error("edge ({from}, {to}) names a vertex outside 0..{nodes}")]
    VertexOutOfRange {
        /// One end of the edge.
        from: u64,
        /// The other end.
        to: u64,
        /// Number of vertices.
        nodes: usize,
    },

    /// A vertex that does not exist was asked for.
    #[error("vertex {vertex} does not exist: the graph has {nodes} vertices")]
    UnknownVertex {
        /// The vertex.
        vertex: u64,
        /// Number of vertices.
        nodes: usize,
    },

    /// A weight is negative, infinite or not a number.
    #[error("edge ({from}, {to}) has weight {weight}; weights are finite and not negative")]
    BadWeight {
        /// One end of the edge.
        from: u64,
        /// The other end.
        to: u64,
        /// The weight.
        weight: f64,
    },

    /// The weights at a vertex add up to more than a number can be.
    #[error("the weights at vertex {vertex} add up to infinity; divide all weights by a large number")]
    InfiniteDegree {
        /// The vertex.
        vertex: u64,
    },

    /// The two orientations of an edge, or two copies of it, disagree.
    #[error(
        "edge ({from}, {to}) has weight {forward} one way and {backward} the other: the graph is directed"
    )]
    Asymmetric {
        /// One end of the edge.
        from: u64,
        /// The other end.
        to: u64,
        /// The weight of from -> to (0: absent).
        forward: f64,
        /// The weight of to -> from (0: absent).
        backward: f64,
    },

    /// The same edge was given twice with different weights.
    #[error("edge ({from}, {to}) is given with weight {first} and again with weight {second}")]
    ConflictingWeights {
        /// One end of the edge.
        from: u64,
        /// The other end.
        to: u64,
        /// The first weight.
        first: f64,
        /// The other weight.
        second: f64,
    },

    /// Column indices are `u32`.
    #[error("{nodes} vertices are more than the {limit} that 32-bit column indices can name")]
    TooManyVertices {
        /// Number of vertices asked for.
        nodes: usize,
        /// The most there can be.
        limit: usize,
    },

    /// A compressed-row matrix is malformed.
    #[error("malformed sparse matrix: {problem}")]
    MalformedMatrix {
        /// What is wrong, and where.
        problem: String,
    },

    /// Two things that must have the same length do not.
    #[error("{what}: expected {expected}, found {found}")]
    LengthMismatch {
        /// What was measured.
        what: &'static str,
        /// The length it must have.
        expected: usize,
        /// The length it has.
        found: usize,
    },

    /// A split names a vertex that does not exist.
    #[error("the {part} set names vertex {vertex} of {nodes}")]
    SplitVertexOutOfRange {
        /// The vertex.
        vertex: u32,
        /// The set that names it.
        part: &'static str,
        /// Number of vertices.
        nodes: usize,
    },

    /// A vertex stands in two sets of a split, or twice in one.
    #[error("vertex {vertex} is in the {first} and in the {second} set")]
    OverlappingSplit {
        /// The vertex.
        vertex: u32,
        /// The first set.
        first: &'static str,
        /// The other set.
        second: &'static str,
    },

    /// A parameter lies outside its range.
    #[error("{name} = {} is out of range: {requirement}", brief(*value))]
    Parameter {
        /// The name users type.
        name: &'static str,
        /// The value given.
        value: f64,
        /// The condition it must meet.
        requirement: &'static str,
    },

    /// The work needs more memory than it may take.
    #[error("{what} needs {needed} bytes of memory, the limit is {limit}")]
    Memory {
        /// What needs it.
        what: &'static str,
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },

    /// A kernel with what it keeps needs more memory than it may take.
    #[error(
        "this kernel needs about {needed} bytes of memory besides its graph, and {limit} are left for it"
    )]
    KernelMemory {
        /// Bytes needed.
        needed: u64,
        /// Bytes allowed.
        limit: u64,
    },

    /// The dense eigendecomposition gave up.
    #[error("the eigendecomposition of a block of {nodes} rows did not converge")]
    Eigendecomposition {
        /// Rows of the block.
        nodes: usize,
    },

    /// A solver stopped before every pair of the window was found.
    #[error("{solver} found {found} of {expected} pairs, largest residual {residual_max:e}", solver = partial.report().solver, residual_max = partial.report().residual_max)]
    Unconverged {
        /// What it has; residuals and counts are in its report.
        partial: Box<crate::Spectrum>,
        /// Pairs that converged.
        found: usize,
        /// Pairs there should be.
        expected: usize,
    },

    /// The polynomial route has no eigenpairs to give.
    #[error("the chebyshev route makes kernels without computing eigenpairs")]
    NoEigenpairs,

    /// A route cannot make this kernel.
    #[error("the route {route} cannot make this kernel: {reason}")]
    UnsuitedRoute {
        /// The route.
        route: crate::Route,
        /// Why not.
        reason: &'static str,
    },

    /// The local route was asked for, but not how accurate it must be.
    #[error("the local route must be told how accurate entries have to be")]
    NoAccuracy,

    /// Eigenpairs belong to another matrix.
    #[error("the eigenpairs belong to another transition matrix: {what} {theirs}, expected {expected}")]
    ForeignSpectrum {
        /// What differs.
        what: &'static str,
        /// The spectrum's.
        theirs: String,
        /// The graph's.
        expected: String,
    },

    /// A stored recipe names a filter that only the program that made it has.
    #[error("the custom filter '{name}' cannot be read back: its function is not stored")]
    CustomFilter {
        /// Its name.
        name: String,
    },

    /// A filter's Chebyshev series would need too many terms.
    #[error(
        "the filter {filter} is too sharp: {terms} Chebyshev terms do not reach the tolerance {tolerance:e}"
    )]
    FilterTooSharp {
        /// The filter and its parameters.
        filter: String,
        /// The terms tried.
        terms: usize,
        /// The error asked for.
        tolerance: f64,
    },

    /// A filter gave an infinite value or NaN.
    #[error("the filter {filter} is {value} at the eigenvalue {energy}")]
    FilterNotFinite {
        /// The filter and its parameters.
        filter: String,
        /// Where it was evaluated.
        energy: f64,
        /// What it gave.
        value: f64,
    },

    /// A range of rows is empty or reaches beyond the last.
    #[error("the rows {start}:{end} are no range within 0:{nodes}")]
    RowRange {
        /// The first row.
        start: usize,
        /// One beyond the last.
        end: usize,
        /// Number of vertices.
        nodes: usize,
    },

    /// Shards belong to different kernels.
    #[error("the shard of rows {start}:{end} belongs to another kernel: {what} differs")]
    ShardMismatch {
        /// What differs.
        what: &'static str,
        /// The first row of the shard.
        start: usize,
        /// One beyond its last.
        end: usize,
    },

    /// A shard is not what its manifest describes.
    #[error("the shard of rows {start}:{end} is damaged: {problem}")]
    ShardDamaged {
        /// The first row of the shard.
        start: usize,
        /// One beyond its last.
        end: usize,
        /// What is wrong.
        problem: String,
    },

    /// Shards do not cover every row once.
    #[error("row {row} {problem}")]
    ShardRows {
        /// The first such row.
        row: usize,
        /// Missing or twice there.
        problem: &'static str,
    },

    /// A device beside the CPU failed, or lacks the memory.
    #[error("{problem}")]
    Device {
        /// What went wrong.
        problem: String,
    },

    /// The work was abandoned because the watch asked for it.
    #[error("interrupted")]
    Interrupted,
}

/// A number in a message: 0.5, 300, 1e300.
fn brief(value: f64) -> String {
    if value != 0.0 && value.is_finite() && !(1e-6..1e15).contains(&value.abs()) {
        format!("{value:e}")
    } else {
        value.to_string()
    }
}

impl Error {
    /// What the user can do about it, where there is something to say. Each front end puts it in its own
    /// words.
    pub fn remedy(&self) -> Option<Remedy> {
        match self {
            Self::EmptyGraph => Some(Remedy::GiveVertices),
            Self::Parameter { name, .. } => crate::defaults::of(name).map(|_| Remedy::OtherValue(name)),
            Self::VertexOutOfRange { .. } | Self::UnknownVertex { .. } => Some(Remedy::CountFromZero),
            Self::Asymmetric { .. } => Some(Remedy::Symmetrize),
            Self::ConflictingWeights { .. } => Some(Remedy::ChooseWeight),
            Self::Memory { .. } => Some(Remedy::CheaperSolver),
            Self::KernelMemory { .. } => Some(Remedy::KeepLess),
            Self::Unconverged { .. } => Some(Remedy::OtherSolver),
            Self::NoEigenpairs => Some(Remedy::SolverWithPairs),
            Self::UnsuitedRoute { .. } => Some(Remedy::AutomaticSolver),
            Self::NoAccuracy => Some(Remedy::GiveAccuracy),
            Self::ForeignSpectrum { .. } => Some(Remedy::OwnSpectrum),
            Self::FilterTooSharp { .. } => Some(Remedy::SolverForSharpFilters),
            Self::RowRange { .. } => Some(Remedy::WriteRowRange),
            Self::ShardMismatch { .. } => Some(Remedy::SameOptions),
            Self::ShardDamaged { .. } => Some(Remedy::MakeShardAgain),
            Self::ShardRows { .. } => Some(Remedy::EveryRowOnce),
            Self::Device { .. } => Some(Remedy::OnTheCpu),
            _ => None,
        }
    }

    /// Whether one route cannot do what another may.
    pub(crate) fn is_about_the_route(&self) -> bool {
        matches!(
            self,
            Self::UnsuitedRoute { .. }
                | Self::FilterTooSharp { .. }
                | Self::NoEigenpairs
                | Self::NoAccuracy
                | Self::Memory { .. }
        )
    }
}
