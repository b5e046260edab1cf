//! Paired tests over splits, corrected for their number.

use serde::{Deserialize, Serialize};

use super::Cell;

/// A paired comparison of two experiments over the same splits.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Of the exact sign-flip test.
    pub p_value: f64,
    /// The same after Holm's correction: the family are the models of one dataset against one reference.
    pub adjusted: f64,
}

/// Compares every cell with the cell of `reference` on the same dataset, in the same space and study.
pub(super) fn against(
    reference: &str,
    cells: &[Cell],
    compared: &mut [Cell],
    choose: fn(&mut Cell) -> &mut Option<Comparison>,
) {
    for base in cells.iter().filter(|cell| cell.row.model.to_string() == reference) {
        let family: Vec<usize> = (0..cells.len())
            .filter(|&at| {
                let (one, other) = (&cells[at].row, &base.row);
                let same = (&one.space, &one.study) == (&other.space, &other.study);
                same && cells[at].dataset == base.dataset
                    && one.model != other.model
                    && paired(&cells[at], base)
            })
            .collect();
        let values: Vec<Option<f64>> =
            family.iter().map(|&at| sign_flip_test(&cells[at].test, &base.test)).collect();
        let tested: Vec<f64> = values.iter().flatten().copied().collect();
        let mut adjusted = holm(&tested).into_iter();
        for (&at, value) in family.iter().zip(values) {
            *choose(&mut compared[at]) =
                value.and_then(|p_value| Some(Comparison { p_value, adjusted: adjusted.next()? }));
        }
    }
}

/// Whether two cells were scored on the same splits by the same metric, as far as they say so.
fn paired(one: &Cell, other: &Cell) -> bool {
    one.metric == other.metric
        && (one.splits.is_none() || other.splits.is_none() || one.splits == other.splits)
}

/// Holm's correction: the i-th smallest of m values times m - i + 1, never below a smaller one's, at most 1.
///
/// ```
/// assert_eq!(qdc_lab::table::holm(&[0.01, 0.04, 0.03]), [0.03, 0.06, 0.06]);
/// ```
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![0.0; p_values.len()];
    let mut largest: f64 = 0.0;
    for (rank, &at) in order.iter().enumerate() {
        largest = largest.max(p_values[at] * (p_values.len() - rank) as f64).min(1.0);
        adjusted[at] = largest;
    }
    adjusted
}

/// The two-sided p-value of "the paired differences are as likely positive as negative": of all 2^n ways to
/// flip signs, the share whose mean is as far from 0. `None` above 20 pairs, where not all signs can be
/// tried, or where the lengths differ.
pub fn sign_flip_test(one: &[f64], other: &[f64]) -> Option<f64> {
    if one.len() != other.len() || one.is_empty() || one.len() > 20 {
        return None;
    }
    let differences: Vec<f64> = one.iter().zip(other).map(|(a, b)| a - b).collect();
    let observed = differences.iter().sum::<f64>().abs() - 1e-12;
    let ways = 1u32 << differences.len();
    let as_far = (0..ways)
        .filter(|signs| {
            let sum: f64 =
                differences.iter().enumerate().map(|(i, d)| if signs >> i & 1 == 1 { *d } else { -d }).sum();
            sum.abs() >= observed
        })
        .count();
    Some(as_far as f64 / f64::from(ways))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sign_flip_test_gives_the_exact_share() {
        assert_eq!(sign_flip_test(&[1.0, 2.0, 3.0], &[0.0, 0.0, 0.0]), Some(0.25)); // all signs equal: 2 of 8
        assert_eq!(sign_flip_test(&[1.0, 0.0], &[0.0, 1.0]), Some(1.0));
        assert_eq!(sign_flip_test(&[1.0], &[]), None);
    }

    #[test]
    fn corrected_values_keep_their_order_and_stay_below_one() {
        assert_eq!(holm(&[]), Vec::<f64>::new());
        assert_eq!(holm(&[0.5, 0.001, 0.9]), [1.0, 0.003, 1.0]);
    }
}
