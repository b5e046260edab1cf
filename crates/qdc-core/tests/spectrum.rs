//! Every route to eigenpairs against the plain eigendecomposition of L, written out as a full matrix.

use faer::{Mat, Side};
use proptest::prelude::*;
use qdc_core::spectrum::{Eigensolver, Method, Pairs, Spectrum, groups, structure::Structure};
use qdc_core::watch::{Observer, PhaseId};
use qdc_core::{EdgeRule, Error, Graph, Route, Symmetrize, Transition, Watch};

const ROUTES: [Route; 4] = [Route::Auto, Route::Dense, Route::Window, Route::Lobpcg];

fn unweighted(nodes: usize, edges: impl IntoIterator<Item = (u64, u64)>) -> Transition {
    Transition::new(&Graph::from_edges(nodes, edges, EdgeRule::Undirected).unwrap())
}

/// A star, a complete bipartite graph, a clique with tails, copies of a path, isolated vertices: all
/// degenerate.
fn degenerate_graphs() -> Vec<Transition> {
    let bipartite = (0..7).flat_map(|i| (7..18).map(move |j| (i, j)));
    let clique = (0..12u64).flat_map(|i| (0..i).map(move |j| (i, j))).chain((0..12).map(|i| (i, i + 12)));
    let paths = (0..9u64).flat_map(|copy| (0..4).map(move |i| (5 * copy + i, 5 * copy + i + 1)));
    vec![
        unweighted(30, (1..30).map(|leaf| (0, leaf))), // star
        unweighted(18, bipartite),                     // complete bipartite
        unweighted(24, clique),                        // clique with tails
        unweighted(50, paths),                         // copies of a path
        unweighted(6, [(0, 1)]),                       // isolated vertices
        unweighted(1, []),                             // one vertex
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

fn check(transition: &Transition, solver: Route, mu: f64, count: usize) {
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
    for transition in degenerate_graphs() {
        for solver in ROUTES {
            for (mu, count) in [(-0.5, 3), (0.0, 5), (0.5, 4), (1.0, 2), (0.3, 1000)] {
                check(&transition, solver, mu, count);
            }
        }
    }
}

/// Copies of one branch on a hub: eigenvalues repeated `copies - 1` times although no two vertices are twins.
fn branches(copies: u64) -> Transition {
    const LENGTH: u64 = 6;
    let branch = |copy: u64| {
        let first = 1 + copy * LENGTH;
        let path = (0..LENGTH - 1).map(move |i| (first + i, first + i + 1));
        path.chain([(0, first), (first + 1, first + 3)])
    };
    unweighted((1 + copies * LENGTH) as usize, (0..copies).flat_map(branch))
}

/// Vertices joined at random, three edges for each, by a fixed rule.
fn scattered(nodes: u64) -> Transition {
    let pick = |i: u64| {
        (i + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(31).wrapping_mul(0xd6e8_feb8_6659_fd93) >> 33
    };
    unweighted(nodes as usize, (0..nodes * 3).map(|i| (pick(2 * i) % nodes, pick(2 * i + 1) % nodes)))
}

#[test]
fn the_window_finds_every_copy_where_no_two_vertices_are_twins() {
    let transition = branches(75);
    assert_eq!(Structure::new(&transition).twin_pairs(), 0);
    for (mu, count) in [(0.2, 20), (1.0, 4), (-0.45, 90)] {
        check(&transition, Route::Window, mu, count);
    }
}

#[test]
fn the_window_is_right_at_the_edges_and_inside() {
    let transition = scattered(500);
    for (mu, count) in [(-1.2, 12), (-0.4, 25), (0.0, 40), (0.5, 10), (1.0, 7)] {
        check(&transition, Route::Window, mu, count);
    }
}

#[test]
fn lobpcg_is_right_on_graphs_large_enough_to_iterate() {
    check(&scattered(150), Route::Lobpcg, 0.3, 10);
    check(&branches(20), Route::Lobpcg, 1.0, 3);
}

#[test]
fn results_do_not_depend_on_the_number_of_threads_nor_on_the_call() {
    let transition = scattered(620);
    let solve = |threads: usize, solver: Route| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let solver = Eigensolver::new().pairs(Pairs::Nearest(20)).around(0.1).solver(solver);
            solver.solve(&transition, &Watch::silent()).unwrap()
        })
    };
    for solver in ROUTES {
        let one = solve(1, solver);
        for other in [solve(1, solver), solve(2, solver), solve(3, solver)] {
            assert_eq!(one.eigenvalues(), other.eigenvalues(), "{solver}");
            assert_eq!(one.vectors(), other.vectors(), "{solver}");
            assert_eq!(one.report(), other.report(), "{solver}");
        }
    }
}

#[test]
fn the_gaps_beside_a_window_are_lower_bounds_and_not_idle_ones() {
    let transition = scattered(620);
    let truth = reference(&transition).0;
    for solver in ROUTES {
        for (mu, count) in [(-1.5, 4), (-0.3, 12), (0.2, 25), (1.0, 3)] {
            let solver = Eigensolver::new().pairs(Pairs::Nearest(count)).around(mu).solver(solver);
            let spectrum = solver.solve(&transition, &Watch::silent()).unwrap();
            let every = 0..spectrum.pairs();
            let (first, last) = (spectrum.eigenvalues()[0], spectrum.eigenvalues()[every.end - 1]);
            let below = truth.iter().copied().filter(|value| *value < first - 1e-8).reduce(f64::max);
            let above = truth.iter().copied().filter(|value| *value > last + 1e-8).reduce(f64::min);
            let sides = [
                (spectrum.gap_below(&every).unwrap(), below.map(|value| first - value)),
                (spectrum.gap_above(&every).unwrap(), above.map(|value| value - last)),
            ];
            for (gap, true_gap) in sides {
                match true_gap {
                    None => assert_eq!(gap, f64::INFINITY),
                    Some(truth) => {
                        assert!(gap <= truth + 1e-12, "{gap:e} of {truth:e}");
                        assert!(gap >= 1e-3 * truth, "{gap:e} of {truth:e}");
                    }
                }
            }
        }
    }
}

