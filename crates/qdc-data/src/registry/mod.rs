//! The datasets known by name: where each comes from, the files it consists of, and how they become a
//! [`Dataset`].
//!
//! Files are named by their path below GitHub's raw-file host: OWNER/REPOSITORY/COMMIT/PATH. Each is pinned
//! by commit and checksum (`files.txt`).

mod checksum;
mod contents;
mod geom_gcn;
mod pickle;
mod planetoid;

use std::path::{Path, PathBuf};

use qdc_core::{Metric, Symmetrize};

pub(crate) use checksum::Checksum;

use crate::npz::Npz;
use crate::{Budget, Dataset, EdgeReading, Error, budget, dataset_file};

const GEOM_GCN: &str = "bingzhewei/geom-gcn/1124af17444d7fd09686504ec46caa3f39f4f632";
const PLANETOID: &str = "kimiyoung/planetoid/af6abf468a772cc055bec88c52e4d6f51b7c37e3";
const HETEROPHILOUS: &str = "yandex-research/heterophilous-graphs/a431395582e929d88271309716bea4fe24ce6318";

/// One line for each file: checksum, size, path. The checksum is the SHA-256; where only the git blob id is
/// known, that stands there after `git:`, and the size is `?`.
const FILES: &str = include_str!("files.txt");

/// What is known of a dataset before it is loaded.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Entry {
    /// The name users type; `_` may stand for `-`.
    pub name: &'static str,
    /// Number of vertices.
    pub nodes: usize,
    /// Undirected edges, self-loops counted.
    pub edges: usize,
    /// Features of a vertex.
    pub features: usize,
    /// Number of classes.
    pub classes: usize,
    /// Node homophily, to two digits; `None` where we have not measured it.
    pub homophily: Option<f64>,
    /// The metric results are usually given in.
    pub metric: Metric,
    /// What vertices are, and what joins them.
    pub about: &'static str,
    #[serde(skip)]
    origin: Origin,
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Origin {
    /// Planetoid's pickles, and Geom-GCN's splits.
    Planetoid,
    /// Geom-GCN's text files, in a folder of this name, and its splits.
    GeomGcn(&'static str),
    /// One directed archive of the heterophilous-graphs collection, and Geom-GCN's splits.
    Directed,
    /// One undirected archive of the heterophilous-graphs collection, with splits of its own.
    Whole,
}

/// An entry: name, vertices, edges, features, classes, homophily, metric, origin, what it is about.
type Row = (&'static str, usize, usize, usize, usize, Option<f64>, Metric, Origin, &'static str);

const fn entry(row: Row) -> Entry {
    let (name, nodes, edges, features, classes, homophily, metric, origin, about) = row;
    Entry { name, nodes, edges, features, classes, homophily, metric, about, origin }
}

/// The nine datasets of the published table in its order, then those of the heterophilous-graphs collection.
#[rustfmt::skip]
pub const REGISTRY: [Entry; 16] = {
    use Metric::{Accuracy, Auc};
    use Origin::{Directed, GeomGcn, Planetoid, Whole};
    [
        entry(("cornell", 183, 280, 1703, 5, Some(0.11), Accuracy, GeomGcn("cornell"), "web pages of a university")),
        entry(("texas", 183, 295, 1703, 5, Some(0.06), Accuracy, GeomGcn("texas"), "web pages of a university")),
        entry(("wisconsin", 251, 466, 1703, 5, Some(0.16), Accuracy, GeomGcn("wisconsin"), "web pages of a university")),
        entry(("chameleon", 2277, 31421, 2325, 5, Some(0.25), Accuracy, Directed, "Wikipedia pages")),
        entry(("squirrel", 5201, 198493, 2089, 5, Some(0.22), Accuracy, Directed, "Wikipedia pages")),
        entry(("actor", 7600, 26752, 932, 5, Some(0.22), Accuracy, GeomGcn("film"), "actors named on the same page")),
        entry(("cora", 2708, 5278, 1433, 7, Some(0.83), Accuracy, Planetoid, "papers and citations")),
        entry(("citeseer", 3327, 4676, 3703, 6, Some(0.71), Accuracy, Planetoid, "papers and citations")),
        entry(("pubmed", 19717, 44327, 500, 3, Some(0.79), Accuracy, Planetoid, "papers and citations")),
        entry(("chameleon-filtered", 890, 8854, 2325, 5, Some(0.24), Accuracy, Whole, "Wikipedia pages, duplicates removed")),
        entry(("squirrel-filtered", 2223, 46998, 2089, 5, Some(0.19), Accuracy, Whole, "Wikipedia pages, duplicates removed")),
        entry(("roman-empire", 22662, 32927, 300, 18, None, Accuracy, Whole, "words of an article and their syntax")),
        entry(("amazon-ratings", 24492, 93050, 300, 5, None, Accuracy, Whole, "products bought together")),
        entry(("minesweeper", 10000, 39402, 7, 2, Some(0.68), Auc, Whole, "cells of a grid, mines to be found")),
        entry(("tolokers", 11758, 519000, 10, 2, Some(0.63), Auc, Whole, "workers on the same tasks")),
        entry(("questions", 48921, 153540, 301, 2, None, Auc, Whole, "users who answered each other")),
    ]
};

/// A file of a dataset, pinned by its checksum, and by its size where that is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PinnedFile {
    pub(crate) path: &'static str,
    pub(crate) size: Option<u64>,
    pub(crate) checksum: Checksum,
}

