//! Shards joined into the whole a few rows at a time, for kernels that do not fit in memory.
//!
//! An entry (i, j) that row i keeps also stands in row j. So rows are joined in two passes: the first hands every
//! entry that stands in another row too to whoever collects it for that row ([`Joining::reflects`]), the second gives
//! rows with what was collected for them ([`Joining::rows`]) and takes the rows of the kernel, before normalisation.
//! Then the report is known, and the factor of every entry ([`Joined`]). Where the rows lie meanwhile is the caller's.

use super::shard::Cover;
use super::{KernelReport, ShardManifest, finish};
use crate::normalize::Scales;
use crate::sparsify::Rule;
use crate::{Csr, Error};

/// Rows of shards on their way to a kernel.
///
/// ```
/// use qdc_core::kernel::Joining;
/// use qdc_core::{EdgeRule, Filter, Graph, Recipe, Resources, Sparsify, Watch};
///
/// let ring = Graph::from_edges(40, (0..40).map(|i| (i, (i + 1) % 40)), EdgeRule::Undirected)?;
/// let (recipe, watch) = (Recipe::new(Filter::heat(3.0)?).sparsify(Sparsify::top_k(4)?), Watch::silent());
/// let job = recipe.prepare(&ring, &Resources::default(), &watch)?;
/// let shards = [job.rows(0..25, &watch)?, job.rows(25..40, &watch)?];
/// let mut joining = Joining::new(&shards[0].manifest);
/// let mut reflected = Vec::new();
/// for shard in &shards {
///     joining.add(&shard.manifest)?;
///     for (row, column, value) in shard.matrix.iter() {
///         let row = (shard.manifest.start + row) as u32;
///         if joining.reflects(row, column) {
///             reflected.push((column, row, value));
///         }
///     }
/// }
/// reflected.sort_by_key(|entry| (entry.0, entry.1));
/// let [first, last] = [0, 1].map(|at| {
///     let start = shards[at].manifest.start as u32;
///     let own: Vec<_> = reflected.iter().copied().filter(|entry| (entry.0 >= 25) == (start == 25)).collect();
///     joining.rows(&shards[at].matrix, &own)
/// });
/// let joined = joining.finish()?;
/// let whole = job.build(&watch)?;
/// assert_eq!((joined.report.entries, first.rows() + last.rows()), (whole.matrix.entries(), 40));
/// let (columns, values) = first.row(3);
/// assert_eq!(whole.matrix.get(3, columns[0]), Some(values[0] * joined.scale(3, columns[0] as usize)));
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Debug)]
pub struct Joining {
    rule: Rule,
    nodes: usize,
    cover: Cover,
    totals: finish::Totals,
    degrees: Vec<f64>,
}

/// A kernel whose rows have all been given out, before normalisation.
#[derive(Debug)]
pub struct Joined {
    /// What was really done.
    pub report: KernelReport,
    scales: Scales,
}

impl Joining {
    /// Begins to join shards of the kernel that `first` is a part of.
    pub fn new(first: &ShardManifest) -> Self {
        let report = &first.report;
        Self {
            rule: Rule { sparsify: report.sparsify, sign: report.sign, upper: true },
            nodes: report.nodes,
            cover: Cover::default(),
            totals: finish::Totals::default(),
            degrees: Vec::new(),
        }
    }

    /// Takes in the next shard, in the order of their rows, the first one included.
    ///
    /// # Errors
    /// If it is of another kernel, or a row is missing or there twice.
    pub fn add(&mut self, manifest: &ShardManifest) -> Result<(), Error> {
        self.cover.add(manifest)
    }

    /// Whether the entry (`row`, `column`) of a shard stands in row `column` of the kernel too.
    pub fn reflects(&self, row: u32, column: u32) -> bool {
        self.rule.reflects(row, column)
    }

    /// The next rows of the kernel, from their own entries and from those that other rows reflect into them: (row,
    /// column, value), the row being one of these, sorted by row and column.
    ///
    /// # Panics
    /// If more rows come than the kernel has.
    pub fn rows(&mut self, own: &Csr<f64>, reflected: &[(u32, u32, f64)]) -> Csr<f64> {
        let start = self.degrees.len();
        assert!(start + own.rows() <= self.nodes, "rows of a kernel of {} vertices", self.nodes);
        let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
        let mut rest = reflected;
        for at in 0..own.rows() {
            let row = start + at;
            let count = rest.iter().take_while(|entry| entry.0 as usize == row).count();
            let (others, after) = rest.split_at(count);
            rest = after;
            let others = others.iter().map(|&(_, column, value)| (column, value));
            let (columns, numbers) = own.row(at);
            let own = columns.iter().copied().zip(numbers.iter().copied());
            self.rule.join_row(row, own, others, |column, value| {
                indices.push(column);
                values.push(value);
            });
            pointers.push(indices.len());
            let sizes = values[pointers[at]..].iter().map(|&value| self.rule.sign.size(value));
            self.degrees.push(sizes.sum());
        }
        let rows = Csr::trusted(own.columns(), pointers, indices, values);
        self.totals.add(&rows, start);
        rows
    }

    /// Ends with the last row: the report, and what entries are multiplied by.
    ///
    /// # Errors
    /// If rows are missing.
    pub fn finish(self) -> Result<Joined, Error> {
        let Self { cover, totals, degrees, .. } = self;
        let mut report = cover.finish()?;
        if degrees.len() < report.nodes {
            return Err(Error::ShardRows { row: degrees.len(), problem: "was not given" });
        }
        totals.put(&mut report);
        let scales = report.normalize.scales(degrees);
        finish::complete(&mut report, totals.improper(&scales), None);
        Ok(Joined { report, scales })
    }
}

impl Joined {
    /// What the entry (`row`, `column`) is multiplied by.
    pub fn scale(&self, row: usize, column: usize) -> f64 {
        self.scales.of(row, column)
    }
}
