//! What is kept of a kernel: entries above a threshold, or the largest of each row.
//!
//! Kernels arrive in pieces, as rows or as panels of columns, and only what is kept is stored. A rounded
//! kernel is not quite symmetric: Q_ij and Q_ji come from different columns and may differ in the last bit.
//! So that the result is exactly symmetric, one of them speaks for both. Under a threshold it is the one
//! above the diagonal, and what it says is mirrored. For the largest of each row, each row chooses by its own
//! values; where both choose, the one above the diagonal gives the value.

mod assemble;
mod keeper;
mod panel;

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{Csr, Error, Scalar};
use assemble::{mirror, unite};
use keeper::Keeper;
pub(crate) use panel::Lane;

/// Values closer than this count as equal, when they are compared with epsilon or when the largest of a row
/// are chosen. Values not above it are never among the largest.
pub const TIE: f64 = 1e-9;

/// Which entries of a kernel are kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Sparsify {
    /// Entries of at least this value.
    ///
    /// What lies less than 1e-9 below (for an epsilon under 2e-9, not below its half) counts as equal and
    /// stays, so that entries that are equal in theory and differ in the last bit are kept or dropped
    /// together by every route.
    Epsilon(f64),
    /// The k largest of each row, and what the union with the transpose adds.
    ///
    /// With v the k-th largest value of the row, what lies above v + 1e-9 stays, then what lies within 1e-9
    /// of v, lower columns first, until there are k. Values not above 1e-9 never stay.
    TopK(usize),
    /// All: N^2 entries.
    None,
}

impl Sparsify {
    /// Keeps entries of at least `epsilon` > 0.
    ///
    /// # Errors
    /// If epsilon is not finite and above 0.
    pub fn epsilon(epsilon: f64) -> Result<Self, Error> {
        if epsilon > 0.0 && epsilon.is_finite() {
            Ok(Self::Epsilon(epsilon))
        } else {
            Err(Error::Parameter { name: "epsilon", value: epsilon, requirement: "finite and above 0" })
        }
    }

    /// Keeps the `k` >= 1 largest entries of each row.
    ///
    /// # Errors
    /// If k is 0.
    pub fn top_k(k: usize) -> Result<Self, Error> {
        if k > 0 {
            Ok(Self::TopK(k))
        } else {
            Err(Error::Parameter { name: "top_k", value: 0.0, requirement: "at least 1" })
        }
    }

    /// The most entries a row keeps, on average over the rows: the union with the transpose can double the
    /// largest.
    pub fn most_in_row(self, nodes: usize) -> usize {
        match self {
            Self::TopK(k) => nodes.min(k.saturating_mul(2)),
            Self::Epsilon(_) | Self::None => nodes,
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

impl Row {
    /// Columns with their values.
    fn iter(&self) -> impl Iterator<Item = (u32, f64)> + '_ {
        self.columns.iter().copied().zip(self.values.iter().copied())
    }

    /// Where the entries from `column` on begin.
    fn from(&self, column: usize) -> usize {
        self.columns.partition_point(|&other| (other as usize) < column)
    }
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
    /// Sizes below this are not kept.
    pub(crate) fn floor(&self) -> f64 {
        match self.sparsify {
            // What lies within TIE of epsilon is equal to it, and stays.
            Sparsify::Epsilon(epsilon) => (epsilon - TIE).max(0.5 * epsilon),
            Sparsify::TopK(_) => TIE.next_up(), // strictly above
            Sparsify::None => f64::NEG_INFINITY,
        }
    }

    /// The column from which on a row keeps entries.
    pub(crate) fn first_column(&self, row: u32) -> u32 {
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

    /// What `row` keeps of its large entries, given with their columns, ascending.
    pub(crate) fn keep_entries(&self, row: u32, entries: impl ExactSizeIterator<Item = (u32, f64)>) -> Row {
        self.gather(row, entries).finish()
    }

    /// The entries that may stay in `row`, before it is decided.
    fn gather(&self, row: u32, entries: impl ExactSizeIterator<Item = (u32, f64)>) -> Keeper<'_> {
        let mut keeper = Keeper::new(self, row);
        keeper.reserve(entries.len());
        for (column, value) in entries {
            if column >= keeper.first_column && self.sign.size(value) >= keeper.floor {
                keeper.offer(column, value);
            }
        }
        keeper
    }

    /// Whether the entry (`row`, `column`) that a row keeps stands in row `column` of the symmetric matrix too.
    pub(crate) fn reflects(&self, row: u32, column: u32) -> bool {
        match self.sparsify {
            Sparsify::TopK(_) => column != row,
            Sparsify::Epsilon(_) | Sparsify::None => column > row, // those below the diagonal are ignored
        }
    }

    /// Row `row` of the symmetric matrix, from what it keeps itself and what others reflect into it.
    pub(crate) fn join_row(
        &self,
        row: usize,
        own: impl Iterator<Item = (u32, f64)>,
        reflected: impl Iterator<Item = (u32, f64)>,
        put: impl FnMut(u32, f64),
    ) {
        let ignored = if matches!(self.sparsify, Sparsify::TopK(_)) { 0 } else { row as u32 };
        assemble::unite_row(row, own.filter(|entry| entry.0 >= ignored), reflected, put);
    }

    /// Joins what the rows 0, 1, and so on keep into an exactly symmetric matrix.
    pub(crate) fn assemble(&self, rows: Vec<Row>) -> Csr<f64> {
        match self.sparsify {
            Sparsify::TopK(_) => unite(&rows),
            Sparsify::Epsilon(_) | Sparsify::None => mirror(&rows),
        }
    }
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
    fn what_ties_with_epsilon_stays() {
        let kept = |epsilon: f64, values: &[f64]| {
            rule(Sparsify::Epsilon(epsilon), Sign::Positive).keep_row(0, 0, values).columns
        };
        assert_eq!(kept(0.5, &[0.5, 0.5 - 9e-10, 0.5 - 2e-9, 0.6]), [0, 1, 3]);
        assert_eq!(kept(1e-9, &[1e-9, 6e-10, 4e-10, 0.0, -1.0]), [0, 1]);
        let absolute = rule(Sparsify::Epsilon(0.5), Sign::Absolute).keep_row(0, 0, &[-0.5 + 5e-10, -0.4]);
        assert_eq!(absolute.columns, [0]);
    }

    #[test]
    fn a_row_keeps_at_most_twice_k_and_no_more_than_there_are() {
        assert_eq!(Sparsify::TopK(3).most_in_row(100), 6);
        assert_eq!(Sparsify::TopK(80).most_in_row(100), 100);
        assert_eq!((Sparsify::Epsilon(0.1).most_in_row(9), Sparsify::None.most_in_row(9)), (9, 9));
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
    }
}
