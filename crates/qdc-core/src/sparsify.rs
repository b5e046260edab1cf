//! What is kept of a kernel: entries above a threshold, or the largest of each row.
//!
//! Kernels arrive in pieces, as rows or as panels of columns, and only what is kept is stored. A rounded kernel is not
//! quite symmetric: Q_ij and Q_ji come from different columns and may differ in the last bit. So that the result is
//! exactly symmetric, one of them speaks for both. Under a threshold it is the one above the diagonal, and what it
//! says is mirrored. For the largest of each row, each row chooses by its own values; where both choose, the one above
//! the diagonal gives the value.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::chebyshev::Line;
use crate::{Csr, Error, Scalar};

/// Values closer than this count as equal when the largest of a row are chosen; values not above it never are.
pub const TIE: f64 = 1e-9;

/// Which entries of a kernel are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sparsify {
    /// Entries of at least this value.
    Epsilon(f64),
    /// The k largest of each row, and what the union with the transpose adds.
    ///
    /// With v the k-th largest value of the row, what lies above v + 1e-9 stays, then what lies within 1e-9 of v, lower
    /// columns first, until there are k. Values not above 1e-9 never stay.
    TopK(usize),
    /// All: N^2 entries.
    None,
}

impl Sparsify {
    /// Keeps entries of at least `epsilon` > 0.
    pub fn epsilon(epsilon: f64) -> Result<Self, Error> {
        if epsilon > 0.0 && epsilon.is_finite() {
            Ok(Self::Epsilon(epsilon))
        } else {
            Err(Error::Parameter { name: "epsilon", value: epsilon, requirement: "finite and above 0" })
        }
    }

    /// Keeps the `k` >= 1 largest entries of each row.
    pub fn top_k(k: usize) -> Result<Self, Error> {
        if k > 0 {
            Ok(Self::TopK(k))
        } else {
            Err(Error::Parameter { name: "top_k", value: 0.0, requirement: "at least 1" })
        }
    }
}

impl Sparsify {
    /// What this rule keeps of a dense symmetric matrix, given row after row; exactly symmetric.
    ///
    /// # Panics
    /// If `dense` is not square.
    pub fn apply(self, sign: Sign, nodes: usize, dense: &[f64]) -> Csr<f64> {
        assert_eq!(dense.len(), nodes * nodes, "{nodes} rows of {nodes} entries");
        let rule = Rule { sparsify: self, sign, upper: true };
        let rows = dense.chunks(nodes.max(1)).enumerate();
        rule.assemble(rows.map(|(row, values)| rule.keep_row(row as u32, 0, values)).collect())
    }
}

/// How entries are compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Sign {
    /// By value: negative entries go. The published reading.
    #[default]
    Positive,
    /// By magnitude: signs are kept, and degrees are sums of magnitudes.
    Absolute,
}

impl Sign {
    /// What is compared: the value or its magnitude.
    #[inline(always)]
    pub(crate) fn size<T: Scalar>(self, value: T) -> T {
        match self {
            Self::Positive => value,
            Self::Absolute => value.abs(),
        }
    }
}

impl FromStr for Sign {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "positive" => Ok(Self::Positive),
            "absolute" => Ok(Self::Absolute),
            _ => Err(format!("'{text}' is neither positive nor absolute")),
        }
    }
}

/// What one row keeps by its own values: columns ascending.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Row {
    pub(crate) columns: Vec<u32>,
    pub(crate) values: Vec<f64>,
}

/// The rule with everything a row needs to decide.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rule {
    pub(crate) sparsify: Sparsify,
    pub(crate) sign: Sign,
    /// Leave out what lies below the diagonal where the entry above it speaks for both.
    pub(crate) upper: bool,
}

impl Rule {
    fn first_column(&self, row: u32) -> u32 {
        let decided_above = !matches!(self.sparsify, Sparsify::TopK(_));
        if self.upper && decided_above { row } else { 0 }
    }

    /// What `row` keeps of its values, given from the column `start` on.
    pub(crate) fn keep_row(&self, row: u32, start: u32, values: &[f64]) -> Row {
        let mut keeper = Keeper::new(self, row);
        let skipped = keeper.first_column.saturating_sub(start) as usize;
        for (at, &value) in values.iter().enumerate().skip(skipped) {
            if self.sign.size(value) >= keeper.floor {
                keeper.offer(start + at as u32, value);
            }
        }
        keeper.finish()
    }

