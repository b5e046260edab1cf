//! The time of a kernel on the device: the measurement behind bench/gpu.
//!
//! `kernels GRAPH [--sigma 0.1] [--top-k K] [--f32] [--times 3] [--cpu]`, GRAPH a dataset's .npz or a
//! generator, prints one JSON object. The mu is 0.3; without --top-k entries of at least 1e-4 are kept. The
//! device is opened before; the seconds are from the graph in memory to the finished kernel in memory, the
//! least of all.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use qdc_core::{Filter, Precision, Recipe, Resources, Route, Sparsify, Watch};
use qdc_cuda::ColumnDevice;
use qdc_data::{DataDir, EdgeReading, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name =
        arguments.next().ok_or("usage: kernels GRAPH [--sigma S] [--top-k K] [--f32] [--times N] [--cpu]")?;
    let (mut sigma, mut kept, mut precision, mut times, mut cpu) =
        (0.1, Sparsify::Epsilon(1e-4), Precision::F64, 3, false);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or("the option has a value");
        match option.as_str() {
            "--sigma" => sigma = value()?.parse()?,
            "--top-k" => kept = Sparsify::TopK(value()?.parse()?),
            "--times" => times = value()?.parse()?,
            "--f32" => precision = Precision::F32,
            "--cpu" => cpu = true,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let graph = open(&name, &DataDir::from_environment(), EdgeReading::default())?.into_graph();
    let recipe = Recipe::new(Filter::gaussian(0.3, sigma)?).sparsify(kept).precision(precision);
    let mut resources = Resources { route: Route::Chebyshev, ..Resources::default() };
    if !cpu {
        resources.accelerator = Some(Arc::new(ColumnDevice::insisting()?));
    }
    let watch = Watch::silent();
    let mut least = f64::INFINITY;
    let mut report = None;
    for _ in 0..times {
        let start = Instant::now();
        let built = recipe.prepare(&graph, &resources, &watch)?.build(&watch)?;
        least = least.min(start.elapsed().as_secs_f64());
        report = Some(built.report);
    }
    let report = report.ok_or("--times is at least 1")?;
    println!(
        r#"{{"graph": "{name}", "sigma": {sigma}, "kept": "{kept:?}", "precision": "{precision:?}", "seconds": {least:.4}, "degree": {}, "entries": {}, "bound": {:e}, "by": "{}"}}"#,
        report.degree.unwrap_or(0),
        report.entries,
        report.error_bound.or(report.error_estimate).unwrap_or(f64::NAN),
        report.reason
    );
    Ok(())
}
