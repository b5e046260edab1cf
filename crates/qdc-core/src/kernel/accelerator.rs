//! Columns of a kernel, and eigenpairs, on a device beside the CPU, where somebody brings one.
//!
//! The device makes panels of thousands of columns, by a polynomial in L or from eigenpairs, and hands over what
//! may be kept of each. The rules of sparsification are applied here, to those entries, by the same code as on
//! the CPU.

use std::fmt;
use std::ops::Range;

use rayon::prelude::*;

use super::panels::{Lift, Requested};
use super::{Precision, Resident, Sink, WholeWork};
use crate::sparsify::{Rule, Sparsify};
use crate::{Csr, Error, Sign, Watch};

/// A device that makes columns of kernels, and perhaps decomposes matrices.
pub trait Accelerator: fmt::Debug + Send + Sync {
    /// What it is called.
    fn name(&self) -> &str;

    /// Whether work of so many operations is to be done there and not on the CPU.
    fn takes(&self, operations: f64) -> bool;

    /// Whether the CPU does the work where the device fails.
    fn yields(&self) -> bool;

    /// Makes the columns and hands them over, some at a time and in their order.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails or lacks memory; whatever `take` gives.
    fn columns(
        &self,
        work: &ColumnWork<'_>,
        take: &mut dyn FnMut(Candidates<'_>) -> Result<(), Error>,
    ) -> Result<(), Error>;

    /// Makes all columns of a kernel and what is kept of them, which stays there. `None`: it has no room for that, or
    /// does not do it.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails.
    fn whole(&self, work: &WholeWork<'_>) -> Result<Option<Box<dyn Resident>>, Error> {
        let _ = work;
        Ok(None)
    }

    /// Whether full decompositions of matrices of so many rows are to be done there.
    fn decomposes(&self, rows: usize) -> bool {
        let _ = rows;
        false
    }

    /// All eigenvalues of a dense symmetric matrix, ascending. The matrix, its columns one after the other
    /// and at least the lower triangle filled in, becomes the eigenvectors, column by column.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails or lacks memory.
    fn decompose(&self, rows: usize, matrix: &mut [f64]) -> Result<Vec<f64>, Error> {
        let _ = matrix;
        Err(Error::Device { problem: format!("it decomposes no matrix of {rows} rows") })
    }
}

/// Columns M x of a matrix M = f(L), and what is wanted of them.
#[derive(Debug)]
pub struct ColumnWork<'a> {
    /// M.
    pub source: ColumnSource<'a>,
    /// Each column's x: the row where it is not 0, and the number there. Beyond all rows: it is 0.
    pub units: &'a [(u32, f64)],
    /// The arithmetic.
    pub precision: Precision,
    /// What is wanted of a column; more may be handed over.
    pub wanted: ColumnPart,
    /// Whether numbers or their magnitudes are compared.
    pub sign: Sign,
    /// For each row of M the last vertex of its class. An entry is not wanted if it lies before `first` of
    /// its column.
    pub last: &'a [u32],
    /// For each column the first vertex whose entries are wanted.
    pub first: &'a [u32],
}

/// What a matrix f(L) is made of.
#[derive(Clone, Copy, Debug)]
pub enum ColumnSource<'a> {
    /// A polynomial: sum_k c_k T_k(L).
    Series {
        /// L with a row for each class of twins, as it acts on vectors that are constant on classes.
        matrix: &'a Csr<f64>,
        /// The coefficients c_k, at least one.
        coefficients: &'a [f64],
    },
    /// Eigenpairs: V diag(w) V^T.
    Pairs {
        /// V, column after column.
        vectors: &'a [f64],
        /// The weights w, one for each column of V.
        weights: &'a [f64],
    },
}

/// Which entries of a column are wanted.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum ColumnPart {
    /// Those of at least this size.
    AtLeast(f64),
    /// The largest, so many, and all within 2e-9 of the smallest of them; only those of at least 1e-9.
    Largest(usize),
}

/// What may be kept of some columns.
#[derive(Clone, Debug, Default)]
pub struct Candidates<'a> {
    /// The columns.
    pub columns: Range<usize>,
    /// Where each of them begins in `rows` and `values`, and where the last ends.
    pub offsets: &'a [usize],
    /// Rows of M, ascending in each column.
    pub rows: &'a [u32],
    /// The entries there.
    pub values: &'a [f64],
    /// The entry of each column in the row of its unit vector, wanted or not.
    pub own: &'a [f64],
}

