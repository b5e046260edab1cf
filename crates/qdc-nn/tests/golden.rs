//! Networks against PyTorch Geometric: logits, losses, every parameter's gradient, and the weights after one
//! and five steps of Adam, in f64 to the tolerances of the golden files' README and in f32 to 1e-4; and how
//! the loss moves with the entries of the matrices.
//!
//! Origin: PyTorch Geometric 2.8.1, PyTorch 2.15.0, float64 (tests/golden/gnn.json).

use std::sync::Arc;

use qdc_core::{Csr, Features};
use qdc_data::npz::Npz;
use qdc_nn::layers::EdgeValues;
use qdc_nn::{
    Adam, Architecture, Combinator, Inputs, Kind, Learner, Matrix, Network, Pass, Placed, Propagation, Real,
    Tower, Width,
};
use serde::Deserialize;

#[derive(Deserialize)]
struct Index {
    lr: f64,
    weight_decay: f64,
    heads: usize,
    graphs: std::collections::BTreeMap<String, GraphIndex>,
}

#[derive(Deserialize)]
struct GraphIndex {
    classes: usize,
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    name: String,
    kind: String,
    towers: Vec<TowerCase>,
    combine: Option<Combinator>,
    edge_dim: Option<usize>,
}

#[derive(Deserialize)]
struct TowerCase {
    matrix: String,
    sizes: Vec<usize>,
}

fn index() -> Index {
    serde_json::from_slice(&std::fs::read(qdc_testing::golden("gnn.json")).unwrap()).unwrap()
}

fn architecture(case: &Case, heads: usize, classes: usize) -> Architecture {
    let edge_values = if case.edge_dim.is_some() { EdgeValues::Bias } else { EdgeValues::Ignore };
    let kind = if case.kind == "gcn" { Kind::Gcn } else { Kind::Gat { heads, edge_values } };
    let towers = case
        .towers
        .iter()
        .map(|tower| Tower { kind, widths: tower.sizes[1..].to_vec(), dropout: 0.0 })
        .collect();
    Architecture { towers, combinator: case.combine, classes }
}

/// The parameter `placed` as the golden file stores it under `CASE.set.`, brought to our orientation.
fn golden<T: Real>(archive: &Npz, prefix: &str, case: &Case, placed: &Placed) -> Vec<T> {
    let (rows, columns) = placed.parameter.shape();
    let name = &placed.name;
    let theirs = name
        .replace(".layers.", ".convs.")
        .replace("attention_source", "att_src")
        .replace("attention_target", "att_dst")
        .replace("attention_edge", "att_edge")
        .replace("edge_weight", "lin_edge.weight");
    let real = |values: Vec<f64>| values.into_iter().map(T::from_f64).collect::<Vec<T>>();
    // A readout of towers side by side is one matrix there; ours has a part for each tower.
    if let Some(tower) = name.strip_prefix("readout.").and_then(|rest| rest.chars().next()?.to_digit(10)) {
        let whole = archive.array::<f64>(&format!("{prefix}.readout.weight")).unwrap();
        let width = |t: usize| *case.towers[t].sizes.last().unwrap();
        let start = if tower == 0 { 0 } else { width(0) };
        let entry = |i: usize, j: usize| whole.data[j * whole.shape[1] + start + i];
        return real((0..rows).flat_map(|i| (0..columns).map(move |j| entry(i, j))).collect());
    }
    if name.ends_with(".weight") {
        let name =
            theirs.replace(".weight", if theirs.starts_with("towers") { ".lin.weight" } else { ".weight" });
        let data = archive.array::<f64>(&format!("{prefix}.{name}")).unwrap().data;
        let data = &data;
        return real((0..rows).flat_map(|i| (0..columns).map(move |j| data[j * rows + i])).collect());
    }
    real(archive.array::<f64>(&format!("{prefix}.{theirs}")).unwrap().data)
}

fn assert_close<T: Real>(ours: &[T], theirs: &[T], tolerance: f64, what: &str) {
    assert_eq!(ours.len(), theirs.len(), "{what}");
    let worst = ours.iter().zip(theirs).map(|(a, b)| (a.to_f64() - b.to_f64()).abs()).fold(0.0, f64::max);
    assert!(worst <= tolerance, "{what}: off by {worst:e}, allowed {tolerance:e}");
}

