//! The device against the CPU. Without a device these tests say that they are skipped, and pass.

#![allow(clippy::print_stderr)] // a skipped test says so

mod banks;

use std::ops::ControlFlow;
use std::sync::Arc;

use qdc_core::{Csr, Features, Metric, Split, Watch};
use qdc_nn::bank::{BankArchitecture, BankInputs, BankNetwork};
use qdc_nn::layers::EdgeValues;
use qdc_nn::random::derive;
use qdc_nn::training::{Keep, Schedule, Scores, Trained};
use qdc_nn::{
    Architecture, Batch, BatchRun, Combinator, Cpu, Criterion, EarlyStopping, Inputs, Kind, Learner, Matrix,
    Network, Pass, Propagation, Scorer, Tower, Trainee, Trainer,
};

use crate::Device;
use crate::choice::OrCpu;
use crate::network::Host;
use crate::room::{Allocation, Room, read};
use crate::training::{Places, members, planned, started};
use banks::banks;

const NODES: usize = 300;
const CLASSES: usize = 5;

/// The device, or a line that says why the test is skipped.
fn device() -> Option<Device> {
    match Device::open() {
        Ok(device) => Some(device),
        Err(error) => {
            eprintln!("skipped: {error}");
            None
        }
    }
}

/// A number in [0, 1) for each pair of numbers.
fn uniform(a: usize, b: usize) -> f32 {
    (derive(a as u64, b as u64) >> 40) as f32 / (1 << 24) as f32
}

/// A matrix with about `degree` entries in a row, a diagonal among them; symmetric on request.
fn matrix(degree: f32, symmetric: bool) -> Arc<Propagation<f32>> {
    let share = degree / NODES as f32;
    let entry = |i: usize, j: usize| {
        let (a, b) = if symmetric { (i.min(j), i.max(j)) } else { (i, j) };
        let there = i == j || (uniform(a, b) < share && i != 7); // row 7 is as good as empty
        there.then(|| (j as u32, 0.1 + uniform(1000 + a, b) / degree))
    };
    let rows = (0..NODES).map(|i| (0..NODES).filter_map(|j| entry(i, j)).unzip());
    Arc::new(Propagation::new(Csr::from_rows(NODES, rows).unwrap()))
}

fn features(dense: bool) -> Features {
    let columns = if dense { 20 } else { 60 };
    let value = |i: usize, j: usize| {
        let label = (i * 7) % CLASSES;
        let likely = if j % CLASSES == label { 0.3 } else { 0.08 };
        if dense || uniform(5000 + i, j) < likely { uniform(7000 + i, j) } else { 0.0 }
    };
    let values = (0..NODES).flat_map(|i| (0..columns).map(move |j| value(i, j))).collect();
    if dense { Features::Dense { columns, values } } else { Features::from_dense(columns, values) }
}

fn labels() -> Vec<u32> {
    (0..NODES).map(|i| ((i * 7) % CLASSES) as u32).collect()
}

fn split(number: usize) -> Split {
    let part = |i: u32| (derive(90 + number as u64, u64::from(i)) % 10) as u32;
    let set = |range: std::ops::Range<u32>| (0..NODES as u32).filter(|&i| range.contains(&part(i))).collect();
    Split::new(NODES, set(0..5), set(5..8), set(8..10)).unwrap()
}

fn gat(heads: usize, edge_values: EdgeValues) -> Kind {
    Kind::Gat { heads, edge_values }
}

/// A network with what it runs over.
enum Subject {
    Towers(Architecture, Inputs<f32>),
    Bank(BankArchitecture, Vec<BankInputs<f32>>),
}

impl Subject {
    fn trainee(&self) -> Trainee<'_> {
        match self {
            Self::Towers(architecture, inputs) => Trainee::Towers { architecture, inputs },
            Self::Bank(architecture, inputs) => Trainee::Bank { architecture, inputs },
        }
    }

    /// The logits under given weights.
    fn logits(&self, weights: &[f32]) -> Matrix<f32> {
        fn of(mut network: impl Learner<f32>, weights: &[f32]) -> Matrix<f32> {
            network.weights_mut().copy_from_slice(weights);
            network.forward(Pass::Evaluate).clone()
        }
        match self {
            Self::Towers(architecture, inputs) => of(Network::new(architecture, inputs, 0).unwrap(), weights),
            Self::Bank(architecture, inputs) => {
                of(BankNetwork::new(architecture, &inputs[0], 0).unwrap(), weights)
            }
        }
    }
}

