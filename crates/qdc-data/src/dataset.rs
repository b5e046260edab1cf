//! A dataset: a graph whose vertices have features and labels, and the splits it is scored on.

use qdc_core::hash::{ContentHash, Digest};
use qdc_core::{Features, Graph, Homophily, Metric, Split, UNLABELLED, homophily, order};
use serde::Serialize;

use crate::registry::Entry;
use crate::{Error, Shares, random_splits};

/// A labelled graph with features and splits.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    /// Its name, or where it came from.
    pub name: String,
    /// The undirected graph.
    pub graph: Graph,
    /// One row for each vertex.
    pub features: Features,
    /// The class of each vertex, below [`Dataset::classes`], or [`UNLABELLED`]; no split has an unlabelled
    /// vertex.
    pub labels: Vec<u32>,
    /// Number of classes.
    pub classes: usize,
    /// The splits to train and score on; vertices may be in none.
    pub splits: Vec<Split>,
}

impl Dataset {
    /// Joins the parts of a dataset that has no splits yet; the classes are counted from the labels.
    pub fn new(name: String, graph: Graph, features: Features, labels: Vec<u32>) -> Result<Self, Error> {
        let expected = graph.nodes();
        for (what, found) in [
            ("labels, one for each vertex", labels.len()),
            ("rows of features, one for each vertex", features.rows()),
        ] {
            if found != expected {
                let source = qdc_core::Error::LengthMismatch { what, expected, found };
                return Err(Error::Invalid { path: name.into(), source });
            }
        }
        let known = labels.iter().filter(|&&label| label != UNLABELLED);
        let classes = known.max().map_or(0, |&largest| largest as usize + 1);
        Ok(Self { name, graph, features, labels, classes, splits: Vec::new() })
    }

    /// The dataset with ten random splits in place of its own.
    pub fn with_random_splits(mut self, shares: Shares, seed: u64) -> Self {
        self.splits = random_splits(&self.labels, shares, seed);
        self
    }

    /// The metric results on this dataset are usually given in: the registry's, or accuracy.
    pub fn usual_metric(&self) -> Metric {
        Entry::find(&self.name).map_or_else(Metric::default, |entry| entry.metric)
    }

    /// A hash of everything but the name: that of the same dataset, whatever kind of file it was read from.
    pub fn hash(&self) -> ContentHash {
        let graph = self.graph.hash().to_string();
        let mut digest = Digest::new("dataset").text(&graph).indices(&self.labels);
        digest = digest.sizes(&[self.features.rows(), self.features.columns()]);
        for row in 0..self.features.rows() {
            let (columns, bits) = self.entries(row);
            digest = digest.indices(&columns).indices(&bits);
        }
        for split in &self.splits {
            digest = digest.indices(split.train()).indices(split.validation()).indices(split.test());
        }
        digest.finish()
    }

    /// The features of a vertex that are not 0: their columns, and their bits.
    fn entries(&self, row: usize) -> (Vec<u32>, Vec<u32>) {
        let there = |(_, value): &(u32, f32)| *value != 0.0;
        let bits = |(column, value): (u32, f32)| (column, value.to_bits());
        match &self.features {
            Features::Sparse(matrix) => {
                let (columns, values) = matrix.row(row);
                columns.iter().copied().zip(values.iter().copied()).filter(there).map(bits).unzip()
            }
            Features::Dense { columns, values } => {
                let row = &values[row * columns..(row + 1) * columns];
                (0u32..).zip(row.iter().copied()).filter(there).map(bits).unzip()
            }
        }
    }

    /// Counts and homophily.
    pub fn statistics(&self) -> Result<Statistics, Error> {
        let Homophily { node, edge, .. } = homophily(&self.graph, &self.labels)?;
        Ok(Statistics {
            name: self.name.clone(),
            nodes: self.graph.nodes(),
            edges: self.graph.edges() + self.graph.self_loops(),
            self_loops: self.graph.self_loops(),
            features: self.features.columns(),
            feature_density: self.features.density(),
            classes: self.classes,
            homophily: node,
            edge_homophily: edge,
            components: order::components(&self.graph).count(),
            splits: self.splits.len(),
        })
    }
}

/// What `qdc data show` tells about a dataset.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statistics {
    /// The dataset.
    pub name: String,
    /// Number of vertices.
    pub nodes: usize,
    /// Undirected edges, self-loops counted (as in published tables).
    pub edges: usize,
    /// Vertices with a self-loop in the source; they are dropped from the graph.
    pub self_loops: usize,
    /// Features of a vertex.
    pub features: usize,
    /// The share of features that are not 0.
    pub feature_density: f64,
    /// Number of classes.
    pub classes: usize,
    /// Node homophily: H of the paper.
    pub homophily: f64,
    /// The share of edges within a class.
    pub edge_homophily: f64,
    /// Connected components.
    pub components: usize,
    /// Number of splits.
    pub splits: usize,
}