    /// What each of `rows` keeps, given as the columns of a panel; `positions` finds a vertex's line in the panel.
    pub(crate) fn keep_panel<T: Scalar, const W: usize>(
        &self,
        rows: &[u32],
        positions: &[u32],
        panel: &[Line<T, W>],
    ) -> Vec<Row> {
        let mut keepers: Vec<Keeper<'_>> = rows.iter().map(|&row| Keeper::new(self, row)).collect();
        let mut floors = [T::from_f64(f64::INFINITY); W];
        for (floor, keeper) in floors.iter_mut().zip(&keepers) {
            *floor = T::from_f64(keeper.floor);
        }
        let first = rows.iter().map(|&row| self.first_column(row)).min().unwrap_or(0) as usize;
        for (column, &position) in positions.iter().enumerate().skip(first) {
            let line = &panel[position as usize];
            let mut any = false;
            for lane in 0..W {
                any |= self.sign.size(line[lane]) >= floors[lane];
            }
            if !any {
                continue;
            }
            for (lane, keeper) in keepers.iter_mut().enumerate() {
                let value = line[lane].to_f64();
                if self.sign.size(value) >= keeper.floor && column as u32 >= keeper.first_column {
                    keeper.offer(column as u32, value);
                    floors[lane] = T::from_f64(keeper.floor);
                }
            }
        }
        keepers.into_iter().map(Keeper::finish).collect()
    }

    /// Joins what the rows 0, 1, and so on keep into an exactly symmetric matrix.
    pub(crate) fn assemble(&self, rows: Vec<Row>) -> Csr<f64> {
        match self.sparsify {
            Sparsify::TopK(_) => unite(&rows),
            Sparsify::Epsilon(_) | Sparsify::None => mirror(rows),
        }
    }
}

/// Collects the entries of one row, in the order of the columns.
struct Keeper<'a> {
    rule: &'a Rule,
    first_column: u32,
    /// Sizes below this need not be offered.
    floor: f64,
    /// How many may gather before the small ones are dropped (top-k).
    limit: usize,
    row: Row,
}

impl<'a> Keeper<'a> {
    fn new(rule: &'a Rule, row: u32) -> Self {
        let (floor, limit) = match rule.sparsify {
            Sparsify::Epsilon(epsilon) => (epsilon, usize::MAX),
            Sparsify::TopK(k) => (TIE.next_up(), (4 * k).max(256)), // strictly above
            Sparsify::None => (f64::NEG_INFINITY, usize::MAX),
        };
        Self { rule, first_column: rule.first_column(row), floor, limit, row: Row::default() }
    }

    fn offer(&mut self, column: u32, value: f64) {
        self.row.columns.push(column);
        self.row.values.push(value);
        if self.row.columns.len() >= self.limit
            && let Sparsify::TopK(k) = self.rule.sparsify
        {
            // The k-th largest of all is at least the k-th largest so far.
            self.floor = self.floor.max(self.nth_largest(k) - TIE);
            let floor = self.floor;
            self.retain(|size| size >= floor);
            self.limit = self.limit.max(2 * self.row.columns.len());
        }
    }

    fn finish(mut self) -> Row {
        if let Sparsify::TopK(k) = self.rule.sparsify
            && self.row.columns.len() > k
        {
            let edge = self.nth_largest(k);
            let above = self.row.values.iter().filter(|&&v| self.rule.sign.size(v) > edge + TIE).count();
            let mut room = k - above;
            self.retain(|size| {
                let tied = size <= edge + TIE && size >= edge - TIE && room > 0;
                room -= usize::from(tied);
                tied || size > edge + TIE
            });
        }
        self.row
    }

    fn nth_largest(&self, n: usize) -> f64 {
        let mut sizes: Vec<f64> = self.row.values.iter().map(|&value| self.rule.sign.size(value)).collect();
        *sizes.select_nth_unstable_by(n - 1, |a, b| b.total_cmp(a)).1
    }

    fn retain(&mut self, mut keep: impl FnMut(f64) -> bool) {
        let Row { columns, values } = &mut self.row;
        let mut kept = 0;
        for at in 0..columns.len() {
            if keep(self.rule.sign.size(values[at])) {
                (columns[kept], values[kept]) = (columns[at], values[at]);
                kept += 1;
            }
        }
        columns.truncate(kept);
        values.truncate(kept);
    }
}

/// The symmetric matrix whose upper triangle is given, diagonal included; entries below it are ignored.
fn mirror(mut rows: Vec<Row>) -> Csr<f64> {
    let nodes = rows.len();
    let mut pointers = vec![0; nodes + 1];
    for (i, row) in rows.iter_mut().enumerate() {
        let below = row.columns.partition_point(|&column| (column as usize) < i);
        row.columns.drain(..below);
        row.values.drain(..below);
        pointers[i + 1] += row.columns.len();
        for &column in row.columns.iter().filter(|&&column| column as usize > i) {
            pointers[column as usize + 1] += 1;
        }
    }
    for i in 0..nodes {
        pointers[i + 1] += pointers[i];
    }
    let mut next = pointers.clone();
    let mut indices = vec![0; pointers[nodes]];
    let mut values = vec![0.0; pointers[nodes]];
    // Rows in ascending order fill each row's part below the diagonal in ascending order; its own part then follows.
    for (i, row) in rows.into_iter().enumerate() {
        let start = next[i];
        indices[start..start + row.columns.len()].copy_from_slice(&row.columns);
        values[start..start + row.values.len()].copy_from_slice(&row.values);
        for (&column, &value) in row.columns.iter().zip(&row.values) {
            if column as usize > i {
                let at = &mut next[column as usize];
                indices[*at] = i as u32;
                values[*at] = value;
                *at += 1;
            }
        }
    }
    Csr::trusted(nodes, pointers, indices, values)
}

