//! Every route to eigenpairs against the plain eigendecomposition of L, written out as a full matrix.

use faer::{Mat, Side};
use proptest::prelude::*;
use qdc_core::spectrum::{Eigensolver, Pairs, Solver, Spectrum, groups, structure::Structure};
use qdc_core::{EdgeRule, Graph, Symmetrize, Transition, Watch};

const ROUTES: [Solver; 1] = [Solver::Dense];

fn unweighted(nodes: usize, edges: impl IntoIterator<Item = (u64, u64)>) -> Transition {
    Transition::new(&Graph::from_edges(nodes, edges, EdgeRule::Undirected).unwrap())
}

/// A star, a complete bipartite graph, a clique with tails, copies of a path, isolated vertices: all degenerate.
fn degenerate_graphs() -> Vec<(&'static str, Transition)> {
    let bipartite = (0..7).flat_map(|i| (7..18).map(move |j| (i, j)));
    let clique = (0..12u64).flat_map(|i| (0..i).map(move |j| (i, j))).chain((0..12).map(|i| (i, i + 12)));
    let paths = (0..9u64).flat_map(|copy| (0..4).map(move |i| (5 * copy + i, 5 * copy + i + 1)));
    vec![
        ("star", unweighted(30, (1..30).map(|leaf| (0, leaf)))),
        ("complete bipartite", unweighted(18, bipartite)),
        ("clique with tails", unweighted(24, clique)),
        ("copies of a path", unweighted(50, paths)),
        ("isolated vertices", unweighted(6, [(0, 1)])),
        ("one vertex", unweighted(1, [])),
    ]
}

/// The plain way: no structure, no windows.
fn reference(transition: &Transition) -> (Vec<f64>, Mat<f64>) {
    let n = transition.nodes();
    let dense = transition.matrix().to_dense();
    let full = Mat::from_fn(n, n, |i, j| dense[i * n + j]);
    let eigen = full.self_adjoint_eigen(Side::Lower).unwrap();
    (eigen.S().column_vector().iter().copied().collect(), eigen.U().to_owned())
}

/// The projector onto the pairs in a range does not depend on the basis inside groups.
fn assert_same_projector(
    spectrum: &Spectrum,
    vectors: &Mat<f64>,
    range: std::ops::Range<usize>,
    tolerance: f64,
) {
    let n = spectrum.nodes();
    for i in 0..n {
        for j in 0..n {
            let ours: f64 =
                (0..spectrum.pairs()).map(|a| spectrum.vector(a)[i] * spectrum.vector(a)[j]).sum();
            let theirs: f64 = range.clone().map(|a| vectors[(i, a)] * vectors[(j, a)]).sum();
            assert!((ours - theirs).abs() < tolerance, "projector at ({i}, {j}): {ours} against {theirs}");
        }
    }
}

fn check(transition: &Transition, solver: Solver, mu: f64, count: usize) {
    let (values, vectors) = reference(transition);
    let solved = Eigensolver::new()
        .pairs(Pairs::Nearest(count))
        .around(mu)
        .solver(solver)
        .solve(transition, &Watch::silent())
        .unwrap();
    assert!(solved.report().residual_max < 1e-7, "{solver}: {:?}", solved.report());
    assert!(solved.report().orthogonality < 1e-7, "{solver}: {:?}", solved.report());
    let start = values.iter().position(|value| (value - solved.eigenvalues()[0]).abs() < 1e-8).unwrap();
    let range = start..start + solved.pairs();
    for (ours, theirs) in solved.eigenvalues().iter().zip(&values[range.clone()]) {
        assert!((ours - theirs).abs() < 1e-10, "{solver}: {ours} against {theirs}");
    }
    assert!(solved.pairs() >= count.min(values.len()));
    for group in groups(&values) {
        let inside = group.clone().filter(|a| range.contains(a)).count();
        assert!(inside == 0 || inside == group.len(), "{solver} cut a group of {}", group.len());
    }
    assert_same_projector(&solved, &vectors, range, 1e-6);
}

#[test]
fn massive_degeneracy_does_not_confuse_a_route() {
    for (name, transition) in degenerate_graphs() {
        for solver in ROUTES {
            for (mu, count) in [(-0.5, 3), (0.0, 5), (0.5, 4), (1.0, 2), (0.3, 1000)] {
                println!("{name} by {solver}, {count} pairs around {mu}");
                check(&transition, solver, mu, count);
            }
        }
    }
}

#[test]
fn twins_and_components_account_for_every_eigenvalue() {
    for (name, transition) in degenerate_graphs() {
        let structure = Structure::new(&transition);
        let rows: usize = structure.blocks().iter().map(|block| block.matrix.rows()).sum();
        assert_eq!(structure.twin_pairs() + rows, transition.nodes(), "{name}");
    }
    // All leaves of a star are twins: two rows remain.
    let star = Structure::new(&unweighted(30, (1..30).map(|leaf| (0, leaf))));
    assert_eq!((star.reduced_nodes(), star.twins()[0].eigenvalue), (2, 0.5));
    // A clique is one class of adjacent twins with eigenvalue 0.
    let clique = Structure::new(&unweighted(6, (0..6).flat_map(|i| (0..i).map(move |j| (i, j)))));
    assert_eq!((clique.reduced_nodes(), clique.twins()[0].eigenvalue), (1, 0.0));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn every_route_agrees_with_the_plain_decomposition(
        nodes in 2usize..40,
        edges in proptest::collection::vec((0u64..40, 0u64..40, 1u32..4), 0..90),
        weighted in any::<bool>(),
        self_loop in prop_oneof![Just(1.0), 0.2f64..3.0],
        mu in prop_oneof![-1.1f64..1.1, Just(0.0), Just(0.5), Just(1.0)],
        count in 1usize..12,
    ) {
        let edges = edges.into_iter().map(|(i, j, w)| {
            (i % nodes as u64, j % nodes as u64, if weighted { f64::from(w) * 0.7 } else { 1.0 })
        });
        let graph = Graph::from_weighted_edges(nodes, edges, EdgeRule::Directed(Symmetrize::Max)).unwrap();
        let transition = Transition::with_self_loop(&graph, self_loop).unwrap();
        for solver in ROUTES {
            check(&transition, solver, mu, count);
        }
    }
}
