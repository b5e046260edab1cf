//! The time of one training epoch of a large graph on one thread and on several, and the memory it takes: the
//! measurement behind bench/scale.
//!
//! `threads [--matrix SCIPY.npz] [--nodes 1000000] [--entries 32] [--features 100] [--hidden 64] [--epochs 3]
//! [--threads 2]` prints one JSON object. Without a matrix one is drawn: every row has so many entries at
//! random places, and the union with the transpose is taken, as for a top-k kernel of an expander. Epochs on one
//! and on several threads take turns, so that other work on the machine slows both; the least of each is given.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use qdc_core::{Csr, Features};
use qdc_data::npz::Npz;
use qdc_nn::{
    Adam, Architecture, Inputs, Kind, Learner, Metric, Network, Pass, Propagation, Scorer, Tower, random,
};

const CLASSES: usize = 5;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let (mut path, mut nodes, mut entries, mut columns) = (None, 1_000_000, 32, 100);
    let (mut hidden, mut epochs, mut several) = (64, 3, 2);
    let mut arguments = std::env::args().skip(1);
    while let Some(option) = arguments.next() {
        let value = arguments.next().ok_or("every option has a value")?;
        match option.as_str() {
            "--matrix" => path = Some(value),
            "--nodes" => nodes = value.parse()?,
            "--entries" => entries = value.parse()?,
            "--features" => columns = value.parse()?,
            "--hidden" => hidden = value.parse()?,
            "--epochs" => epochs = value.parse()?,
            "--threads" => several = value.parse()?,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let matrix: Csr<f32> = match path {
        None => drawn(nodes, entries)?,
        Some(path) => {
            let file = Npz::open(&path)?;
            let pointers: Vec<usize> = file.vector("indptr")?;
            nodes = pointers.len() - 1;
            let values: Vec<f64> = file.vector("data")?;
            let values = values.into_iter().map(|value| value as f32).collect();
            Csr::new(nodes, nodes, pointers, file.vector("indices")?, values)?
        }
    };
    let stored = matrix.entries();
    let uniform = |at: usize| (random::derive(7, at as u64) >> 40) as f32 / (1u32 << 24) as f32 - 0.5;
    let features = Features::Dense { columns, values: (0..nodes * columns).map(uniform).collect() };
    let inputs = Inputs::<f32>::new(&features, vec![Arc::new(Propagation::new(matrix))])?;
    drop(features);
    let labels: Vec<u32> =
        (0..nodes).map(|v| (random::derive(9, v as u64) % CLASSES as u64) as u32).collect();
    let part = |rest: u32| -> Vec<u32> { (0..nodes as u32).filter(|v| v % 2 == rest).collect() };
    let (train, validation) = (part(0), part(1));
    let tower = Tower { kind: Kind::Gcn, widths: vec![hidden, CLASSES], dropout: 0.5 };
    let mut network = Network::new(&Architecture::single(tower), &inputs, 0)?;
    let mut scorer = Scorer::new(Metric::Accuracy);
    let mut best = [f64::INFINITY; 2];
    for _ in 0..epochs {
        let mut results = Vec::new();
        for (threads, best) in [1, several].into_iter().zip(&mut best) {
            let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build()?;
            network.restart(1);
            let mut adam = Adam::new(network.weights().len(), 0.01, 5e-4);
            let (seconds, loss, score) = pool.install(|| {
                let start = Instant::now();
                let loss = network.loss_and_gradient(&labels, &train, Pass::Train { seed: 1 });
                network.update(&mut adam);
                let score = scorer.score(network.forward(Pass::Evaluate), &labels, &validation);
                (start.elapsed().as_secs_f64(), loss, score)
            });
            *best = best.min(seconds);
            results.push((loss, score, network.weights().to_vec()));
        }
        assert!(results[0] == results[1], "the number of threads must not be seen in the result");
    }
    println!(
        "{{\"nodes\": {nodes}, \"entries\": {stored}, \"features\": {columns}, \"hidden\": {hidden}, \"epoch_s\": {:.3}, \
         \"threads\": {several}, \"epoch_s_threads\": {:.3}, \"ratio\": {:.2}, \"peak_mb\": {}}}",
        best[0],
        best[1],
        best[0] / best[1],
        peak_megabytes(),
    );
    Ok(())
}

/// A symmetric matrix with at least `entries` entries in each row, at random places.
fn drawn(nodes: usize, entries: usize) -> Result<Csr<f32>, Box<dyn std::error::Error>> {
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); nodes];
    for row in 0..nodes {
        for at in 0..entries {
            let column = (random::derive(row as u64, at as u64) % nodes as u64) as usize;
            rows[row].push(column as u32);
            rows[column].push(row as u32);
        }
    }
    for row in &mut rows {
        row.sort_unstable();
        row.dedup();
    }
    let value = 0.5 / entries as f32;
    Ok(Csr::from_rows(
        nodes,
        rows.into_iter().map(|row| {
            let values = vec![value; row.len()];
            (row, values)
        }),
    )?)
}

/// The most memory this process has held.
fn peak_megabytes() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1000
}
