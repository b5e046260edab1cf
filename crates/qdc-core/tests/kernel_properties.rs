//! Laws of kernels on random graphs: the routes agree, results are symmetric, and neither threads, names of
//! vertices nor shards change them.

use proptest::prelude::*;
use qdc_core::{
    Csr, EdgeRule, Error, Filter, Graph, Job, KernelReport, Normalize, Pairs, Precision, Recipe, Resources,
    Route, Shard, Sign, Sparsify, Symmetrize, Transition, Watch,
};

const NODES: usize = 14;

/// Sparse random graphs with weights (disconnected, with isolated vertices), stars, and complete bipartite
/// graphs.
fn graph() -> impl Strategy<Value = Graph> {
    let nodes = NODES as u64;
    let random = proptest::collection::vec((0..nodes, 0..nodes, 0.1f64..3.0), 0..30).prop_map(|edges| {
        Graph::from_weighted_edges(NODES, edges, EdgeRule::Directed(Symmetrize::Max)).unwrap()
    });
    let bipartite = (1..nodes, 2..nodes).prop_map(move |(left, right)| {
        let end = nodes.min(left + right);
        let edges = (0..left).flat_map(|a| (left..end).map(move |b| (a, b)));
        Graph::from_edges(NODES, edges, EdgeRule::Undirected).unwrap()
    });
    prop_oneof![random, bipartite]
}

fn filter() -> impl Strategy<Value = Filter> {
    (0..4, -1.2f64..1.2, 0.05f64..1.5).prop_map(|(which, a, b)| {
        match which {
            0 => Filter::gaussian(a, b),
            1 => Filter::band(a, b),
            2 => Filter::ppr(b / 1.5),
            _ => Filter::heat(4.0 * b),
        }
        .unwrap()
    })
}

fn rule() -> impl Strategy<Value = (Sparsify, Sign)> {
    let sparsify = prop_oneof![
        (1e-3f64..0.2).prop_map(|epsilon| Sparsify::epsilon(epsilon).unwrap()),
        (1usize..20).prop_map(|k| Sparsify::top_k(k).unwrap()),
        Just(Sparsify::None),
    ];
    (sparsify, prop_oneof![Just(Sign::Positive), Just(Sign::Absolute)])
}

fn job(recipe: &Recipe, route: Route, graph: &Graph) -> Job {
    let resources = Resources { route, ..Resources::default() };
    recipe.prepare(graph, &resources, &Watch::silent()).unwrap()
}

fn build_by(recipe: &Recipe, route: Route, graph: &Graph) -> qdc_core::BuiltKernel {
    job(recipe, route, graph).build(&Watch::silent()).unwrap()
}

fn build(recipe: &Recipe, graph: &Graph) -> qdc_core::BuiltKernel {
    build_by(recipe, Route::Auto, graph)
}

/// The error a report states: proved, or estimated where nothing is proved.
fn stated(report: &KernelReport) -> f64 {
    report.error_bound.or(report.error_estimate).expect("one of them is always there")
}

fn whole(filter: Filter) -> Recipe {
    Recipe::new(filter).sparsify(Sparsify::None).normalize(Normalize::None)
}

