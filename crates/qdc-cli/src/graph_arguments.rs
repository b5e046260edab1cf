//! The arguments GRAPH and DATASET, shared by every command that takes one.

use std::ffi::OsString;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use qdc_core::Symmetrize;
use qdc_data::{Dataset, EdgeReading, Shares, Source};

use crate::failure::Failure;
use crate::session::Session;
use crate::training_arguments::split;

/// A graph, and how to read its edges.
#[derive(Debug, Clone, Args)]
pub(crate) struct GraphArguments {
    /// A dataset (cora), a file (.npz, .mtx, .csv, .tsv) or a generator (karate, csbm:n=1000,homophily=0.2)
    #[arg(value_name = "GRAPH")]
    graph: OsString,
    #[command(flatten)]
    edges: EdgeArguments,
}

impl GraphArguments {
    /// Finds the graph and, where there are labels, the dataset around it.
    pub(crate) fn load(&self, session: &Session) -> Result<Source, Failure> {
        Ok(qdc_data::open(&self.graph, &session.data_dir(), self.edges.reading())?)
    }
}

/// A dataset, and the splits to make where it has none.
#[derive(Debug, Clone, Args)]
pub(crate) struct DatasetArguments {
    /// A dataset (cora), a dataset .npz, or a labelled generator (csbm:n=1000,homophily=0.2)
    #[arg(value_name = "DATASET")]
    dataset: OsString,
    #[command(flatten)]
    edges: EdgeArguments,
    /// Make ten random splits with these percentages of training, validation and test, in place of the
    /// dataset's own [default: the dataset's own; 48/32/20 where it has none]
    #[arg(long, value_name = "A/B/C")]
    split: Option<Shares>,
    /// Fixes every random choice
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
}

impl DatasetArguments {
    /// What fixes every random choice.
    pub(crate) fn seed(&self) -> u64 {
        self.seed
    }

    /// Loads the dataset; it has at least one split.
    pub(crate) fn load(&self, session: &Session) -> Result<Dataset, Failure> {
        let dataset =
            qdc_data::open(&self.dataset, &session.data_dir(), self.edges.reading())?.into_dataset()?;
        Ok(split(dataset, self.split, self.seed, session))
    }
}

/// How the edges of a file are read.
#[derive(Debug, Clone, Args)]
pub(crate) struct EdgeArguments {
    /// The lines of an edge list are arcs, not undirected pairs
    #[arg(long)]
    directed: bool,
    /// Make a directed graph undirected: an edge where either arc stands, the larger weight, or the mean
    #[arg(long, value_name = "RULE", value_parser = symmetrize_parser())]
    symmetrize: Option<Symmetrize>,
}

impl EdgeArguments {
    /// The reading these arguments ask for.
    pub(crate) fn reading(&self) -> EdgeReading {
        EdgeReading { directed: self.directed, symmetrize: self.symmetrize }
    }
}

fn symmetrize_parser() -> impl TypedValueParser<Value = Symmetrize> {
    PossibleValuesParser::new(["or", "max", "mean"]).map(|rule| match rule.as_str() {
        "or" => Symmetrize::Or,
        "max" => Symmetrize::Max,
        _ => Symmetrize::Mean,
    })
}