/// The union of a matrix, given by its rows, with its transpose.
fn unite(rows: &[Row]) -> Csr<f64> {
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
        let (mut a, mut b) = (0, 0);
        while a < own.columns.len() || b < others.columns.len() {
            let own_column = own.columns.get(a).copied().unwrap_or(u32::MAX);
            let other_column = others.columns.get(b).copied().unwrap_or(u32::MAX);
            let column = own_column.min(other_column);
            let from_own =
                if own_column == other_column { column as usize >= i } else { own_column == column };
            indices.push(column);
            values.push(if from_own { own.values[a] } else { others.values[b] });
            a += usize::from(own_column == column);
            b += usize::from(other_column == column);
        }
        pointers.push(indices.len());
    }
    Csr::trusted(nodes, pointers, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(sparsify: Sparsify, sign: Sign) -> Rule {
        Rule { sparsify, sign, upper: true }
    }

    #[test]
    fn ties_go_to_the_lower_column_and_tiny_values_never_stay() {
        let top = |k, values: &[f64]| rule(Sparsify::TopK(k), Sign::Positive).keep_row(0, 0, values).columns;
        assert_eq!(top(2, &[0.1, 0.5, 0.5, 0.5 + 5e-10]), [1, 2]);
        assert_eq!(top(2, &[0.1, 0.5, 0.5, 0.5 + 2e-9]), [1, 3]);
        assert_eq!(top(9, &[1e-9, -1.0, 2e-9, 0.0]), [2]);
        let absolute = rule(Sparsify::TopK(1), Sign::Absolute).keep_row(0, 0, &[0.5, -0.7]);
        assert_eq!((absolute.columns, absolute.values), (vec![1], vec![-0.7]));
    }

    #[test]
    fn bad_thresholds_are_refused() {
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Sparsify::epsilon(bad), Err(Error::Parameter { name: "epsilon", .. })));
        }
        assert!(Sparsify::top_k(0).is_err());
    }

    /// The rule of the module's documentation, by sorting.
    fn by_sorting(k: usize, values: &[f64]) -> Vec<u32> {
        let mut candidates: Vec<u32> =
            (0..values.len() as u32).filter(|&j| values[j as usize] > TIE).collect();
        if candidates.len() <= k {
            return candidates;
        }
        let mut sorted: Vec<f64> = candidates.iter().map(|&j| values[j as usize]).collect();
        sorted.sort_by(|a, b| b.total_cmp(a));
        let edge = sorted[k - 1];
        let (mut kept, tied): (Vec<u32>, Vec<u32>) = candidates
            .drain(..)
            .filter(|&j| values[j as usize] >= edge - TIE)
            .partition(|&j| values[j as usize] > edge + TIE);
        kept.extend(tied.iter().take(k - kept.len()));
        kept.sort_unstable();
        kept
    }

    proptest! {
        #[test]
        fn streaming_top_k_equals_sorting_with_many_ties(
            coarse in proptest::collection::vec((-3i8..9, 0u8..3), 300..1500), k in 1usize..80,
        ) {
            let values: Vec<f64> =
                coarse.iter().map(|&(a, b)| f64::from(a) * 0.1 + f64::from(b) * 4e-10).collect();
            let kept = rule(Sparsify::TopK(k), Sign::Positive).keep_row(0, 0, &values);
            prop_assert_eq!(kept.columns, by_sorting(k, &values));
        }

        #[test]
        fn panels_and_rows_keep_the_same_and_the_result_is_symmetric(
            cells in proptest::collection::vec(-1.0f64..1.0, 36), k in 1usize..7, absolute: bool, which in 0usize..3,
        ) {
            // A matrix that is symmetric up to noise, like a rounded kernel.
            let at = |i: usize, j: usize| cells[i.min(j) * 6 + i.max(j)] * (1.0 + 1e-13 * (i as f64));
            let sparsify = [Sparsify::TopK(k), Sparsify::Epsilon(0.3), Sparsify::None][which];
            let rule = rule(sparsify, if absolute { Sign::Absolute } else { Sign::Positive });
            let by_row: Vec<Row> = (0..6)
                .map(|i| rule.keep_row(i as u32, 0, &(0..6).map(|j| at(i, j)).collect::<Vec<_>>()))
                .collect();
            let positions = [3u32, 1, 5, 0, 2, 4];
            let mut panel = [Line([0.0; 8]); 6];
            for i in 0..6 { for j in 0..6 { panel[positions[j] as usize][i] = at(i, j); } }
            prop_assert_eq!(&rule.keep_panel(&[0, 1, 2, 3, 4, 5], &positions, &panel), &by_row);
            let matrix = rule.assemble(by_row);
            prop_assert_eq!(&matrix, &matrix.transpose());
        }
    }
}