/// Networks of every kind.
fn networks() -> Vec<(&'static str, Subject)> {
    let towers = towers().into_iter().map(|(name, network, inputs)| (name, Subject::Towers(network, inputs)));
    towers.chain(banks()).collect()
}

/// Networks of towers, with the matrices they run over.
fn towers() -> Vec<(&'static str, Architecture, Inputs<f32>)> {
    let tower = |kind, widths: &[usize], dropout| Tower { kind, widths: widths.to_vec(), dropout };
    let single = |kind, widths: &[usize]| Architecture::single(tower(kind, widths, 0.4));
    let over = |dense, matrices| Inputs::new(&features(dense), matrices).unwrap();
    let sparse = || matrix(6.0, true);
    let joined = |combinator| {
        let first = tower(Kind::Gcn, &[12, 9], 0.3);
        let second = tower(gat(2, EdgeValues::Ignore), &[7, 9], 0.5);
        Architecture::joined(vec![first, second], combinator, CLASSES)
    };
    vec![
        ("mlp", single(Kind::Mlp, &[24, CLASSES]), over(false, vec![])),
        ("mlp on dense features", single(Kind::Mlp, &[24, 80, CLASSES]), over(true, vec![])),
        ("gcn", single(Kind::Gcn, &[64, CLASSES]), over(false, vec![sparse()])),
        ("gcn of one layer", single(Kind::Gcn, &[CLASSES]), over(false, vec![sparse()])),
        ("gcn that widens", single(Kind::Gcn, &[8, 70, CLASSES]), over(true, vec![matrix(6.0, false)])),
        ("gcn on a full matrix", single(Kind::Gcn, &[20, CLASSES]), over(false, vec![matrix(90.0, false)])),
        ("gcn on long rows", single(Kind::Gcn, &[20, CLASSES]), over(false, vec![matrix(28.0, true)])),
        ("gcn in another order", single(Kind::Gcn, &[16, CLASSES]), over(false, vec![sparse()]).clustered()),
        ("gat", single(gat(4, EdgeValues::Ignore), &[64, CLASSES]), over(false, vec![sparse()])),
        (
            "gat of 5 heads",
            single(gat(5, EdgeValues::Multiply), &[6, CLASSES]),
            over(true, vec![matrix(40.0, false)]),
        ),
        (
            "gat of 6 heads",
            single(gat(6, EdgeValues::Bias), &[6, CLASSES]),
            over(false, vec![matrix(9.0, false)]),
        ),
        ("towers added", joined(Combinator::Add), over(false, vec![sparse(), matrix(50.0, false)])),
        ("towers side by side", joined(Combinator::Concat), over(false, vec![sparse(), matrix(50.0, true)])),
    ]
}

fn schedule(max_steps: usize) -> Schedule {
    let stopping = EarlyStopping { patience: 1000, warm_up: 0, criterion: Criterion::Metric };
    Schedule {
        learning_rate: 0.01,
        weight_decay: 5e-4,
        max_steps,
        stopping,
        metric: Metric::Accuracy,
        batch_nodes: None,
    }
}

fn runs(splits: &[Split], seed: u64) -> Vec<BatchRun<'_>> {
    splits.iter().enumerate().map(|(number, split)| BatchRun { split, number, seed }).collect()
}

/// The largest difference, relative to the largest number expected.
fn difference(found: &[f32], expected: &[f32]) -> f32 {
    assert_eq!(found.len(), expected.len());
    let largest = expected.iter().fold(0f32, |most, x| most.max(x.abs()));
    let apart = found.iter().zip(expected).fold(0f32, |most, (a, b)| {
        assert!(a.is_finite(), "{a} for {b}");
        most.max((a - b).abs())
    });
    apart / largest.max(1e-30)
}

fn all_of(trained: Vec<Option<Trained<f32>>>) -> Vec<Trained<f32>> {
    trained.into_iter().map(|trained| trained.expect("every run ended")).collect()
}

fn go_on(_: &qdc_nn::training::Scores) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

