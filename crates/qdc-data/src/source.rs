//! What users call a graph: the name of a dataset, a file, or a generator.

use std::ffi::OsStr;
use std::path::Path;

use qdc_core::{Graph, Symmetrize};

use crate::npz::Npz;
use crate::{DataDir, Dataset, Entry, Error, dataset_file, generators, matrix};

/// How the edges of a file are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EdgeReading {
    /// The lines of an edge list are arcs, not undirected pairs.
    pub directed: bool,
    /// How arcs become edges; without a rule the two orientations must agree.
    pub symmetrize: Option<Symmetrize>,
}

/// A graph and, where there are labels, the dataset around it.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// A labelled graph with features.
    Dataset(Dataset),
    /// A graph alone.
    Graph {
        /// Its name, or where it came from.
        name: String,
        /// The graph.
        graph: Graph,
    },
}

impl Source {
    /// Its name, or where it came from.
    pub fn name(&self) -> &str {
        match self {
            Self::Dataset(dataset) => &dataset.name,
            Self::Graph { name, .. } => name,
        }
    }

    /// The graph.
    pub fn graph(&self) -> &Graph {
        match self {
            Self::Dataset(dataset) => &dataset.graph,
            Self::Graph { graph, .. } => graph,
        }
    }

    /// The graph alone.
    pub fn into_graph(self) -> Graph {
        match self {
            Self::Dataset(dataset) => dataset.graph,
            Self::Graph { graph, .. } => graph,
        }
    }

    /// The class of each vertex, where it has one.
    pub fn labels(&self) -> Option<&[u32]> {
        match self {
            Self::Dataset(dataset) => Some(&dataset.labels),
            Self::Graph { .. } => None,
        }
    }

    /// The dataset, or an error where the graph has no labels.
    pub fn into_dataset(self) -> Result<Dataset, Error> {
        match self {
            Self::Dataset(dataset) => Ok(dataset),
            Self::Graph { name, .. } => Err(Error::Unlabelled { name }),
        }
    }
}

/// Finds the graph that `name` stands for: a dataset of `folder`, a generator, or a file.
///
/// # Errors
/// [`Error::UnknownGraph`], and those of reading, making and memory.
pub fn open(name: impl AsRef<OsStr>, folder: &DataDir, reading: EdgeReading) -> Result<Source, Error> {
    let path = Path::new(name.as_ref());
    let name = &*name.as_ref().to_string_lossy(); // the path itself need not be Unicode
    if Entry::find(name).is_some() {
        return folder.load(name).map(Source::Dataset);
    }
    if let Some(made) = generators::generate(name, folder.budget()) {
        return made;
    }
    if let Err(source) = path.metadata() {
        let looks_like_a_file = matrix::Format::of(path).is_some() || name.contains(['/', '\\']);
        return Err(if looks_like_a_file {
            Error::Read { path: path.into(), source }
        } else {
            Error::UnknownGraph { name: name.into() }
        });
    }
    if matrix::Format::of(path) == Some(matrix::Format::SciPy) {
        let archive = Npz::open_within(path, folder.budget())?;
        if dataset_file::is_dataset(&archive) {
            return dataset_file::from_archive(&archive, name, reading).map(Source::Dataset);
        }
    }
    Ok(Source::Graph { name: name.into(), graph: matrix::read_graph(path, reading, folder.budget())? })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_is_not_there_is_named_with_what_the_system_says() {
        let error = open("nowhere/edges.csv", &DataDir::new("nowhere"), EdgeReading::default()).unwrap_err();
        let Error::Read { path, source } = &error else { panic!("{error}") };
        assert_eq!(path, Path::new("nowhere/edges.csv"));
        assert!(source.raw_os_error().is_some(), "{source}");
        assert!(error.hint().unwrap().contains("check the path"));
    }

    #[test]
    fn a_name_that_stands_for_nothing_lists_what_there_is() {
        let folder = DataDir::new("nowhere");
        let error = open("petersen", &folder, EdgeReading::default()).unwrap_err();
        let hint = error.hint().unwrap();
        assert!(hint.contains("cornell") && hint.contains("karate") && hint.contains(".mtx"), "{hint}");
        let error = open("graphs/petersen.csv", &folder, EdgeReading::default()).unwrap_err();
        assert!(error.to_string().contains("cannot read graphs/petersen.csv"), "{error}");
        let error = open("cora", &folder, EdgeReading::default()).unwrap_err();
        assert!(error.hint().unwrap().contains("qdc data get cora"), "{error}");
    }

    #[test]
    fn only_labelled_graphs_are_datasets() {
        let folder = DataDir::new("nowhere");
        assert!(open("karate", &folder, EdgeReading::default()).unwrap().into_dataset().is_ok());
        let error = open("cycle:5", &folder, EdgeReading::default()).unwrap().into_dataset().unwrap_err();
        assert!(error.to_string().contains("cycle:5"), "{error}");
    }
}
