//! `qdc demo`: the whole story on a generated graph, in under a minute.

use std::fmt::Write as _;
use std::ops::ControlFlow;

use clap::Args;
use qdc_core::kernel::KernelReport;
use qdc_core::{Filter, Kernel, Sparsify, homophily};
use qdc_data::generators::ContextualBlocks;
use qdc_data::{Dataset, Shares, Statistics};
use qdc_lab::{Experiment, Hyperparameters, Keep, Model, Patience, RewiringKind, Rewirings};
use serde::Serialize;

use crate::failure::Failure;
use crate::output;
use crate::session::Session;

/// Tell the whole story on a generated graph: statistics, kernel, training
#[derive(Debug, Args)]
pub(crate) struct Demo {}

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

/// In such a graph the classes show in the eigenvectors at the negative end of the spectrum: a vector that changes sign
/// along most edges. The window looks there.
const WINDOW: (f64, f64) = (-0.55, 0.1);

/// Keeps about eighty links a vertex: enough to average the noise away, few enough to train in seconds.
const EPSILON: f64 = 0.003;

/// What is compared: the features alone, the graph as it is, the kernel, and both.
const MODELS: [&str; 4] = ["mlp", "gcn", "gcn+qdc", "gcn+multiscale"];

#[derive(Serialize)]
struct Story {
    graph: Statistics,
    kernel: KernelReport,
    kernel_homophily: f64,
    results: Vec<Score>,
}

#[derive(Serialize)]
struct Score {
    model: String,
    test_mean: f64,
    test_std: f64,
    seconds: f64,
}

impl Demo {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let say = |text: String| if session.json() { Ok(()) } else { output::write(text.as_bytes()) };

        let dataset = GRAPH.generate()?.with_random_splits(Shares::default(), GRAPH.seed);
        let graph = dataset.statistics()?;
        say(about_the_graph(&graph))?;

        let (mu, sigma) = WINDOW;
        let kernel = Kernel::new(Filter::gaussian(mu, sigma)?)
            .sparsify(Sparsify::epsilon(EPSILON)?)
            .build(&dataset.graph, &session.watch)?;
        let kernel_homophily = homophily::homophily_of(&kernel.matrix, &dataset.labels)?.node;
        say(about_the_kernel(&kernel.report, kernel_homophily, &dataset))?;

        say(format!("\nTraining on {} splits:\n", dataset.splits.len()))?;
        let rewirings = Rewirings::new(&dataset.graph);
        let mut results = Vec::new();
        for model in MODELS {
            let score = train(model, &dataset, &rewirings, session)?;
            let (mean, deviation) = (100.0 * score.test_mean, 100.0 * score.test_std);
            say(format!("  {:16}{mean:5.1} ± {deviation:3.1} % in {:.1} s\n", score.model, score.seconds))?;
            results.push(score);
        }
        if session.json() {
            let story = Story { graph, kernel: kernel.report, kernel_homophily, results };
            return output::write_json(&story);
        }
        Ok(())
    }
}

fn train(
    name: &str,
    dataset: &Dataset,
    rewirings: &Rewirings<'_>,
    session: &Session,
) -> Result<Score, Failure> {
    let model: Model = name.parse().expect("the demo names models that exist");
    let mut hyperparameters = Hyperparameters::new(model);
    if model.uses(|rewiring| rewiring == RewiringKind::Qdc) {
        hyperparameters.set_value("mu", WINDOW.0)?;
        hyperparameters.set_value("sigma", WINDOW.1)?;
        hyperparameters.set_value("epsilon", EPSILON)?;
    }
    let splits: Vec<usize> = (0..dataset.splits.len()).collect();
    let experiment = Experiment {
        dataset,
        hyperparameters: &hyperparameters,
        seed: 0,
        splits: &splits,
        patience: Patience::default(),
        keep: Keep::default(),
    };
    let run = qdc_lab::train(&experiment, rewirings, &session.watch, &|_| ControlFlow::Continue(()))?;
    let record = run.record;
    Ok(Score {
        model: name.into(),
        test_mean: record.test_mean,
        test_std: record.test_std,
        seconds: record.seconds,
    })
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
        WINDOW.0,
        WINDOW.1,
        report.entries,
        EPSILON,
        dataset.graph.adjacency().entries(),
        report.error_bound,
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