fn farthest(a: &Csr<f64>, b: &Csr<f64>) -> f64 {
    let (a, b) = (a.to_dense(), b.to_dense());
    a.iter().zip(&b).map(|(x, y)| (x - y).abs()).fold(0.0, f64::max)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn all_routes_agree_within_their_stated_errors(graph in graph(), filter in filter(), digits in 4i32..11) {
        let kernel = whole(filter).tolerance(10f64.powi(-digits));
        let dense = build_by(&kernel, Route::Dense, &graph);
        for (recipe, route) in [
            (kernel.clone(), Route::Chebyshev),
            (kernel.clone(), Route::Auto),
            (kernel.clone().precision(Precision::F32), Route::Chebyshev),
        ] {
            let other = build_by(&recipe, route, &graph);
            let error = farthest(&other.matrix, &dense.matrix);
            let bound = stated(&other.report) + stated(&dense.report);
            prop_assert!(error <= bound, "{}: {error:e} above {bound:e}", other.report.solver);
        }
    }

    #[test]
    fn kernels_are_exactly_symmetric(
        graph in graph(), filter in filter(), (sparsify, sign) in rule(),
        route in prop_oneof![Just(Route::Auto), Just(Route::Chebyshev), Just(Route::Dense)],
    ) {
        let recipe = Recipe::new(filter).sparsify(sparsify).sign(sign);
        for normalize in [Normalize::Sym, Normalize::None] {
            let matrix = build_by(&recipe.clone().normalize(normalize), route, &graph).matrix;
            prop_assert_eq!(&matrix, &matrix.transpose());
        }
    }

    #[test]
    fn shards_join_into_the_whole_bit_for_bit(
        graph in graph(), filter in filter(), (sparsify, sign) in rule(), cut in 1..NODES, all: bool,
    ) {
        let kernel = Recipe::new(filter)
            .sparsify(sparsify)
            .sign(sign)
            .pairs(if all { Pairs::All } else { Pairs::Nearest(5) });
        let job = job(&kernel, Route::Auto, &graph);
        let shard = |rows| job.rows(rows, &Watch::silent()).unwrap();
        let merged = Shard::merge(vec![shard(cut..NODES), shard(0..cut)]).unwrap();
        let at_once = build(&kernel, &graph);
        prop_assert_eq!(merged.matrix, at_once.matrix);
        prop_assert_eq!(merged.report.empty_rows, at_once.report.empty_rows);
    }

    #[test]
    fn names_of_vertices_do_not_matter(
        graph in graph(), filter in filter(), order in Just((0..NODES as u32).collect::<Vec<_>>()).prop_shuffle(),
    ) {
        let by_chebyshev = |graph: &Graph| build_by(&whole(filter.clone()), Route::Chebyshev, graph);
        let (plain, renamed) = (by_chebyshev(&graph), by_chebyshev(&graph.relabel(&order)));
        let bound = stated(&plain.report) + stated(&renamed.report);
        prop_assert!(farthest(&plain.matrix.relabel(&order), &renamed.matrix) <= bound);
    }

    #[test]
    fn making_twins_one_changes_nothing_but_rounding(graph in graph(), filter in filter()) {
        // The same series applied to unit vectors, each vertex by itself.
        let mut units = vec![0.0; NODES * NODES];
        (0..NODES).for_each(|i| units[i * NODES + i] = 1.0);
        let transition = Transition::new(&graph);
        let plain = filter.apply(&transition, &units, NODES, 1e-13, &Watch::silent()).unwrap();
        let built = build_by(&whole(filter), Route::Chebyshev, &graph);
        let error = built.matrix.to_dense().iter().zip(&plain).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        prop_assert!(error <= stated(&built.report) + 2e-13, "{error:e}");
    }

    #[test]
    fn a_window_of_all_pairs_is_the_exact_kernel(graph in graph(), filter in filter()) {
        let exact = build(&whole(filter.clone()), &graph);
        let window = build(&whole(filter).pairs(Pairs::Nearest(NODES + 3)), &graph);
        prop_assert!(farthest(&exact.matrix, &window.matrix) < 1e-9);
        prop_assert!((window.report.captured_mass.unwrap() - 1.0).abs() < 1e-12);
        prop_assert!(window.report.warnings.iter().any(|warning| warning.contains("lowered")));
    }
}

fn wheel(nodes: u64) -> Graph {
    let edges = (1..nodes).flat_map(|i| [(0, i), (i, if i + 1 < nodes { i + 1 } else { 1 })]);
    Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap()
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let graph = wheel(300); // large enough for every route, the elimination of PageRank included
    let gaussian = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap());
    let ppr = Recipe::new(Filter::ppr(0.15).unwrap());
    let top = Sparsify::top_k(9).unwrap();
    let recipes = [
        (gaussian.clone(), Route::Chebyshev),
        (gaussian.clone().sparsify(top), Route::Auto),
        (gaussian.clone(), Route::Dense),
        (gaussian.pairs(Pairs::Nearest(20)), Route::Auto),
        (ppr.clone(), Route::Auto),
        (ppr.sparsify(top), Route::Chebyshev),
    ];
    for (recipe, route) in recipes {
        let with = |threads: usize| {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            pool.install(|| build_by(&recipe, route, &graph))
        };
        let one = with(1);
        for threads in [2, 3] {
            assert_eq!(with(threads).matrix, one.matrix, "{threads} threads, {}", one.report.solver);
        }
    }
}

