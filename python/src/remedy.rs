//! Remedies of the core in the words of Python.

use qdc_core::{Error, Remedy};

/// What the user can do about an error, by the keywords to give.
pub(crate) fn hint(error: &Error) -> Option<String> {
    let words = match error.remedy()? {
        Remedy::GiveVertices => "give at least one edge, or a matrix with at least one row",
        Remedy::CountFromZero => "vertices count from 0",
        Remedy::Symmetrize => {
            r#"say how to make it undirected: qdc.Graph(A, symmetrize="or"), "max" or "mean""#
        }
        Remedy::ChooseWeight => {
            r#"keep one of the copies, or choose with symmetrize="max" (the larger) or "mean" (the average)"#
        }
        Remedy::CheaperSolver => {
            r#"raise memory, ask for fewer pairs (pairs=512), or use solver="chebyshev" for a kernel of all pairs"#
        }
        Remedy::KeepLess => {
            "raise memory, keep less (sparsify=qdc.TopK(64)), or build row ranges (qdc.build_rows)"
        }
        Remedy::OtherSolver => r#"use solver="window", or solver="dense" if it fits in memory"#,
        Remedy::SolverWithPairs => r#"choose solver="dense", "window" or "lobpcg""#,
        Remedy::AutomaticSolver => r#"leave the choice to solver="auto""#,
        Remedy::OwnSpectrum => "compute qdc.Spectrum of this graph, with the same self_loop",
        Remedy::SolverForSharpFilters => {
            r#"use solver="dense", which takes any filter; or a larger tolerance, or a wider filter"#
        }
        Remedy::WriteRowRange => "rows are a slice or range within the number of vertices",
        Remedy::SameOptions => "make every shard with the same graph and options",
        Remedy::MakeShardAgain => "make it again with qdc.build_rows",
        Remedy::EveryRowOnce => "every row must be in exactly one shard",
        _ => return None,
    };
    Some(words.to_owned())
}
