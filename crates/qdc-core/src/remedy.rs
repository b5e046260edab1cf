//! What can be done about an error or a remark, as a value.

/// What the user can do about an error or a remark. The command line and Python each word it in their own terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Remedy {
    /// Give at least one edge, or state the number of vertices.
    GiveVertices,
    /// Give the parameter of this name another value; it has a default.
    OtherValue(&'static str),
    /// Count vertices from 0.
    CountFromZero,
    /// Say how to make a directed graph undirected: or, max, mean.
    Symmetrize,
    /// Keep one of two weights, or choose by max or mean.
    ChooseWeight,
    /// Allow more memory, ask for fewer pairs, or take the Chebyshev route for a kernel of all pairs.
    CheaperSolver,
    /// Allow more memory, keep fewer entries, or build row ranges and merge them.
    KeepLess,
    /// Take the window solver, or the dense one where it fits in memory.
    OtherSolver,
    /// Take a solver that gives eigenpairs: dense, window or lobpcg.
    SolverWithPairs,
    /// Let the program choose the solver.
    AutomaticSolver,
    /// State the largest error that entries may have.
    GiveAccuracy,
    /// Make the large entries alone by the local route, right to [`crate::defaults::ACCURACY`].
    LargeEntries,
    /// Compute the spectrum of this graph with the same self-loop weight.
    OwnSpectrum,
    /// Take the dense solver, a larger tolerance or a wider filter.
    SolverForSharpFilters,
    /// Write rows from A up to but not including B.
    WriteRowRange,
    /// Make every shard with the same graph and options.
    SameOptions,
    /// Make the shard again.
    MakeShardAgain,
    /// Give every row in exactly one shard.
    EveryRowOnce,
    /// Do it on the CPU, or let the program choose the device.
    OnTheCpu,
}
