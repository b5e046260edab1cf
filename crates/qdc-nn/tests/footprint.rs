//! A network takes the memory that is counted for it before it is built.

#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use qdc_core::{Csr, Features};
use qdc_nn::{
    Adam, Architecture, Combinator, EdgeValues, Footprint, Inputs, Kind, Learner, Network, Pass, Propagation,
    Shape, Tower,
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
        matrix_entries: reaches.iter().map(|&reach| ring(reach).entries()).collect(),
    };
    assert_eq!(shape.feature_entries.is_some(), sparse);
    let counted = Footprint::of(architecture, &shape);
    let labels: Vec<u32> = (0..NODES).map(|vertex| (vertex % CLASSES) as u32).collect();
    let train = |inputs: &Inputs<f32>| {
        let mut network = Network::new(architecture, inputs, 1).unwrap();
        let mut adam = Adam::new(network.weights().len(), 0.01, 0.0);
        network.loss_and_gradient(&labels, &[0, 1, 2], Pass::Train { seed: 0 });
        network.update(&mut adam);
        let best = network.weights().to_vec();
        (network, adam, best)
    };
    let prepare = || {
        let matrices = reaches.iter().map(|&reach| Arc::new(Propagation::new(ring(reach)))).collect();
        let inputs = Inputs::new(&features, matrices).unwrap();
        drop(train(&inputs)); // the first run makes what the others find
        inputs
    };
    drop(prepare()); // dense products keep a buffer for each thread
    let (shared, inputs) = held(prepare);
    let (run, _kept) = held(|| train(&inputs));
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
