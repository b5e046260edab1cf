//! `qdc report`: the story of a dataset, or of studies, as one HTML file.

use std::path::PathBuf;

use clap::Args;
use qdc_core::homophily::spectral_homophily;
use qdc_core::{Filter, defaults};
use qdc_data::EdgeReading;
use qdc_plot::figures::{self, Barbell, HomophilyPanel, TrialPoint};
use qdc_plot::report::{INTERACTIVE_LIMIT, Report, Table};
use serde::Serialize;

use super::{figure, studies};
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::session::Session;

/// Above this many vertices the report leaves out what needs every eigenvector.
const SPECTRUM_LIMIT: usize = 3500;

/// Write a report: one HTML file, no network, with statistics, pictures, tables and, for small graphs, sliders
#[derive(Debug, Args)]
pub(crate) struct ReportCommand {
    /// A dataset or graph, and any number of study files
    #[arg(value_name = "DATASET|STUDY")]
    inputs: Vec<String>,
    /// Centre of the filter
    #[arg(long, default_value_t = defaults::MU, allow_negative_numbers = true)]
    mu: f64,
    /// Width of the filter
    #[arg(long, default_value_t = defaults::SIGMA)]
    sigma: f64,
    /// Threshold of the kernel
    #[arg(long, default_value_t = defaults::EPSILON)]
    epsilon: f64,
    /// Where it goes
    #[arg(long, short, value_name = "FILE.html", default_value = "report.html")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Written {
    output: PathBuf,
    bytes: usize,
}

impl Show for Written {
    fn text(&self) -> String {
        format!("{} ({} kB): open it in a browser\n", self.output.display(), self.bytes / 1000)
    }
}

impl ReportCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let (studies, graphs): (Vec<&String>, Vec<&String>) =
            self.inputs.iter().partition(|input| studies::is_study(input));
        let title = if self.inputs.is_empty() { "karate".to_owned() } else { self.inputs.join(", ") };
        let mut report = Report::new(
            &format!("qdc: {title}"),
            "What quantum diffusion convolution makes of this graph: the spectrum, the window a filter opens on it, \
             and the graph that results.",
        );
        let karate = "karate".to_owned();
        let graphs = if self.inputs.is_empty() { vec![&karate] } else { graphs };
        for name in graphs {
            report = self.tell_graph(report, name, session)?;
        }
        if !studies.is_empty() {
            report = tell_studies(report, &studies::trials(studies.into_iter())?)?;
        }
        let bell = figure::barbell(session)?;
        let numbers = Barbell::new(&bell, &[0.0, 10.0, 50.0, 200.0], &session.watch)?;
        let caption =
            "Heat evens out inside its clique and seeps across the bridge; a quantum particle crosses it.";
        report = report.figure("Why quantum", caption, &figures::barbell(&bell, &numbers).svg);
        let page = report.to_html();
        output::write_file(&self.output, page.as_bytes())?;
        session.show(&Written { output: self.output, bytes: page.len() })
    }

    fn tell_graph(&self, mut report: Report, name: &str, session: &Session) -> Result<Report, Failure> {
        let source = qdc_data::open(name, &session.data_dir(), EdgeReading::default())?;
        let (graph, labels) = (source.graph(), source.labels());
        let nodes = graph.nodes();
        let mut numbers = vec![("vertices", nodes.to_string()), ("edges", graph.edges().to_string())];
        numbers.push(("mean degree", format!("{:.1}", 2.0 * graph.edges() as f64 / nodes as f64)));
        if let Some(labels) = labels {
            let classes = labels.iter().max().map_or(0, |most| most + 1);
            numbers.push(("classes", classes.to_string()));
            numbers.push(("homophily", format!("{:.3}", qdc_core::homophily(graph, labels)?.node)));
        }
        report = report.statistics(numbers);
        let pattern = figure::sparsity(graph, self.mu, self.sigma, self.epsilon, &session.watch)?;
        let caption = format!(
            "The kernel of mu {}, sigma {}, entries of at least {}.",
            self.mu, self.sigma, self.epsilon
        );
        report = report.figure("Before and after", &caption, &pattern.svg);
        if nodes > SPECTRUM_LIMIT {
            let text =
                format!("With {nodes} vertices every eigenvector is more than a report should wait for.");
            return Ok(report.note("The spectrum", &text).too_large(nodes));
        }
        let spectrum = figure::spectrum(graph, session)?;
        let filter = figures::filter(spectrum.eigenvalues(), &Filter::gaussian(self.mu, self.sigma)?)?;
        report = report.figure(
            "The spectrum and the filter",
            "Grey: how many eigenvalues; line: their weight.",
            &filter.svg,
        );
        if let Some(labels) = labels {
            let panel = HomophilyPanel {
                name: source.name().to_owned(),
                points: spectral_homophily(&spectrum, labels, &session.watch)?,
                of_graph: qdc_core::homophily(graph, labels)?.node,
                best_mu: None,
            };
            let caption = "Dots: distinct eigenvalues; line: their running mean; dashes: the graph itself.";
            report =
                report.figure("Where like is joined to like", caption, &figures::homophily(&[panel])?.svg);
        }
        if nodes > INTERACTIVE_LIMIT {
            return Ok(report.too_large(nodes));
        }
        Ok(report.interactive(&spectrum, labels, self.mu, self.sigma, self.epsilon))
    }
}

fn tell_studies(report: Report, trials: &[TrialPoint]) -> Result<Report, Failure> {
    let mut best: Vec<&TrialPoint> = Vec::new();
    for trial in trials {
        match best.iter_mut().find(|b| b.dataset == trial.dataset && b.model == trial.model) {
            Some(other) if other.validation < trial.validation => *other = trial,
            Some(_) => {}
            None => best.push(trial),
        }
    }
    let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
    let rows = best.iter().map(|trial| {
        let count = trials.iter().filter(|t| t.dataset == trial.dataset && t.model == trial.model).count();
        let accuracy = format!("{:.2}", 100.0 * trial.test);
        vec![
            trial.dataset.clone(),
            trial.model.clone(),
            accuracy,
            number(trial.mu),
            number(trial.sigma),
            count.to_string(),
        ]
    });
    let columns = ["dataset", "model", "test accuracy of the chosen trial (%)", "mu", "sigma", "trials"];
    let table =
        Table { title: "Studies".into(), columns: columns.map(str::to_owned).to_vec(), rows: rows.collect() };
    let mut report = report.table(&table);
    let caption = "White line: the median trial; ring: the best.";
    report = report.figure("All trials", caption, &figures::violin(trials)?.svg);
    if trials.iter().any(|trial| trial.mu.is_some()) {
        report = report.figure("Accuracy against mu and sigma", "", &figures::scatter(trials)?.svg);
    }
    Ok(report)
}
