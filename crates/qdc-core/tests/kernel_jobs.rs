//! Jobs: routes of one's own, shards that are not what they say, eigenpairs from elsewhere, and plans.

use std::sync::{Arc, Mutex};

use qdc_core::kernel::{Account, Accuracy, Plan, Remembered, RowMaker, Sink, Spectra, SpectrumStore};
use qdc_core::{
    EdgeRule, Eigensolver, Error, Filter, Graph, Job, Normalize, Pairs, Recipe, Remedy, Resources, Route,
    Shard, Sparsify, Spectrum, Transition, Watch,
};

fn ring(nodes: u64) -> Graph {
    Graph::from_edges(nodes as usize, (0..nodes).map(|i| (i, (i + 1) % nodes)), EdgeRule::Undirected).unwrap()
}

fn prepare(recipe: &Recipe, graph: &Graph, resources: &Resources) -> Result<Job, Error> {
    recipe.prepare(graph, resources, &Watch::silent())
}

/// A route that knows one answer: twice the identity.
struct TwiceTheIdentity;

impl RowMaker for TwiceTheIdentity {
    fn plan(&self) -> Plan {
        Plan { route: Route::Dense, reason: "it is all it knows".into(), degree: None, flops: 0.0, memory: 0 }
    }

    fn make(&self, sink: &Sink, _: &Watch) -> Result<Account, Error> {
        for (place, &row) in sink.rows().iter().enumerate() {
            let mut values = vec![0.0; sink.nodes()];
            values[row as usize] = 2.0;
            sink.put(place, &values);
        }
        Ok(Account::new(self.plan(), Accuracy::proved(0.0)))
    }
}

#[test]
fn a_route_of_ones_own_takes_one_implementation() {
    let graph = ring(30);
    let recipe = Recipe::new(Filter::heat(3.0).unwrap()).normalize(Normalize::None);
    let job = Job::by(recipe, &graph, TwiceTheIdentity);
    let built = job.build(&Watch::silent()).unwrap();
    assert_eq!(built.matrix.entries(), 30);
    assert!(built.matrix.iter().all(|(row, column, value)| row == column as usize && value == 2.0));
    let report = &built.report;
    assert_eq!(
        (report.solver, &report.reason[..], report.error_bound),
        (Route::Dense, "it is all it knows", Some(0.0))
    );
    assert_eq!((report.diagonal_share, report.entries_per_row), (Some(1.0), 1.0));
    let watch = Watch::silent();
    let parts = vec![job.rows(11..30, &watch).unwrap(), job.rows(0..11, &watch).unwrap()];
    assert_eq!(Shard::merge(parts).unwrap().matrix, built.matrix);
}

#[test]
fn the_diagonal_share_is_that_of_the_values_kept() {
    let job = prepare(&Recipe::new(Filter::heat(1.0).unwrap()), &ring(300), &Resources::default()).unwrap();
    let none = Recipe::new(Filter::heat(1.0).unwrap()).normalize(Normalize::None);
    let plain = prepare(&none, &ring(300), &Resources::default()).unwrap().build(&Watch::silent()).unwrap();
    let all: f64 = plain.matrix.values().iter().map(|value| value.abs()).sum();
    let diagonal: f64 = (0..300).map(|i| plain.matrix.get(i, i as u32).unwrap()).sum();
    let built = job.build(&Watch::silent()).unwrap();
    assert!((built.report.diagonal_share.unwrap() - diagonal / all).abs() < 1e-12);
    assert_eq!(built.report.entries_per_row, built.matrix.entries() as f64 / 300.0);
}

