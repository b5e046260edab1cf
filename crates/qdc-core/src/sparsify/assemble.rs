//! From what the rows keep to one exactly symmetric matrix.

use std::ops::Range;

use rayon::prelude::*;

use super::Row;
use crate::Csr;

/// Parts the work is cut in, for any number of threads.
const PARTS: usize = 32;

/// The symmetric matrix whose upper triangle is given, diagonal included; entries below it are ignored.
pub(super) fn mirror(rows: &[Row]) -> Csr<f64> {
    let nodes = rows.len();
    let mut pointers = vec![0; nodes + 1];
    let some = nodes.div_ceil(PARTS).max(1);
    pointers[1..].par_chunks_mut(some).enumerate().for_each(|(part, lengths)| {
        let range = part * some..part * some + lengths.len();
        for (i, row) in rows[..range.end].iter().enumerate() {
            if range.contains(&i) {
                lengths[i - range.start] += row.columns.len() - row.from(i);
            }
            for &column in &row.columns[row.from(range.start.max(i + 1))..row.from(range.end)] {
                lengths[column as usize - range.start] += 1;
            }
        }
    });
    for i in 0..nodes {
        pointers[i + 1] += pointers[i];
    }
    let mut indices = vec![0; pointers[nodes]];
    let mut values = vec![0.0; pointers[nodes]];
    // Each part of the result gathers its entries from all rows above it, in ascending order: first those
    // that mirror into it, then, row by row, its own.
    let parts = split(&pointers, &mut indices, &mut values);
    parts.into_par_iter().for_each(|(range, indices, values)| {
        let start = pointers[range.start];
        let mut next: Vec<usize> =
            pointers[range.start..range.end].iter().map(|pointer| pointer - start).collect();
        for (i, row) in rows[..range.end].iter().enumerate() {
            if range.contains(&i) {
                let (own, at) = (row.from(i), next[i - range.start]);
                let length = row.columns.len() - own;
                indices[at..at + length].copy_from_slice(&row.columns[own..]);
                values[at..at + length].copy_from_slice(&row.values[own..]);
            }
            let mirrored = row.from(range.start.max(i + 1))..row.from(range.end);
            for (&column, &value) in row.columns[mirrored.clone()].iter().zip(&row.values[mirrored]) {
                let at = &mut next[column as usize - range.start];
                indices[*at] = i as u32;
                values[*at] = value;
                *at += 1;
            }
        }
    });
    Csr::trusted(nodes, pointers, indices, values)
}

/// Rows in parts of about equal size, each with its share of the entries.
fn split<'a>(
    pointers: &[usize],
    mut indices: &'a mut [u32],
    mut values: &'a mut [f64],
) -> Vec<(Range<usize>, &'a mut [u32], &'a mut [f64])> {
    let (nodes, entries) = (pointers.len() - 1, indices.len());
    let mut parts = Vec::with_capacity(PARTS);
    let mut start = 0;
    for part in 1..=PARTS {
        let end =
            if part == PARTS { nodes } else { pointers.partition_point(|&p| p < entries * part / PARTS) };
        let end = end.clamp(start, nodes);
        let length = pointers[end] - pointers[start];
        let (own_indices, own_values);
        (own_indices, indices) = indices.split_at_mut(length);
        (own_values, values) = values.split_at_mut(length);
        parts.push((start..end, own_indices, own_values));
        start = end;
    }
    parts
}

/// The union of a matrix, given by its rows, with its transpose.
pub(super) fn unite(rows: &[Row]) -> Csr<f64> {
    let nodes = rows.len();
    let mut lengths = vec![0; nodes];
    for &column in rows.iter().flat_map(|row| &row.columns) {
        lengths[column as usize] += 1;
    }
    let mut transposed: Vec<Row> = lengths
        .into_iter()
        .map(|length| Row { columns: Vec::with_capacity(length), values: Vec::with_capacity(length) })
        .collect();
    for (i, row) in rows.iter().enumerate() {
        for (&column, &value) in row.columns.iter().zip(&row.values) {
            transposed[column as usize].columns.push(i as u32);
            transposed[column as usize].values.push(value);
        }
    }
    let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for (i, (own, others)) in rows.iter().zip(&transposed).enumerate() {
        unite_row(i, own.iter(), others.iter(), |column, value| {
            indices.push(column);
            values.push(value);
        });
        pointers.push(indices.len());
    }
    Csr::trusted(nodes, pointers, indices, values)
}

/// The union of what row `i` keeps and what other rows keep in column `i`, columns ascending; where both have an
/// entry, the one above the diagonal speaks for both.
pub(super) fn unite_row(
    i: usize,
    own: impl Iterator<Item = (u32, f64)>,
    others: impl Iterator<Item = (u32, f64)>,
    mut put: impl FnMut(u32, f64),
) {
    let (mut own, mut others) = (own.peekable(), others.peekable());
    loop {
        let of_own = own.peek().map(|entry| entry.0);
        let of_others = others.peek().map(|entry| entry.0);
        let Some(column) = of_own.into_iter().chain(of_others).min() else { break };
        let mine = own.next_if(|entry| entry.0 == column);
        let theirs = others.next_if(|entry| entry.0 == column);
        let (first, second) = if column as usize >= i { (mine, theirs) } else { (theirs, mine) };
        if let Some((_, value)) = first.or(second) {
            put(column, value);
        }
    }
}
