//! The time of one training epoch with its evaluation, on one thread (`RAYON_NUM_THREADS=1`): the measurement behind
//! bench/train.
//!
//! `epochs DATASET.npz gcn|gat [--matrix SCIPY.npz] [--hidden 64] [--heads 4] [--epochs 300] [--seconds 8]`
//! prints one JSON object. Time is the CPU time of the thread, so that other work on the machine counts
//! little; the least of the epochs but the first is given, as for the peers.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use qdc_core::{Csr, EdgeRule, Features, Graph, Symmetrize, Transition};
use qdc_data::npz::Npz;
use qdc_nn::{
    Adam, Architecture, EdgeValues, Inputs, Kind, Learner, Metric, Network, Pass, Propagation, Scorer, Tower,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: epochs DATASET.npz gcn|gat [--matrix FILE] ...")?;
    let model = arguments.next().ok_or("gcn or gat?")?;
    let (mut matrix_path, mut hidden, mut heads, mut epochs, mut seconds) = (None, 64, 4, 300, 8.0);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("every option has a value")?;
        match option.as_str() {
            "--matrix" => matrix_path = Some(value),
            "--hidden" => hidden = value.parse()?,
            "--heads" => heads = value.parse()?,
            "--epochs" => epochs = value.parse()?,
            "--seconds" => seconds = value.parse()?,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let data = Npz::open(&path)?;
    let (nodes, columns, features) = data.matrix::<f32>("node_features")?;
    let labels = data.vector::<u32>("node_labels")?;
    let mask = |name| -> Result<Vec<u32>, Box<dyn std::error::Error>> {
        let (_, width, values) = data.matrix::<bool>(name)?;
        Ok((0..nodes as u32).filter(|&v| values[..width][v as usize]).collect())
    };
    let (train, validation) = (mask("train_masks")?, mask("val_masks")?);
    let matrix: Csr<f64> = match &matrix_path {
        None => {
            let (_, _, edges) = data.matrix::<u64>("edges")?;
            let edges = edges.chunks_exact(2).map(|edge| (edge[0], edge[1]));
            let graph = Graph::from_edges(nodes, edges, EdgeRule::Directed(Symmetrize::Or))?;
            Transition::new(&graph).matrix().clone()
        }
        Some(path) => {
            let file = Npz::open(path)?;
            let pointers = file.vector::<u64>("indptr")?.into_iter().map(|p| p as usize).collect();
            Csr::new(nodes, nodes, pointers, file.vector("indices")?, file.vector("data")?)?
        }
    };
    let propagation = Arc::new(Propagation::new(matrix.map(|v| v as f32)));
    let form = propagation.form();
    let inputs = Inputs::<f32>::new(&Features::from_dense(columns, features), vec![propagation])?;
    let classes = labels.iter().max().map_or(0, |&label| label as usize + 1);
    // As PyTorch users write it: several heads in the hidden layer, one in the last, both of the peers' scripts.
    let kind = if model == "gcn" { Kind::Gcn } else { Kind::Gat { heads, edge_values: EdgeValues::Ignore } };
    let architecture = Architecture::single(Tower { kind, widths: vec![hidden, classes], dropout: 0.5 });
    let mut network = Network::new(&architecture, &inputs, 0)?;
    let mut adam = Adam::new(network.weights().len(), 0.01, 5e-4);
    let mut scorer = Scorer::new(Metric::Accuracy);
    let (mut epoch_ms, mut evaluate_ms) = (f64::INFINITY, f64::INFINITY);
    let (mut loss, mut score) = (0.0, 0.0);
    let begin = Instant::now();
    let mut step = 0;
    while step < 4 || (begin.elapsed().as_secs_f64() < seconds && step < epochs) {
        step += 1;
        let start = cpu_milliseconds();
        loss = network.loss_and_gradient(&labels, &train, Pass::Train { seed: step });
        network.update(&mut adam);
        let trained = cpu_milliseconds();
        score = scorer.score(network.forward(Pass::Evaluate), &labels, &validation);
        let end = cpu_milliseconds();
        if step > 1 {
            (epoch_ms, evaluate_ms) = (epoch_ms.min(end - start), evaluate_ms.min(end - trained));
        }
    }
    println!(
        "{{\"model\": \"{model}\", \"entries\": {}, \"form\": \"{form}\", \"epoch_ms\": {epoch_ms:.3}, \
         \"evaluate_ms\": {evaluate_ms:.3}, \"loss\": {loss:.4}, \"validation\": {score:.4}}}",
        matrix.entries(),
    );
    Ok(())
}

/// CPU time of this thread; where the system does not tell, the time of a clock.
fn cpu_milliseconds() -> f64 {
    #[cfg(unix)]
    {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as f64 * 1e3 + time.tv_nsec as f64 / 1e6
    }
    #[cfg(not(unix))]
    {
        thread_local!(static START: Instant = Instant::now());
        START.with(|start| start.elapsed().as_secs_f64() * 1e3)
    }
}
