//! The local route against the exact one: within its proved bound everywhere, and as accurate as asked for.

use qdc_core::splitmix::scramble;
use qdc_core::{
    BuiltKernel, EdgeRule, Error, Filter, Graph, Normalize, Recipe, Resources, Route, Shard, Sign, Sparsify,
    Watch,
};

/// A ring, a grid, a star, two cliques with a bridge, a tree with hubs, isolated vertices, and weights.
fn graphs() -> Vec<(&'static str, Graph)> {
    let plain = |nodes, edges: Vec<(u64, u64)>| {
        Graph::from_edges(nodes, edges, EdgeRule::Undirected).expect("a valid list of edges")
    };
    let clique = |first: u64| (first..first + 6).flat_map(move |i| (first..i).map(move |j| (j, i)));
    let grid = |i: u64| {
        [(i, i + 1), (i, i + 8)].into_iter().filter(move |&(a, b)| b < 64 && (b != a + 1 || b % 8 > 0))
    };
    let weighted = (1..80).map(|i| (scramble(i) % i, i, 0.25 + (scramble(i + 99) % 16) as f64 / 8.0));
    let weighted = Graph::from_weighted_edges(80, weighted, EdgeRule::Undirected);
    vec![
        ("ring", plain(50, (0..50).map(|i| (i, (i + 1) % 50)).collect())),
        ("grid", plain(64, (0..64).flat_map(grid).collect())),
        ("star", plain(40, (1..40).map(|i| (0, i)).collect())),
        ("barbell", plain(12, clique(0).chain(clique(6)).chain([(0, 6)]).collect())),
        ("hubs", preferential(400, 3)),
        ("isolated", plain(9, vec![(0, 1), (1, 2), (4, 5)])),
        ("weights", weighted.expect("no edge is listed twice")),
    ]
}

/// Each vertex joins the ends of random edges, so that hubs grow.
fn preferential(nodes: u64, links: u64) -> Graph {
    let mut edges = vec![(0, 1)];
    for vertex in 2..nodes {
        for link in 0..links {
            let random = scramble(vertex * links + link);
            let (a, b) = edges[(random >> 1) as usize % edges.len()];
            edges.push((if random & 1 == 0 { a } else { b }, vertex));
        }
    }
    edges.retain(|&(a, b)| a != b);
    Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).expect("a valid list of edges")
}

fn filters() -> Vec<Filter> {
    let made = [
        Filter::gaussian(0.3, 0.5),
        Filter::gaussian(-0.4, 0.2),
        Filter::band(0.3, 0.1),
        Filter::ppr(0.15),
        Filter::ppr(0.9),
        Filter::heat(3.0),
    ];
    made.into_iter().map(|filter| filter.expect("parameters in range")).collect()
}

fn by(route: Route) -> Resources {
    Resources { route, ..Resources::default() }
}

fn build(recipe: &Recipe, graph: &Graph, route: Route) -> BuiltKernel {
    let watch = Watch::silent();
    recipe.prepare(graph, &by(route), &watch).and_then(|job| job.build(&watch)).expect("a kernel")
}