#[test]
fn a_shard_that_is_not_what_its_manifest_says_is_refused() {
    let graph = ring(40);
    let job = prepare(&Recipe::new(Filter::heat(3.0).unwrap()), &graph, &Resources::default()).unwrap();
    let watch = Watch::silent();
    let halves = || vec![job.rows(0..20, &watch).unwrap(), job.rows(20..40, &watch).unwrap()];
    assert!(Shard::merge(halves()).is_ok());
    let refused = |change: &dyn Fn(&mut Shard), expected: &str| {
        let mut shards = halves();
        change(&mut shards[1]);
        let error = Shard::merge(shards).unwrap_err();
        assert!(matches!(error, Error::ShardDamaged { start: 20, end: 40, .. }), "{error}");
        assert_eq!(error.remedy(), Some(Remedy::MakeShardAgain));
        assert!(error.to_string().contains(expected), "{error}");
    };
    let first =
        |shard: &Shard| (shard.matrix.iter().next().unwrap().0, shard.matrix.iter().next().unwrap().1);
    refused(&|shard| shard.matrix = shard.matrix.map(|_| f64::NAN), "is NaN");
    refused(
        &|shard| {
            let at = first(shard);
            shard.matrix.scale(|row, column| {
                let here = (row, column as u32) == at;
                if here { 2.0 } else { 1.0 }
            });
        },
        "its manifest says",
    );
    refused(&|shard| shard.manifest.report.entries += 1, "its manifest counts");
    refused(
        &|shard| shard.matrix = qdc_core::Csr::from_rows(40, (0..20).map(|_| (vec![], vec![]))).unwrap(),
        "it has 0 entries",
    );
}

#[test]
fn vertices_without_neighbours_cost_nothing_and_keep_themselves() {
    // A hundred thousand of them: the square of that would be felt.
    let graph = Graph::from_edges(100_000, [(0, 1), (1, 2)], EdgeRule::Undirected).unwrap();
    for sparsify in [Sparsify::Epsilon(1e-4), Sparsify::TopK(3)] {
        let recipe = Recipe::new(Filter::heat(3.0).unwrap()).sparsify(sparsify).normalize(Normalize::None);
        let built = prepare(&recipe, &graph, &Resources::default()).unwrap().build(&Watch::silent()).unwrap();
        assert_eq!(built.matrix.entries(), 9 + 99_997);
        assert_eq!((built.report.sparsify, built.report.warnings.len()), (sparsify, 0));
        assert_eq!(built.matrix.row(5), (&[5][..], &[1.0][..]));
    }
    let few = Graph::from_edges(400, [(0, 1), (1, 2)], EdgeRule::Undirected).unwrap();
    let recipe = Recipe::new(Filter::ppr(0.15).unwrap()).sparsify(Sparsify::None).normalize(Normalize::None);
    let watch = Watch::silent();
    let built = prepare(&recipe, &few, &Resources::default()).unwrap().build(&watch).unwrap();
    assert_eq!(built.matrix.get(7, 7), Some(1.0));
    assert_eq!(built.matrix.get(7, 8), Some(0.0));
}

#[test]
fn entries_that_tie_with_epsilon_stay_together_by_every_route() {
    // All entries of PageRank on a clique are equal off the diagonal; epsilon lies exactly there.
    let nodes = 300u64;
    let edges = (0..nodes).flat_map(|i| (0..i).map(move |j| (i, j)));
    let clique = Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap();
    let off_diagonal = 0.5 / nodes as f64;
    let recipe = Recipe::new(Filter::ppr(0.5).unwrap()).sparsify(Sparsify::epsilon(off_diagonal).unwrap());
    for route in [Route::Dense, Route::Chebyshev, Route::Elimination, Route::Auto] {
        let resources = Resources { route, ..Resources::default() };
        let built = prepare(&recipe, &clique, &resources).unwrap().build(&Watch::silent()).unwrap();
        assert_eq!(built.matrix.entries(), 90_000, "{route}");
    }
}

#[test]
fn sharp_filters_are_called_unknown_rather_than_given_a_nonsense_bound() {
    let graph = ring(40);
    for filter in [Filter::ppr(1e-14), Filter::ppr(1e-300), Filter::gaussian(0.3, 1e-17), Filter::heat(1e20)]
    {
        let recipe = Recipe::new(filter.unwrap()).sparsify(Sparsify::None);
        let built = prepare(&recipe, &graph, &Resources::default()).unwrap().build(&Watch::silent()).unwrap();
        let report = &built.report;
        match report.error_bound {
            Some(bound) => assert!(bound < 1.0, "{}: {bound:e}", report.filter),
            None => {
                assert!(report.error_estimate.is_some_and(f64::is_finite), "{report:?}");
                assert!(report.error_estimate_how.as_ref().is_some_and(|how| how.contains("residuals")));
            }
        }
    }
}