#[test]
fn logits_and_gradients_are_those_of_the_cpu() {
    let Some(device) = device() else { return };
    let splits: Vec<Split> = (0..3).map(split).collect();
    for (name, subject) in networks() {
        let (labels, schedule, runs) = (labels(), schedule(1), runs(&splits, 11));
        let (trainee, keep) = (subject.trainee(), Keep::default());
        let batch = Batch { trainee, labels: &labels, runs: &runs, schedule: &schedule, keep };
        let mut host = Host::new(trainee).unwrap();
        let description = host.describe().unwrap();
        let members = members(&batch, host.starts());
        let (count, weights) = (members.len(), description.weights());
        let stream = device.stream().unwrap();
        let bytes = planned(&device, &batch, &description, &members).unwrap();
        let allocation = Allocation::new(&device, &stream, bytes).unwrap();
        let mut room = Room::of(&allocation);
        let places = Places::new(&device, &batch, &description, &members, &mut room).unwrap();
        places.start(&allocation, &mut host, &schedule, &members).unwrap();
        places.network.prologue().iter().for_each(|launch| launch.enqueue(&stream).unwrap());
        let step = places.step(&batch, &description);
        let adam = step.iter().position(|launch| launch.name == "adam").unwrap();
        let loss = step.iter().position(|launch| launch.name == "loss").unwrap();
        step[..loss].iter().for_each(|launch| launch.enqueue(&stream).unwrap());
        let stride = description.classes().stride();
        let logits: Vec<f32> = read(&stream, places.network.logits().output, count * NODES * stride).unwrap();
        step[loss..=adam].iter().for_each(|launch| launch.enqueue(&stream).unwrap());
        let moments: Vec<f32> = read(&stream, places.first_moments, count * weights).unwrap();
        for (at, member) in members.iter().enumerate() {
            let started = started(&mut host, member, &schedule);
            let pass = Pass::Train { seed: derive(started.seed, 1) };
            let mut found = logits[at * NODES * stride..][..NODES * stride].to_vec();
            if let Some(order) = description.order() {
                let stored = found.clone();
                for (row, &vertex) in order.iter().enumerate() {
                    found[vertex as usize * stride..][..stride]
                        .copy_from_slice(&stored[row * stride..][..stride]);
                }
            }
            let train = member.run.split.train();
            let (expected, gradient) = match &mut host {
                Host::Towers(network) => {
                    network.loss_and_gradient(&labels, train, pass);
                    (network.forward(pass).values().to_vec(), network.gradient().to_vec())
                }
                Host::Bank(network, _) => {
                    network.loss_and_gradient(&labels, train, pass);
                    (network.forward(pass).values().to_vec(), network.gradient().to_vec())
                }
            };
            let apart = difference(&found, &expected);
            assert!(apart < 1e-5, "{name}: logits of run {at} differ by {apart}");
            // The first moments of Adam: a tenth of the gradient with the decay of each group.
            let mut expected = vec![0.0; weights];
            for group in host.groups(schedule.learning_rate, schedule.weight_decay) {
                for place in group.range {
                    let decay = group.weight_decay as f32 * host.weights()[place];
                    expected[place] = 0.1 * (gradient[place] + decay);
                }
            }
            let own = &moments[at * weights..][..weights];
            let apart = difference(own, &expected);
            assert!(apart < 1e-5, "{name}: the gradient of run {at} differs by {apart}");
        }
    }
}

#[test]
fn the_loss_after_fifty_steps_is_that_of_the_cpu() {
    let Some(device) = device() else { return };
    let splits: Vec<Split> = (0..3).map(split).collect();
    for (name, subject) in networks() {
        let runs = runs(&splits, 3);
        // Differences in the last bits grow with every step, and the faster the higher the rate.
        let (labels, schedule) = (labels(), Schedule { learning_rate: 0.002, ..schedule(50) });
        let keep = Keep { weights: true, curve: true };
        let batch =
            Batch { trainee: subject.trainee(), labels: &labels, runs: &runs, schedule: &schedule, keep };
        let found = all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap());
        let expected = all_of(Cpu.train(&batch, &Watch::silent(), &go_on).unwrap());
        for (found, expected) in found.iter().zip(&expected) {
            assert_eq!(found.curve.len(), 50, "{name}");
            for (found, expected) in found.curve.iter().zip(&expected.curve) {
                let close = |a: f64, b: f64| (a - b).abs() < 1e-3 * b.abs();
                assert!(close(found.train_loss, expected.train_loss), "{name}: {found:?} for {expected:?}");
                assert!(
                    close(found.validation_loss, expected.validation_loss),
                    "{name}: {found:?} for {expected:?}"
                );
            }
            assert_eq!(found.scores.split, expected.scores.split);
            assert_eq!((&*found.device, &*expected.device), (device.name(), "cpu"));
            let scores = &found.scores;
            let kept = &found.curve[scores.best_step - 1];
            assert_eq!(
                (scores.train, scores.validation, scores.test),
                (kept.train, kept.validation, kept.test)
            );
            let best = &found.curve;
            assert!(best.iter().all(|step| step.validation <= scores.validation), "{name}");
            assert_eq!(scores.validation_loss, Some(kept.validation_loss));
            assert!(found.weights.as_ref().is_some_and(|weights| weights.iter().any(|w| *w != 0.0)));
        }
    }
}