#[test]
fn every_entry_is_within_the_proved_bound_and_kept_ones_as_accurate_as_asked_for() {
    for (name, graph) in graphs() {
        for filter in filters() {
            for sign in [Sign::Positive, Sign::Absolute] {
                let all = Sparsify::top_k(graph.nodes()).unwrap();
                let recipe = Recipe::new(filter.clone()).sparsify(all).normalize(Normalize::None).sign(sign);
                let exact = build(&recipe, &graph, Route::Chebyshev).matrix;
                for accuracy in [1e-2, 1e-4] {
                    let BuiltKernel { matrix, report } =
                        build(&recipe.clone().accuracy(accuracy), &graph, Route::Local);
                    let case = format!("{name}, {filter}, {accuracy:e}: {report:?}");
                    assert_eq!(report.solver, Route::Local);
                    let (bound, measured) = (report.error_bound.unwrap(), report.error_estimate.unwrap());
                    assert!(measured <= accuracy, "{case}");
                    for row in 0..graph.nodes() {
                        for column in 0..graph.nodes() as u32 {
                            let expected = exact.get(row, column).unwrap_or(0.0);
                            let found = matrix.get(row, column).unwrap_or(0.0);
                            let error = (found - expected).abs();
                            assert!(error <= bound + 2e-9, "{case}: {found} is not {expected}");
                            // Up to 64 vertices the sample is the whole graph.
                            let kept = found != 0.0 && graph.nodes() <= 64;
                            assert!(!kept || error <= accuracy, "{case}: {found} is not {expected}");
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn the_bound_the_measured_error_and_the_work_follow_the_accuracy() {
    let graph = preferential(3000, 4);
    for filter in [Filter::gaussian(0.3, 0.5).unwrap(), Filter::ppr(0.15).unwrap()] {
        let recipe = Recipe::new(filter).sparsify(Sparsify::top_k(16).unwrap());
        let mut last: Option<(f64, f64)> = None;
        for accuracy in [1e-2, 1e-3, 1e-4] {
            let watch = Watch::silent();
            let job = recipe.clone().accuracy(accuracy).prepare(&graph, &by(Route::Local), &watch).unwrap();
            let flops = job.plan().flops;
            let report = job.build(&watch).unwrap().report;
            let bound = report.error_bound.unwrap();
            assert!(report.error_estimate.unwrap() <= accuracy);
            assert!(last.is_none_or(|(larger, less)| bound < larger && flops > less), "{report:?}");
            last = Some((bound, flops));
        }
    }
}

#[test]
fn what_thousands_of_neighbours_pass_back_to_a_hub_is_not_rounded_off() {
    // Where they are added to the entry of the hub one by one, it is off by 1e-3.
    let star = Graph::from_edges(20_001, (1..=20_000).map(|leaf| (0, leaf)), EdgeRule::Undirected).unwrap();
    let watch = Watch::silent();
    for filter in [Filter::ppr(0.15), Filter::gaussian(0.3, 0.5), Filter::heat(3.0)] {
        let recipe = Recipe::new(filter.unwrap()).sparsify(Sparsify::top_k(8).unwrap());
        let hub = |recipe: &Recipe, route| {
            recipe.prepare(&star, &by(route), &watch).unwrap().rows(0..1, &watch).unwrap()
        };
        let exact = hub(&recipe, Route::Chebyshev).matrix;
        let local = hub(&recipe.accuracy(1e-4), Route::Local);
        let (own, report) = (local.matrix.get(0, 0).unwrap(), local.manifest.report);
        assert!((own - exact.get(0, 0).unwrap()).abs() < 1e-4, "{report:?}");
        let (bound, measured) = (report.error_bound.unwrap(), report.error_estimate.unwrap());
        assert!(measured <= 1e-4 && bound < 0.01, "{report:?}");
    }
}

#[test]
fn threads_and_shards_give_the_same_bytes() {
    let graph = preferential(700, 4);
    for sparsify in [Sparsify::top_k(8).unwrap(), Sparsify::epsilon(1e-3).unwrap()] {
        for filter in filters() {
            let recipe = Recipe::new(filter).sparsify(sparsify).accuracy(1e-4);
            let whole = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| build(&recipe, &graph, Route::Local))
            };
            let (one, three) = (whole(1), whole(3));
            assert_eq!(one.matrix, three.matrix);
            assert_eq!(one.report, three.report);
            let watch = Watch::silent();
            let job = recipe.prepare(&graph, &by(Route::Local), &watch).unwrap();
            let ranges = [250..700, 0..17, 17..250];
            let shards = ranges.into_iter().map(|range| job.rows(range, &watch).unwrap()).collect();
            let joined = Shard::merge(shards).unwrap();
            assert_eq!(one.matrix, joined.matrix);
            assert_eq!(one.report.error_bound, joined.report.error_bound);
        }
    }
}

#[test]
fn it_is_taken_only_where_an_accuracy_is_given_and_it_is_cheaper() {
    let watch = Watch::silent();
    let graph = preferential(12_000, 2);
    let recipe = Recipe::new(Filter::heat(1.0).unwrap()).sparsify(Sparsify::top_k(8).unwrap());
    let plan =
        |recipe: &Recipe| recipe.prepare(&graph, &Resources::default(), &watch).unwrap().plan().clone();
    assert_eq!(plan(&recipe).route, Route::Chebyshev);
    let rough = plan(&recipe.clone().accuracy(1e-3));
    assert_eq!(rough.route, Route::Local);
    assert!(rough.flops < plan(&recipe).flops);
    // A sharp filter on a small graph: every row reaches every vertex, and the exact route is cheaper.
    let sharp = Recipe::new(Filter::gaussian(0.3, 0.05).unwrap()).accuracy(1e-4);
    let taken = sharp.prepare(&preferential(400, 3), &Resources::default(), &watch).unwrap().plan().route;
    assert_ne!(taken, Route::Local);
}

/// Keeps remarks that carry a remedy.
#[derive(Default)]
struct Notes(std::sync::Arc<std::sync::Mutex<Vec<(String, qdc_core::Remedy)>>>);

impl qdc_core::watch::Observer for Notes {
    fn begin(&self, _: qdc_core::watch::PhaseId, _: &str, _: u64) {}
    fn advance(&self, _: qdc_core::watch::PhaseId, _: u64) {}
    fn end(&self, _: qdc_core::watch::PhaseId) {}
    fn advise(&self, message: &str, remedy: qdc_core::Remedy) {
        self.0.lock().unwrap().push((message.into(), remedy));
    }
    fn stop_requested(&self) -> bool {
        false
    }
}

#[test]
fn a_plan_of_more_than_an_hour_says_what_the_local_route_would_take() {
    let notes = Notes::default();
    let kept = std::sync::Arc::clone(&notes.0);
    let watch = Watch::new(notes);
    let nodes = 150_000;
    let ring = Graph::from_edges(
        nodes,
        (0..nodes as u64).map(|i| (i, (i + 1) % nodes as u64)),
        EdgeRule::Undirected,
    );
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap()).sparsify(Sparsify::top_k(8).unwrap());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let job = pool.install(|| recipe.prepare(&ring.unwrap(), &Resources::default(), &watch)).unwrap();
    assert_eq!(job.plan().route, Route::Chebyshev);
    let notes = kept.lock().unwrap();
    let [(message, remedy)] = &notes[..] else { panic!("{notes:?}") };
    assert_eq!(*remedy, qdc_core::Remedy::LargeEntries);
    assert!(message.contains("hours; the large entries alone, right to about 1e-4, take about"), "{message}");
    assert!(!message.contains("--"), "options are the command line's: {message}");
}

#[test]
fn what_it_cannot_do_is_refused() {
    let (watch, graph) = (Watch::silent(), preferential(50, 2));
    let refused = |recipe: &Recipe| recipe.prepare(&graph, &by(Route::Local), &watch).err();
    let recipe = Recipe::new(Filter::heat(3.0).unwrap());
    assert!(matches!(refused(&recipe), Some(Error::NoAccuracy)));
    let recipe = recipe.accuracy(1e-4);
    let all = recipe.clone().sparsify(Sparsify::None);
    assert!(matches!(refused(&all), Some(Error::UnsuitedRoute { route: Route::Local, .. })));
    let fine = recipe.clone().accuracy(1e-9);
    assert!(matches!(refused(&fine), Some(Error::UnsuitedRoute { route: Route::Local, .. })));
    let pairs = recipe.clone().pairs(qdc_core::Pairs::Nearest(4));
    assert!(matches!(refused(&pairs), Some(Error::NoEigenpairs)));
    for wrong in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        let error = refused(&recipe.clone().accuracy(wrong));
        assert!(matches!(error, Some(Error::Parameter { name: "accuracy", .. })), "{wrong}");
    }
}
