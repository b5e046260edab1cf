//! The lower end of the spectrum by the method of Lanczos.
//!
//! A window at the lower end needs lambda_min and no eigenvector. Lanczos' recurrence builds an orthonormal
//! basis in which L is tridiagonal; the lowest eigenvalue of that small matrix falls towards lambda_min.

use crate::splitmix::scramble;
use crate::{Csr, Error, Transition, Watch};

/// Steps after which the value is taken as it is.
const MOST_STEPS: usize = 300;
/// The value stands when it has moved by less than this in the last [`QUIET`] steps.
const TOLERANCE: f64 = 1e-9;
const QUIET: usize = 8;

/// The lowest eigenvalue of L, within about 1e-8 (from above).
///
/// Every new vector is made orthogonal to all before it, so no eigenvalue is found twice. The start is a
/// fixed random vector: the same L gives the same number. Cost: up to 300 products with L, and a vector kept
/// for each.
///
/// ```
/// use qdc_core::{EdgeRule, Graph, Transition, Watch, lanczos};
///
/// let star = Graph::from_edges(4, [(0, 1), (0, 2), (0, 3)], EdgeRule::Undirected)?;
/// let lowest = lanczos::lowest_eigenvalue(&Transition::new(&star), &Watch::silent())?;
/// assert!((lowest + 0.25).abs() < 1e-9); // the trace 7/4 less the eigenvalues 1, 1/2 and 1/2
/// # Ok::<(), qdc_core::Error>(())
/// ```
///
/// # Errors
/// If the watch asks to stop.
///
/// Reference: C. C. Paige, "Computational variants of the Lanczos method for the eigenproblem", 1972.
pub fn lowest_eigenvalue(transition: &Transition, watch: &Watch) -> Result<f64, Error> {
    let matrix = transition.matrix();
    let nodes = matrix.rows();
    let most = MOST_STEPS.min(nodes);
    let phase = watch.phase("lower end of the spectrum", most as u64);
    let start: Vec<f64> =
        (0..nodes as u64).map(|v| (scramble(v) >> 11) as f64 / (1u64 << 52) as f64 - 1.0).collect();
    let mut basis: Vec<Vec<f64>> = vec![scaled(&start, 1.0 / norm(&start))];
    let (mut diagonal, mut beside, mut values) = (Vec::new(), Vec::new(), Vec::new());
    loop {
        phase.advance(1)?;
        let last = basis.last().expect("it begins with one");
        let mut next = product(matrix, last);
        diagonal.push(dot(last, &next));
        for _ in 0..2 {
            // Twice is enough (W. Kahan): what the first pass leaves behind, the second takes away.
            for vector in &basis {
                let share = dot(vector, &next);
                next.iter_mut().zip(vector).for_each(|(next, v)| *next -= share * v);
            }
        }
        values.push(lowest_of_tridiagonal(&diagonal, &beside));
        let length = norm(&next);
        let settled =
            values.len() > QUIET && values[values.len() - 1 - QUIET] - values[values.len() - 1] < TOLERANCE;
        if length < 1e-12 || basis.len() == most || settled {
            return Ok(values[values.len() - 1]);
        }
        beside.push(length);
        basis.push(scaled(&next, 1.0 / length));
    }
}

/// The lowest eigenvalue of a symmetric tridiagonal matrix, by bisection on Sturm's count.
fn lowest_of_tridiagonal(diagonal: &[f64], beside: &[f64]) -> f64 {
    let (mut low, mut high) = (-2.0, diagonal.iter().copied().fold(f64::INFINITY, f64::min)); // |L| <= 1
    // Whether an eigenvalue lies below x: whether a pivot of T - x is negative.
    let below = |x: f64| {
        let mut pivot = diagonal[0] - x;
        for (d, b) in diagonal[1..].iter().zip(beside) {
            if pivot < 0.0 {
                return true;
            }
            pivot = d - x - b * b / pivot.max(f64::MIN_POSITIVE);
        }
        pivot < 0.0
    };
    while high - low > 1e-13 {
        let middle = 0.5 * (low + high);
        if below(middle) { high = middle } else { low = middle }
    }
    0.5 * (low + high)
}

fn product(matrix: &Csr<f64>, vector: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; vector.len()];
    matrix.apply(vector, &mut out);
    out
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn norm(vector: &[f64]) -> f64 {
    dot(vector, vector).sqrt()
}

fn scaled(vector: &[f64], factor: f64) -> Vec<f64> {
    vector.iter().map(|value| value * factor).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Eigensolver, Graph};
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn the_lowest_eigenvalue_agrees_with_the_decomposition(
            edges in proptest::collection::vec((0u64..40, 0u64..40), 0..90)
        ) {
            let graph = Graph::from_edges(40, edges, EdgeRule::Undirected).unwrap();
            let transition = Transition::new(&graph);
            let expected = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap().eigenvalues()[0];
            let found = lowest_eigenvalue(&transition, &Watch::silent()).unwrap();
            prop_assert!((found - expected).abs() < 1e-8, "{found} {expected}");
        }
    }
}
