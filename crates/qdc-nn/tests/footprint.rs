//! A network takes the memory that is counted for it before it is built.

#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use qdc_core::bank::{Channel, Channels, View};
use qdc_core::{Csr, EdgeRule, Features, Filter, Graph, Resources, Watch};
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork, LearnedWindow, Readout, Way};
use qdc_nn::{
    Adam, Architecture, Combinator, EdgeValues, Footprint, Inputs, Kind, Learner, MatrixShape, Network, Pass,
    Propagation, Shape, Tower,
};

thread_local!(static HELD: Cell<i64> = const { Cell::new(0) });

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a constant-initialised cell of the
// thread, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        HELD.with(|held| held.set(held.get() + layout.size() as i64));
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        HELD.with(|held| held.set(held.get() - layout.size() as i64));
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NODES: usize = 800;
const CLASSES: usize = 5;

/// A ring in which every vertex also sees its `reach` next ones.
fn ring(reach: usize) -> Csr<f32> {
    let rows = (0..NODES).map(|i| {
        let mut columns: Vec<u32> =
            (0..=2 * reach).map(|d| ((i + NODES + d - reach) % NODES) as u32).collect();
        columns.sort_unstable();
        let values = vec![1.0 / columns.len() as f32; columns.len()];
        (columns, values)
    });
    Csr::from_rows(NODES, rows).unwrap().map(|value: f32| value) // a copy of exactly its size
}

/// The bytes that `make` leaves allocated, and what it made.
fn held<T>(make: impl FnOnce() -> T) -> (f64, T) {
    let before = HELD.get();
    let made = make();
    ((HELD.get() - before) as f64, made)
}

fn check(architecture: &Architecture, sparse: bool, reaches: &[usize]) {
    let feature = |at: usize| if !sparse || at.is_multiple_of(9) { 1.0 + at as f32 } else { 0.0 };
    let features = Features::from_dense(60, (0..NODES * 60).map(feature).collect());
    let shape = Shape {
        nodes: NODES,
        features: 60,
        feature_entries: if let Features::Sparse(matrix) = &features { Some(matrix.entries()) } else { None },
        matrices: reaches
            .iter()
            .map(|&reach| MatrixShape { entries: ring(reach).entries(), symmetric: true, mapped: false })
            .collect(),
    };
    assert_eq!(shape.feature_entries.is_some(), sparse);
    let counted = Footprint::of(architecture, &shape);
    let labels: Vec<u32> = (0..NODES).map(|vertex| (vertex % CLASSES) as u32).collect();
    let train = |inputs: &Inputs<f32>| {
        let mut network = Network::new(architecture, inputs, 1).unwrap();
        let mut adam = Adam::new(network.weights().len(), 0.01, 0.0);
        network.loss_and_gradient(&labels, &[0, 1, 2], Pass::Train { seed: 0 });
        network.update(&mut adam);
        (network, adam)
    };
    let prepare = || {
        let matrices = reaches.iter().map(|&reach| Arc::new(Propagation::new(ring(reach)))).collect();
        let inputs = Inputs::new(&features, matrices).unwrap();
        drop(train(&inputs)); // the first run makes what the others find
        inputs
    };
    drop(prepare()); // dense products keep a buffer for each thread
    let (shared, inputs) = held(prepare);
    let (run, (network, _adam)) = held(|| train(&inputs));
    let (weights, held_weights) = (counted.weights, 4 * network.weights().len() as u64);
    let allowed = held_weights / 20 + 1024;
    assert!(
        weights.abs_diff(held_weights) < allowed,
        "weights of {architecture:?}: {weights} for {held_weights}"
    );
    assert!(counted.of_runs(1) >= counted.preparing && counted.preparing >= counted.shared / 3);
    for (what, counted, held) in [("shared", counted.shared, shared), ("run", counted.run, run)] {
        let slack = 0.02 * held + 8192.0; // names of parameters and the like
        let near = (counted as f64 - held).abs() < slack;
        assert!(near, "{what} of {architecture:?}: {counted} counted, {held} held");
    }
}

