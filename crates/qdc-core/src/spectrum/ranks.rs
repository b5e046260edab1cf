//! Hard windows by rank: the spectrum cut into parts of equal count.

use std::ops::Range;

use super::groups;

/// The positions of `count` windows of equal count over an ascending list of eigenvalues.
///
/// Equal eigenvalues share their mean rank, and the window in which that rank falls takes the whole group, so
/// a window does not depend on the basis a solver returned. Windows next to a large group are smaller, and
/// may be empty.
///
/// ```
/// use qdc_core::spectrum::rank_windows;
///
/// assert_eq!(rank_windows(&[-0.5, 0.0, 0.3, 1.0], 2), [0..2, 2..4]);
/// assert_eq!(rank_windows(&[-0.5, 0.0, 0.0, 0.0], 2), [0..1, 1..4]); // the mean rank of 0 is 2.5 of 4
/// ```
///
/// # Panics
/// If `count` is 0.
pub fn rank_windows(eigenvalues: &[f64], count: usize) -> Vec<Range<usize>> {
    assert!(count > 0, "at least one window");
    let mut ends = vec![0; count];
    for group in groups(eigenvalues) {
        // Rank a counts as a + 1/2, so the mean rank of a group is the middle of its range.
        let middle = (group.start + group.end) * count / (2 * eigenvalues.len());
        ends[middle.min(count - 1)] = group.end;
    }
    let mut start = 0;
    ends.into_iter()
        .map(|end| {
            let window = start..end.max(start);
            start = window.end;
            window
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn windows_cover_every_pair_once_and_never_cut_a_group(
            steps in proptest::collection::vec(0u8..3, 1..60), count in 1usize..9
        ) {
            let mut value = -1.0;
            let eigenvalues: Vec<f64> = steps.iter().map(|&step| { value += f64::from(step) * 0.02; value }).collect();
            let windows = rank_windows(&eigenvalues, count);
            prop_assert_eq!(windows.len(), count);
            prop_assert_eq!((windows[0].start, windows[count - 1].end), (0, eigenvalues.len()));
            prop_assert!(windows.windows(2).all(|pair| pair[0].end == pair[1].start));
            for group in groups(&eigenvalues) {
                let holding = windows.iter().filter(|window| window.contains(&group.start)).count();
                prop_assert_eq!(holding, 1);
                prop_assert!(windows.iter().any(|window| window.start <= group.start && group.end <= window.end));
            }
        }
    }

    #[test]
    fn distinct_eigenvalues_are_cut_into_equal_parts() {
        let eigenvalues: Vec<f64> = (0..20).map(|a| f64::from(a) / 20.0).collect();
        assert_eq!(rank_windows(&eigenvalues, 5), [0..4, 4..8, 8..12, 12..16, 16..20]);
    }
}