/// Rings of five around a long ring, some with tails: large enough that PageRank is not decomposed outright.
fn rings(count: u64) -> Graph {
    let nodes = 7 * count;
    let edges = (0..count).flat_map(move |ring| {
        let at = 7 * ring;
        let own = (0..5).map(move |i| (at + i, at + (i + 1) % 5));
        own.chain([(at, (at + 7) % nodes), (at + 2, at + 5), (at + 2, at + 6)])
    });
    Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap()
}

#[test]
fn pagerank_is_eliminated_where_that_is_less_work_and_agrees_with_the_polynomial() {
    let graph = rings(60);
    for sparsify in [Sparsify::None, Sparsify::top_k(12).unwrap(), Sparsify::epsilon(1e-4).unwrap()] {
        let kernel = Recipe::new(Filter::ppr(0.15).unwrap()).sparsify(sparsify);
        let eliminated = build(&kernel, &graph);
        assert_eq!(eliminated.report.solver, Route::Elimination, "{}", eliminated.report.reason);
        assert!(stated(&eliminated.report) < 1e-12);
        let polynomial = build_by(&kernel, Route::Chebyshev, &graph);
        assert_eq!(eliminated.matrix.indices(), polynomial.matrix.indices());
        assert!(farthest(&eliminated.matrix, &polynomial.matrix) < 1e-10);

        let job = job(&kernel, Route::Auto, &graph);
        let shard = |rows| job.rows(rows, &Watch::silent()).unwrap();
        let merged = Shard::merge(vec![shard(0..101), shard(101..graph.nodes())]).unwrap();
        assert_eq!(merged.matrix, eliminated.matrix);
    }
}

#[test]
fn a_threshold_that_keeps_nothing_says_which_would_keep_one_percent() {
    let kernel = Recipe::new(Filter::heat(3.0).unwrap()).sparsify(Sparsify::epsilon(2.0).unwrap());
    let graph = wheel(60);
    let built = build(&kernel, &graph);
    assert_eq!((built.matrix.entries(), built.report.empty_rows), (0, 60));
    let warning = &built.report.warnings[0];
    let advised: f64 = warning
        .split_whitespace()
        .find_map(|word| word.parse().ok().filter(|&number: &f64| number != 2.0))
        .expect("the warning names a threshold");
    let advised = build(&kernel.sparsify(Sparsify::epsilon(advised * 0.999).unwrap()), &graph);
    assert!((0.002..0.05).contains(&advised.report.density), "{}", advised.report.density);
}

#[test]
fn too_large_a_k_is_lowered_and_said_so() {
    let kernel = Recipe::new(Filter::heat(3.0).unwrap()).sparsify(Sparsify::top_k(1000).unwrap());
    let built = build(&kernel, &wheel(12));
    assert_eq!(built.report.sparsify, Sparsify::TopK(12));
    assert!(built.report.warnings[0].contains("lowered to the 12"));
}

#[test]
fn bad_parameters_and_shards_that_do_not_fit_are_refused() {
    let graph = wheel(12);
    let kernel = Recipe::new(Filter::heat(3.0).unwrap());
    let watch = Watch::silent();
    let prepare = |recipe: &Recipe| recipe.prepare(&graph, &Resources::default(), &watch);
    for bad in [0.0, -1.0, f64::NAN] {
        let refused = prepare(&kernel.clone().tolerance(bad));
        assert!(matches!(refused, Err(Error::Parameter { name: "tolerance", .. })));
    }
    let refused = prepare(&kernel.clone().self_loop(-1.0));
    assert!(matches!(refused, Err(Error::Parameter { name: "self_loop", .. })));
    assert!(matches!(prepare(&kernel).unwrap().rows(5..13, &watch), Err(Error::RowRange { .. })));
    let shard = |recipe: &Recipe, rows| prepare(recipe).unwrap().rows(rows, &watch).unwrap();
    let other = kernel.clone().normalize(Normalize::Row);
    let cases = [
        (vec![shard(&kernel, 0..5), shard(&kernel, 6..12)], "row 5 is in none"),
        (vec![shard(&kernel, 0..7), shard(&kernel, 6..12)], "row 6 is in two"),
        (vec![shard(&kernel, 0..7)], "row 7 is in none"),
        (vec![shard(&kernel, 0..7), shard(&other, 7..12)], "the normalisation differs"),
    ];
    for (shards, expected) in cases {
        let message = Shard::merge(shards).unwrap_err().to_string();
        assert!(message.contains(expected), "{message}");
    }
}
