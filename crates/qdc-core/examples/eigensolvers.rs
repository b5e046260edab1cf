//! What each method takes for the pairs nearest to mu, beside its estimate: the figures behind the rates of
//! the cost model in `spectrum/plan.rs`.
//!
//! `QDC_DATA=folder cargo run --release -p qdc-core --example eigensolvers [GRAPH...] > table.md`, with names
//! of datasets or generators. One thread, CPU seconds.

#![allow(clippy::print_stdout, clippy::print_stderr)]

use qdc_core::spectrum::{Eigensolver, Method, Pairs};
use qdc_core::{Route, Transition, Watch};
use qdc_data::{DataDir, EdgeReading};

const GRAPHS: [&str; 9] = [
    "er:n=1000,p=0.006,seed=1",
    "er:n=3000,p=0.002,seed=1",
    "cycle:5000",
    "chameleon",
    "cora",
    "citeseer",
    "actor",
    "pubmed",
    "powerlaw:n=20000,degree=5,seed=0",
];
/// Estimates above this are not tried.
const MOST_SECONDS: f64 = 40.0;

fn cpu_seconds() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

fn measure(name: &str, transition: &Transition, mu: f64, count: usize) {
    let solver = Eigensolver::new().pairs(Pairs::Nearest(count)).around(mu).memory(8_000_000_000);
    let watch = Watch::silent();
    let chosen = solver.prepare(transition, &watch).expect("a way that fits").method();
    for method in [Method::Dense, Method::Filter, Method::ShiftInvert, Method::Lobpcg] {
        let solver = match method {
            Method::Dense => solver.clone().solver(Route::Dense),
            Method::Lobpcg => solver.clone().solver(Route::Lobpcg),
            _ => solver.clone().method(method),
        };
        let start = cpu_seconds();
        let Ok(prepared) = solver.prepare(transition, &watch) else { continue };
        let surveyed = cpu_seconds();
        let (estimate, nodes) = (prepared.seconds(), transition.nodes());
        let mark = if method == chosen { "chosen" } else { "" };
        if estimate > MOST_SECONDS {
            println!("| {name} | {nodes} | {mu} | {count} | {method} | {estimate:.2} | - | - | {mark} |");
            continue;
        }
        let outcome = prepared.solve(transition, &watch);
        let (survey, taken) = (surveyed - start, cpu_seconds() - start);
        let pairs = outcome.map_or("failed".into(), |spectrum| spectrum.pairs().to_string());
        let way = prepared.method();
        println!(
            "| {name} | {nodes} | {mu} | {pairs} | {way} | {estimate:.2} | {taken:.2} | {survey:.2} | {mark} |"
        );
    }
}

fn main() {
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().expect("nothing started a pool before");
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let folder = DataDir::from_environment();
    let names = if asked.is_empty() { GRAPHS.map(String::from).to_vec() } else { asked };
    println!("| graph | vertices | mu | pairs | method | estimate s | taken s | of it survey s | |");
    println!("| --- | --- | --- | --- | --- | --- | --- | --- | --- |");
    for name in names {
        let source =
            qdc_data::open(&name, &folder, EdgeReading::default()).expect("a dataset or a generator");
        let transition = Transition::new(source.graph());
        for (mu, count) in [(-0.5, 64), (0.3, 64), (0.0, 512), (0.3, 512), (0.5, 512)] {
            measure(&name, &transition, mu, count);
        }
    }
}
