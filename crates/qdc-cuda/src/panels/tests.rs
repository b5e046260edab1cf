//! Kernels of the device beside those of the CPU. Without a device each test says that it is skipped.

#![allow(clippy::print_stderr)]

use std::sync::Arc;

use qdc_core::{
    BuiltKernel, EdgeRule, Filter, Graph, Normalize, Precision, Recipe, Resources, Route, Shard, Sign,
    Sparsify, Watch,
};

use crate::ColumnDevice;

/// Resources with a device for everything, if there is one.
fn device() -> Option<Resources> {
    match ColumnDevice::insisting() {
        Ok(device) => Some(Resources { accelerator: Some(Arc::new(device)), ..cpu() }),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

fn cpu() -> Resources {
    Resources { route: Route::Chebyshev, ..Resources::default() }
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

#[test]
fn kernels_of_the_device_are_those_of_the_cpu_within_both_bounds() {
    let Some(device) = device() else { return };
    for nodes in [1, 3, 60, 700, 3000] {
        let graph = graph(nodes);
        for kept in [Sparsify::Epsilon(1e-4), Sparsify::TopK(1), Sparsify::TopK(32), Sparsify::None] {
            for (sign, precision) in [
                (Sign::Positive, Precision::F64),
                (Sign::Absolute, Precision::F64),
                (Sign::Positive, Precision::F32),
            ] {
                for filter in [Filter::gaussian(0.3, 0.2).unwrap(), Filter::ppr(0.15).unwrap()] {
                    let recipe = Recipe::new(filter).sparsify(kept).sign(sign).precision(precision);
                    compare(&recipe.normalize(Normalize::None), &graph, &device);
                }
            }
        }
    }
}

/// The difference of every entry that both keep lies within both bounds; what only one keeps lies that near
/// the cut.
fn compare(recipe: &Recipe, graph: &Graph, device: &Resources) {
    let (ours, theirs) = (build(recipe, graph, &cpu()), build(recipe, graph, device));
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
    for kept in [Sparsify::Epsilon(1e-3), Sparsify::TopK(16)] {
        let recipe = Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()).sparsify(kept);
        let job = recipe.prepare(&graph, &device, &watch).unwrap();
        let cuts = [0, 1, 130, 1111, 2000];
        let parts = cuts.windows(2).map(|cut| job.rows(cut[0]..cut[1], &watch).unwrap()).collect();
        assert_eq!(Shard::merge(parts).unwrap().matrix, job.build(&watch).unwrap().matrix);
    }
}