struct Tolerances {
    values: f64,
    adam: f64,
}

/// What a golden file says about a graph.
struct Graph<'a, T> {
    archive: &'a Npz,
    index: &'a Index,
    cases: &'a GraphIndex,
    features: &'a dyn Fn(Vec<Arc<Propagation<T>>>) -> Inputs<T>,
    labels: Vec<u32>,
    train: Vec<u32>,
}

impl<'a, T: Real> Graph<'a, T> {
    fn new(
        archive: &'a Npz,
        index: &'a Index,
        name: &str,
        features: &'a dyn Fn(Vec<Arc<Propagation<T>>>) -> Inputs<T>,
    ) -> Self {
        let labels = archive.vector::<u32>("labels").unwrap();
        let mask = archive.vector::<bool>("mask").unwrap();
        let train = (0..mask.len() as u32).filter(|&v| mask[v as usize]).collect();
        Self { archive, index, cases: &index.graphs[name], features, labels, train }
    }

    fn matrix(&self, name: &str) -> Csr<T> {
        let key = |part| format!("{name}.{part}");
        let pointers = self.archive.vector::<u64>(&key("indptr")).unwrap();
        let values = self.archive.vector::<f64>(&key("values")).unwrap();
        Csr::new(
            self.labels.len(),
            self.labels.len(),
            pointers.into_iter().map(|p| p as usize).collect(),
            self.archive.vector::<u32>(&key("indices")).unwrap(),
            values.into_iter().map(T::from_f64).collect(),
        )
        .unwrap()
    }

    /// The network of a case over `matrices`, with its initial parameters.
    fn network(&self, case: &Case, matrices: &[Csr<T>]) -> Network<T> {
        let matrices = matrices.iter().map(|matrix| Arc::new(Propagation::new(matrix.clone()))).collect();
        let architecture = architecture(case, self.index.heads, self.cases.classes);
        let mut network = Network::new(&architecture, &(self.features)(matrices), 0).unwrap();
        for parameter in network.parameters().to_vec() {
            let values = golden(self.archive, &format!("{}.init", case.name), case, &parameter);
            parameter.write(network.weights_mut(), &values);
        }
        network
    }
}

fn check<T: Real>(graph: &Graph<'_, T>, tolerance: &Tolerances) {
    let Graph { archive, index, cases, labels, train, .. } = graph;
    for case in &cases.cases {
        let matrices: Vec<Csr<T>> = case.towers.iter().map(|tower| graph.matrix(&tower.matrix)).collect();
        let mut network = graph.network(case, &matrices);
        let placed = network.parameters().to_vec();
        let name = &case.name;
        let real = |values: Vec<f64>| values.into_iter().map(T::from_f64).collect::<Vec<T>>();
        let logits = network.forward(Pass::Evaluate).to_dense();
        let theirs = real(archive.array::<f64>(&format!("{name}.logits")).unwrap().data);
        assert_close(&logits, &theirs, tolerance.values, &format!("{name} logits"));

        let losses = archive.vector::<f64>(&format!("{name}.losses")).unwrap();
        let mut adam = Adam::new(network.weights().len(), index.lr, index.weight_decay);
        for step in 0..=5 {
            let loss = network.loss_and_gradient(labels, train, Pass::Train { seed: step });
            assert_close(&[loss], &[losses[step as usize]], tolerance.values, &format!("{name} loss {step}"));
            let set = match step {
                0 => Some("grad"),
                1 => Some("adam1"),
                5 => Some("adam5"),
                _ => None,
            };
            if let Some(set) = set {
                for parameter in &placed {
                    let theirs = golden::<T>(archive, &format!("{name}.{set}"), case, parameter);
                    let (flat, tolerance) = if set == "grad" {
                        (network.gradient(), tolerance.values)
                    } else {
                        (network.weights(), tolerance.adam)
                    };
                    let what = format!("{name} {set} {}", parameter.name);
                    assert_close(&parameter.read(flat), &theirs, tolerance, &what);
                }
            }
            network.update(&mut adam);
        }
    }
}

