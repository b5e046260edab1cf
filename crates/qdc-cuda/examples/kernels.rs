//! The time of a kernel on the device: the measurement behind bench/gpu.
//!
//! `kernels GRAPH [--mu 0.3] [--sigma 0.1] [--top-k K | --epsilon 1e-4] [--pairs K] [--f32] [--times 3]
//! [--cpu]`, GRAPH a dataset's .npz or a generator, prints one JSON object. The device is opened before; with
//! --pairs the whole spectrum is computed before, on the device too. The seconds are from the graph in memory
//! to the finished kernel in memory, the least of all.

#![allow(clippy::print_stdout)]

use std::sync::Arc;
use std::time::Instant;

use qdc_core::kernel::Accelerator;
use qdc_core::{
    Eigensolver, Filter, Pairs, Precision, Recipe, Resources, Route, Sparsify, Transition, Watch,
};
use qdc_cuda::ColumnDevice;
use qdc_data::{DataDir, EdgeReading, open};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let name = arguments.next().ok_or("usage: kernels GRAPH [options]")?;
    let (mut mu, mut sigma, mut kept, mut pairs) = (0.3, 0.1, Sparsify::Epsilon(1e-4), Pairs::All);
    let (mut precision, mut times, mut cpu) = (Precision::F64, 3, false);
    while let Some(option) = arguments.next() {
        let mut value = || arguments.next().ok_or("the option has a value");
        match option.as_str() {
            "--mu" => mu = value()?.parse()?,
            "--epsilon" => kept = Sparsify::Epsilon(value()?.parse()?),
            "--pairs" => pairs = Pairs::Nearest(value()?.parse()?),
            "--sigma" => sigma = value()?.parse()?,
            "--top-k" => kept = Sparsify::TopK(value()?.parse()?),
            "--times" => times = value()?.parse()?,
            "--f32" => precision = Precision::F32,
            "--cpu" => cpu = true,
            _ => return Err(format!("unknown option {option}").into()),
        }
    }
    let graph = open(&name, &DataDir::from_environment(), EdgeReading::default())?.into_graph();
    let recipe = Recipe::new(Filter::gaussian(mu, sigma)?).sparsify(kept).pairs(pairs).precision(precision);
    let watch = Watch::silent();
    let device = if cpu { ColumnDevice::if_worth_it() } else { ColumnDevice::insisting()? };
    let device: Arc<dyn Accelerator> = Arc::new(device);
    let mut resources = match pairs {
        Pairs::All => Resources { route: Route::Chebyshev, ..Resources::default() },
        Pairs::Nearest(_) => {
            let solver = Eigensolver::new().accelerator(Arc::clone(&device));
            Resources::given(solver.solve(&Transition::new(&graph), &watch)?)
        }
    };
    resources.accelerator = (!cpu).then_some(device);
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
        r#"{{"graph": "{name}", "mu": {mu}, "sigma": {sigma}, "pairs": "{pairs:?}", "kept": "{kept:?}", "precision": "{precision:?}", "seconds": {least:.4}, "degree": {}, "entries": {}, "bound": {:e}, "by": "{}"}}"#,
        report.degree.unwrap_or(0),
        report.entries,
        report.error_bound.or(report.error_estimate).unwrap_or(f64::NAN),
        report.reason
    );
    Ok(())
}