#[test]
fn a_spectrum_of_another_graph_is_refused_and_ones_own_serves_every_filter() {
    let graph = ring(40);
    let watch = Watch::silent();
    let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &watch).unwrap();
    let resources = Resources::given(spectrum);
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap()).normalize(Normalize::None);
    let given = prepare(&recipe, &graph, &resources).unwrap();
    assert_eq!(given.plan().route, Route::Dense);
    let built = given.build(&watch).unwrap();
    assert_eq!(
        (built.report.solver, &built.report.reason[..]),
        (Route::Dense, "from a spectrum computed before")
    );
    let own = prepare(&recipe, &graph, &Resources::default()).unwrap().build(&watch).unwrap();
    assert_eq!(built.matrix, own.matrix);
    let error = prepare(&recipe, &ring(41), &resources).unwrap_err();
    assert_eq!(error.remedy(), Some(Remedy::OwnSpectrum), "{error}");
}

#[test]
fn all_pairs_need_a_complete_spectrum() {
    let graph = ring(40);
    let watch = Watch::silent();
    let part =
        Eigensolver::new().pairs(Pairs::Nearest(7)).around(0.3).solve(&Transition::new(&graph), &watch);
    let resources = Resources::given(part.unwrap());
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap());
    let error = prepare(&recipe, &graph, &resources).unwrap().build(&watch).unwrap_err();
    assert!(matches!(error, Error::LengthMismatch { expected: 40, found: 8, .. }), "{error}");
    assert!(prepare(&recipe.pairs(Pairs::Nearest(6)), &graph, &resources).unwrap().build(&watch).is_ok());
}

#[test]
fn a_report_says_by_what_why_and_how_well() {
    let graph = ring(700);
    let gaussian = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap());
    let window = gaussian.clone().pairs(Pairs::Nearest(6));
    for (recipe, route, solver, reason) in [
        (&gaussian, Route::Dense, Route::Dense, "that solver was asked for"),
        (&window, Route::Dense, Route::Dense, "a window of pairs needs eigenpairs, by dense: as asked"),
        (&window, Route::Lobpcg, Route::Lobpcg, "a window of pairs needs eigenpairs, by lobpcg: as asked"),
        (
            &window,
            Route::Auto,
            Route::Window,
            "a window of pairs needs eigenpairs, by filter: the estimate is least for a polynomial filter",
        ),
    ] {
        let resources = Resources { route, ..Resources::default() };
        let report = prepare(recipe, &graph, &resources).unwrap().build(&Watch::silent()).unwrap().report;
        assert_eq!((report.solver, &report.reason[..]), (solver, reason), "{route}");
        let bound = report.error_bound.unwrap();
        assert!(bound > 1e-17 && bound < 1e-6, "{route}: {bound:e}");
        assert_eq!((report.error_estimate, report.error_estimate_how.as_ref()), (None, None));
        let residual = report.residual_max.unwrap();
        assert!(residual > 0.0 && residual < 1e-9, "{route}: {residual:e}");
        let mass = report.captured_mass.unwrap();
        let complete = recipe.pairs == Pairs::All;
        assert!(if complete { mass == 1.0 } else { mass > 0.01 && mass < 0.2 }, "{route}: {mass}");
        assert_eq!(report.captured_mass_estimated, !complete);
    }
    let elimination = Resources { route: Route::Elimination, ..Resources::default() };
    let ppr = Recipe::new(Filter::ppr(0.15).unwrap());
    let report = prepare(&ppr, &graph, &elimination).unwrap().build(&Watch::silent()).unwrap().report;
    assert_eq!((report.error_bound, report.residual_max), (None, None));
    assert!(report.error_estimate.is_some_and(|error| error > 0.0 && error < 1e-12));
    assert!(report.error_estimate_how.unwrap().contains("sixteen columns"));
}

