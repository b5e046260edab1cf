//! A network gives the same bytes on any number of threads, also where sums are taken in blocks.

use std::sync::Arc;

use qdc_core::{Csr, Features, Split};
use qdc_nn::training::{Keep, Schedule, Trained, train_split};
use qdc_nn::{
    Architecture, Combinator, Cpu, EarlyStopping, EdgeValues, Inputs, Kind, Metric, Propagation, Tower,
    Trainer,
};
use qdc_nn::{Batch, BatchRun, Trainee};

const CLASSES: usize = 3;

/// A number in [0, 1) made of another.
fn drawn(number: usize) -> f32 {
    ((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / (1u64 << 24) as f32
}

/// Every vertex sees itself and a few others, some far away.
fn matrix(nodes: usize, reach: usize) -> Arc<Propagation<f32>> {
    let rows = (0..nodes).map(|i| {
        let mut columns: Vec<u32> = (0..reach).map(|d| ((i + d * d * 37) % nodes) as u32).collect();
        columns.sort_unstable();
        columns.dedup();
        let values = columns.iter().map(|&j| drawn(i * 31 + j as usize) / reach as f32).collect();
        (columns, values)
    });
    Arc::new(Propagation::new(Csr::from_rows(nodes, rows).unwrap()))
}

fn with_threads<R: Send>(threads: usize, work: impl FnOnce() -> R + Send) -> R {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

fn schedule() -> Schedule {
    Schedule {
        learning_rate: 0.01,
        weight_decay: 5e-4,
        max_steps: 2,
        stopping: EarlyStopping::default(),
        metric: Metric::Accuracy,
        batch_nodes: None,
    }
}

fn split(nodes: u32) -> Split {
    let part = |rest: u32| (0..nodes).filter(move |v| v % 3 == rest).collect();
    Split::new(nodes as usize, part(0), part(1), part(2)).unwrap()
}

/// Everything but the time it took.
fn timeless(mut trained: Trained<f32>) -> Trained<f32> {
    trained.scores.seconds = 0.0;
    trained
}

#[test]
fn a_split_gives_the_same_bytes_on_one_two_and_five_threads() {
    // More vertices than a block of the sums has; and fewer, with sparse features and all kinds of layers. All are so
    // wide or dense that loops are shared: 2^25 multiplications and more.
    let large = 70_000;
    let dense = Features::Dense { columns: 9, values: (0..large * 9).map(drawn).collect() };
    let small = 6_000;
    let words = |i: usize| {
        let mut columns: Vec<u32> = (0..12).map(|d| ((i * 7 + d * d * 13) % 300) as u32).collect();
        columns.sort_unstable();
        columns.dedup();
        let values = columns.iter().map(|&j| drawn(i + j as usize)).collect();
        (columns, values)
    };
    let sparse = Features::Sparse(Csr::from_rows(300, (0..small).map(words)).unwrap());
    let tower = |kind, widths: &[usize]| Tower { kind, widths: widths.to_vec(), dropout: 0.5 };
    let gat = Kind::Gat { heads: 2, edge_values: EdgeValues::Multiply };
    let cases = [
        (Architecture::single(tower(Kind::Gcn, &[128, CLASSES])), &dense, vec![matrix(large, 4)]),
        (Architecture::single(tower(Kind::Gcn, &[512, CLASSES])), &sparse, vec![matrix(small, 12)]),
        (
            Architecture {
                towers: vec![
                    tower(gat, &[48, 16]),
                    tower(Kind::Gcn, &[512, 16]),
                    tower(Kind::Mlp, &[512, 16]),
                ],
                combinator: Some(Combinator::Add),
                classes: CLASSES,
            },
            &sparse,
            vec![matrix(small, 60), matrix(small, 12), matrix(small, 3)],
        ),
    ];
    for (architecture, features, matrices) in cases {
        let inputs = Inputs::<f32>::new(features, matrices).unwrap();
        let nodes = inputs.nodes() as u32;
        let labels: Vec<u32> = (0..nodes).map(|v| (v / 5) % CLASSES as u32).collect();
        let (split, keep) = (split(nodes), Keep { weights: true, curve: true });
        let trained = |threads| {
            let watch = qdc_core::Watch::silent();
            let train = || {
                train_split(&architecture, &inputs, &labels, &split, 0, &schedule(), 1, keep, &watch).unwrap()
            };
            timeless(with_threads(threads, train))
        };
        let one = trained(1);
        assert!(one.weights.is_some() && one.curve.len() == 2);
        for threads in [2, 5] {
            assert_eq!(trained(threads), one, "{threads} threads, {nodes} vertices");
        }
    }
}

#[test]
fn runs_of_a_batch_come_in_their_order_and_none_begins_after_a_break() {
    let nodes = 90;
    let features = Features::Dense { columns: 4, values: (0..nodes * 4).map(drawn).collect() };
    let inputs = Inputs::<f32>::new(&features, Vec::new()).unwrap();
    let tower = Tower { kind: Kind::Mlp, widths: vec![CLASSES], dropout: 0.0 };
    let (architecture, split) = (Architecture::single(tower), split(nodes as u32));
    let labels: Vec<u32> = (0..nodes as u32).map(|v| v % 2).collect();
    let runs: Vec<BatchRun<'_>> = (0..7).map(|number| BatchRun { split: &split, number, seed: 3 }).collect();
    let batch = Batch {
        trainee: Trainee::Towers { architecture: &architecture, inputs: &inputs },
        labels: &labels,
        runs: &runs,
        schedule: &schedule(),
        keep: Keep::default(),
    };
    let watch = qdc_core::Watch::silent();
    let all =
        with_threads(3, || Cpu.train(&batch, &watch, &|_| std::ops::ControlFlow::Continue(())).unwrap());
    let numbers: Vec<usize> = all.iter().map(|run| run.as_ref().unwrap().scores.split).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5, 6]);
    let some = with_threads(1, || Cpu.train(&batch, &watch, &|_| std::ops::ControlFlow::Break(())).unwrap());
    assert_eq!(some.iter().filter(|run| run.is_some()).count(), 1);
    assert!(some[0].is_some());
}
