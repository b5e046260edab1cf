//! Kernels of the device beside those of the CPU. Without a device each test says that it is skipped.

#![allow(clippy::print_stderr)]

use std::sync::Arc;

use qdc_core::kernel::Accelerator;
use qdc_core::watch::{Observer, PhaseId};
use qdc_core::{
    BuiltKernel, EdgeRule, Eigensolver, Error, Filter, Graph, Normalize, Pairs, Precision, Recipe, Resources,
    Route, Shard, Sign, Sparsify, Transition, Watch,
};

use crate::ColumnDevice;

/// A device for everything, if there is one.
fn device() -> Option<Arc<dyn Accelerator>> {
    match ColumnDevice::insisting() {
        Ok(device) => Some(Arc::new(device)),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn by_series() -> Resources {
    Resources { route: Route::Chebyshev, ..Resources::default() }
}

fn by_pairs(graph: &Graph) -> Resources {
    let spectrum = Eigensolver::new().solve(&Transition::new(graph), &Watch::silent()).unwrap();
    Resources::given(spectrum)
}

/// Random edges, some hubs, leaves that are twins, and vertices without edges.
fn graph(nodes: u64) -> Graph {
    let draw = |n: u64| qdc_core::splitmix::scramble(n) % nodes;
    let random = (0..3 * nodes).map(move |n| (draw(2 * n), draw(2 * n + 1)));
    let hubs = (0..nodes / 2).map(move |n| (n, n % 3));
    let edges = random.chain(hubs).filter(move |&(a, b)| a != b && a % 17 != 5 && b % 17 != 5);
    Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap()
}

fn build(recipe: &Recipe, graph: &Graph, resources: &Resources) -> BuiltKernel {
    let watch = Watch::silent();
    recipe.prepare(graph, resources, &watch).unwrap().build(&watch).unwrap()
}

const KEPT: [Sparsify; 4] = [Sparsify::Epsilon(1e-4), Sparsify::TopK(1), Sparsify::TopK(32), Sparsify::None];

#[test]
fn kernels_of_the_device_are_those_of_the_cpu_within_both_bounds() {
    let Some(device) = device() else { return };
    for nodes in [1, 3, 60, 700, 3000] {
        let graph = graph(nodes);
        for kept in KEPT {
            for (sign, precision) in [
                (Sign::Positive, Precision::F64),
                (Sign::Absolute, Precision::F64),
                (Sign::Positive, Precision::F32),
            ] {
                for filter in [Filter::gaussian(0.3, 0.2).unwrap(), Filter::ppr(0.15).unwrap()] {
                    let recipe = Recipe::new(filter).sparsify(kept).sign(sign).precision(precision);
                    compare(&recipe.normalize(Normalize::None), &graph, &by_series(), &device);
                }
            }
        }
    }
}

#[test]
fn kernels_of_eigenpairs_are_those_of_the_cpu_within_both_bounds() {
    let Some(device) = device() else { return };
    for nodes in [1, 3, 60, 700] {
        let graph = graph(nodes);
        let cpu = by_pairs(&graph);
        for kept in KEPT {
            for (sign, pairs) in [
                (Sign::Positive, Pairs::All),
                (Sign::Positive, Pairs::Nearest(129)),
                (Sign::Absolute, Pairs::Nearest(40)),
                (Sign::Absolute, Pairs::Nearest(1)),
            ] {
                let recipe = Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()).sparsify(kept).sign(sign);
                compare(&recipe.pairs(pairs).normalize(Normalize::None), &graph, &cpu, &device);
            }
        }
    }
}

/// The difference of every entry that both keep lies within both bounds; what only one keeps lies that near
/// the cut.
fn compare(recipe: &Recipe, graph: &Graph, cpu: &Resources, device: &Arc<dyn Accelerator>) {
    let device = Resources { accelerator: Some(Arc::clone(device)), ..cpu.clone() };
    let (ours, theirs) = (build(recipe, graph, cpu), build(recipe, graph, &device));
    let name = device.accelerator.as_ref().unwrap().name();
    assert!(theirs.report.reason.ends_with(name), "{}", theirs.report.reason);
    let bound = |built: &BuiltKernel| built.report.error_bound.or(built.report.error_estimate).unwrap();
    let allowed = bound(&ours) + bound(&theirs);
    let mut differing = 0;
    for row in 0..graph.nodes() {
        let (columns, values) = ours.matrix.row(row);
        for (&column, &value) in columns.iter().zip(values) {
            match theirs.matrix.get(row, column) {
                Some(other) => assert!((value - other).abs() <= allowed, "{value} {other} {allowed:e}"),
                None => differing += 1,
            }
        }
    }
    differing += theirs.matrix.entries().saturating_sub(ours.matrix.entries());
    let most = if recipe.precision == Precision::F64 { 0 } else { ours.matrix.entries() / 100 };
    assert!(differing <= most, "{differing} of {} entries differ: {recipe:?}", ours.matrix.entries());
}

#[test]
fn shards_of_the_device_join_into_its_whole_bit_for_bit() {
    let Some(device) = device() else { return };
    let (graph, watch) = (graph(2000), Watch::silent());
    let pairs = Eigensolver::new().pairs(Pairs::Nearest(100)).around(0.3);
    let spectrum = pairs.solve(&Transition::new(&graph), &watch).unwrap();
    for (cpu, pairs) in [(by_series(), Pairs::All), (Resources::given(spectrum), Pairs::Nearest(90))] {
        let device = Resources { accelerator: Some(Arc::clone(&device)), ..cpu };
        for kept in [Sparsify::Epsilon(1e-3), Sparsify::TopK(16)] {
            let recipe = Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()).sparsify(kept).pairs(pairs);
            let job = recipe.prepare(&graph, &device, &watch).unwrap();
            let cuts = [0, 1, 130, 1111, 2000];
            let parts = cuts.windows(2).map(|cut| job.rows(cut[0]..cut[1], &watch).unwrap()).collect();
            assert_eq!(Shard::merge(parts).unwrap().matrix, job.build(&watch).unwrap().matrix);
        }
    }
}

