//! `qdc report`: the story of a dataset, or of studies, as one HTML file.

use std::path::{Path, PathBuf};

use clap::Args;
use qdc_data::{Shares, Source};
use qdc_plot::report::Report;
use serde::Serialize;

use super::studies::{self, Studies};
use super::{figure, story};
use crate::failure::Failure;
use crate::output::{self, Show};
use crate::session::Session;
use crate::window_arguments::WindowArguments;

/// What a report trains, for the curves.
const MODELS: [&str; 3] = ["mlp", "gcn", "gcn+qdc"];

/// Splits are trained as long as their number times the kernel's entries stays below this: seconds, not
/// minutes.
const TRAINED_ENTRIES: usize = 3_000_000;

/// Splits whose curves a page carries, over all its graphs: with more it would grow beyond 2 MB.
const CURVES: usize = 20;

/// Write a report: one HTML file, no network, with statistics, pictures, tables and, for small graphs,
/// sliders
#[derive(Debug, Args)]
pub(crate) struct ReportCommand {
    /// Datasets or graphs, and any number of study files and of folders that qdc table --write made; without a
    /// graph those of the study files that are at hand
    #[arg(value_name = "DATASET|STUDY|FOLDER")]
    inputs: Vec<String>,
    #[command(flatten)]
    window: WindowArguments,
    /// Do not train the networks whose curves and learned window the report shows
    #[arg(long)]
    no_training: bool,
    /// Where it goes
    #[arg(long, short, value_name = "FILE.html", default_value = "report.html")]
    output: PathBuf,
}

#[derive(Serialize)]
struct Written<'a> {
    output: &'a Path,
    bytes: usize,
}

impl Show for Written<'_> {
    fn text(&self) -> String {
        format!("{} ({} kB): open it in a browser\n", self.output.display(), self.bytes / 1000)
    }
}

impl ReportCommand {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        check_output(&self.output)?;
        let (graphs, files) = studies::sort(&self.inputs);
        let studies = if files.is_empty() { None } else { Some(Studies::read(&files, session)?) };
        let (sources, missing) = open(&graphs, studies.as_ref(), session)?;
        let names: Vec<String> =
            sources.iter().map(Source::name).chain(files.iter().copied()).map(str::to_owned).collect();
        let chapters = names.len() > 1;
        let mut report = Report::new(
            &format!("qdc: {}", listed(&names)),
            "What quantum diffusion convolution makes of a graph: the spectrum, the window a filter opens on it, the graph \
             that results, and what networks learn on it.",
        );
        let shown = (CURVES / sources.len().max(1)).clamp(2, 10);
        for source in sources {
            if chapters {
                report = report.chapter(source.name(), "");
            }
            report = self.tell_graph(report, source, studies.as_ref(), shown, session)?;
        }
        if let Some(studies) = &studies {
            if chapters {
                report = report.chapter("The search", &format!("Read from {}.", files.join(", ")));
            }
            report = story::tell_studies(report, studies)?;
        }
        if !missing.is_empty() {
            let text = format!(
                "The studies name {}, which this machine does not have (qdc data get).",
                missing.join(", ")
            );
            report = report.text("Left out", [text]);
        }
        report = story::why_quantum(report, session)?;
        let page = report.to_html();
        output::write_file(&self.output, page.as_bytes())?;
        session.show(&Written { output: &self.output, bytes: page.len() })
    }

    fn tell_graph(
        &self,
        report: Report,
        source: Source,
        studies: Option<&Studies>,
        shown: usize,
        session: &Session,
    ) -> Result<Report, Failure> {
        let window = self.window.resolve(studies.and_then(|studies| studies.best_window(source.name())));
        let best_mu = studies.and_then(|studies| studies.best_mu(source.name()));
        let kernel = figure::kernel(&source, window, session)?;
        let subject = story::Subject { source: &source, window, kernel: &kernel, best_mu };
        let report = story::tell_graph(report, &subject, session)?;
        let Source::Dataset(mut dataset) = source else { return Ok(report) };
        if self.no_training || dataset.graph.nodes() > story::SPECTRUM_LIMIT {
            return Ok(report);
        }
        let mut made = None;
        if dataset.splits.is_empty() {
            dataset = dataset.with_random_splits(Shares::default(), 0);
            made = Some(
                "The dataset has no splits: 48 % of the vertices, drawn at random, train, and 32 % validate.",
            );
        }
        let count = (TRAINED_ENTRIES / kernel.matrix.entries().max(1)).clamp(1, dataset.splits.len());
        let splits: Vec<usize> = (0..count).collect();
        let runs = story::train(&MODELS, &dataset, &splits, window, &session.watch, |_| Ok(()))?;
        let report = story::tell_training(report, &runs, made, shown)?;
        story::tell_window(report, &dataset, session)
    }
}

/// Names for a title: four of them, or three and how many more there are.
fn listed(names: &[String]) -> String {
    match names.len() {
        0..=4 => names.join(", "),
        more => format!("{} and {} more", names[..3].join(", "), more - 3),
    }
}

/// The graphs named; without any, those of the studies that are at hand, and the names of those that are not.
fn open(
    graphs: &[&str],
    studies: Option<&Studies>,
    session: &Session,
) -> Result<(Vec<Source>, Vec<String>), Failure> {
    let Some(studies) = studies.filter(|_| graphs.is_empty()) else {
        let graphs = if graphs.is_empty() { &["karate"] } else { graphs };
        let sources = graphs.iter().map(|name| figure::open(name, session));
        return Ok((sources.collect::<Result<_, _>>()?, Vec::new()));
    };
    let (mut sources, mut missing) = (Vec::new(), Vec::new());
    for name in studies.datasets() {
        match figure::open(name, session) {
            Ok(source) => sources.push(source),
            Err(_) => missing.push(name.clone()),
        }
    }
    Ok((sources, missing))
}

/// Refuses early what could not be written after the work.
pub(super) fn check_output(path: &Path) -> Result<(), Failure> {
    if path.extension().is_none_or(|extension| extension != "html") {
        return Err(Failure::usage(format!("{}: a report ends in .html", path.display())));
    }
    // Opens a file beside it, which goes again when dropped.
    qdc_data::output::OutputFile::create(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::listed;

    #[test]
    fn a_title_names_four_graphs_or_three_and_the_number_of_the_others() {
        let names: Vec<String> = ["a", "b", "c", "d", "e"].map(str::to_owned).into();
        assert_eq!(listed(&names[..4]), "a, b, c, d");
        assert_eq!(listed(&names), "a, b, c and 2 more");
    }
}
