//! Mini-batches: what a network over the field of a batch gives is what the whole graph gives.

use std::sync::Arc;

use qdc_core::{Csr, Features, Split, Watch};
use qdc_nn::training::{Keep, Schedule, Trained, train_split};
use qdc_nn::{
    Architecture, CheckedFeatures, Combinator, EarlyStopping, EdgeValues, Footprint, Inputs, Kind, Learner,
    MatrixShape, Metric, MiniBatched, Network, Pass, Propagation, Real, Shape, Tower,
};

const NODES: usize = 120;
const CLASSES: usize = 3;
const COLUMNS: usize = 12;

/// A number in [-0.5, 0.5) made of another.
fn drawn(number: usize) -> f32 {
    ((number as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40) as f32 / (1u64 << 24) as f32 - 0.5
}

/// A ring with a few longer links; not symmetric, so that the transpose is told apart.
fn matrix<T: Real>(step: usize) -> Arc<Propagation<T>> {
    let rows = (0..NODES).map(|i| {
        let mut columns: Vec<u32> =
            [i, (i + 1) % NODES, (i + NODES - 1) % NODES, (step * i + 5) % NODES].map(|j| j as u32).to_vec();
        columns.sort_unstable();
        columns.dedup();
        let values = columns.iter().map(|&j| T::from_f64(f64::from(drawn(7 * i + j as usize)))).collect();
        (columns, values)
    });
    Arc::new(Propagation::new(Csr::from_rows(NODES, rows).unwrap()))
}

fn features(sparse: bool) -> Features {
    let value = |at: usize| if !sparse || at.is_multiple_of(5) { drawn(at) } else { 0.0 };
    let features = Features::from_dense(COLUMNS, (0..NODES * COLUMNS).map(value).collect());
    assert_eq!(matches!(features, Features::Sparse(_)), sparse);
    features
}

fn labels() -> Vec<u32> {
    (0..NODES as u32).map(|v| (v / 7) % CLASSES as u32).collect()
}

/// Networks of every kind, with one tower and with several.
fn architectures(dropout: f64) -> Vec<Architecture> {
    let gat = Kind::Gat { heads: 2, edge_values: EdgeValues::Multiply };
    let tower = |kind, widths: &[usize]| Tower { kind, widths: widths.to_vec(), dropout };
    let mut all: Vec<Architecture> = [Kind::Mlp, Kind::Gcn, gat]
        .into_iter()
        .flat_map(|kind| [vec![CLASSES], vec![9, CLASSES], vec![20, 6, CLASSES]].map(|widths| (kind, widths)))
        .map(|(kind, widths)| Architecture::single(tower(kind, &widths)))
        .collect();
    let towers = vec![tower(Kind::Gcn, &[8, 6]), tower(gat, &[6]), tower(Kind::Gcn, &[6])];
    all.push(Architecture::joined(towers.clone(), Combinator::Add, CLASSES));
    all.push(Architecture::joined(towers, Combinator::Concat, CLASSES));
    all
}

#[test]
fn a_batch_has_the_logits_the_loss_and_the_gradient_that_the_whole_graph_gives() {
    let matrices = || vec![matrix::<f64>(7), matrix(11), matrix(3)];
    let batch = [3, 40, 41, 99, 7];
    for architecture in architectures(0.0) {
        for sparse in [true, false] {
            let what = format!("{architecture:?}, sparse {sparse}");
            let checked = CheckedFeatures::<f64>::new(&features(sparse)).unwrap();
            let whole = Inputs::over(checked.clone(), matrices()).unwrap();
            let inputs = Inputs::for_batches(checked, matrices(), &architecture).unwrap();
            let mut network = Network::new(&architecture, &whole, 3).unwrap();
            let mut batched = MiniBatched::new(&architecture, &inputs, 4, 3).unwrap();
            let pass = Pass::Train { seed: 1 };
            let losses = [
                network.loss_and_gradient(&labels(), &batch, pass),
                batched.loss_and_gradient(&labels(), &batch, pass),
            ];
            assert!((losses[0] - losses[1]).abs() < 1e-12, "{what}: {losses:?}");
            assert_eq!(network.parameters().len(), batched.parameters().len());
            for (one, other) in network.parameters().iter().zip(batched.parameters()) {
                assert_eq!((&one.name, one.parameter.shape()), (&other.name, other.parameter.shape()));
                let pairs = one.read(network.gradient()).into_iter().zip(other.read(batched.gradient()));
                assert!(pairs.into_iter().all(|(a, b)| (a - b).abs() < 1e-12), "{what}: {}", one.name);
            }
            let logits = network.forward(Pass::Evaluate).to_dense();
            let some = batched.evaluate(&[&batch, &[0]]);
            for &vertex in batch.iter().chain(&[0]) {
                for class in 0..CLASSES {
                    let (a, b) =
                        (logits[vertex as usize * CLASSES + class], some.get(vertex as usize, class));
                    assert!((a - b).abs() < 1e-12, "{what}: vertex {vertex}");
                }
            }
            let all = batched.forward(Pass::Evaluate).to_dense();
            assert!(logits.iter().zip(&all).all(|(a, b)| (a - b).abs() < 1e-12), "{what}");
        }
    }
}

fn trained(batch_nodes: Option<usize>, seed: u64, threads: usize) -> Trained<f32> {
    let tower = Tower { kind: Kind::Gcn, widths: vec![16, CLASSES], dropout: 0.3 };
    let architecture = Architecture::single(tower);
    let checked = CheckedFeatures::<f32>::new(&features(false)).unwrap();
    let inputs = match batch_nodes {
        Some(_) => Inputs::for_batches(checked, vec![matrix(7)], &architecture).unwrap(),
        None => Inputs::over(checked, vec![matrix(7)]).unwrap(),
    };
    let part = |rest: u32| (0..NODES as u32).filter(move |v| v % 3 == rest).collect();
    let split = Split::new(NODES, part(0), part(1), part(2)).unwrap();
    let schedule = Schedule {
        learning_rate: 0.02,
        weight_decay: 0.0,
        max_steps: 30,
        stopping: EarlyStopping { patience: 100, ..EarlyStopping::default() },
        metric: Metric::Accuracy,
        batch_nodes,
    };
    let keep = Keep { weights: true, curve: true };
    let train =
        || train_split(&architecture, &inputs, &labels(), &split, 0, &schedule, seed, keep, &Watch::silent());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let mut trained = pool.install(train).unwrap();
    trained.scores.seconds = 0.0;
    trained
}

#[test]
fn training_in_batches_learns_and_its_seed_decides_it_on_any_number_of_threads() {
    let one = trained(Some(8), 1, 1);
    assert_eq!(trained(Some(8), 1, 3), one);
    assert_ne!(trained(Some(8), 2, 1).curve, one.curve);
    assert_ne!(trained(Some(9), 1, 1).curve, one.curve);
    let whole = trained(None, 1, 1);
    let last = |trained: &Trained<f32>| trained.curve.last().unwrap().train_loss;
    // Five updates a step in place of one.
    assert!(one.curve.len() == 30 && last(&one) < last(&whole), "{} {}", last(&one), last(&whole));
    assert!(last(&whole) < whole.curve[0].train_loss);
    // The loss of a step is the mean over all training vertices: before the first update, ln 3 about.
    assert!((one.curve[0].train_loss - 3f64.ln()).abs() < 0.3, "{}", one.curve[0].train_loss);
}

#[test]
fn a_batch_is_counted_by_what_it_reaches_and_never_as_more_than_the_graph() {
    let shape = Shape {
        nodes: 1_000_000,
        features: 100,
        feature_entries: None,
        matrices: vec![MatrixShape { entries: 45_000_000, symmetric: true, mapped: false }],
    };
    let tower = |widths: &[usize]| Tower { kind: Kind::Gcn, widths: widths.to_vec(), dropout: 0.5 };
    let two = Architecture::single(tower(&[64, 5]));
    let whole = Footprint::of(&two, &shape);
    let runs = [1_000, 10_000, 1_000_000].map(|nodes| Footprint::in_batches(&two, &shape, nodes).run);
    assert!(runs[0] < runs[1] && runs[1] < runs[2]);
    assert!(10 * runs[0] < whole.run, "{} for {}", runs[0], whole.run);
    // One entry far with M X at hand: 46 vertices for each of the batch, of 104 + 3 x 64 numbers at least.
    assert!(runs[0] > 1_000 * 46 * 4 * (104 + 3 * 64) && runs[2] < 3 * whole.run);
    let three = Architecture::single(tower(&[64, 64, 5]));
    assert!(Footprint::in_batches(&three, &shape, 1_000).run > 10 * runs[0]);
    let batched = Footprint::in_batches(&two, &shape, 1_000);
    let (numbers, entries) = (2 * 4 * 104 * 1_000_000, 45_000_000 * 8);
    assert!(batched.shared >= numbers + entries, "X, M X and M are kept");
    let matrices = vec![MatrixShape { mapped: true, ..shape.matrices[0] }];
    let mapped = Footprint::in_batches(&two, &Shape { matrices, ..shape }, 1_000);
    assert_eq!(mapped.shared + entries, batched.shared, "a mapped matrix takes no memory");
    assert_eq!(mapped.run, batched.run);
}
