//! Every layer and every model against central differences: (f(w + h) - f(w - h)) / 2h.

use std::sync::Arc;

use qdc_core::{Csr, Features};
use qdc_nn::layers::{
    Activate, Activation, Attention, DenseFeatures, Heads, Layer, Linear, Parameter, Propagate,
    SparseFeatureLinear,
};
use qdc_nn::random::derive;
use qdc_nn::{
    Architecture, Combinator, EdgeValues, Inputs, Kind, Learner, Matrix, Network, Pass, Propagation, Tower,
    Width,
};

const NODES: usize = 9;
const STEP: f64 = 1e-6;
const PASS: Pass = Pass::Train { seed: 5 };

fn number(seed: u64, at: usize) -> f64 {
    (derive(seed, at as u64) >> 11) as f64 / (1u64 << 52) as f64 - 1.0
}

/// Not symmetric, and vertex 4 has no neighbours.
fn matrix() -> Arc<Propagation<f64>> {
    let rows = (0..NODES).map(|i| {
        (0..NODES)
            .filter(|j| i != 4 && number(1, i * NODES + j) > 0.2)
            .map(|j| (j as u32, number(2, i * NODES + j)))
            .unzip()
    });
    Arc::new(Propagation::new(Csr::from_rows(NODES, rows).unwrap()))
}

fn sparse_features() -> Features {
    let values =
        (0..NODES * 12).map(|at| if number(3, at) > 0.6 { number(4, at) as f32 } else { 0.0 }).collect();
    let features = Features::from_dense(12, values);
    assert!(matches!(features, Features::Sparse(_)));
    features
}

fn dense_features() -> Features {
    Features::from_dense(6, (0..NODES * 6).map(|at| number(4, at) as f32).collect())
}

/// Checks a layer with the loss sum_ij c_ij y_ij, whose gradient dy is c.
fn check_layer(layer: &mut dyn Layer<f64>, input: Width, wants_input: bool, name: &str) {
    let length: usize = {
        // The memory of a parameter is its shape with padding; a matrix of that shape tells its length.
        layer
            .parameters()
            .iter()
            .map(|p| {
                let rows = match p.rows {
                    qdc_nn::layers::Rows::One => 1,
                    qdc_nn::layers::Rows::Features(count) => count,
                    qdc_nn::layers::Rows::Hidden(width) => {
                        width.count() * width.of_block().next_multiple_of(8)
                    }
                };
                rows * p.columns.count() * p.columns.of_block().next_multiple_of(8)
            })
            .sum()
    };
    let dense = |seed: u64, width: Width| {
        let values: Vec<f64> = (0..NODES * width.columns()).map(|at| number(seed, at)).collect();
        Matrix::from_dense(NODES, width, &values)
    };
    let theta: Vec<f64> = (0..length).map(|at| number(6, at)).collect();
    let x = dense(7, input);
    let c = dense(8, layer.width());
    let mut y = Matrix::zeros(NODES, layer.width());
    let loss = |layer: &mut dyn Layer<f64>, theta: &[f64], x: &Matrix<f64>, y: &mut Matrix<f64>| -> f64 {
        layer.forward(theta, x, y, PASS);
        y.to_dense().iter().zip(c.to_dense()).map(|(y, c)| y * c).sum()
    };
    loss(layer, &theta, &x, &mut y);
    let mut gradient = vec![0.0; length];
    let mut dx = Matrix::zeros(if wants_input { NODES } else { 0 }, input);
    layer.backward(&theta, &x, &c, &mut gradient, &mut dx);
    let mut scratch = y.clone();
    // Of many parameters a few are enough: each step passes through every kind of column.
    for at in (0..length).step_by(if length > 400 { 13 } else { 1 }) {
        let mut moved = theta.clone();
        moved[at] = theta[at] + STEP;
        let above = loss(layer, &moved, &x, &mut scratch);
        moved[at] = theta[at] - STEP;
        let below = loss(layer, &moved, &x, &mut scratch);
        let difference = (above - below) / (2.0 * STEP);
        // Entries in the padding of c are 0, so theirs are too.
        assert!(
            (difference - gradient[at]).abs() < 1e-7,
            "{name}: parameter {at}: {difference} {}",
            gradient[at]
        );
    }
    if wants_input {
        let flat = x.to_dense();
        for at in (0..flat.len()).step_by(if length > 400 { 13 } else { 1 }) {
            let mut moved = flat.clone();
            moved[at] = flat[at] + STEP;
            let above = loss(layer, &theta, &Matrix::from_dense(NODES, input, &moved), &mut scratch);
            moved[at] = flat[at] - STEP;
            let below = loss(layer, &theta, &Matrix::from_dense(NODES, input, &moved), &mut scratch);
            let difference = (above - below) / (2.0 * STEP);
            let analytic = dx.to_dense()[at];
            assert!((difference - analytic).abs() < 1e-7, "{name}: input {at}: {difference} {analytic}");
        }
    }
}

