//! `qdc sdrf`: rewires a graph by curvature.

use std::path::{Path, PathBuf};
use std::time::Instant;

use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use qdc_core::defaults;
use qdc_core::rewire::{Sdrf, SdrfReport, Variant};
use serde::Serialize;

use super::kernel;
use crate::failure::Failure;
use crate::graph_arguments::GraphArguments;
use crate::output::Show;
use crate::session::Session;

/// Rewire a graph by curvature (SDRF): support the worst bottleneck, drop the most redundant edge, again and
/// again
#[derive(Debug, Args)]
pub(crate) struct SdrfCommand {
    #[command(flatten)]
    graph: GraphArguments,
    /// Edges to add at most
    #[arg(long, value_name = "N")]
    iterations: usize,
    /// Draw the added edge with probability proportional to exp(tau gain); inf takes the best
    #[arg(long, value_name = "T", default_value_t = defaults::TAU)]
    tau: f64,
    /// Remove the edge of greatest curvature where that exceeds C; inf removes none
    #[arg(long, value_name = "C", default_value_t = defaults::REMOVAL_BOUND, allow_negative_numbers = true)]
    removal_bound: f64,
    /// The published formula, or what the authors' published program computes
    #[arg(long, value_name = "VARIANT", default_value = "formula", value_parser = variant_parser())]
    variant: Variant,
    /// Fixes the draws
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    /// Where the rewired graph goes: .npz (SciPy), .mtx (Matrix Market), .csv or .tsv
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Rewired<'a> {
    graph: &'a str,
    nodes: usize,
    edges_before: usize,
    edges: usize,
    #[serde(flatten)]
    report: &'a SdrfReport,
    seconds: f64,
    output: &'a Path,
}

impl Show for Rewired<'_> {
    fn text(&self) -> String {
        let SdrfReport { added, removed, exhausted, least_curvature: (before, after), .. } = self.report;
        let early = if *exhausted { "; nothing was left to add or remove" } else { "" };
        format!(
            "{}: {} edges, {added} added, {removed} removed, {} after {} iterations{early}\n\
             least curvature {before:.4} before, {after:.4} after\n{} in {:.2} s\n",
            self.graph,
            self.edges_before,
            self.edges,
            self.report.steps.len(),
            self.output.display(),
            self.seconds
        )
    }
}

impl SdrfCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        kernel::check_output(&self.output)?;
        let source = self.graph.load(session)?;
        let flow = Sdrf::new(self.iterations)
            .tau(self.tau)
            .removal_bound(self.removal_bound)
            .variant(self.variant)
            .seed(self.seed);
        let started = Instant::now();
        let (rewired, report) = flow.run(source.graph(), &session.watch)?;
        let seconds = started.elapsed().as_secs_f64();
        kernel::write(&self.output, rewired.adjacency(), session)?;
        session.show(&Rewired {
            graph: source.name(),
            nodes: rewired.nodes(),
            edges_before: source.graph().edges(),
            edges: rewired.edges(),
            report: &report,
            seconds,
            output: &self.output,
        })
    }
}

fn variant_parser() -> impl TypedValueParser<Value = Variant> {
    PossibleValuesParser::new(["formula", "code"]).map(|name| match name.as_str() {
        "code" => Variant::Code,
        _ => Variant::Formula,
    })
}
