//! `qdc demo`: the whole story on a generated graph, in under a minute.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use clap::Args;
use qdc_core::homophily;
use qdc_core::kernel::{BuiltKernel, KernelReport};
use qdc_data::generators::ContextualBlocks;
use qdc_data::{Dataset, Shares, Source, Statistics};
use qdc_lab::Run;
use qdc_plot::Report;
use qdc_plot::report::Window;
use serde::Serialize;

use super::story::Subject;
use super::{figure, report, story};
use crate::failure::Failure;
use crate::output;
use crate::session::Session;

/// Tell the whole story on a generated graph: statistics, kernel, training, and a report to look at
#[derive(Debug, Args)]
pub(crate) struct Demo {
    /// Where the report goes
    #[arg(long, short, value_name = "FILE.html", default_value = "report.html")]
    output: PathBuf,
}

/// A graph whose neighbours mostly disagree, with features too noisy to classify by alone.
const GRAPH: ContextualBlocks = ContextualBlocks {
    n: 1000,
    homophily: 0.2,
    classes: 2,
    degree: 10.0,
    features: 32,
    signal: 1.0,
    seed: 0,
};

/// In such a graph the classes show in the eigenvectors at the negative end of the spectrum: a vector that
/// changes sign along most edges. The window looks there.
///
/// The threshold keeps about eighty links a vertex: enough to average the noise away, few enough to train in
/// seconds.
const WINDOW: Window = Window { mu: -0.55, sigma: 0.1, epsilon: 0.003 };

/// For the sliders at the end of the report, which want a small graph.
const SMALL_WINDOW: Window = Window { mu: 0.9, sigma: 0.2, epsilon: 0.05 };

/// What is compared: the features alone, the graph as it is, the kernel, and both.
const MODELS: [&str; 4] = ["mlp", "gcn", "gcn+qdc", "gcn+multiscale"];

#[derive(Serialize)]
struct Story {
    graph: Statistics,
    kernel: KernelReport,
    kernel_homophily: f64,
    results: Vec<Score>,
    report: PathBuf,
}

#[derive(Serialize)]
struct Score {
    model: String,
    test_mean: f64,
    test_std: f64,
    seconds: f64,
}

impl From<&Run> for Score {
    fn from(run: &Run) -> Self {
        let record = &run.record;
        Self {
            model: record.model.to_string(),
            test_mean: record.test_mean,
            test_std: record.test_std,
            seconds: record.seconds,
        }
    }
}

impl Demo {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        report::check_output(&self.output)?;
        let session = &session.without_remarks(); // the story says what matters
        let say = |text: String| if session.json() { Ok(()) } else { output::write(text.as_bytes()) };

        let dataset = GRAPH.generate()?.with_random_splits(Shares::default(), GRAPH.seed);
        let graph = dataset.statistics()?;
        say(about_the_graph(&graph))?;

        let source = Source::Dataset(dataset.clone());
        let kernel = figure::kernel(&source, WINDOW, session)?;
        let kernel_homophily = homophily::homophily_of(&kernel.matrix, &dataset.labels)?.node;
        say(about_the_kernel(&kernel.report, kernel_homophily, &dataset))?;

        say(format!("\nTraining on {} splits:\n", dataset.splits.len()))?;
        let splits: Vec<usize> = (0..dataset.splits.len()).collect();
        let runs = story::train(&MODELS, &dataset, &splits, WINDOW, &session.watch, |run| {
            let Score { model, test_mean, test_std, seconds } = run.into();
            let (mean, deviation) = (100.0 * test_mean, 100.0 * test_std);
            say(format!("  {model:16}{mean:5.1} ± {deviation:3.1} % in {seconds:.1} s\n"))
        })?;

        write_report(&self.output, &source, &kernel, &runs, session)?;
        if session.json() {
            let results = runs.iter().map(Score::from).collect();
            let report = self.output;
            return output::write_json(&Story {
                graph,
                kernel: kernel.report,
                kernel_homophily,
                results,
                report,
            });
        }
        let path = std::path::absolute(&self.output).unwrap_or(self.output);
        say(format!(
            "\nThe report with pictures, curves and sliders is {}\nOpen it in a browser.\n",
            path.display()
        ))
    }
}

fn write_report(
    path: &Path,
    source: &Source,
    kernel: &BuiltKernel,
    runs: &[Run],
    session: &Session,
) -> Result<(), Failure> {
    let mut report = Report::new(
        "The qdc demo",
        "A generated graph whose neighbours mostly disagree. Quantum diffusion convolution looks at the end of the spectrum \
         where such classes show, and hands a network a graph whose neighbours mostly agree.",
    );
    let subject = Subject { source, window: WINDOW, kernel, best_mu: None };
    report = story::tell_graph(report, &subject, session)?;
    report = story::tell_training(report, runs, None, usize::MAX)?;
    report = story::why_quantum(report, session)?;
    let karate = figure::open("karate", session)?;
    report = report.chapter("A graph to play with", "Zachary's karate club: 34 members, two factions.");
    let kernel = figure::kernel(&karate, SMALL_WINDOW, session)?;
    let subject = Subject { source: &karate, window: SMALL_WINDOW, kernel: &kernel, best_mu: None };
    let report = story::tell_graph(report, &subject, session)?;
    output::write_file(path, report.to_html().as_bytes())
}

fn about_the_graph(graph: &Statistics) -> String {
    format!(
        "A contextual stochastic block model: {} vertices in {} classes, {} edges, {} features.\n\
         Its homophily is {:.2}: of a vertex's neighbours, only every {} has the vertex's own class.\n\n",
        graph.nodes,
        graph.classes,
        graph.edges,
        graph.features,
        graph.homophily,
        ordinal(1.0 / graph.homophily),
    )
}

fn about_the_kernel(report: &KernelReport, homophily: f64, dataset: &Dataset) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "The kernel at mu = {}, sigma = {} keeps {} entries (epsilon {}; the graph had {}), each within {:.0e} of exact,\n\
         by {}{}. Its homophily is {homophily:.2}: now most neighbours agree.",
        WINDOW.mu,
        WINDOW.sigma,
        report.entries,
        WINDOW.epsilon,
        dataset.graph.adjacency().entries(),
        report.error_bound.or(report.error_estimate).unwrap_or(f64::NAN),
        report.solver,
        report.degree.map_or(String::new(), |degree| format!(" of degree {degree}")),
    );
    text
}

/// "third" for 3.2, and so on.
fn ordinal(number: f64) -> &'static str {
    const NAMES: [&str; 9] =
        ["one", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth", "ninth"];
    let rounded = number.round().clamp(1.0, NAMES.len() as f64) as usize;
    NAMES[rounded - 1]
}
