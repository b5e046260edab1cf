//! The nine datasets: where each comes from, the files it consists of, and how they become a [`Dataset`].
//!
//! Files are named by their path below GitHub's raw-file host: OWNER/REPOSITORY/COMMIT/PATH. Each is pinned by commit,
//! size and SHA-256 (`files.txt`).

mod geom_gcn;
mod pickle;
mod planetoid;

use std::path::{Path, PathBuf};

use qdc_core::{Metric, Symmetrize};

use crate::npz::Npz;
use crate::{Dataset, EdgeReading, Error, dataset_file};

const GEOM_GCN: &str = "bingzhewei/geom-gcn/1124af17444d7fd09686504ec46caa3f39f4f632";
const PLANETOID: &str = "kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3";
const HETEROPHILOUS: &str = "yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318";

/// One line for each file: SHA-256, size, path.
const FILES: &str = include_str!("files.txt");

/// What is known of a dataset before it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Entry {
    /// The name users type.
    pub name: &'static str,
    /// Number of vertices.
    pub nodes: usize,
    /// Undirected edges, self-loops counted.
    pub edges: usize,
    /// Features of a vertex.
    pub features: usize,
    /// Number of classes.
    pub classes: usize,
    /// Node homophily, to two digits.
    pub homophily: f64,
    /// The metric results are usually given in.
    pub metric: Metric,
    /// Vertices are pages or papers of what.
    pub about: &'static str,
    #[serde(skip)]
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// Planetoid's pickles.
    Planetoid,
    /// Geom-GCN's text files, in a folder of this name.
    GeomGcn(&'static str),
    /// One archive of the heterophilous-graphs collection, directed.
    Heterophilous,
}

macro_rules! entry {
    ($name:literal, $nodes:literal, $edges:literal, $features:literal, $classes:literal, $homophily:literal, $origin:expr, $about:literal) => {
        Entry {
            name: $name,
            nodes: $nodes,
            edges: $edges,
            features: $features,
            classes: $classes,
            homophily: $homophily,
            metric: Metric::Accuracy,
            origin: $origin,
            about: $about,
        }
    };
}

/// The nine datasets, in the order of the published table.
pub const REGISTRY: [Entry; 9] = [
    entry!("cornell", 183, 280, 1703, 5, 0.11, Origin::GeomGcn("cornell"), "web pages of a university"),
    entry!("texas", 183, 295, 1703, 5, 0.06, Origin::GeomGcn("texas"), "web pages of a university"),
    entry!("wisconsin", 251, 466, 1703, 5, 0.16, Origin::GeomGcn("wisconsin"), "web pages of a university"),
    entry!("chameleon", 2277, 31421, 2325, 5, 0.25, Origin::Heterophilous, "Wikipedia pages"),
    entry!("squirrel", 5201, 198493, 2089, 5, 0.22, Origin::Heterophilous, "Wikipedia pages"),
    entry!("actor", 7600, 26752, 932, 5, 0.22, Origin::GeomGcn("film"), "actors named on the same page"),
    entry!("cora", 2708, 5278, 1433, 7, 0.83, Origin::Planetoid, "papers and citations"),
    entry!("citeseer", 3327, 4676, 3703, 6, 0.71, Origin::Planetoid, "papers and citations"),
    entry!("pubmed", 19717, 44327, 500, 3, 0.79, Origin::Planetoid, "papers and citations"),
];

/// A file of a dataset, pinned by size and checksum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PinnedFile {
    pub(crate) path: &'static str,
    pub(crate) size: u64,
    pub(crate) sha256: &'static str,
}

impl Entry {
    /// The dataset of this name.
    pub fn find(name: &str) -> Option<&'static Self> {
        REGISTRY.iter().find(|entry| entry.name == name)
    }

    /// The files it consists of.
    pub(crate) fn files(&self) -> Vec<PinnedFile> {
        let name = self.name;
        let parts: Vec<String> = match self.origin {
            Origin::Planetoid => ["allx", "ally", "tx", "ty", "graph", "test.index"]
                .map(|part| format!("{PLANETOID}/data/ind.{name}.{part}"))
                .into(),
            Origin::GeomGcn(folder) => ["out1_node_feature_label.txt", "out1_graph_edges.txt"]
                .map(|file| format!("{GEOM_GCN}/new_data/{folder}/{file}"))
                .into(),
            Origin::Heterophilous => vec![format!("{HETEROPHILOUS}/data/{name}_directed.npz")],
        };
        let splits = (0..crate::SPLITS).map(|index| geom_gcn::split_path(name, index));
        let wanted: Vec<String> = parts.into_iter().chain(splits).collect();
        pinned().filter(|file| wanted.iter().any(|path| path == file.path)).collect()
    }

    /// Reads the dataset from its original files below `root`.
    pub(crate) fn read(&self, root: &Path) -> Result<Dataset, Error> {
        let files = RawFiles { root };
        let mut dataset = match self.origin {
            Origin::Planetoid => planetoid::read(&files, self.name),
            Origin::GeomGcn(folder) => geom_gcn::read(&files, self.name, folder),
            Origin::Heterophilous => {
                let path = root.join(format!("{HETEROPHILOUS}/data/{}_directed.npz", self.name));
                let reading = EdgeReading { directed: true, symmetrize: Some(Symmetrize::Or) };
                dataset_file::from_archive(&Npz::open(path)?, self.name, reading)
            }
        }?;
        dataset.splits = geom_gcn::splits(&files, self.name, dataset.graph.nodes())?;
        Ok(dataset)
    }
}

fn pinned() -> impl Iterator<Item = PinnedFile> {
    FILES.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        Some(PinnedFile { sha256: fields.next()?, size: fields.next()?.parse().ok()?, path: fields.next()? })
    })
}

/// The folder below which the original files lie.
struct RawFiles<'a> {
    root: &'a Path,
}

/// A file and its content.
struct RawFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl RawFiles<'_> {
    fn read(&self, path: &str) -> Result<RawFile, Error> {
        let path = self.root.join(path);
        match std::fs::read(&path) {
            Ok(bytes) => Ok(RawFile { path, bytes }),
            Err(source) => Err(Error::Read { path, source }),
        }
    }
}

/// Entry points of the fuzzers.
pub(crate) mod from_bytes {
    use super::{Error, Path, pickle::Pickle};

    /// Reads a pickle as each of the things Planetoid's files hold.
    pub(crate) fn pickle(path: &Path, bytes: &[u8]) -> Result<(), Error> {
        let lists = Pickle::read(path, bytes)?.into_lists().map(drop);
        let table = Pickle::read(path, bytes)?.into_table().map(drop);
        lists.or(table).or(Pickle::read(path, bytes)?.into_matrix().map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_of_every_dataset_is_pinned() {
        let mut all = 0;
        for entry in &REGISTRY {
            let own = match entry.origin {
                Origin::Planetoid => 6,
                Origin::GeomGcn(_) => 2,
                Origin::Heterophilous => 1,
            };
            let files = entry.files();
            assert_eq!(files.len(), own + 10, "{}", entry.name);
            assert!(files.iter().all(|file| file.sha256.len() == 64 && file.size > 0));
            all += files.len();
        }
        assert_eq!(pinned().count(), all, "no file is pinned that nobody needs");
    }
}