#[test]
fn a_linear_map_has_the_gradient_of_its_differences() {
    let (input, output) = (Width::blocks(2, 3), Width::single(5));
    check_layer(&mut Linear::new(input, output), input, true, "linear");
}

#[test]
fn propagation_by_an_asymmetric_matrix_has_the_gradient_of_its_differences() {
    let width = Width::single(3);
    check_layer(&mut Propagate::new(matrix(), width), width, true, "propagate");
}

/// What works in place, as a layer.
struct InPlace {
    activate: Activate,
    width: Width,
    y: Matrix<f64>,
}

impl Layer<f64> for InPlace {
    fn width(&self) -> Width {
        self.width
    }

    fn parameters(&self) -> Vec<Parameter> {
        self.activate.parameters()
    }

    fn forward(&mut self, theta: &[f64], x: &Matrix<f64>, y: &mut Matrix<f64>, pass: Pass) {
        y.clone_from(x);
        self.activate.forward(theta, y, pass);
        self.y.clone_from(y);
    }

    fn backward(
        &mut self,
        _theta: &[f64],
        _x: &Matrix<f64>,
        dy: &Matrix<f64>,
        gradient: &mut [f64],
        dx: &mut Matrix<f64>,
    ) {
        dx.clone_from(dy);
        self.activate.backward(&self.y, dx, gradient);
    }
}

#[test]
fn activations_with_bias_and_dropout_have_the_gradient_of_their_differences() {
    for activation in [Activation::Identity, Activation::Relu, Activation::Elu] {
        for dropout in [0.0, 0.4] {
            let width = Width::blocks(2, 3);
            let activate = Activate::new(width, activation, true, dropout, 1);
            let mut layer = InPlace { activate, width, y: Matrix::zeros(NODES, width) };
            check_layer(&mut layer, width, true, &format!("{activation:?} {dropout}"));
        }
    }
}

#[test]
fn features_with_dropout_have_the_gradient_of_their_differences() {
    let Features::Sparse(sparse) = sparse_features() else { unreachable!() };
    let sparse = Arc::new(sparse.map(f64::from));
    for dropout in [0.0, 0.4] {
        let mut layer = SparseFeatureLinear::new(Arc::clone(&sparse), Width::single(3), dropout, 1);
        check_layer(&mut layer, Width::single(1), false, &format!("sparse features {dropout}"));
        let dense = Matrix::from_dense(
            NODES,
            Width::single(2),
            &(0..2 * NODES).map(|i| i as f64).collect::<Vec<_>>(),
        );
        check_layer(
            &mut DenseFeatures::new(Arc::new(dense), dropout, 1),
            Width::single(1),
            false,
            "dense features",
        );
    }
}

#[test]
fn attention_has_the_gradient_of_its_differences_in_every_variant() {
    for heads in [Heads::Concatenate, Heads::Average] {
        for edge_values in [EdgeValues::Ignore, EdgeValues::Multiply, EdgeValues::Bias] {
            for dropout in [0.0, 0.4] {
                // Heads are worked on in groups of 4 and of 1; those of 64 columns and more one by one.
                for width in [Width::blocks(2, 3), Width::blocks(5, 11), Width::blocks(5, 66)] {
                    let mut layer = Attention::new(matrix(), width, heads, edge_values, dropout, 1);
                    check_layer(&mut layer, width, true, &format!("{heads:?} {edge_values:?} {dropout}"));
                }
            }
        }
    }
}

#[test]
fn rows_stored_in_another_order_change_neither_logits_nor_gradients() {
    let gat = Kind::Gat { heads: 2, edge_values: EdgeValues::Multiply };
    let tower = |kind| Tower { kind, widths: vec![5, 4], dropout: 0.0 };
    let labels: Vec<u32> = (0..NODES as u32).map(|vertex| vertex % 3).collect();
    for (kind, combinator) in [(Kind::Gcn, Combinator::Add), (gat, Combinator::Concat)] {
        let architecture = Architecture::joined(vec![tower(kind), tower(kind)], combinator, 3);
        for features in [sparse_features(), dense_features()] {
            let inputs = Inputs::<f64>::new(&features, vec![matrix(), matrix()]).unwrap();
            let [mut plain, mut clustered] = [inputs.clone(), inputs.clustered()]
                .map(|inputs| Network::new(&architecture, &inputs, 3).unwrap());
            let losses = [&mut plain, &mut clustered]
                .map(|network| network.loss_and_gradient(&labels, &[0, 3, 4, 8], PASS));
            assert!((losses[0] - losses[1]).abs() < 1e-12, "{losses:?}");
            let close = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-12);
            assert!(close(plain.gradient(), clustered.gradient()));
            assert!(plain.gradient().iter().any(|&value| value != 0.0));
            let [plain, clustered] = [plain, clustered].map(|mut network| network.forward(PASS).to_dense());
            assert!(close(&plain, &clustered));
        }
    }
}

