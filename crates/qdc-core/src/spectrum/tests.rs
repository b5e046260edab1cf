//! Every iterative method, called by name on graphs where none of them falls back to the full decomposition,
//! against that decomposition: the same pairs, the nearest ones, no group cut, and what is said about the
//! gaps beside them.

use super::block::{Outcome, Wanted};
use super::groups::{self, GROUP_TOLERANCE};
use super::plan::{Method, Survey};
use super::structure::Structure;
use super::{dense, filter, lanczos, lobpcg};
use crate::splitmix::scramble;
use crate::{Csr, EdgeRule, Graph, Transition, Watch};

const METHODS: [Method; 3] = [Method::Filter, Method::ShiftInvert, Method::Lobpcg];

fn block(nodes: usize, edges: impl IntoIterator<Item = (u64, u64)>) -> Csr<f64> {
    let transition = Transition::new(&Graph::from_edges(nodes, edges, EdgeRule::Undirected).unwrap());
    Structure::new(&transition).blocks()[0].matrix.clone()
}

/// Vertices joined at random, three edges for each, by a fixed rule.
fn scattered(nodes: u64) -> Csr<f64> {
    block(nodes as usize, (0..nodes * 3).map(|i| (scramble(i) % nodes, scramble(i + nodes * 3) % nodes)))
}

fn ring(nodes: u64) -> Csr<f64> {
    block(nodes as usize, (0..nodes).map(|i| (i, (i + 1) % nodes)))
}

/// Equal branches on a hub: eigenvalues repeated `copies - 1` times although no two vertices are twins.
fn branches(copies: u64, length: u64) -> Csr<f64> {
    let branch = move |copy: u64| {
        let first = 1 + copy * length;
        (0..length - 1).map(move |i| (first + i, first + i + 1)).chain([(0, first), (first + 1, first + 3)])
    };
    block((1 + copies * length) as usize, (0..copies).flat_map(branch))
}

fn wanted(mu: f64, count: usize) -> Wanted {
    Wanted { mu, count, known: Vec::new(), seed: 0, memory: None, device: None }
}

fn solve(matrix: &Csr<f64>, method: Method, wanted: &Wanted) -> Outcome {
    let watch = Watch::silent();
    let survey = Survey::new(matrix, wanted, &watch).unwrap();
    match method {
        Method::Filter => filter::solve(matrix, wanted, &survey, &watch),
        Method::ShiftInvert => lanczos::solve(matrix, wanted, &survey, &watch),
        Method::Lobpcg => lobpcg::solve(matrix, wanted, &survey, &watch),
        Method::Dense => unreachable!("compared with"),
    }
    .unwrap()
}

/// Checks one outcome against all eigenvalues, ascending.
fn check(matrix: &Csr<f64>, truth: &[f64], method: Method, mu: f64, count: usize) {
    let what = format!("{method}, {count} around {mu} of {}", matrix.rows());
    let outcome = solve(matrix, method, &wanted(mu, count));
    assert!(outcome.applications > 0, "{what}: it iterated");
    assert!(outcome.converged, "{what}");
    let window = groups::nearest(truth, mu, count);
    let found = &outcome.found.values;
    assert_eq!(found.len(), window.len(), "{what}");
    assert_eq!(outcome.counted, Some(window.len()), "{what}");
    for (ours, theirs) in found.iter().zip(&truth[window.clone()]) {
        assert!((ours - theirs).abs() < 1e-10, "{what}: {ours} against {theirs}");
    }
    // Orthonormal eigenvectors: small residuals of unit vectors at right angles.
    let vectors = &outcome.found.vectors;
    let mut image = vec![0.0; matrix.rows()];
    for a in 0..found.len() {
        let vector: Vec<f64> = vectors.col(a).iter().copied().collect();
        matrix.apply(&vector, &mut image);
        let residual: f64 = image.iter().zip(&vector).map(|(w, v)| (w - found[a] * v).powi(2)).sum();
        assert!(residual.sqrt() < 1e-8, "{what}: residual {:e}", residual.sqrt());
        for b in 0..=a {
            let overlap: f64 = vectors.col(a).iter().zip(vectors.col(b).iter()).map(|(v, w)| v * w).sum();
            assert!(
                (overlap - f64::from(u8::from(a == b))).abs() < 1e-10,
                "{what}: {a} on {b} is {overlap:e}"
            );
        }
    }
    // The interval is complete, and not needlessly narrow.
    let [low, high] = outcome.interval.unwrap_or_else(|| panic!("{what}: counted"));
    let inside = truth.iter().filter(|&&value| low < value && value < high).count();
    assert_eq!(inside, window.len(), "{what}: {low} to {high}");
    if let Some(&below) = truth[..window.start].last() {
        let gap = truth[window.start] - below;
        assert!(truth[window.start] - low > 1e-3 * gap, "{what}: {low} against a gap of {gap:e}");
    }
    if let Some(above) = truth.get(window.end) {
        let gap = above - truth[window.end - 1];
        assert!(high - truth[window.end - 1] > 1e-3 * gap, "{what}: {high} against a gap of {gap:e}");
    }
}

