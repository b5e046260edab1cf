//! What can be done about an error, in the words of Python.

use qdc_core::{Error, Remedy, defaults};

/// What the user can do about an error, by the keywords to give.
pub(crate) fn hint(error: &Error) -> Option<String> {
    let words = match error.remedy()? {
        Remedy::OtherValue(name) => return Some(format!("the default is {name}={}", defaults::of(name)?)),
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
        Remedy::GiveAccuracy => {
            "give accuracy, the largest error that entries may have, such as accuracy=1e-4"
        }
        Remedy::LargeEntries => return Some(format!(r#"solver="local", accuracy={:e}"#, defaults::ACCURACY)),
        Remedy::OwnSpectrum => "compute qdc.Spectrum of this graph, with the same self_loop",
        Remedy::SolverForSharpFilters => {
            r#"use solver="dense", which takes any filter; or a larger tolerance, or a wider filter"#
        }
        Remedy::WriteRowRange => "rows are a slice or range within the number of vertices",
        Remedy::SameOptions => "make every shard with the same graph and options",
        Remedy::MakeShardAgain => "make it again",
        Remedy::OnTheCpu => "use device='cpu', or device='auto', which takes what there is",
        Remedy::EveryRowOnce => "every row must be in exactly one shard",
        _ => return None,
    };
    Some(words.to_owned())
}

/// What can be done about an error of the experiments: by keywords of Python where the command line has options.
pub(crate) fn lab_hint(error: &qdc_lab::Error) -> Option<String> {
    use qdc_lab::Error;
    let words = match error {
        Error::NoSuchSplit { splits: 0, .. } => "the dataset has no splits: give it masks",
        Error::OverMemory { needed, at_least: false, .. } => {
            let enough = needed.div_ceil(1_000_000);
            return Some(format!(
                "memory={enough}e6 allows it; fewer heads, layers or hidden columns, or a larger epsilon, need less"
            ));
        }
        Error::OverMemory { .. } => "raise memory; fewer pairs or a larger epsilon need less",
        Error::OtherGraph { .. } => "predict on the graph the model was trained on",
        Error::OtherFeatures { .. } => "restore the features, or train again",
        Error::OtherExperiment { .. } | Error::NoRecord { .. } | Error::Trial { .. } => {
            "give the study another name, or keep it in another file"
        }
        Error::StartingPoint { .. } => "begin at values that the space searches; leave the others out",
        Error::SearchSpace { .. } => r#"space="paper" and space="wide" work for every model"#,
        Error::Tune(qdc_tune::Error::NoPostgres { .. }) => {
            r#"name a file, or build the package with it: pip install ./python --config-settings build-args="--features postgres""#
        }
        // Hints of studies name options only where another study is the way out.
        Error::Tune(error) => match error.hint() {
            Some(hint) if !hint.contains("--") => return Some(hint),
            _ => "keep the study under another name, or in another file",
        },
        Error::Network(error) => return network_hint(error),
        Error::Data(error) => return data_hint(error),
        error => return error.hint().or_else(|| error.core().and_then(hint)),
    };
    Some(words.to_owned())
}

fn network_hint(error: &qdc_nn::Error) -> Option<String> {
    use qdc_nn::Error;
    let words = match error {
        Error::OneClass { .. } => r#"choose another metric, such as metric="accuracy", or other splits"#,
        Error::EmptySet { .. } => "choose other splits, or give the dataset other masks",
        Error::NotAModel { .. } => "name a file that a training saved",
        error => return error.hint().or_else(|| error.core().and_then(hint)),
    };
    Some(words.to_owned())
}

/// What can be done about an error of files and datasets.
pub(crate) fn data_hint(error: &qdc_data::Error) -> Option<String> {
    use qdc_data::Error;
    match error {
        Error::NotDownloaded { name, .. } => Some(format!(
            "fetch it with `qdc data get {name}` in a terminal, or set QDC_DATA to the folder it lies in"
        )),
        Error::Memory { .. } => Some(
            "raise memory if it is meant to be that large; otherwise the file is damaged or malicious".into(),
        ),
        error => error.hint().or_else(|| error.core().and_then(hint)),
    }
}
