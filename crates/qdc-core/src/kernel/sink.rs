//! Where a route puts its rows: each is sparsified as it comes, and only what is kept is stored.

use std::sync::OnceLock;

use crate::sparsify::{Row, Rule};

/// Rows asked for, and what they keep. Filled from any number of threads.
#[derive(Debug)]
pub struct Sink {
    rule: Rule,
    nodes: usize,
    rows: Vec<u32>,
    kept: Vec<OnceLock<Row>>,
}

impl Sink {
    /// `rows` ascend and lie below `nodes`.
    pub(super) fn new(rule: Rule, nodes: usize, rows: Vec<u32>) -> Self {
        let kept = std::iter::repeat_with(OnceLock::new).take(rows.len()).collect();
        Self { rule, nodes, rows, kept }
    }

    /// The rows wanted, ascending.
    pub fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The number of vertices: rows and columns of the whole kernel.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Keeps what the recipe keeps of the row `rows()[place]`, given whole. A row never put keeps nothing.
    ///
    /// # Panics
    /// If the row does not have one value for each vertex, or was put before.
    pub fn put(&self, place: usize, values: &[f64]) {
        assert_eq!(values.len(), self.nodes, "one value for each vertex");
        self.put_kept(place, self.rule.keep_row(self.rows[place], 0, values));
    }

    /// The rule by which entries are kept.
    pub(super) fn rule(&self) -> &Rule {
        &self.rule
    }

    /// Whether the row `rows()[place]` is there.
    pub(super) fn is_put(&self, place: usize) -> bool {
        self.kept[place].get().is_some()
    }

    /// Whether every row is there.
    pub(super) fn is_full(&self) -> bool {
        self.kept.iter().all(|row| row.get().is_some())
    }

    /// Stores a row that was sparsified already.
    pub(super) fn put_kept(&self, place: usize, row: Row) {
        assert!(self.kept[place].set(row).is_ok(), "row {} was put twice", self.rows[place]);
    }

    /// What each row keeps.
    pub(super) fn into_rows(self) -> Vec<Row> {
        self.kept.into_iter().map(|row| row.into_inner().unwrap_or_default()).collect()
    }
}