#[test]
fn the_weights_kept_score_what_the_record_says() {
    let Some(device) = device() else { return };
    let (labels, splits) = (labels(), [split(0), split(1)]);
    for (name, subject) in networks() {
        let runs = runs(&splits, 5);
        let stopping = EarlyStopping { patience: 10, ..EarlyStopping::default() };
        let schedule = Schedule { stopping, ..schedule(200) };
        let keep = Keep { weights: true, curve: false };
        let batch =
            Batch { trainee: subject.trainee(), labels: &labels, runs: &runs, schedule: &schedule, keep };
        for (run, trained) in runs.iter().zip(all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap()))
        {
            let logits = subject.logits(trained.weights.as_ref().unwrap());
            let mut scorer = Scorer::new(Metric::Accuracy);
            let test = scorer.score(&logits, &labels, run.split.test());
            // A vertex between two classes may fall either way.
            let vertex = 1.0 / run.split.test().len() as f64;
            assert!(
                (test - trained.scores.test).abs() < 1.5 * vertex,
                "{name}: {test} for {:?}",
                trained.scores
            );
            assert!(trained.scores.steps <= trained.scores.best_step + 10, "{name}: {:?}", trained.scores);
        }
    }
}

#[test]
fn a_run_gives_the_same_bytes_in_any_batch() {
    let Some(device) = device() else { return };
    let (labels, splits) = (labels(), (0..7).map(split).collect::<Vec<_>>());
    for (name, subject) in networks() {
        let schedule =
            Schedule { stopping: EarlyStopping { patience: 8, ..EarlyStopping::default() }, ..schedule(60) };
        let keep = Keep { weights: true, curve: true };
        let train = |runs: &[BatchRun<'_>]| {
            let batch =
                Batch { trainee: subject.trainee(), labels: &labels, runs, schedule: &schedule, keep };
            all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap())
        };
        let runs = runs(&splits, 9);
        let together = train(&runs);
        for (at, run) in runs.iter().enumerate() {
            let alone = &train(std::slice::from_ref(run))[0];
            assert!(
                alone.weights == together[at].weights && alone.curve == together[at].curve,
                "{name}, run {at}"
            );
        }
    }
}

/// Trials of a search train side by side, each on a stream of its own; none may begin before its numbers are there.
#[test]
fn a_run_gives_the_same_bytes_whatever_else_the_device_does() {
    let Some(device) = device() else { return };
    let (labels, splits) = (labels(), (0..7).map(split).collect::<Vec<_>>());
    let (_, subject) = networks().swap_remove(0);
    let (schedule, runs, keep) = (schedule(5), runs(&splits, 9), Keep { weights: true, curve: true });
    let batch = Batch { trainee: subject.trainee(), labels: &labels, runs: &runs, schedule: &schedule, keep };
    let train = || all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap());
    let alone = train();
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                for round in 0..50 {
                    for (at, (found, expected)) in train().iter().zip(&alone).enumerate() {
                        assert!(found.weights == expected.weights, "run {at} of round {round}");
                    }
                }
            });
        }
    });
}

#[test]
fn a_loss_that_is_not_finite_ends_its_run_and_no_other() {
    let Some(device) = device() else { return };
    let (labels, splits) = (labels(), [split(0), split(1)]);
    let (_, subject) = networks().swap_remove(2);
    let runs = [0, 1].map(|number| BatchRun { split: &splits[number], number, seed: 1 });
    let schedule = Schedule { learning_rate: 1e37, ..schedule(20) };
    let batch = Batch {
        trainee: subject.trainee(),
        labels: &labels,
        runs: &runs,
        schedule: &schedule,
        keep: Keep::default(),
    };
    for trained in all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap()) {
        let expected =
            all_of(Cpu.train(&batch, &Watch::silent(), &go_on).unwrap()).remove(trained.scores.split);
        assert_eq!(trained.scores.diverged_at, expected.scores.diverged_at);
        assert!(trained.scores.diverged_at.is_some());
    }
}

