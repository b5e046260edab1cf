//! Remedies of the core in the words of the command line.

use qdc_core::{Error, Remedy, defaults};

/// What the user can do about an error, by the options to type.
pub(crate) fn hint(error: &Error) -> Option<String> {
    words(error.remedy()?)
}

/// A remedy by the options to type.
pub(crate) fn words(remedy: Remedy) -> Option<String> {
    let words = match remedy {
        Remedy::OtherValue(name) => {
            let value = defaults::of(name)?;
            let option = name.replace('_', "-");
            return Some(format!("the default is --{option} {value}; qdc kernel --help tells what it means"));
        }
        Remedy::LargeEntries => return Some(format!("--solver local --accuracy {:e}", defaults::ACCURACY)),
        Remedy::GiveVertices => "give at least one edge, or state the number of vertices",
        Remedy::CountFromZero => "vertices count from 0",
        Remedy::Symmetrize => "say how to make it undirected: --directed --symmetrize or|max|mean",
        Remedy::ChooseWeight => {
            "keep one of the copies, or choose with --symmetrize max (the larger) or mean (the average)"
        }
        Remedy::CheaperSolver => {
            "raise --memory, ask for fewer pairs (--pairs 512), or use --solver chebyshev for a kernel of all pairs"
        }
        Remedy::KeepLess => {
            "raise --memory, keep less (--top-k 64, --epsilon), or build row ranges (--rows A:B) and qdc merge"
        }
        Remedy::OtherSolver => "use --solver window, or --solver dense if it fits in memory",
        Remedy::SolverWithPairs => "choose --solver dense, window or lobpcg",
        Remedy::AutomaticSolver => "leave the choice to --solver auto",
        Remedy::GiveAccuracy => "give --accuracy, the largest error that entries may have, such as 1e-4",
        Remedy::OwnSpectrum => "compute the spectrum of this graph, with the same --self-loop",
        Remedy::SolverForSharpFilters => {
            "use --solver dense, which takes any filter; or a larger --tolerance, or a wider filter"
        }
        Remedy::WriteRowRange => "rows are written A:B, from A up to but not including B",
        Remedy::SameOptions => "make every shard with the same graph and options",
        Remedy::MakeShardAgain => "make it again with qdc kernel --rows",
        Remedy::OnTheCpu => "use --device cpu, or --device auto, which takes what there is",
        Remedy::EveryRowOnce => "every row must be in exactly one shard",
        _ => return None,
    };
    Some(words.to_owned())
}
