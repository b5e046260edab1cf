//! What a row costs by the local and by the exact route, and how far they are apart on a few hundred rows:
//! `cargo run --release -p qdc-data --example scale -- GRAPH FILTER ACCURACY [ROWS] [EXACT_ROWS]`.
//!
//! Rows come in twenty ranges spread over the graph, so that old hubs and young leaves both count. One line of JSON.

#![allow(clippy::print_stdout)] // an example prints

use std::ops::Range;

use qdc_core::{Csr, Filter, Recipe, Resources, Route, Sparsify, Watch};
use qdc_data::EdgeReading;

/// The ranges that rows come in, and what is kept of a row.
const PLACES: usize = 20;
const KEPT: usize = 32;
/// Values closer than this count as equal.
const TIE: f64 = 1e-9;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [graph, filter, accuracy, rest @ ..] = &arguments[..] else {
        return Err("expected GRAPH FILTER ACCURACY [ROWS] [EXACT_ROWS]".into());
    };
    let number = |at: usize, or: usize| rest.get(at).map_or(Ok(or), |text| text.parse());
    let (rows, exact_rows) = (number(0, 2000)?, number(1, 200)?);
    let accuracy: f64 = accuracy.parse()?;
    let source = qdc_data::open(graph, &qdc_data::DataDir::from_environment(), EdgeReading::default())?;
    let loaded = cpu_seconds();
    let graph_name = graph;
    let graph = source.into_graph();
    let made = match filter.as_str() {
        "gaussian" => Filter::gaussian(0.3, 0.5)?,
        "band" => Filter::band(0.3, 0.1)?,
        "ppr" => Filter::ppr(0.15)?,
        "heat" => Filter::heat(3.0)?,
        _ => return Err("FILTER is gaussian, band, ppr or heat".into()),
    };
    let recipe = Recipe::new(made).sparsify(Sparsify::top_k(KEPT)?);
    let watch = Watch::silent();
    let by = |route| Resources { route, ..Resources::default() };
    let start = cpu_seconds();
    let local = recipe.clone().accuracy(accuracy).prepare(&graph, &by(Route::Local), &watch)?;
    let prepared = cpu_seconds() - start;
    let nodes = graph.nodes();
    let make =
        |job: &qdc_core::Job, count: usize, hubs: bool| -> Result<(f64, Vec<Csr<f64>>), qdc_core::Error> {
            let start = cpu_seconds();
            let shards: Result<Vec<_>, _> =
                places(nodes, count, hubs).map(|range| Ok(job.rows(range, &watch)?.matrix)).collect();
            Ok(((cpu_seconds() - start) / count as f64, shards?))
        };
    let (local_row, _) = make(&local, rows, false)?;
    let report = local.rows(0..1, &watch)?.manifest.report;
    let mut line = format!(
        "{{\"graph\": \"{graph_name}\", \"filter\": \"{filter}\", \"accuracy\": {accuracy:e}, \"nodes\": {nodes}, \
         \"edges\": {}, \"load_s\": {loaded:.1}, \"prepare_s\": {prepared:.1}, \"local_ms_row\": {:.3}, \"planned_gflop\": \
         {:.0}, \"sample_error\": {:.2e}, \"proved\": {:.2e}",
        graph.edges(),
        1e3 * local_row,
        local.plan().flops / 1e9,
        report.error_estimate.unwrap_or(f64::NAN),
        report.error_bound.unwrap_or(f64::NAN),
    );
    if exact_rows > 0 {
        let exact = Recipe { sparsify: Sparsify::epsilon(1e-6)?, ..recipe };
        let exact = exact.prepare(&graph, &by(Route::Chebyshev), &watch)?;
        let (_, found) = make(&local, exact_rows, true)?;
        let (exact_row, values) = make(&exact, exact_rows, true)?;
        let (mut worst, mut hits, mut wanted) = (0f64, 0, 0);
        for (found, values) in found.iter().zip(&values) {
            for row in 0..found.rows() {
                let mut largest = values.row(row).1.to_vec();
                largest.sort_unstable_by(|a, b| b.total_cmp(a));
                largest.truncate(KEPT);
                let least = largest.last().map_or(f64::INFINITY, |least| least - TIE);
                wanted += largest.len();
                for (&column, &value) in found.row(row).0.iter().zip(found.row(row).1) {
                    let truth = values.get(row, column).unwrap_or(0.0);
                    worst = worst.max((value - truth).abs());
                    hits += usize::from(truth >= least);
                }
            }
        }
        line += &format!(
            ", \"exact_ms_row\": {:.3}, \"exact_gflop\": {:.0}, \"checked_rows\": {exact_rows}, \"worst_error\": {worst:.2e}, \
             \"found_percent\": {:.2}",
            1e3 * exact_row,
            exact.plan().flops / 1e9,
            100.0 * f64::from(hits as u32) / wanted.max(1) as f64,
        );
    }
    println!("{line}}}");
    Ok(())
}

/// Ranges of rows that are together about `count`.
fn places(nodes: usize, count: usize, hubs: bool) -> impl Iterator<Item = Range<usize>> {
    let each = (count / PLACES).clamp(1, nodes / PLACES);
    (0..PLACES).map(move |place| {
        // The first range of all, the hubs of a graph that grew, counts once in the check and not in the time.
        let start =
            if hubs { place * (nodes - each) / (PLACES - 1) } else { (2 * place + 1) * nodes / (2 * PLACES) };
        start..start + each
    })
}

/// CPU seconds of this process so far.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let ticks = |at: usize| text.rsplit(')').next()?.split_whitespace().nth(at)?.parse::<f64>().ok();
    (ticks(11).unwrap_or(0.0) + ticks(12).unwrap_or(0.0)) / 100.0
}
