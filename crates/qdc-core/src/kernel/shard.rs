//! A range of rows of a kernel, made by itself, and how such shards join into the whole.

use std::ops::Range;

use serde::{Deserialize, Serialize};

use super::{BuiltKernel, Kernel, KernelReport, Made, finish};
use crate::sparsify::{Row, Rule};
use crate::{Csr, Error, Graph};

/// What a shard is a part of: two shards fit together if all but the range is the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShardManifest {
    /// [`Graph::fingerprint`] of the graph, in hexadecimal digits.
    pub graph: String,
    /// The first row.
    pub start: usize,
    /// One beyond the last row.
    pub end: usize,
    /// The error that was aimed at.
    pub tolerance: f64,
    /// Parameters and route; counts are those of the shard.
    pub report: KernelReport,
}

/// Some rows of a kernel: what each keeps by its own values, before union and normalisation.
#[derive(Clone, Debug)]
pub struct Shard {
    /// `end - start` rows of all columns.
    pub matrix: Csr<f64>,
    /// What it is a part of.
    pub manifest: ShardManifest,
}

/// Checks the range, has the rows made by `make`, and labels them.
pub(super) fn build(
    kernel: &Kernel,
    graph: &Graph,
    rows: Range<usize>,
    make: impl FnOnce(&Rule, &[u32]) -> Result<Made, Error>,
) -> Result<Shard, Error> {
    let nodes = graph.nodes();
    if rows.start >= rows.end || rows.end > nodes {
        return Err(Error::RowRange { start: rows.start, end: rows.end, nodes });
    }
    let rule = Rule { upper: false, ..kernel.rule() };
    let names: Vec<u32> = (rows.start as u32..rows.end as u32).collect();
    let Made { rows: kept, mut report } = make(&rule, &names)?;
    let matrix = Csr::from_rows(nodes, kept.into_iter().map(|row| (row.columns, row.values)))?;
    report.entries = matrix.entries();
    report.density = matrix.density();
    report.empty_rows = (0..matrix.rows()).filter(|&row| matrix.row(row).0.is_empty()).count();
    let graph = format!("{:016x}", graph.fingerprint());
    let manifest =
        ShardManifest { graph, start: rows.start, end: rows.end, tolerance: kernel.tolerance, report };
    Ok(Shard { matrix, manifest })
}

impl Shard {
    /// Joins shards, in any order, that cover every row once: what [`Kernel::build`] gives, bit for bit.
    pub fn merge(mut shards: Vec<Self>) -> Result<BuiltKernel, Error> {
        shards.sort_by_key(|shard| shard.manifest.start);
        let Some(first) = shards.first().map(|shard| shard.manifest.clone()) else {
            return Err(Error::ShardRows { row: 0, problem: "is in none of the shards" });
        };
        let mut next = 0;
        for Shard { matrix, manifest } in &shards {
            if let Some(what) = difference(&first, manifest) {
                let (start, end) = (manifest.start, manifest.end);
                return Err(Error::ShardMismatch { what, start, end });
            }
            if manifest.start != next {
                let missing = manifest.start > next;
                let problem = if missing { "is in none of the shards" } else { "is in two shards" };
                return Err(Error::ShardRows { row: next.min(manifest.start), problem });
            }
            if matrix.rows() != manifest.end - manifest.start || matrix.columns() != first.report.nodes {
                return Err(Error::MalformedMatrix {
                    problem: format!(
                        "{} x {} entries for the rows {}:{} of {}",
                        matrix.rows(),
                        matrix.columns(),
                        manifest.start,
                        manifest.end,
                        first.report.nodes
                    ),
                });
            }
            next = manifest.end;
        }
        if next != first.report.nodes {
            return Err(Error::ShardRows { row: next, problem: "is in none of the shards" });
        }
        let mut rows = Vec::with_capacity(next);
        for shard in shards {
            rows.extend((0..shard.matrix.rows()).map(|row| {
                let (columns, values) = shard.matrix.row(row);
                Row { columns: columns.to_vec(), values: values.to_vec() }
            }));
        }
        let rule = Rule { sparsify: first.report.sparsify, sign: first.report.sign, upper: true };
        finish::finish(rule.assemble(rows), first.report, None::<finish::NoSample>)
    }
}

/// The first thing in which two shards are not parts of the same kernel.
fn difference(a: &ShardManifest, b: &ShardManifest) -> Option<&'static str> {
    let (p, q) = (&a.report, &b.report);
    let checks = [
        ("the graph", a.graph == b.graph && p.nodes == q.nodes),
        ("the filter", p.filter == q.filter && p.parameters == q.parameters),
        ("the pairs", p.pairs == q.pairs),
        ("the route", p.solver == q.solver && p.degree == q.degree && p.precision == q.precision),
        ("the tolerance", a.tolerance == b.tolerance),
        ("the sparsification", p.sparsify == q.sparsify && p.sign == q.sign),
        ("the normalisation", p.normalize == q.normalize),
        ("the self-loop", p.self_loop == q.self_loop),
    ];
    checks.into_iter().find(|check| !check.1).map(|check| check.0)
}
