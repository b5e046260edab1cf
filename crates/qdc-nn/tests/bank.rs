//! The bank network: gradients against central differences, the two ways to compute a channel against each
//! other, and against PyTorch.

use qdc_core::bank::{Channel, Channels, On, View};
use qdc_core::{Csr, EdgeRule, Features, Filter, Graph, Resources, Watch};
use qdc_data::npz::Npz;
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork, LearnedWindow, Readout, Way};
use qdc_nn::random::derive;
use qdc_nn::{Adam, Learner, Pass, Real};

const NODES: usize = 14;
const CLASSES: usize = 3;
const TRAIN: Pass = Pass::Train { seed: 5 };

fn number(seed: u64, at: usize) -> f64 {
    (derive(seed, at as u64) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

fn graph() -> Graph {
    let edges =
        (0..NODES as u64).flat_map(|i| [(i, (i + 1) % NODES as u64), (i, (i * 5 + 2) % NODES as u64)]);
    Graph::from_edges(NODES, edges, EdgeRule::Undirected).unwrap()
}

fn features() -> Features {
    let value = |at| if number(3, at) > 0.6 { number(4, at) as f32 + 1.2 } else { 0.0 };
    let features = Features::from_dense(11, (0..NODES * 11).map(value).collect());
    assert!(matches!(features, Features::Sparse(_)));
    features
}

fn gaussian(mu: f64, sigma: f64) -> View {
    View::Filter(Filter::gaussian(mu, sigma).unwrap())
}

/// Every kind of channel.
fn channels() -> Channels {
    let list = [
        Channel::new(View::Features),
        Channel::new(View::Step),
        Channel::new(gaussian(1.0, 0.25)),
        Channel::new(gaussian(-0.6, 0.5)),
        Channel::new(View::Rank { window: 1, of: 3 }),
        Channel::new(View::Rows),
        Channel::new(View::Statistics),
        Channel { on: On::Nearest(3), view: gaussian(1.0, 0.5) },
    ];
    Channels::new(&list, &graph(), features(), &Resources::default(), &Watch::silent()).unwrap()
}

fn architecture(norm: bool, readout: Readout, input_dropout: f64) -> BankArchitecture {
    BankArchitecture {
        hidden: 5,
        norm,
        readout,
        dropout: 0.4,
        input_dropout,
        readout_decay: 1e-4,
        classes: CLASSES,
    }
}

fn labels() -> Vec<u32> {
    (0..NODES).map(|vertex| (vertex * 7 % CLASSES) as u32).collect()
}

/// Weights that are nowhere at a special value.
fn shake(network: &mut BankNetwork<f64>) {
    for placed in network.parameters().to_vec() {
        if placed.name.contains("window") {
            continue;
        }
        let mut values = placed.read(network.weights());
        values.iter_mut().enumerate().for_each(|(at, value)| *value += 0.3 * number(8, at));
        placed.write(network.weights_mut(), &values);
    }
}

fn loss(network: &mut BankNetwork<f64>, pass: Pass) -> f64 {
    qdc_nn::loss::cross_entropy(network.forward(pass), &labels(), &[0, 3, 4, 8, 9, 12])
}

/// Every parameter's derivative against (f(w + h) - f(w - h)) / 2h.
fn check(network: &mut BankNetwork<f64>, pass: Pass, name: &str) {
    const STEP: f64 = 1e-5;
    shake(network);
    network.loss_and_gradient(&labels(), &[0, 3, 4, 8, 9, 12], pass);
    let gradient = network.gradient().to_vec();
    for placed in network.parameters().to_vec() {
        let found = placed.read(&gradient);
        let values = placed.read(network.weights());
        for at in 0..values.len() {
            let mut moved = |by: f64| {
                let mut values = values.clone();
                values[at] += by;
                placed.write(network.weights_mut(), &values);
                loss(network, pass)
            };
            let expected = (moved(STEP) - moved(-STEP)) / (2.0 * STEP);
            placed.write(network.weights_mut(), &values);
            let error = (found[at] - expected).abs();
            assert!(error < 1e-6, "{name}: {}[{at}] is {} for {expected}", placed.name, found[at]);
        }
    }
}

#[test]
fn the_gradient_of_every_parameter_agrees_with_central_differences() {
    let channels = channels();
    for (norm, readout, input_dropout, pass, way) in [
        (true, Readout::Linear, 0.0, Pass::Evaluate, Way::Mapped),
        (true, Readout::Linear, 0.5, TRAIN, Way::Mapped),
        (true, Readout::Linear, 0.5, TRAIN, Way::Kept),
        (false, Readout::Layers, 0.0, TRAIN, Way::Mapped),
        (true, Readout::Layers, 0.3, TRAIN, Way::default()),
    ] {
        let inputs = BankInputs::<f64>::new(&channels, way, &Watch::silent()).unwrap();
        let mut network = BankNetwork::new(&architecture(norm, readout, input_dropout), &inputs, 1).unwrap();
        check(&mut network, pass, &format!("{norm} {readout:?} {input_dropout} {way:?}"));
    }
}

#[test]
fn the_gradient_by_mu_and_sigma_agrees_with_central_differences() {
    for (mu, sigma) in [(1.0, 0.5), (0.2, 0.3), (-1.2, 2.5), (0.9, 0.1)] {
        for (norm, pass) in [(true, Pass::Evaluate), (false, TRAIN)] {
            let inputs =
                BankInputs::<f64>::window(&graph(), &features(), LearnedWindow::new(mu, sigma)).unwrap();
            let mut network =
                BankNetwork::new(&architecture(norm, Readout::Linear, 0.0), &inputs, 2).unwrap();
            assert_eq!(network.windows(), [(mu, sigma)]);
            check(&mut network, pass, &format!("mu {mu} sigma {sigma}"));
        }
    }
}

#[test]
fn a_learned_window_stays_within_its_range_and_moves_at_five_times_the_rate() {
    let start = LearnedWindow::new(1.4999, 0.0201);
    let inputs = BankInputs::<f64>::window(&graph(), &features(), start).unwrap();
    let mut network = BankNetwork::new(&architecture(true, Readout::Linear, 0.0), &inputs, 2).unwrap();
    let groups = network.groups(0.01, 0.1);
    let windows: Vec<_> = groups.iter().filter(|group| group.learning_rate == 0.05).collect();
    assert_eq!((groups.len(), windows.len(), windows[0].weight_decay), (4, 1, 0.0));
    assert_eq!((groups[0].weight_decay, groups[1].weight_decay, groups[3].weight_decay), (0.1, 0.0, 1e-4));
    let slow = BankInputs::<f64>::window(&graph(), &features(), start.at_rate(0.5)).unwrap();
    let slow =
        BankNetwork::new(&architecture(true, Readout::Linear, 0.0), &slow, 2).unwrap().groups(0.01, 0.1);
    assert_eq!((slow[2].learning_rate, slow[2].weight_decay, slow[3].learning_rate), (0.005, 0.0, 0.01));
    let mut adam = Adam::grouped(network.groups(0.5, 0.0), network.weights().len());
    for step in 0..6 {
        network.loss_and_gradient(&labels(), &[0, 3, 4, 8], Pass::Train { seed: step });
        network.update(&mut adam);
        let (mu, sigma) = network.windows()[0];
        assert!((-1.5..=1.5).contains(&mu) && (0.02..=4.0).contains(&sigma), "{mu} {sigma}");
    }
}

/// Copies parameters by name: the two ways pad their matrices differently.
fn copy<T: Real>(from: &BankNetwork<T>, to: &mut BankNetwork<T>) {
    for (theirs, ours) in from.parameters().iter().zip(to.parameters().to_vec()) {
        assert_eq!(theirs.name, ours.name);
        ours.write(to.weights_mut(), &theirs.read(from.weights()));
    }
}

#[test]
fn the_two_ways_to_compute_a_channel_agree() {
    let channels = channels();
    let build = |way| {
        let inputs = BankInputs::<f32>::new(&channels, way, &Watch::silent()).unwrap();
        (BankNetwork::new(&architecture(true, Readout::Linear, 0.0), &inputs, 3).unwrap(), inputs.kept().0)
    };
    let ((mut mapped, none), (mut kept, all)) = (build(Way::Mapped), build(Way::Kept));
    assert_eq!((none, all), (1, 6)); // statistics are dense in either way
    copy(&mapped, &mut kept);
    let (a, b) = (mapped.forward(TRAIN).to_dense(), kept.forward(TRAIN).to_dense());
    let apart = a.iter().zip(&b).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    assert!(apart < 1e-5 && a.iter().any(|value| value.abs() > 0.1), "{apart}");
    mapped.loss_and_gradient(&labels(), &[0, 3, 4], TRAIN);
    kept.loss_and_gradient(&labels(), &[0, 3, 4], TRAIN);
    for (first, second) in mapped.parameters().iter().zip(kept.parameters()) {
        let (a, b) = (first.read(mapped.gradient()), second.read(kept.gradient()));
        assert!(a.iter().zip(&b).all(|(a, b)| (a - b).abs() < 1e-5), "{}", first.name);
    }
}

#[test]
fn an_evaluation_is_shared_with_the_next_step_only_where_the_weights_are_the_same() {
    let inputs = BankInputs::<f64>::new(&channels(), Way::Mapped, &Watch::silent()).unwrap();
    for input_dropout in [0.0, 0.5] {
        let architecture = architecture(true, Readout::Linear, input_dropout);
        let mut network = BankNetwork::new(&architecture, &inputs, 3).unwrap();
        let fresh = |weights: &[f64], pass| {
            let mut other = BankNetwork::new(&architecture, &inputs, 9).unwrap();
            other.weights_mut().copy_from_slice(weights);
            other.forward(pass).to_dense()
        };
        let mut adam = Adam::new(network.weights().len(), 0.1, 0.0);
        for pass in [Pass::Evaluate, TRAIN, Pass::Train { seed: 6 }, Pass::Evaluate] {
            assert_eq!(network.forward(pass).to_dense(), fresh(network.weights(), pass));
            assert_eq!(network.forward(pass).to_dense(), fresh(network.weights(), pass));
            network.loss_and_gradient(&labels(), &[0, 3, 4], pass);
            network.update(&mut adam);
            assert_eq!(network.forward(Pass::Evaluate).to_dense(), fresh(network.weights(), Pass::Evaluate));
        }
    }
}

#[test]
fn a_bank_without_channels_or_with_impossible_numbers_is_refused() {
    let none = Channels::new(&[], &graph(), features(), &Resources::default(), &Watch::silent()).unwrap();
    let none = BankInputs::<f32>::new(&none, Way::default(), &Watch::silent()).unwrap();
    let right = architecture(true, Readout::Linear, 0.0);
    assert!(BankNetwork::new(&right, &none, 0).is_err());
    for wrong in [
        BankArchitecture { hidden: 0, ..right.clone() },
        BankArchitecture { dropout: 1.0, ..right.clone() },
        BankArchitecture { input_dropout: -0.1, ..right.clone() },
        BankArchitecture { readout_decay: f64::NAN, ..right.clone() },
    ] {
        assert!(wrong.check().is_err(), "{wrong:?}");
    }
    assert!(right.check().is_ok());
}

/// Origin: PyTorch 2.15.0, float64, filters by a full eigendecomposition; bench/train/golden_bank.py.
#[test]
fn logits_loss_and_gradients_are_those_of_pytorch() {
    let archive = Npz::open(qdc_testing::golden("bank_karate.npz")).unwrap();
    let (nodes, columns, values) = archive.matrix::<f64>("features").unwrap();
    let (_, _, edges) = archive.matrix::<u64>("edges").unwrap();
    let edges = edges.chunks_exact(2).map(|edge| (edge[0], edge[1]));
    let graph = Graph::from_edges(nodes, edges, EdgeRule::Undirected).unwrap();
    let rows = values.chunks_exact(columns).map(|row| {
        row.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(j, &v)| (j as u32, v as f32)).unzip()
    });
    let features = Features::Sparse(Csr::from_rows(columns, rows).unwrap());
    let labels = archive.vector::<u32>("labels").unwrap();
    let train = archive.vector::<u32>("train").unwrap();
    for (case, norm, readout) in [("linear", true, Readout::Linear), ("layers", false, Readout::Layers)] {
        let list = [
            Channel::new(View::Features),
            Channel::new(View::Step),
            Channel::new(gaussian(1.0, 0.25)),
            Channel::new(gaussian(-0.5, 0.5)),
        ];
        let channels =
            Channels::new(&list, &graph, features.clone(), &Resources::default(), &Watch::silent()).unwrap();
        let inputs = BankInputs::<f64>::new(&channels, Way::Mapped, &Watch::silent()).unwrap();
        compare(&archive, case, inputs, norm, readout, &labels, &train, 1e-5);
    }
    let start = LearnedWindow::new(0.7, 0.4);
    let inputs = BankInputs::<f64>::window(&graph, &features, start).unwrap();
    compare(&archive, "window", inputs, true, Readout::Linear, &labels, &train, 1e-8);
}

#[allow(clippy::too_many_arguments)]
fn compare(
    archive: &Npz,
    case: &str,
    inputs: BankInputs<f64>,
    norm: bool,
    readout: Readout,
    labels: &[u32],
    train: &[u32],
    tolerance: f64,
) {
    let architecture = BankArchitecture {
        hidden: 6,
        norm,
        readout,
        dropout: 0.0,
        input_dropout: 0.0,
        readout_decay: 0.0,
        classes: 2,
    };
    let mut network = BankNetwork::new(&architecture, &inputs, 0).unwrap();
    let golden =
        |kind: &str, name: &str| archive.array::<f64>(&format!("{case}.{kind}.{name}")).unwrap().data;
    for placed in network.parameters().to_vec() {
        placed.write(network.weights_mut(), &golden("weight", &placed.name));
    }
    let close = |found: &[f64], expected: &[f64], what: &str| {
        assert_eq!(found.len(), expected.len(), "{case} {what}");
        let apart = found.iter().zip(expected).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(apart < tolerance, "{case} {what}: {apart}");
    };
    close(&network.forward(Pass::Evaluate).to_dense(), &golden("logits", "all"), "logits");
    let loss = network.loss_and_gradient(labels, train, Pass::Evaluate);
    close(&[loss], &golden("loss", "train"), "loss");
    for placed in network.parameters() {
        close(&placed.read(network.gradient()), &golden("gradient", &placed.name), &placed.name);
    }
}