/// Checks every parameter of a network, dropout included.
fn check_network(architecture: &Architecture, features: &Features, name: &str) {
    let inputs = Inputs::<f64>::new(features, vec![matrix(), matrix(), matrix()]).unwrap();
    let mut network = Network::new(architecture, &inputs, 3).unwrap();
    // Biases start at 0, where a ReLU over an isolated vertex has a kink: move everything off it.
    for (at, weight) in network.weights().to_vec().into_iter().enumerate() {
        if weight != 0.0 {
            network.weights_mut()[at] += 0.1 * number(11, at);
        }
    }
    for placed in network.parameters().to_vec() {
        if placed.name.ends_with("bias") {
            let values: Vec<f64> = (0..placed.parameter.shape().1).map(|at| number(12, at)).collect();
            placed.write(network.weights_mut(), &values);
        }
    }
    let labels: Vec<u32> = (0..NODES as u32).map(|v| v % 3).collect();
    let train = [0, 2, 3, 4, 7];
    network.loss_and_gradient(&labels, &train, PASS);
    let gradient = network.gradient().to_vec();
    for placed in network.parameters().to_vec() {
        let analytic = placed.read(&gradient);
        let start = placed.read(network.weights());
        for at in 0..start.len() {
            let mut loss_at = |value: f64| {
                let mut moved = start.clone();
                moved[at] = value;
                placed.write(network.weights_mut(), &moved);
                network.loss(&labels, &train, PASS)
            };
            let difference = (loss_at(start[at] + STEP) - loss_at(start[at] - STEP)) / (2.0 * STEP);
            placed.write(network.weights_mut(), &start);
            assert!(
                (difference - analytic[at]).abs() < 1e-7,
                "{name} {} [{at}]: difference {difference}, gradient {}",
                placed.name,
                analytic[at]
            );
        }
    }
}

fn kinds() -> Vec<Kind> {
    let gat = |edge_values| Kind::Gat { heads: 5, edge_values };
    vec![Kind::Mlp, Kind::Gcn, gat(EdgeValues::Ignore), gat(EdgeValues::Multiply), gat(EdgeValues::Bias)]
}

#[test]
fn every_network_has_the_gradient_of_its_differences() {
    for features in [sparse_features(), dense_features()] {
        for kind in kinds() {
            for widths in [vec![3], vec![4, 3], vec![9, 4, 3]] {
                let name = format!("{kind:?} {widths:?}");
                check_network(&Architecture::single(Tower { kind, widths, dropout: 0.3 }), &features, &name);
            }
        }
    }
}

#[test]
fn several_towers_have_the_gradient_of_their_differences() {
    for kind in kinds() {
        for combinator in [Combinator::Add, Combinator::Concat] {
            let first = Tower { kind, widths: vec![4, 5], dropout: 0.3 };
            let second = Tower { kind, widths: vec![5], dropout: 0.2 };
            let third = Tower { kind: Kind::Gcn, widths: vec![5], dropout: 0.0 };
            for towers in [vec![first.clone(), second.clone()], vec![first, second, third]] {
                let name = format!("{kind:?} {combinator:?} {}", towers.len());
                let architecture = Architecture::joined(towers, combinator, 3);
                check_network(&architecture, &sparse_features(), &name);
            }
        }
    }
}

#[test]
fn single_precision_agrees_with_double() {
    for kind in kinds() {
        let architecture = Architecture::single(Tower { kind, widths: vec![16, 3], dropout: 0.3 });
        let labels: Vec<u32> = (0..NODES as u32).map(|v| v % 3).collect();
        let features = sparse_features();
        let wide = Inputs::<f64>::new(&features, vec![matrix()]).unwrap();
        let single = Propagation::new(matrix().matrix().map(|v| v as f32));
        let narrow = Inputs::<f32>::new(&features, vec![Arc::new(single)]).unwrap();
        let mut double = Network::new(&architecture, &wide, 3).unwrap();
        let mut single = Network::new(&architecture, &narrow, 3).unwrap();
        let loss = double.loss_and_gradient(&labels, &[0, 2, 3, 4, 7], PASS);
        let loss_single = single.loss_and_gradient(&labels, &[0, 2, 3, 4, 7], PASS);
        assert!((loss - loss_single).abs() < 1e-4);
        for (a, b) in double.gradient().iter().zip(single.gradient()) {
            assert!((a - f64::from(*b)).abs() < 1e-4, "{kind:?}: {a} {b}");
        }
    }
}
