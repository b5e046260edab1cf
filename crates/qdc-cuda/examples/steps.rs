//! The time of one training step of ten splits on the device, evaluation included: the measurement behind
//! bench/gpu.
//!
//! `steps DATASET.npz gcn|gat [--matrix SCIPY.npz] [--hidden 64] [--heads 4] [--steps 300]` prints one JSON
//! object. The time of a step is the difference between a long and a short training, so that what is done
//! once (memory, copies, starting weights) is not part of it; `batch_seconds` is the whole of the long one.

#![allow(clippy::print_stdout)]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::Instant;

use qdc_core::{Csr, EdgeRule, Features, Graph, Metric, Split, Symmetrize, Transition, Watch};
use qdc_cuda::Device;
use qdc_data::npz::Npz;
use qdc_nn::training::{Keep, Schedule};
use qdc_nn::{
    Architecture, Batch, BatchRun, EarlyStopping, EdgeValues, Inputs, Kind, Propagation, Tower, Trainee,
    Trainer,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("usage: steps DATASET.npz gcn|gat [--matrix FILE] ...")?;
    let model = arguments.next().ok_or("gcn or gat?")?;
    let (mut matrix_path, mut hidden, mut heads, mut steps) = (None, 64, 4, 300);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("every option has a value")?;
        match option.as_str() {
            "--matrix" => matrix_path = Some(value),
            "--hidden" => hidden = value.parse()?,
            "--heads" => heads = value.parse()?,
            "--steps" => steps = value.parse()?,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let data = Npz::open(&path)?;
    let (nodes, columns, features) = data.matrix::<f32>("node_features")?;
    let labels = data.vector::<u32>("node_labels")?;
    let masks = |name| -> Result<Vec<Vec<u32>>, Box<dyn std::error::Error>> {
        let (_, width, values) = data.matrix::<bool>(name)?;
        let set = |mask: &[bool]| (0..nodes as u32).filter(|&v| mask[v as usize]).collect();
        Ok(values.chunks_exact(width).map(set).collect())
    };
    let sets = masks("train_masks")?.into_iter().zip(masks("val_masks")?).zip(masks("test_masks")?);
    let splits: Result<Vec<Split>, _> =
        sets.map(|((train, validation), test)| Split::new(nodes, train, validation, test)).collect();
    let splits = splits?;
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
    let entries = matrix.entries();
    let propagation = Arc::new(Propagation::new(matrix.map(|v| v as f32)));
    let inputs = Inputs::<f32>::new(&Features::from_dense(columns, features), vec![propagation])?;
    let classes = labels.iter().max().map_or(0, |&label| label as usize + 1);
    let kind = if model == "gcn" { Kind::Gcn } else { Kind::Gat { heads, edge_values: EdgeValues::Ignore } };
    let architecture = Architecture::single(Tower { kind, widths: vec![hidden, classes], dropout: 0.5 });
    let runs: Vec<BatchRun<'_>> =
        splits.iter().enumerate().map(|(number, split)| BatchRun { split, number, seed: 0 }).collect();
    let device = Device::open()?;
    let train = |max_steps: usize| -> Result<(f64, f64), Box<dyn std::error::Error>> {
        let stopping = EarlyStopping::NEVER;
        let (learning_rate, weight_decay, metric) = (0.01, 5e-4, Metric::Accuracy);
        let schedule =
            Schedule { learning_rate, weight_decay, max_steps, stopping, metric, batch_nodes: None };
        let (runs, keep) = (&runs, Keep::default());
        let batch = Batch {
            trainee: Trainee::Towers { architecture: &architecture, inputs: &inputs },
            labels: &labels,
            runs,
            schedule: &schedule,
            keep,
        };
        let start = Instant::now();
        let trained = device.train(&batch, &Watch::silent(), &|_| ControlFlow::Continue(()))?;
        let seconds = start.elapsed().as_secs_f64();
        let tests = trained.iter().flatten().map(|trained| trained.scores.test);
        Ok((seconds, tests.sum::<f64>() / runs.len() as f64))
    };
    train(32)?; // warm
    let (mut short, mut long, mut test) = (f64::INFINITY, f64::INFINITY, 0.0);
    for _ in 0..3 {
        short = short.min(train(32)?.0);
        let (seconds, mean) = train(32 + steps)?;
        (long, test) = (long.min(seconds), mean);
    }
    let step_ms = 1e3 * (long - short) / steps as f64;
    println!(
        "{{\"dataset\":\"{path}\",\"model\":\"{model}\",\"entries\":{entries},\"splits\":{},\"step_ms\":{step_ms:.4},\
         \"batch_seconds\":{long:.4},\"test_mean\":{test:.4},\"device\":\"{}\"}}",
        runs.len(),
        device.name()
    );
    Ok(())
}