#[test]
fn every_network_takes_what_is_counted_for_it() {
    let gat = |heads| Kind::Gat { heads, edge_values: EdgeValues::Ignore };
    for sparse in [true, false] {
        for kind in [Kind::Mlp, Kind::Gcn, gat(1), gat(4), gat(6)] {
            let tower = |widths: &[usize], dropout| Tower { kind, widths: widths.to_vec(), dropout };
            for (widths, dropout) in
                [(&[CLASSES][..], 0.0), (&[64, CLASSES], 0.5), (&[20, 100, CLASSES], 0.2)]
            {
                check(&Architecture::single(tower(widths, dropout)), sparse, &[2]);
                check(&Architecture::single(tower(widths, dropout)), sparse, &[40]);
            }
            for combinator in [Combinator::Add, Combinator::Concat] {
                let towers = vec![tower(&[16, 32], 0.5), tower(&[64, 32], 0.5), tower(&[32], 0.1)];
                check(&Architecture::joined(towers, combinator, CLASSES), sparse, &[1, 30, 5]);
            }
        }
    }
}

/// A network over these inputs after one step.
fn bank_run(architecture: &BankArchitecture, inputs: &BankInputs<f32>) -> (BankNetwork<f32>, Adam<f32>) {
    let labels: Vec<u32> = (0..NODES).map(|vertex| (vertex % CLASSES) as u32).collect();
    let mut network = BankNetwork::new(architecture, inputs, 1).unwrap();
    let mut adam = Adam::grouped(network.groups(0.01, 0.0), network.weights().len());
    network.loss_and_gradient(&labels, &[0, 1, 2], Pass::Train { seed: 0 });
    network.update(&mut adam);
    (network, adam)
}

#[test]
fn a_bank_takes_what_is_counted_for_it() {
    // On one thread of a pool, so that all that is allocated is counted there.
    rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap().install(check_banks);
}

fn check_banks() {
    let edges =
        (0..NODES as u64).flat_map(|i| [(i, (i + 1) % NODES as u64), (i, (i * 7 + 3) % NODES as u64)]);
    let graph = Graph::from_edges(NODES, edges, EdgeRule::Undirected).unwrap();
    let feature = |at: usize| if at.is_multiple_of(9) { 1.0 + at as f32 } else { 0.0 };
    let features = Features::from_dense(60, (0..NODES * 60).map(feature).collect());
    let list = [
        Channel::new(View::Features),
        Channel::new(View::Step),
        Channel::new(View::Filter(Filter::gaussian(1.0, 0.25).unwrap())),
        Channel::new(View::Rank { window: 1, of: 4 }),
        Channel::new(View::Statistics),
    ];
    let watch = Watch::silent();
    let channels = Channels::new(&list, &graph, features.clone(), &Resources::default(), &watch).unwrap();
    let start = LearnedWindow::new(0.9, 0.2);
    for (readout, input_dropout, way) in [
        (Readout::Linear, 0.0, Some(Way::Mapped)),
        (Readout::Layers, 0.5, Some(Way::Mapped)),
        (Readout::Linear, 0.5, Some(Way::Kept)),
        (Readout::Linear, 0.0, None),
    ] {
        let architecture = BankArchitecture {
            hidden: 40,
            norm: true,
            readout,
            dropout: 0.3,
            input_dropout,
            readout_decay: 0.0,
            classes: CLASSES,
        };
        let make = || match way {
            Some(way) => BankInputs::<f32>::new(&channels, way, &watch).unwrap(),
            None => BankInputs::window(&graph, &features, start).unwrap(),
        };
        drop(bank_run(&architecture, &make())); // dense products keep a buffer for each thread
        let (shared, inputs) = held(make);
        let (run, (network, _adam)) = held(|| bank_run(&architecture, &inputs));
        let counted = Footprint::of_bank(&architecture, &inputs);
        let (weights, held_weights) = (counted.weights, 4 * network.weights().len() as u64);
        let padding = held_weights / 50 + 1024;
        assert!(
            weights.abs_diff(held_weights) < padding,
            "{readout:?}, {way:?}: {weights} for {held_weights}"
        );
        for (what, counted, held) in [("shared", counted.shared, shared), ("run", counted.run, run)] {
            let near = (counted as f64 - held).abs() < 0.03 * held + 16384.0;
            assert!(near, "{what} of {readout:?}, {way:?}: {counted} counted, {held} held");
        }
        if let Some(way) = way {
            assert!(BankInputs::<f32>::needed(&channels, way) as f64 > 0.8 * shared, "{way:?}");
        }
    }
}
