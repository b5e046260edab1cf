//! After the first epoch layers and scorers allocate nothing: they make their room when they are built or
//! first used. (The `gemm` crate makes room of its own in every dense product; networks without one show what
//! is ours, the others must not grow.)

#![allow(unsafe_code)] // an allocator that counts

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::Arc;

use qdc_core::bank::{Channel, Channels, View};
use qdc_core::{Csr, EdgeRule, Features, Filter, Graph, Resources, Watch};
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork, LearnedWindow, Readout, Way};
use qdc_nn::{
    Adam, Architecture, Combinator, EdgeValues, Inputs, Kind, Learner, Metric, Network, Pass, Propagation,
    Scorer, Tower,
};

thread_local!(static ALLOCATIONS: Cell<usize> = const { Cell::new(0) });

struct Counting;

// SAFETY: every call goes to the system's allocator unchanged; counting touches a constant-initialised cell of the
// thread, which allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|count| count.set(count.get() + 1));
        // SAFETY: the caller's promise about `layout` is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: `pointer` came from `alloc` above, that is from the system's allocator, with this layout.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const NODES: usize = 150;
const CLASSES: usize = 3;

/// A ring in which every vertex also sees its `reach` next ones.
fn ring(reach: usize) -> Arc<Propagation<f32>> {
    let rows = (0..NODES).map(|i| {
        let mut columns: Vec<u32> =
            (0..=2 * reach).map(|d| ((i + NODES + d - reach) % NODES) as u32).collect();
        columns.sort_unstable();
        let values = vec![1.0 / columns.len() as f32; columns.len()];
        (columns, values)
    });
    Arc::new(Propagation::new(Csr::from_rows(NODES, rows).unwrap()))
}

/// The allocations of each of four epochs.
fn allocations(network: &mut impl Learner<f32>) -> [usize; 4] {
    let labels: Vec<u32> = (0..NODES).map(|v| (v % CLASSES) as u32).collect();
    let vertices: Vec<u32> = (0..NODES as u32 / 2).collect();
    let mut adam = Adam::grouped(network.groups(0.01, 5e-4), network.weights().len());
    let mut scorers = Metric::ALL.map(Scorer::new);
    [0, 1, 2, 3].map(|seed| {
        let before = ALLOCATIONS.get();
        network.loss_and_gradient(&labels, &vertices, Pass::Train { seed });
        network.update(&mut adam);
        let logits = network.forward(Pass::Evaluate);
        scorers.iter_mut().for_each(|scorer| {
            scorer.score(logits, &labels, &vertices);
        });
        ALLOCATIONS.get() - before
    })
}

#[test]
fn layers_and_scorers_allocate_nothing_after_the_first_epoch() {
    let features = Features::from_dense(40, (0..NODES * 40).map(|at| f32::from(at % 7 == 0)).collect());
    let inputs = Inputs::new(&features, vec![ring(1), ring(30)]).unwrap();
    for edge_values in [EdgeValues::Ignore, EdgeValues::Multiply, EdgeValues::Bias] {
        for kind in [Kind::Mlp, Kind::Gcn, Kind::Gat { heads: 4, edge_values }] {
            let tower = |widths| Tower { kind, widths, dropout: 0.5 };
            let single = Architecture::single(tower(vec![CLASSES])); // sparse features: no dense product
            let mut single = Network::new(&single, &inputs, 1).unwrap();
            assert_eq!(allocations(&mut single)[1..], [0, 0, 0], "{kind:?}");
            let two = Architecture {
                towers: vec![tower(vec![16, 16]), tower(vec![16, 16])],
                combinator: Some(Combinator::Concat),
                classes: CLASSES,
            };
            let [_, second, third, fourth] = allocations(&mut Network::new(&two, &inputs, 1).unwrap());
            assert_eq!([third, fourth], [second, second], "two towers, {kind:?}");
        }
    }
}

#[test]
fn a_bank_and_a_learned_window_allocate_no_more_in_later_epochs() {
    let edges =
        (0..NODES as u64).flat_map(|i| [(i, (i + 1) % NODES as u64), (i, (7 * i + 3) % NODES as u64)]);
    let graph = Graph::from_edges(NODES, edges, EdgeRule::Undirected).unwrap();
    let features = Features::from_dense(40, (0..NODES * 40).map(|at| f32::from(at % 7 == 0)).collect());
    let list = [
        Channel::new(View::Features),
        Channel::new(View::Step),
        Channel::new(View::Filter(Filter::gaussian(1.0, 0.25).unwrap())),
        Channel::new(View::Statistics),
    ];
    let channels =
        Channels::new(&list, &graph, features.clone(), &Resources::default(), &Watch::silent()).unwrap();
    let bank = BankInputs::new(&channels, Way::Mapped, &Watch::silent()).unwrap();
    let window = BankInputs::window(&graph, &features, LearnedWindow::new(0.5, 0.5)).unwrap();
    for (inputs, readout) in [(&bank, Readout::Linear), (&bank, Readout::Layers), (&window, Readout::Linear)]
    {
        let architecture = BankArchitecture {
            hidden: 16,
            norm: true,
            readout,
            dropout: 0.5,
            input_dropout: 0.5,
            readout_decay: 1e-4,
            classes: CLASSES,
        };
        let mut network = BankNetwork::new(&architecture, inputs, 1).unwrap();
        let [_, second, third, fourth] = allocations(&mut network);
        assert_eq!([third, fourth], [second, second], "{readout:?}"); // those of `gemm`
        assert!(second < 40, "{second}");
    }
}
