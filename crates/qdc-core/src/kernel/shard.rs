//! A range of rows of a kernel, made by itself, and how such shards join into the whole.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{BuiltKernel, KernelReport, Recipe, finish};
use crate::hash::{ContentHash, Digest};
use crate::sparsify::{Row, Rule};
use crate::{Csr, Error};

/// What a shard is a part of: two shards fit together if all but the range is the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardManifest {
    /// [`crate::Graph::hash`] of the graph.
    pub graph: ContentHash,
    /// The first row.
    pub start: usize,
    /// One beyond the last row.
    pub end: usize,
    /// The kernel.
    pub recipe: Recipe,
    /// The route and what it did; counts are those of the shard.
    pub report: KernelReport,
    /// The hash of the entries.
    pub content: ContentHash,
}

/// Some rows of a kernel: what each keeps by its own values, before union and normalisation.
#[derive(Clone, Debug)]
pub struct Shard {
    /// `end - start` rows of all columns.
    pub matrix: Csr<f64>,
    /// What it is a part of.
    pub manifest: ShardManifest,
}

/// Gives rows their manifest.
pub(super) fn label(
    graph: ContentHash,
    recipe: Recipe,
    rows: Range<usize>,
    kept: Vec<Row>,
    mut report: KernelReport,
) -> Result<Shard, Error> {
    let matrix = Csr::from_rows(report.nodes, kept.into_iter().map(|row| (row.columns, row.values)))?;
    finish::count(&mut report, &matrix, rows.start);
    let content = content(&matrix);
    let manifest = ShardManifest { graph, start: rows.start, end: rows.end, recipe, report, content };
    Ok(Shard { matrix, manifest })
}

fn content(matrix: &Csr<f64>) -> ContentHash {
    Digest::new("shard").sizes(matrix.pointers()).indices(matrix.indices()).floats(matrix.values()).finish()
}

impl Shard {
    /// Joins shards, in any order, that cover every row once: what [`super::Job::build`] gives, bit for bit.
    ///
    /// # Errors
    /// If a shard is damaged or of another kernel, or a row is missing or there twice.
    pub fn merge(mut shards: Vec<Self>) -> Result<BuiltKernel, Error> {
        shards.sort_by_key(|shard| shard.manifest.start);
        let mut cover = Cover::default();
        for shard in &shards {
            cover.add(&shard.manifest)?;
            shard.check()?;
        }
        let report = cover.finish()?;
        let mut rows = Vec::with_capacity(report.nodes);
        for shard in shards {
            rows.extend((0..shard.matrix.rows()).map(|row| {
                let (columns, values) = shard.matrix.row(row);
                Row { columns: columns.to_vec(), values: values.to_vec() }
            }));
        }
        let rule = Rule { sparsify: report.sparsify, sign: report.sign, upper: true };
        finish::finish(rule.assemble(rows), report, None::<finish::NoSample>)
    }

    /// Whether its rows are those its manifest describes.
    ///
    /// # Errors
    /// If it is damaged.
    pub fn check(&self) -> Result<(), Error> {
        let ShardManifest { start, end, .. } = self.manifest;
        match damage(&self.matrix, &self.manifest) {
            Some(problem) => Err(Error::ShardDamaged { start, end, problem }),
            None => Ok(()),
        }
    }
}

/// Shards that come in the order of their rows: each must be of the same kernel and begin where the last one ended.
#[derive(Debug, Default)]
pub(super) struct Cover {
    /// The first of them.
    first: Option<ShardManifest>,
    /// The row the next one begins with.
    next: usize,
    /// A route that bounds each row by itself proves for the whole what it proves for the worst shard.
    error_bound: Option<f64>,
}

impl Cover {
    /// Takes in the next shard.
    pub(super) fn add(&mut self, manifest: &ShardManifest) -> Result<(), Error> {
        let ShardManifest { start, end, .. } = *manifest;
        let bound = manifest.report.error_bound;
        if let Some(first) = &self.first {
            if let Some(what) = difference(first, manifest) {
                return Err(Error::ShardMismatch { what, start, end });
            }
            self.error_bound = self.error_bound.zip(bound).map(|(a, b)| a.max(b));
        } else {
            (self.first, self.error_bound) = (Some(manifest.clone()), bound);
        }
        if start != self.next {
            let problem = if start > self.next { MISSING } else { "is in two shards" };
            return Err(Error::ShardRows { row: start.min(self.next), problem });
        }
        self.next = end;
        Ok(())
    }

    /// The report that they have in common, if they hold every row.
    pub(super) fn finish(self) -> Result<KernelReport, Error> {
        match self.first {
            Some(first) if first.report.nodes == self.next => {
                Ok(KernelReport { error_bound: self.error_bound, ..first.report })
            }
            _ => Err(Error::ShardRows { row: self.next, problem: MISSING }),
        }
    }
}

const MISSING: &str = "is in none of the shards";

/// In what a matrix is not the one its manifest describes.
fn damage(matrix: &Csr<f64>, manifest: &ShardManifest) -> Option<String> {
    let (rows, columns) = (manifest.end.saturating_sub(manifest.start), manifest.report.nodes);
    if matrix.rows() != rows || matrix.columns() != columns {
        let (a, b) = (matrix.rows(), matrix.columns());
        return Some(format!("it has {a} x {b} entries instead of {rows} x {columns}"));
    }
    if matrix.entries() != manifest.report.entries {
        let (found, expected) = (matrix.entries(), manifest.report.entries);
        return Some(format!("it has {found} entries, its manifest counts {expected}"));
    }
    if let Some((row, column, value)) = matrix.iter().find(|entry| !entry.2.is_finite()) {
        return Some(format!("the entry ({}, {column}) is {value}", manifest.start + row));
    }
    let found = content(matrix);
    (found != manifest.content)
        .then(|| format!("its entries have the hash {found}, its manifest says {}", manifest.content))
}

/// The first thing in which two shards are not parts of the same kernel.
fn difference(a: &ShardManifest, b: &ShardManifest) -> Option<&'static str> {
    let (p, q) = (&a.recipe, &b.recipe);
    let checks = [
        ("the graph", a.graph == b.graph && a.report.nodes == b.report.nodes),
        ("the filter", p.filter == q.filter),
        ("the pairs", p.pairs == q.pairs && a.report.pairs == b.report.pairs),
        ("the route", a.report.solver == b.report.solver && a.report.degree == b.report.degree),
        ("the tolerance or precision", p.tolerance == q.tolerance && p.precision == q.precision),
        ("the accuracy", p.accuracy == q.accuracy),
        ("the sparsification", p.sparsify == q.sparsify && p.sign == q.sign),
        ("the normalisation", p.normalize == q.normalize),
        ("the self-loop", p.self_loop == q.self_loop),
    ];
    checks.into_iter().find(|check| !check.1).map(|check| check.0)
}