impl Entry {
    /// The dataset of this name; `_` may stand for `-`.
    pub fn find(name: &str) -> Option<&'static Self> {
        let name = name.replace('_', "-");
        REGISTRY.iter().find(|entry| entry.name == name)
    }

    /// The name of a file that holds it whole, without its ending: `chameleon_filtered`.
    pub(crate) fn stem(&self) -> String {
        self.name.replace('-', "_")
    }

    /// The hash of its content ([`Dataset::hash`]), where we have read its original files.
    pub(crate) fn content(&self) -> Option<&'static str> {
        contents::CONTENTS.iter().find(|content| content.0 == self.name).map(|content| content.1)
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
            Origin::Directed => vec![format!("{HETEROPHILOUS}/data/{name}_directed.npz")],
            Origin::Whole => vec![format!("{HETEROPHILOUS}/data/{}.npz", self.stem())],
        };
        let splits = if self.origin == Origin::Whole { 0 } else { crate::SPLITS };
        let splits = (0..splits).map(|index| geom_gcn::split_path(name, index));
        let wanted: Vec<String> = parts.into_iter().chain(splits).collect();
        pinned().filter(|file| wanted.iter().any(|path| path == file.path)).collect()
    }

    /// Reads the dataset from its original files below `root`.
    pub(crate) fn read(&self, root: &Path, budget: Budget) -> Result<Dataset, Error> {
        let files = RawFiles { root, budget };
        let mut dataset = match self.origin {
            Origin::Planetoid => planetoid::read(&files, self.name),
            Origin::GeomGcn(folder) => geom_gcn::read(&files, self.name, folder),
            Origin::Whole => {
                let file = files.read(&format!("{HETEROPHILOUS}/data/{}.npz", self.stem()))?;
                let archive = Npz::from_bytes(file.path, file.bytes, budget)?;
                return dataset_file::from_archive(&archive, self.name, EdgeReading::default());
            }
            Origin::Directed => {
                let file = files.read(&format!("{HETEROPHILOUS}/data/{}_directed.npz", self.name))?;
                let archive = Npz::from_bytes(file.path, file.bytes, budget)?;
                let reading = EdgeReading { directed: true, symmetrize: Some(Symmetrize::Or) };
                dataset_file::from_archive(&archive, self.name, reading)
            }
        }?;
        dataset.splits = geom_gcn::splits(&files, self.name, dataset.graph.nodes())?;
        Ok(dataset)
    }
}