#[test]
fn a_window_is_planned_by_the_solver_that_will_make_it() {
    let graph = ring(3000);
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap()).pairs(Pairs::Nearest(8));
    let plan = |route| {
        let resources = Resources { route, ..Resources::default() };
        prepare(&recipe, &graph, &resources).unwrap().plan().clone()
    };
    let cube = 3000f64.powi(3);
    let (auto, lobpcg, dense) = (plan(Route::Auto), plan(Route::Lobpcg), plan(Route::Dense));
    assert_eq!((auto.route, lobpcg.route, dense.route), (Route::Window, Route::Lobpcg, Route::Dense));
    assert!(dense.flops >= 9.0 * cube && dense.flops < 12.0 * cube, "{:e}", dense.flops);
    assert!(auto.flops < 0.1 * cube && lobpcg.flops < cube, "{:e} {:e}", auto.flops, lobpcg.flops);
    assert!(auto.memory < dense.memory / 4, "{} {}", auto.memory, dense.memory);
    assert!(auto.reason.contains("by shift-invert"), "{}", auto.reason);
}

/// A store that counts what it is asked.
#[derive(Default)]
struct Counting {
    held: Mutex<Option<Spectrum>>,
    asked: Mutex<[usize; 2]>,
}

struct Shared(Arc<Counting>);

impl SpectrumStore for Shared {
    fn find(&self, _: &Transition, _: &Watch) -> Option<Spectrum> {
        self.0.asked.lock().unwrap()[0] += 1;
        self.0.held.lock().unwrap().clone()
    }

    fn keep(&self, _: &Transition, spectrum: &Spectrum, _: &Watch) {
        self.0.asked.lock().unwrap()[1] += 1;
        *self.0.held.lock().unwrap() = Some(spectrum.clone());
    }
}

#[test]
fn a_complete_spectrum_is_stored_once_and_serves_later_jobs() {
    let graph = ring(60);
    let store = Arc::new(Counting::default());
    let spectra = Spectra::Stored(Arc::new(Remembered::new(Shared(Arc::clone(&store)))));
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap()).pairs(Pairs::Nearest(5));
    let dense = Resources { route: Route::Dense, spectra: spectra.clone(), ..Resources::default() };
    let watch = Watch::silent();
    let first = prepare(&recipe, &graph, &dense).unwrap().build(&watch).unwrap();
    assert_eq!(store.asked.lock().unwrap()[1], 1, "kept once");
    let later = prepare(&recipe, &graph, &Resources { route: Route::Auto, ..dense }).unwrap();
    let built = later.build(&watch).unwrap();
    assert_eq!(later.plan().reason, "from a stored spectrum");
    assert_eq!(built.report.reason, "from a stored spectrum");
    assert_eq!(built.matrix, first.matrix);
    assert_eq!(store.asked.lock().unwrap()[1], 1, "and not again");
}

#[test]
fn what_does_not_fit_in_memory_is_refused_before_the_work_and_parts_may_fit() {
    let graph = ring(2000);
    let recipe = Recipe::new(Filter::heat(3.0).unwrap()).sparsify(Sparsify::None);
    let resources = Resources { memory: Some(20_000_000), ..Resources::default() };
    let job = prepare(&recipe, &graph, &resources).unwrap();
    let error = job.build(&Watch::silent()).unwrap_err();
    assert!(
        matches!(error, Error::KernelMemory { needed, limit: 20_000_000 } if needed > 96_000_000),
        "{error}"
    );
    assert_eq!(job.rows(0..100, &Watch::silent()).unwrap().matrix.entries(), 200_000);
    for (start, end) in [(5, 5), (1999, 2001)] {
        let refused = job.rows(start..end, &Watch::silent());
        assert!(matches!(refused, Err(Error::RowRange { nodes: 2000, .. })), "{start}:{end}");
    }
}

#[test]
fn a_route_that_cannot_make_the_kernel_says_so() {
    let graph = ring(300);
    let resources = |route| Resources { route, ..Resources::default() };
    let heat = Recipe::new(Filter::heat(3.0).unwrap());
    let error = prepare(&heat, &graph, &resources(Route::Elimination)).unwrap_err();
    assert!(matches!(error, Error::UnsuitedRoute { route: Route::Elimination, .. }), "{error}");
    let window = heat.pairs(Pairs::Nearest(4));
    assert!(matches!(prepare(&window, &graph, &resources(Route::Chebyshev)), Err(Error::NoEigenpairs)));
}
