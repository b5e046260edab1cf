//! Networks against PyTorch Geometric: logits, losses, every parameter's gradient, and the weights after one and five
//! steps of Adam, in f64 to the tolerances of the golden files' README and in f32 to 1e-4.
//!
//! Origin: PyTorch Geometric 2.8.1, PyTorch 2.15.0, float64 (tests/golden/gnn.json).

use std::sync::Arc;

use qdc_core::{Csr, Features};
use qdc_data::npz::Npz;
use qdc_nn::layers::EdgeValues;
use qdc_nn::{
    Adam, Architecture, Combinator, Inputs, Kind, Matrix, Network, Pass, Placed, Propagation, Real, Tower,
    Width,
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

fn check<T: Real>(
    archive: &Npz,
    graph: &GraphIndex,
    index: &Index,
    features: &dyn Fn(Vec<Arc<Propagation<T>>>) -> Inputs<T>,
    tolerance: &Tolerances,
) {
    let labels = archive.vector::<u32>("labels").unwrap();
    let mask = archive.vector::<bool>("mask").unwrap();
    let train: Vec<u32> = (0..mask.len() as u32).filter(|&v| mask[v as usize]).collect();
    for case in &graph.cases {
        let matrices = case
            .towers
            .iter()
            .map(|tower| {
                let key = |part| format!("{}.{part}", tower.matrix);
                let pointers = archive.vector::<u64>(&key("indptr")).unwrap();
                let values = archive.vector::<f64>(&key("values")).unwrap();
                let matrix = Csr::new(
                    mask.len(),
                    mask.len(),
                    pointers.into_iter().map(|p| p as usize).collect(),
                    archive.vector::<u32>(&key("indices")).unwrap(),
                    values.into_iter().map(T::from_f64).collect(),
                );
                Arc::new(Propagation::new(matrix.unwrap()))
            })
            .collect();
        let inputs = features(matrices);
        let architecture = architecture(case, index.heads, graph.classes);
        let mut network = Network::new(&architecture, &inputs, 0).unwrap();
        let placed = network.parameters().to_vec();
        let name = &case.name;
        for parameter in &placed {
            let values = golden(archive, &format!("{name}.init"), case, parameter);
            parameter.write(network.weights_mut(), &values);
        }
        let real = |values: Vec<f64>| values.into_iter().map(T::from_f64).collect::<Vec<T>>();
        let logits = network.forward(Pass::Evaluate).to_dense();
        let theirs = real(archive.array::<f64>(&format!("{name}.logits")).unwrap().data);
        assert_close(&logits, &theirs, tolerance.values, &format!("{name} logits"));

        let losses = archive.vector::<f64>(&format!("{name}.losses")).unwrap();
        let mut adam = Adam::new(network.weights().len(), index.lr, index.weight_decay);
        for step in 0..=5 {
            let loss = network.loss_and_gradient(&labels, &train, Pass::Train { seed: step });
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
            network.update(|weights, gradient| adam.step(weights, gradient));
        }
    }
}

fn karate<T: Real>(tolerance: &Tolerances) {
    let index = index();
    let archive = Npz::open(qdc_testing::golden("gnn_karate.npz")).unwrap();
    let (rows, columns, values) = archive.matrix::<f64>("features").unwrap();
    let values: Vec<T> = values.into_iter().map(T::from_f64).collect();
    let features =
        |matrices| Inputs::dense(Matrix::from_dense(rows, Width::single(columns), &values), matrices);
    check::<T>(&archive, &index.graphs["karate"], &index, &features, tolerance);
}

fn cornell<T: Real>(tolerance: &Tolerances) {
    let (Some(path), Some(data)) = (qdc_testing::large_golden("gnn_cornell.npz"), qdc_testing::data_dir())
    else {
        return;
    };
    let index = index();
    let dataset = Npz::open(data.join("cornell.npz")).unwrap();
    let (_, columns, values) = dataset.matrix::<f32>("node_features").unwrap();
    let dense = Features::from_dense(columns, values);
    let features = |matrices| Inputs::new(&dense, matrices).unwrap();
    check::<T>(&Npz::open(path).unwrap(), &index.graphs["cornell"], &index, &features, tolerance);
}

const DOUBLE: Tolerances = Tolerances { values: 1e-10, adam: 1e-9 };
const SINGLE: Tolerances = Tolerances { values: 1e-4, adam: 1e-4 };

#[test]
fn networks_on_karate_agree_with_pytorch_geometric_in_double_precision() {
    karate::<f64>(&DOUBLE);
}

#[test]
fn networks_on_karate_agree_with_pytorch_geometric_in_single_precision() {
    karate::<f32>(&SINGLE);
}

#[test]
fn networks_on_cornell_agree_with_pytorch_geometric_in_double_precision() {
    cornell::<f64>(&DOUBLE);
}

#[test]
fn networks_on_cornell_agree_with_pytorch_geometric_in_single_precision() {
    cornell::<f32>(&SINGLE);
}