fn pinned() -> impl Iterator<Item = PinnedFile> {
    FILES.lines().filter_map(|line| {
        let mut fields = line.split(' ');
        let checksum = Checksum::parse(fields.next()?);
        Some(PinnedFile { checksum, size: fields.next()?.parse().ok(), path: fields.next()? })
    })
}

/// The folder below which the original files lie.
struct RawFiles<'a> {
    root: &'a Path,
    budget: Budget,
}

/// A file and its content.
struct RawFile {
    path: PathBuf,
    bytes: Vec<u8>,
}

impl RawFiles<'_> {
    /// A file with the size and the checksum it is pinned by; hashing takes a fraction of the time reading
    /// does.
    fn read(&self, path: &str) -> Result<RawFile, Error> {
        let place = self.root.join(path);
        let bytes = budget::read_file(&place, self.budget)?;
        match pinned().find(|file| file.path == path) {
            Some(pin) => pin.check(&place, &bytes)?,
            None => return Err(Error::malformed(&place, "the file", "no checksum of it is known")),
        }
        Ok(RawFile { path: place, bytes })
    }
}

impl PinnedFile {
    /// Refuses a content that is not the pinned one.
    pub(crate) fn check(&self, place: &Path, bytes: &[u8]) -> Result<(), Error> {
        if self.checksum.fits(bytes) {
            return Ok(());
        }
        let problem = format!("its content is not the original, whose checksum is the {}", self.checksum);
        Err(Error::malformed(place, "the whole file", problem).remedy(
            "it was changed or belongs to another dataset; remove it and fetch it again with `qdc data get`",
        ))
    }
}

/// Entry points of the fuzzers.
pub(crate) mod from_bytes {
    use super::{Budget, Error, Path, pickle::Pickle};

    /// Reads a pickle as each of the things Planetoid's files hold.
    pub(crate) fn pickle(path: &Path, bytes: &[u8], budget: Budget) -> Result<(), Error> {
        let read = || Pickle::read(path, bytes, budget);
        let lists = read()?.into_lists().map(drop);
        let table = read()?.into_table().map(drop);
        lists.or(table).or(read()?.into_matrix().map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_dir::{NAMES, PUBLISHED};

    #[test]
    fn every_file_of_every_dataset_is_pinned() {
        let mut all = 0;
        for entry in &REGISTRY {
            let own = match entry.origin {
                Origin::Planetoid => 6,
                Origin::GeomGcn(_) => 2,
                Origin::Directed | Origin::Whole => 1,
            };
            let files = entry.files();
            let splits = if entry.origin == Origin::Whole { 0 } else { 10 };
            assert_eq!(files.len(), own + splits, "{}", entry.name);
            assert!(files.iter().all(|file| match file.checksum {
                Checksum::Sha256(digits) => digits.len() == 64 && file.size.is_some_and(|size| size > 0),
                Checksum::GitBlob(digits) => digits.len() == 40,
            }));
            all += files.len();
        }
        assert_eq!(pinned().count(), all, "no file is pinned that nobody needs");
    }

    #[test]
    fn a_name_is_found_with_either_dash_and_brings_its_usual_metric() {
        let filtered = Entry::find("chameleon_filtered").unwrap();
        assert_eq!((filtered.name, filtered.stem().as_str()), ("chameleon-filtered", "chameleon_filtered"));
        assert_eq!(Entry::find("chameleon-filtered"), Some(filtered));
        assert_eq!(Entry::find("chameleons"), None);
        let by_auc: Vec<&str> =
            REGISTRY.iter().filter(|entry| entry.metric == Metric::Auc).map(|entry| entry.name).collect();
        assert_eq!(by_auc, ["minesweeper", "tolokers", "questions"]);
        assert!(REGISTRY.iter().zip(NAMES).all(|(entry, name)| entry.name == name));
        assert!(PUBLISHED.iter().zip(NAMES).all(|(published, name)| *published == name));
    }
}