fn eigenvalues(matrix: &Csr<f64>) -> Vec<f64> {
    dense::decompose(matrix, &Watch::silent()).unwrap().0
}

#[test]
fn the_nearest_pairs_are_the_nearest_at_the_edges_and_inside() {
    let matrix = scattered(700);
    let truth = eigenvalues(&matrix);
    for method in METHODS {
        for (mu, count) in [(-1.001, 9), (-0.4, 20), (0.0, 30), (0.3, 1), (0.97, 5), (1.0, 7), (1.001, 12)] {
            check(&matrix, &truth, method, mu, count);
        }
    }
}

#[test]
fn a_ring_of_pairs_is_found_around_its_end_and_inside() {
    let matrix = ring(601);
    let truth = eigenvalues(&matrix);
    for method in METHODS {
        for (mu, count) in [(1.0, 5), (0.3, 8), (-0.2, 40), (-0.34, 6)] {
            check(&matrix, &truth, method, mu, count);
        }
    }
}

#[test]
fn every_copy_of_a_degenerate_eigenvalue_is_found() {
    // Multiplicities of 59, more than a Krylov space starts with, around an eigenvalue and beside it.
    let matrix = branches(60, 20);
    let truth = eigenvalues(&matrix);
    let largest = groups::groups(&truth).map(|group| group.len()).max().unwrap();
    assert_eq!(largest, 59);
    let group = groups::groups(&truth).find(|group| group.len() == 59).unwrap();
    for method in METHODS {
        for (mu, count) in [(truth[group.start], 3), (truth[group.start] + 0.003, 20), (1.0, 4)] {
            check(&matrix, &truth, method, mu, count);
        }
    }
}

#[test]
fn a_tree_of_twenty_equal_branches_converges() {
    let matrix = branches(20, 30);
    let truth = eigenvalues(&matrix);
    for method in METHODS {
        for (mu, count) in [(1.0, 3), (0.3, 16), (-0.45, 30)] {
            check(&matrix, &truth, method, mu, count);
        }
    }
}

#[test]
fn lobpcg_takes_many_pairs_slice_by_slice() {
    let matrix = scattered(1200);
    let truth = eigenvalues(&matrix);
    check(&matrix, &truth, Method::Lobpcg, 0.2, 200);
}

#[test]
fn pairs_known_from_elsewhere_make_the_window_smaller() {
    let matrix = scattered(700);
    let truth = eigenvalues(&matrix);
    let distances = |mu: f64| {
        let mut distances: Vec<f64> = truth.iter().map(|value| (value - mu).abs()).collect();
        distances.sort_by(f64::total_cmp);
        distances
    };
    for method in METHODS {
        // Twelve pairs elsewhere at the very place: eight of ours are left of twenty.
        let known = Wanted { known: vec![0.0; 12], ..wanted(0.1, 20) };
        let outcome = solve(&matrix, method, &known);
        let radius = distances(0.1)[7];
        assert!(outcome.found.values.len() >= 8, "{method}");
        let inside = truth.iter().filter(|&&value| (value - 0.1).abs() <= radius + GROUP_TOLERANCE).count();
        assert_eq!(outcome.found.values.len(), inside, "{method}");
    }
}

#[test]
fn without_a_factorisation_nothing_is_said_to_be_proved() {
    let matrix = ring(450);
    let truth = eigenvalues(&matrix);
    let request = wanted(-0.1, 6);
    let watch = Watch::silent();
    let survey = Survey { symbolic: None, ..Survey::new(&matrix, &request, &watch).unwrap() };
    for outcome in [
        filter::solve(&matrix, &request, &survey, &watch).unwrap(),
        lobpcg::solve(&matrix, &request, &survey, &watch).unwrap(),
    ] {
        assert!(outcome.converged);
        assert_eq!(outcome.interval, None);
        let window = groups::nearest(&truth, -0.1, 6);
        assert_eq!(outcome.found.values.len(), window.len());
        for (ours, theirs) in outcome.found.values.iter().zip(&truth[window]) {
            assert!((ours - theirs).abs() < 1e-10, "{ours} against {theirs}");
        }
    }
}

#[test]
fn the_estimate_favours_each_method_where_it_is_the_fastest() {
    let cost = |matrix: &Csr<f64>, mu: f64, count: usize| {
        let request = wanted(mu, count);
        let survey = Survey::new(matrix, &request, &Watch::silent()).unwrap();
        let costs = [
            survey.filter(matrix, &request),
            survey.shift_invert(matrix).unwrap(),
            super::plan::Cost::dense(matrix.rows()),
        ];
        costs.into_iter().min_by(|a, b| a.seconds.total_cmp(&b.seconds)).unwrap().method
    };
    // A ring has no fill at all; a few pairs of a dense random graph are cheaper in full.
    assert_eq!(cost(&ring(5000), 0.3, 16), Method::ShiftInvert);
    let thick = block(
        500,
        (0..500u64).flat_map(|i| (0..i).filter(move |j| (i * 7 + j * 13) % 5 < 2).map(move |j| (i, j))),
    );
    assert_eq!(cost(&thick, 0.0, 150), Method::Dense);
}
