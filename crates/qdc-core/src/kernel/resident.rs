//! Kernels that a device makes whole, sparsifies and normalises, and that stay there until they are read.
//!
//! Under a threshold, where all columns fit on the device together, nothing is left for the CPU to decide but the
//! factors of the normalisation. What the largest of each row are is decided on the CPU.

use std::any::Any;
use std::fmt;

use super::accelerator::{Accelerator, ColumnSource, ColumnWork, part};
use super::finish::{Totals, complete};
use super::panels::Lift;
use super::{Account, BuiltKernel, KernelReport, Precision};
use crate::sparsify::Rule;
use crate::{Csr, Error, Normalize, Watch};

/// A symmetric sparse matrix that lies on a device.
pub trait Resident: Any + fmt::Debug + Send + Sync {
    /// Row pointers, as in [`Csr::pointers`].
    fn pointers(&self) -> &[usize];

    /// The sums of its rows before it was scaled.
    fn sums(&self) -> &RowSums;

    /// Multiplies every entry by `left` of its row times `right` of its column.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails.
    fn scale(&mut self, left: &[f64], right: &[f64]) -> Result<(), Error>;

    /// Copies columns, ascending in each row, and values to the host.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails.
    fn read(&self) -> Result<(Vec<u32>, Vec<f64>), Error>;
}

/// A kernel before its normalisation, and what its route says of it.
pub type MadeWhole = (Box<dyn Resident>, Account);

/// Sums over each row of a matrix, entry after entry.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RowSums {
    /// Of what is compared: values or magnitudes.
    pub degrees: Vec<f64>,
    /// Of magnitudes.
    pub magnitudes: Vec<f64>,
    /// The magnitude on the diagonal alone.
    pub diagonal: Vec<f64>,
}

/// All columns of a kernel, and how they become its rows.
#[derive(Debug)]
pub struct WholeWork<'a> {
    /// Column c is that of class c. What is wanted is the same for all; a column whose unit lies beyond all rows
    /// is 0.
    pub columns: ColumnWork<'a>,
    /// The class of each vertex.
    pub class_of: &'a [u32],
    /// For each class what is added to the entries on the diagonal.
    pub apart: &'a [f64],
    /// For each class what is subtracted, before that, from all entries between its vertices.
    pub shares: &'a [f64],
}

/// A finished kernel that lies on a device, and how it was made.
#[derive(Debug)]
pub struct ResidentKernel {
    /// The sparse, normalised kernel; symmetric unless normalised by rows or columns.
    pub matrix: Box<dyn Resident>,
    /// What was really done.
    pub report: KernelReport,
}

impl ResidentKernel {
    /// Normalises and completes the report.
    pub(super) fn finish(mut matrix: Box<dyn Resident>, mut report: KernelReport) -> Result<Self, Error> {
        let totals = Totals::of(matrix.pointers(), matrix.sums());
        totals.put(&mut report);
        let scales = report.normalize.scales(matrix.sums().degrees.clone());
        if report.normalize != Normalize::None {
            let (left, right) = scales.sides();
            matrix.scale(&left, &right)?;
        }
        complete(&mut report, totals.improper(&scales), None);
        Ok(Self { matrix, report })
    }

    /// Copies the kernel to the host.
    ///
    /// # Errors
    /// [`Error::Device`] if the device fails.
    pub fn read(self) -> Result<BuiltKernel, Error> {
        let (indices, values) = self.matrix.read()?;
        let matrix = Csr::trusted(self.report.nodes, self.matrix.pointers().to_vec(), indices, values);
        Ok(BuiltKernel { matrix, report: self.report })
    }
}

/// Makes the whole kernel on the device. `None`: it has no room for all columns, or nothing is kept, which the CPU
/// explains.
fn make_whole(
    device: &dyn Accelerator,
    work: &WholeWork<'_>,
    watch: &Watch,
) -> Result<Option<Box<dyn Resident>>, Error> {
    let phase = watch.phase("kernel rows", work.class_of.len() as u64);
    let made = match device.whole(work) {
        // Its rows are tried next: what goes wrong there too is told there.
        Err(Error::Device { .. }) if device.yields() => None,
        other => other?,
    };
    phase.advance(work.class_of.len() as u64)?;
    Ok(made.filter(|matrix| matrix.pointers().last().is_some_and(|&entries| entries > 0)))
}

/// V diag(w) V^T, whole, as the device makes it.
pub(super) fn make_whole_of_pairs(
    device: &dyn Accelerator,
    (vectors, weights): (&[f64], &[f64]),
    (rule, nodes): (&Rule, usize),
    watch: &Watch,
) -> Result<Option<Box<dyn Resident>>, Error> {
    let every: Vec<u32> = (0..nodes as u32).collect();
    let units: Vec<(u32, f64)> = every.iter().map(|&row| (row, 1.0)).collect();
    let nothing = vec![0.0; nodes];
    let columns = ColumnWork {
        source: ColumnSource::Pairs { vectors, weights },
        units: &units,
        precision: Precision::F64,
        wanted: part(rule),
        sign: rule.sign,
        last: &every,
        first: &every,
    };
    make_whole(device, &WholeWork { columns, class_of: &every, apart: &nothing, shares: &nothing }, watch)
}

impl Lift<'_> {
    /// The kernel, whole, as the device makes it.
    pub(super) fn make_whole_on(
        &self,
        device: &dyn Accelerator,
        (matrix, coefficients, precision): (&Csr<f64>, &[f64], Precision),
        rule: &Rule,
        watch: &Watch,
    ) -> Result<Option<Box<dyn Resident>>, Error> {
        let count = self.classes.count();
        let (mut units, mut apart) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let (mut shares, mut first) = (Vec::with_capacity(count), Vec::with_capacity(count));
        let mut last = Vec::with_capacity(count);
        for class in 0..count {
            let (members, size) = (self.classes.members(class), self.classes.size(class) as f64);
            let lane = self.lane(class as u32, members);
            match self.isolated(members[0]) {
                // Nothing but the diagonal; no column is needed for that.
                Some(own) => {
                    units.push((u32::MAX, 0.0));
                    apart.push(own);
                    shares.push(0.0);
                }
                None => {
                    units.push((class as u32, 1.0 / size));
                    apart.push(lane.apart);
                    shares.push(lane.apart / size);
                }
            }
            first.push(rule.first_column(members[0]));
            last.push(*members.last().expect("a class has a member"));
        }
        let source = ColumnSource::Series { matrix, coefficients };
        let (units, last, first) = (&units[..], &last[..], &first[..]);
        let columns =
            ColumnWork { source, units, precision, wanted: part(rule), sign: rule.sign, last, first };
        let class_of = self.classes.of_vertex();
        make_whole(device, &WholeWork { columns, class_of, apart: &apart, shares: &shares }, watch)
    }
}