#[test]
fn a_kernel_that_stays_on_the_device_is_symmetric_and_the_one_that_is_read() {
    let Some(device) = device() else { return };
    let (graph, watch) = (graph(1500), Watch::silent());
    let resources = Resources { accelerator: Some(device), ..by_series() };
    for (normalize, symmetric) in
        [(Normalize::Sym, true), (Normalize::Row, false), (Normalize::Col, false), (Normalize::None, true)]
    {
        for precision in [Precision::F64, Precision::F32] {
            let recipe = Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()).precision(precision);
            let job = recipe.normalize(normalize).prepare(&graph, &resources, &watch).unwrap();
            let resident = job.build_resident(&watch).unwrap().expect("a threshold is applied there");
            let built = job.build(&watch).unwrap();
            assert_eq!(resident.matrix.pointers(), built.matrix.pointers());
            let read = std::thread::spawn(move || resident.read().unwrap()).join().unwrap();
            assert_eq!((&read.matrix, &read.report), (&built.matrix, &built.report));
            assert_eq!(read.matrix == read.matrix.transpose(), symmetric, "{normalize:?}");
        }
    }
}

#[test]
fn rows_beyond_the_shared_memory_of_a_block_are_made_step_by_step() {
    let Some(device) = device() else { return };
    for precision in [Precision::F64, Precision::F32] {
        let recipe = Recipe::new(Filter::heat(1.0).unwrap()).precision(precision);
        compare(&recipe.normalize(Normalize::None), &graph(9000), &by_series(), &device);
    }
}

#[test]
fn what_does_not_fit_one_piece_comes_in_several() {
    let Some(device) = device() else { return };
    let graph = graph(2500);
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()).sparsify(Sparsify::None);
    compare(&recipe.normalize(Normalize::None), &graph, &by_series(), &device);
}

#[test]
fn a_stop_asked_for_on_the_way_ends_the_work() {
    struct Stopping;
    impl Observer for Stopping {
        fn begin(&self, _: PhaseId, _: &str, _: u64) {}
        fn advance(&self, _: PhaseId, _: u64) {}
        fn end(&self, _: PhaseId) {}
        fn stop_requested(&self) -> bool {
            true
        }
    }
    let Some(device) = device() else { return };
    let resources = Resources { accelerator: Some(device), ..by_series() };
    let recipe = Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()).sparsify(Sparsify::None);
    let job = recipe.prepare(&graph(2500), &resources, &Watch::silent()).unwrap();
    assert!(matches!(job.build(&Watch::new(Stopping)), Err(Error::Interrupted)));
    assert!(job.build(&Watch::silent()).is_ok(), "the device goes on working");
}