#[test]
fn scores_by_every_metric_are_those_of_the_weights_kept() {
    let Some(device) = device() else { return };
    let splits = [split(0), split(1)];
    for (classes, metric) in [(2, Metric::Auc), (5, Metric::Auc), (2, Metric::F1), (5, Metric::F1)] {
        let labels: Vec<u32> = labels().iter().map(|label| label % classes).collect();
        let tower = Tower { kind: Kind::Gcn, widths: vec![16, classes as usize], dropout: 0.4 };
        let inputs = Inputs::new(&features(false), vec![matrix(6.0, true)]).unwrap().clustered();
        let subject = Subject::Towers(Architecture::single(tower), inputs);
        let (runs, schedule) = (runs(&splits, 6), Schedule { metric, ..schedule(40) });
        let (trainee, keep) = (subject.trainee(), Keep { weights: true, curve: true });
        let batch = Batch { trainee, labels: &labels, runs: &runs, schedule: &schedule, keep };
        let trained = all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap());
        for (run, trained) in runs.iter().zip(&trained) {
            let logits = subject.logits(trained.weights.as_ref().unwrap());
            let mut scorer = Scorer::new(metric);
            let scores = &trained.scores;
            let sets = [run.split.train(), run.split.validation(), run.split.test()];
            for (set, found) in sets.iter().zip([scores.train, scores.validation, scores.test]) {
                let expected = scorer.score(&logits, &labels, set);
                // A vertex between two classes may fall either way; ranks hardly move.
                let bound = if metric == Metric::Auc { 1e-3 } else { 0.03 };
                assert!((found - expected).abs() < bound, "{classes} {metric:?}: {found} for {expected}");
                assert!(found > 0.2, "{classes} {metric:?}: {found}");
            }
        }
    }
}

#[test]
fn a_window_is_trained_from_every_start_and_the_best_counts() {
    let Some(device) = device() else { return };
    let (labels, splits, schedule) = (labels(), [split(0), split(1)], schedule(30));
    let (_, subject) = networks().pop().expect("the window is the last");
    let Subject::Bank(architecture, inputs) = &subject else { panic!("a window is a bank") };
    let runs = runs(&splits, 2);
    let train = |inputs: &[BankInputs<f32>]| {
        let trainee = Trainee::Bank { architecture, inputs };
        let keep = Keep { weights: true, curve: false };
        let batch = Batch { trainee, labels: &labels, runs: &runs, schedule: &schedule, keep };
        all_of(device.train(&batch, &Watch::silent(), &go_on).unwrap())
    };
    let together = train(inputs);
    let apart: Vec<_> = inputs.iter().map(|start| train(std::slice::from_ref(start))).collect();
    for (at, found) in together.iter().enumerate() {
        let best = apart.iter().map(|start| &start[at]).reduce(|best, next| {
            let key = |trained: &Trained<f32>| {
                (trained.scores.validation, -trained.scores.validation_loss.unwrap())
            };
            if key(next) > key(best) { next } else { best }
        });
        assert_eq!(found.weights, best.unwrap().weights);
    }
}

/// A device whose memory is too small for any batch of more than one run.
#[derive(Debug)]
struct Small;

impl Trainer for Small {
    fn device(&self) -> &str {
        "a small device"
    }

    fn dense_advantage(&self) -> f64 {
        7.0
    }

    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, qdc_nn::Error> {
        if batch.runs.len() > 1 {
            return Err(qdc_nn::Error::Device { problem: "it is full".into(), hint: None });
        }
        let mut trained = Cpu.train(batch, watch, on_end)?;
        trained.iter_mut().flatten().for_each(|trained| trained.device = self.device().into());
        Ok(trained)
    }
}

#[test]
fn what_a_device_cannot_do_is_done_by_the_cpu_under_its_own_name() {
    let (labels, splits, schedule) = (labels(), [split(0), split(1)], schedule(3));
    let (_, subject) = networks().swap_remove(0);
    let (runs, trainee, keep) = (runs(&splits, 6), subject.trainee(), Keep::default());
    let trainer = OrCpu(Small);
    assert_eq!((trainer.device(), trainer.dense_advantage()), ("a small device", 7.0));
    for (runs, name) in [(&runs[..1], "a small device"), (&runs[..], "cpu")] {
        let batch = Batch { trainee, labels: &labels, runs, schedule: &schedule, keep };
        let trained = all_of(trainer.train(&batch, &Watch::silent(), &go_on).unwrap());
        assert_eq!(trained.len(), runs.len());
        assert!(trained.iter().all(|trained| &*trained.device == name), "{name}");
    }
}
