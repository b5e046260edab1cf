//! Blocks of vectors for the iterative routes: products with L panel by panel, dense algebra by faer.
//!
//! A block is a column-major matrix. For products it is cut into panels of sixteen columns, row-major, which
//! stay near the second-level cache; each panel is independent, so any number of threads gives the same bits.

use faer::dyn_stack::{MemBuffer, MemStack, StackReq};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply_reflectors,
};
use faer::linalg::matmul::matmul;
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch, recommended_block_size};
use faer::{Accum, Conj, Mat, MatRef};
use rayon::prelude::*;

use super::dense::parts;
use crate::Error;
use crate::chebyshev::{Operator, WIDTH_F64 as WIDTH};
use crate::simd::{Line, Rows, step};
use crate::splitmix::scramble;

/// Sixteen columns, row by row.
pub(super) type Panel = Vec<Line<f64, WIDTH>>;

/// Applies `work` to every panel of a block and puts the results together; the number of columns stays.
pub(super) fn map_panels(
    block: MatRef<'_, f64>,
    work: impl Fn(Panel) -> Result<Panel, Error> + Sync,
) -> Result<Mat<f64>, Error> {
    let (rows, columns) = (block.nrows(), block.ncols());
    let mut out = Mat::<f64>::zeros(rows, columns);
    out.as_mut().par_col_chunks_mut(WIDTH).enumerate().try_for_each(|(index, mut out)| {
        let first = index * WIDTH;
        let width = out.ncols();
        let mut panel = vec![Line::<f64, WIDTH>::ZERO; rows];
        for lane in 0..width {
            for (row, &value) in panel.iter_mut().zip(block.col(first + lane).iter()) {
                row[lane] = value;
            }
        }
        let panel = work(panel)?;
        for lane in 0..width {
            for (row, value) in panel.iter().zip(out.as_mut().col_mut(lane).iter_mut()) {
                *value = row[lane];
            }
        }
        Ok(())
    })?;
    Ok(out)
}

/// `out = matrix * panel`.
pub(super) fn product(operator: &Operator<f64>, panel: &Panel, out: &mut Panel) {
    out.fill(Line::ZERO);
    step(operator, Rows::All, 1.0, panel, out);
}

/// The matrix times a block.
pub(super) fn apply(operator: &Operator<f64>, block: MatRef<'_, f64>) -> Result<Mat<f64>, Error> {
    map_panels(block, |panel| {
        let mut out = vec![Line::ZERO; panel.len()];
        product(operator, &panel, &mut out);
        Ok(out)
    })
}

/// An orthonormal basis of the columns, by Householder reflections: stable however close to dependent they
/// are.
pub(super) fn orthonormalize(mut block: Mat<f64>) -> Mat<f64> {
    let (rows, columns) = (block.nrows(), block.ncols());
    let size = recommended_block_size::<f64>(rows, columns);
    let mut factors = Mat::<f64>::zeros(size, columns.min(rows));
    let mut buffer = MemBuffer::new(StackReq::any_of(&[
        qr_in_place_scratch::<f64>(rows, columns, size, parts(), Default::default()),
        apply_scratch::<f64>(rows, size, columns),
    ]));
    let stack = MemStack::new(&mut buffer);
    qr_in_place(block.as_mut(), factors.as_mut(), parts(), stack, Default::default());
    let mut basis = Mat::<f64>::identity(rows, columns);
    apply_reflectors(block.as_ref(), factors.as_ref(), Conj::No, basis.as_mut(), parts(), stack);
    basis
}

/// left^T right.
pub(super) fn inner(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::<f64>::zeros(left.ncols(), right.ncols());
    matmul(out.as_mut(), Accum::Replace, left.transpose(), right, 1.0, parts());
    out
}

/// left right.
pub(super) fn times(left: MatRef<'_, f64>, right: MatRef<'_, f64>) -> Mat<f64> {
    let mut out = Mat::<f64>::zeros(left.nrows(), right.ncols());
    matmul(out.as_mut(), Accum::Replace, left, right, 1.0, parts());
    out
}

/// Random numbers in (-1, 1), the same for the same seed, row and column.
pub(super) fn random(rows: usize, columns: usize, seed: u64) -> Mat<f64> {
    let start = scramble(seed ^ 0x5eed_0f5b_10c5_0000);
    Mat::from_fn(rows, columns, |row, column| {
        let bits = scramble(start ^ scramble(((column as u64) << 32) | row as u64));
        (bits >> 11) as f64 / (1u64 << 52) as f64 - 1.0
    })
}