#[test]
fn a_part_of_a_spectrum_knows_the_gaps_beside_itself() {
    let spectrum = Eigensolver::new().solve(&scattered(60), &Watch::silent()).unwrap();
    let values = spectrum.eigenvalues().to_vec();
    let inner = spectrum.nearest(0.1, 7);
    let part = spectrum.restrict(inner.clone());
    assert_eq!(part.report().pairs, inner.len());
    for (gap, truth) in [
        (spectrum.gap_below(&inner).unwrap(), values[inner.start] - values[inner.start - 1]),
        (spectrum.gap_above(&inner).unwrap(), values[inner.end] - values[inner.end - 1]),
        (part.gap_below(&(0..part.pairs())).unwrap(), values[inner.start] - values[inner.start - 1]),
        (part.gap_above(&(0..part.pairs())).unwrap(), values[inner.end] - values[inner.end - 1]),
    ] {
        assert!(gap <= truth && gap > truth - 1e-8, "{gap} of {truth}");
    }
    assert_eq!(spectrum.gap_below(&(0..5)), Some(f64::INFINITY));
    assert_eq!(spectrum.gap_above(&(3..60)), Some(f64::INFINITY));
    assert!(part.gap_below(&(0..1)).unwrap().is_finite());
}

#[test]
fn eigenpairs_of_another_matrix_make_no_kernel() {
    use qdc_core::{Filter, Recipe, Resources};
    let path = Graph::from_edges(40, (0..39).map(|i| (i, i + 1)), EdgeRule::Undirected).unwrap();
    let ring = Graph::from_edges(40, (0..40).map(|i| (i, (i + 1) % 40)), EdgeRule::Undirected).unwrap();
    let spectrum = Eigensolver::new().solve(&Transition::new(&path), &Watch::silent()).unwrap();
    let build = |self_loop: f64, graph: &Graph| {
        let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap()).self_loop(self_loop);
        let watch = Watch::silent();
        let job = recipe.prepare(graph, &Resources::given(spectrum.clone()), &watch)?;
        job.build(&watch).map(drop)
    };
    assert!(build(1.0, &path).is_ok());
    for refused in [build(1.0, &ring), build(2.0, &path)] {
        assert!(matches!(refused, Err(Error::ForeignSpectrum { .. })), "{refused:?}");
    }
}

#[test]
fn what_was_prepared_says_what_it_will_do_and_does_it_only_for_its_matrix() {
    let transition = scattered(620);
    let solver = Eigensolver::new().pairs(Pairs::Nearest(6)).around(0.2);
    let prepared = solver.prepare(&transition, &Watch::silent()).unwrap();
    let spectrum = prepared.solve(&transition, &Watch::silent()).unwrap();
    assert_eq!(spectrum.report().method, prepared.method());
    assert_eq!(spectrum.report().reason, prepared.reason());
    let full = Eigensolver::new().prepare(&transition, &Watch::silent()).unwrap();
    assert_eq!(full.method(), Method::Dense);
    assert!(full.flops() > 8.9 * 620f64.powi(3) && full.memory() > 8 * 620 * 620);
    assert!(prepared.flops() < full.flops() && prepared.memory() < full.memory());
    let other = prepared.solve(&scattered(621), &Watch::silent());
    assert!(matches!(other, Err(Error::ForeignSpectrum { .. })));
}

#[test]
fn what_cannot_be_done_is_an_error_that_says_so() {
    let transition = scattered(50);
    let refused = |solver: Eigensolver| solver.solve(&transition, &Watch::silent()).unwrap_err();
    assert!(matches!(refused(Eigensolver::new().memory(1000)), Error::Memory { limit: 1000, .. }));
    assert!(matches!(refused(Eigensolver::new().solver(Route::Chebyshev)), Error::NoEigenpairs));
    assert!(matches!(refused(Eigensolver::new().around(f64::NAN)), Error::Parameter { name: "mu", .. }));
}

#[test]
fn a_stop_reaches_every_route() {
    struct Stop;
    impl Observer for Stop {
        fn begin(&self, _: PhaseId, _: &str, _: u64) {}
        fn advance(&self, _: PhaseId, _: u64) {}
        fn end(&self, _: PhaseId) {}
        fn stop_requested(&self) -> bool {
            true
        }
    }
    let transition = scattered(450);
    for solver in ROUTES {
        let outcome =
            Eigensolver::new().pairs(Pairs::Nearest(20)).solver(solver).solve(&transition, &Watch::new(Stop));
        assert!(matches!(outcome, Err(Error::Interrupted)), "{solver}");
    }
}

#[test]
fn twins_and_components_account_for_every_eigenvalue() {
    for transition in degenerate_graphs() {
        let structure = Structure::new(&transition);
        let rows: usize = structure.blocks().iter().map(|block| block.matrix.rows()).sum();
        assert_eq!(structure.twin_pairs() + rows, transition.nodes());
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