impl<'a> Candidates<'a> {
    /// The rows and the entries of a column, counted from the first of these.
    fn column(&self, at: usize) -> (&'a [u32], &'a [f64]) {
        let entries = self.offsets[at]..self.offsets[at + 1];
        (&self.rows[entries.clone()], &self.values[entries])
    }
}

/// Puts the rows of V diag(w) V^T that nobody has put yet into the sink, as the device makes them.
pub(super) fn make_pairs_on(
    device: &dyn Accelerator,
    (vectors, weights): (&[f64], &[f64]),
    sink: &Sink,
    watch: &Watch,
) -> Result<(), Error> {
    let rule = sink.rule();
    let places: Vec<usize> = (0..sink.rows().len()).filter(|&place| !sink.is_put(place)).collect();
    let rows: Vec<u32> = places.iter().map(|&place| sink.rows()[place]).collect();
    let units: Vec<(u32, f64)> = rows.iter().map(|&row| (row, 1.0)).collect();
    let first: Vec<u32> = rows.iter().map(|&row| rule.first_column(row)).collect();
    let last: Vec<u32> = (0..sink.nodes() as u32).collect();
    let work = ColumnWork {
        source: ColumnSource::Pairs { vectors, weights },
        units: &units,
        precision: Precision::F64,
        wanted: part(rule),
        sign: rule.sign,
        last: &last,
        first: &first,
    };
    let phase = watch.phase("kernel rows", rows.len() as u64);
    device.columns(&work, &mut |candidates| {
        candidates.columns.clone().into_par_iter().enumerate().for_each(|(at, column)| {
            let (columns, values) = candidates.column(at);
            let entries = columns.iter().copied().zip(values.iter().copied());
            sink.put_kept(places[column], rule.keep_entries(rows[column], entries));
        });
        phase.advance(candidates.columns.len() as u64)
    })
}

impl Lift<'_> {
    /// Puts the rows that nobody has put yet into the sink, as the device makes them.
    pub(super) fn make_on(
        &self,
        device: &dyn Accelerator,
        (matrix, coefficients, precision): (&Csr<f64>, &[f64], Precision),
        sink: &Sink,
        watch: &Watch,
    ) -> Result<(), Error> {
        self.put_isolated(sink);
        let requested = self.requested(self.classes.of_vertex(), sink);
        let rule = sink.rule();
        let units: Vec<(u32, f64)> = requested
            .columns
            .iter()
            .map(|&(class, _)| (class, 1.0 / self.classes.size(class as usize) as f64))
            .collect();
        let first: Vec<u32> =
            requested.columns.iter().map(|(_, rows)| rule.first_column(requested.rows[rows.start])).collect();
        let last: Vec<u32> = (0..self.classes.count())
            .map(|class| *self.classes.members(class).last().expect("a class has a member"))
            .collect();
        let work = ColumnWork {
            source: ColumnSource::Series { matrix, coefficients },
            units: &units,
            precision,
            wanted: part(rule),
            sign: rule.sign,
            last: &last,
            first: &first,
        };
        let phase = watch.phase("kernel rows", requested.rows.len() as u64);
        device.columns(&work, &mut |candidates| {
            let rows: usize = candidates.columns.clone().map(|at| requested.columns[at].1.len()).sum();
            self.put_candidates(&candidates, &requested, sink);
            phase.advance(rows as u64)
        })
    }

    fn put_candidates(&self, candidates: &Candidates<'_>, requested: &Requested, sink: &Sink) {
        candidates.columns.clone().into_par_iter().enumerate().for_each(|(at, column)| {
            let (class, range) = &requested.columns[column];
            let lane = self.lane(*class, &requested.rows[range.clone()]);
            let (rows, values) = candidates.column(at);
            let mut lifted: Vec<(u32, f64)> = Vec::with_capacity(rows.len());
            for (&row, &value) in rows.iter().zip(values) {
                if row != *class || lane.class.len() == 1 {
                    lifted.extend(self.classes.members(row as usize).iter().map(|&vertex| (vertex, value)));
                }
            }
            lifted.sort_unstable_by_key(|entry| entry.0);
            let kept = sink.rule().keep_column(&lane, candidates.own[at], &lifted);
            requested.places[range.clone()]
                .iter()
                .zip(kept)
                .for_each(|(&place, row)| sink.put_kept(place, row));
        });
    }
}

/// What a rule may keep of a column. A class of twins counts once, and the column's own class may be one of the
/// largest.
pub(super) fn part(rule: &Rule) -> ColumnPart {
    match rule.sparsify {
        Sparsify::TopK(k) => ColumnPart::Largest(k.saturating_add(1)),
        _ => ColumnPart::AtLeast(rule.floor()),
    }
}