/// Our loss moves with every `step`-th entry of a matrix as PyTorch Geometric's gradient says: a central
/// difference, so the derivative of what is computed, whatever the code believes it to be.
fn check_matrix_gradients(graph: &Graph<'_, f64>, step: usize) {
    const MOVE: f64 = 1e-5;
    let mut compared = 0;
    for case in &graph.cases.cases {
        let matrices: Vec<Csr<f64>> = case.towers.iter().map(|tower| graph.matrix(&tower.matrix)).collect();
        for (tower, TowerCase { matrix, .. }) in case.towers.iter().enumerate() {
            let key = format!("{}.grad_matrix.{matrix}", case.name);
            if !graph.archive.has(&key) {
                assert!(case.kind == "gat" && case.edge_dim.is_none(), "{key} is missing");
                continue;
            }
            let theirs = graph.archive.vector::<f64>(&key).unwrap();
            for at in (0..theirs.len()).step_by(step) {
                let loss_at = |change: f64| {
                    let mut moved = matrices.clone();
                    moved[tower].values_mut()[at] += change;
                    graph.network(case, &moved).loss(&graph.labels, &graph.train, Pass::Evaluate)
                };
                let difference = (loss_at(MOVE) - loss_at(-MOVE)) / (2.0 * MOVE);
                assert_close(&[difference], &[theirs[at]], 1e-9, &format!("{key} [{at}]"));
                compared += 1;
            }
        }
    }
    assert!(compared > 0);
}

fn with_karate<T: Real>(then: impl Fn(&Graph<'_, T>)) {
    let archive = Npz::open(qdc_testing::golden("gnn_karate.npz")).unwrap();
    let (rows, columns, values) = archive.matrix::<f64>("features").unwrap();
    let values: Vec<T> = values.into_iter().map(T::from_f64).collect();
    let features =
        |matrices| Inputs::dense(Matrix::from_dense(rows, Width::single(columns), &values), matrices);
    then(&Graph::new(&archive, &index(), "karate", &features));
}

fn with_cornell<T: Real>(then: impl Fn(&Graph<'_, T>)) {
    let (Some(path), Some(data)) = (qdc_testing::large_golden("gnn_cornell.npz"), qdc_testing::data_dir())
    else {
        return;
    };
    let dataset = Npz::open(data.join("cornell.npz")).unwrap();
    let (_, columns, values) = dataset.matrix::<f32>("node_features").unwrap();
    let dense = Features::from_dense(columns, values);
    let features = |matrices| Inputs::new(&dense, matrices).unwrap();
    then(&Graph::new(&Npz::open(path).unwrap(), &index(), "cornell", &features));
}

const DOUBLE: Tolerances = Tolerances { values: 1e-10, adam: 1e-9 };
const SINGLE: Tolerances = Tolerances { values: 1e-4, adam: 1e-4 };

#[test]
fn networks_on_karate_agree_with_pytorch_geometric_in_double_precision() {
    with_karate::<f64>(|graph| check(graph, &DOUBLE));
}

#[test]
fn networks_on_karate_agree_with_pytorch_geometric_in_single_precision() {
    with_karate::<f32>(|graph| check(graph, &SINGLE));
}

#[test]
fn networks_on_cornell_agree_with_pytorch_geometric_in_double_precision() {
    with_cornell::<f64>(|graph| check(graph, &DOUBLE));
}

#[test]
fn networks_on_cornell_agree_with_pytorch_geometric_in_single_precision() {
    with_cornell::<f32>(|graph| check(graph, &SINGLE));
}

#[test]
fn the_loss_moves_with_every_entry_of_a_matrix_on_karate_as_in_pytorch_geometric() {
    with_karate::<f64>(|graph| check_matrix_gradients(graph, 1));
}

#[test]
fn the_loss_moves_with_entries_of_a_matrix_on_cornell_as_in_pytorch_geometric() {
    with_cornell::<f64>(|graph| check_matrix_gradients(graph, 97));
}
