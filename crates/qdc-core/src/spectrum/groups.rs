//! Groups of equal eigenvalues, and windows that never cut one.

use std::ops::Range;

/// Neighbouring eigenvalues closer than this count as one degenerate group.
///
/// Solvers place an eigenvalue within about 1e-14 of the truth; graphs put distinct ones rarely closer than
/// 1e-6.
pub const GROUP_TOLERANCE: f64 = 1e-8;

/// The groups of an ascending list: each eigenvalue lies within [`GROUP_TOLERANCE`] of the one before it.
///
/// ```
/// use qdc_core::spectrum::groups;
///
/// let found: Vec<_> = groups(&[-0.5, 0.0, 1e-15, 1.0]).collect();
/// assert_eq!(found, [0..1, 1..3, 3..4]);
/// ```
pub fn groups(eigenvalues: &[f64]) -> impl Iterator<Item = Range<usize>> + '_ {
    let mut start = 0;
    eigenvalues.chunk_by(|a, b| b - a <= GROUP_TOLERANCE).map(move |group| {
        let range = start..start + group.len();
        start = range.end;
        range
    })
}

/// mu, or the end of the spectrum it lies beyond.
///
/// Eigenvalues of L lie in [-1, 1]: beyond that every mu ranks them alike, and distances to a far one would
/// all be rounded to the same number.
pub(super) fn clamp(mu: f64) -> f64 {
    mu.clamp(-1.001, 1.001)
}

/// The positions of the `k` nearest to `mu` in an ascending list, ties and whole groups included.
pub(super) fn nearest(eigenvalues: &[f64], mu: f64, k: usize) -> Range<usize> {
    let mu = clamp(mu);
    if k == 0 || eigenvalues.is_empty() {
        let at = eigenvalues.partition_point(|&value| value < mu);
        return at..at;
    }
    within(eigenvalues, mu, radius(eigenvalues, mu, k) + GROUP_TOLERANCE)
}

/// The distance of the `k`-th nearest to `mu`; of the farthest where there are fewer.
pub(super) fn radius(eigenvalues: &[f64], mu: f64, k: usize) -> f64 {
    let mut distances: Vec<f64> = eigenvalues.iter().map(|value| (value - mu).abs()).collect();
    let last = k.min(distances.len()) - 1;
    *distances.select_nth_unstable_by(last, f64::total_cmp).1
}

/// The positions within `radius` of `mu`, widened to whole groups.
pub(super) fn within(eigenvalues: &[f64], mu: f64, radius: f64) -> Range<usize> {
    let mut start = eigenvalues.partition_point(|&value| value < mu - radius);
    let mut end = eigenvalues.partition_point(|&value| value <= mu + radius);
    while start > 0 && start < end && eigenvalues[start] - eigenvalues[start - 1] <= GROUP_TOLERANCE {
        start -= 1;
    }
    while end < eigenvalues.len() && start < end && eigenvalues[end] - eigenvalues[end - 1] <= GROUP_TOLERANCE
    {
        end += 1;
    }
    start..end
}

/// An interval in which an ascending list is complete, narrowed to where the part `kept` of the list is.
///
/// Eigenvalues are right to about 1e-9, which is taken off.
pub(super) fn narrow(interval: [f64; 2], eigenvalues: &[f64], kept: &Range<usize>) -> [f64; 2] {
    const ACCURACY: f64 = 1e-9;
    let below = eigenvalues[..kept.start].last().map_or(f64::MIN, |value| value + ACCURACY);
    let above = eigenvalues.get(kept.end).map_or(f64::MAX, |value| value - ACCURACY);
    [interval[0].max(below), interval[1].min(above)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_tie_on_both_sides_of_mu_is_taken_whole() {
        assert_eq!(nearest(&[-0.5, -0.1, 0.1, 0.5], 0.0, 1), 1..3);
        assert_eq!(nearest(&[-0.5, -0.1, 0.1, 0.5], 0.0, 3), 0..4);
        assert_eq!(nearest(&[-0.5, -0.1, 0.1, 0.5], 0.0, 0), 2..2);
        assert_eq!(nearest(&[-0.5, 0.1], 2.0, 99), 0..2);
    }

    #[test]
    fn far_outside_the_spectrum_the_nearest_are_those_at_its_end() {
        let eigenvalues = [-0.9, -0.5, 0.1, 0.2, 0.7, 1.0];
        for mu in [1.5, 7.0, 1e12, 1e300, f64::MAX] {
            assert_eq!(nearest(&eigenvalues, mu, 2), 4..6, "{mu}");
            assert_eq!(nearest(&eigenvalues, -mu, 3), 0..3, "-{mu}");
        }
    }

    proptest! {
        #[test]
        fn a_degenerate_group_is_never_cut(
            steps in proptest::collection::vec(0u8..3, 1..40), mu in -2.0f64..2.0, k in 0usize..50
        ) {
            // Steps of 0 repeat an eigenvalue, larger ones move on.
            let mut value = -1.0;
            let eigenvalues: Vec<f64> = steps.iter().map(|&step| { value += f64::from(step) * 0.025; value }).collect();
            let window = nearest(&eigenvalues, mu, k);
            prop_assert!(window.len() >= k.min(eigenvalues.len()));
            for group in groups(&eigenvalues) {
                let inside = group.clone().filter(|a| window.contains(a)).count();
                prop_assert!(inside == 0 || inside == group.len());
            }
            let farthest = window.clone().map(|a| (eigenvalues[a] - mu).abs()).fold(0.0, f64::max);
            for a in (0..eigenvalues.len()).filter(|a| !window.contains(a) && k > 0) {
                prop_assert!((eigenvalues[a] - mu).abs() > farthest - 1e-12);
            }
        }
    }
}
