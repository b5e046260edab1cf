//! The chapters that reports and the demo share.

mod kernel;
mod studies;
mod training;
mod window;

use qdc_core::Filter;
use qdc_core::homophily::spectral_homophily;
use qdc_core::kernel::BuiltKernel;
use qdc_data::Source;
use qdc_plot::Report;
use qdc_plot::figures::{self, Barbell};
use qdc_plot::report::{INTERACTIVE_LIMIT, Window};

use super::figure;
use crate::failure::Failure;
use crate::session::Session;

pub(super) use studies::{model_scores, tell_studies};
pub(super) use training::{tell_training, train};
pub(super) use window::tell_window;

/// Above this many vertices a report leaves out what needs every eigenvector.
pub(super) const SPECTRUM_LIMIT: usize = 3500;

/// What the homophily figure shows: windows always, eigenvalues where they were computed.
const WINDOWS: &str = "The share of like pairs in the graph that a part of the spectrum draws. Triangles: a window of width \
    0.1, entries counting their squares.";
const EIGENVALUES: &str = " Dots: the eigenvectors of one eigenvalue, every positive entry counting the same. Such a graph \
    joins half of all pairs, so that most dots lie where pairs at random would; a repeated eigenvalue lives on few vertices, \
    and the others, without a link, count 0.";

/// A graph, and the kernel that a report shows of it.
pub(super) struct Subject<'a> {
    pub(super) source: &'a Source,
    pub(super) window: Window,
    pub(super) kernel: &'a BuiltKernel,
    /// The centre of the window that a study found best.
    pub(super) best_mu: Option<f64>,
}

/// A graph: its numbers, its spectrum under the filter, the kernel in words, the graph before and after,
/// where its labels show, and, if it is small, a kernel to play with.
pub(super) fn tell_graph(
    mut report: Report,
    subject: &Subject<'_>,
    session: &Session,
) -> Result<Report, Failure> {
    let Subject { source, window, kernel, best_mu } = *subject;
    let (graph, labels) = (source.graph(), source.labels());
    let nodes = graph.nodes();
    report = report.statistics(statistics(source)?);
    let spectrum = if nodes <= SPECTRUM_LIMIT { Some(figure::spectrum(graph, session)?) } else { None };
    let Window { mu, sigma, .. } = window;
    match &spectrum {
        Some(spectrum) => {
            let filter = Filter::gaussian(mu, sigma)?;
            let plot = figure::filter_plot(source, spectrum.eigenvalues().to_vec(), &[filter]);
            let caption = "Bars: how many eigenvalues L has there. Line: the weight the filter gives their eigenvectors. \
                           Eigenvectors at 1 vary slowly over the graph, those at the low end change sign along most edges.";
            report = report
                .figure("The spectrum and the filter", caption, |width| figures::filter(&plot, width))?;
        }
        None => {
            let text = format!(
                "This graph has {nodes} vertices; a report computes every eigenvector of graphs of up to {SPECTRUM_LIMIT}. \
                 qdc figure filter and qdc figure homophily draw what is left out here, and wait for it."
            );
            report = report.text("The spectrum and the filter", [text]);
        }
    }
    report = kernel::tell_kernel(report, subject)?;
    let mut caption = "L, and the kernel. The stronger the ink, the fuller the cell.".to_owned();
    if labels.is_some() {
        caption += " Vertices stand class by class: what lies in the squares along the diagonal joins like with like.";
    }
    report =
        report.figure("Before and after", &caption, |width| Ok(figure::sparsity(source, kernel, width)))?;
    if let Source::Dataset(dataset) = source {
        let mut panel = figure::homophily_panel(dataset, session)?;
        if let Some(spectrum) = &spectrum {
            panel.points = spectral_homophily(spectrum, &dataset.labels, &session.watch)?;
        }
        panel.best_mu = best_mu;
        let caption = format!("{WINDOWS}{}", if spectrum.is_some() { EIGENVALUES } else { "" });
        let panels = [panel];
        report = report
            .figure("Where like is joined to like", &caption, |width| figures::homophily(&panels, width))?;
    }
    Ok(match spectrum {
        Some(spectrum) if nodes <= INTERACTIVE_LIMIT => report.interactive(&spectrum, labels, window),
        _ => report.too_large(nodes),
    })
}

fn statistics(source: &Source) -> Result<Vec<(&'static str, String)>, Failure> {
    let graph = source.graph();
    let degree = 2.0 * graph.edges() as f64 / graph.nodes().max(1) as f64;
    let mut numbers = vec![
        ("vertices", graph.nodes().to_string()),
        ("edges", graph.edges().to_string()),
        ("mean degree", format!("{degree:.1}")),
    ];
    if let Source::Dataset(dataset) = source {
        let found = dataset.statistics()?;
        numbers.push(("connected pieces", found.components.to_string()));
        numbers.push(("features", found.features.to_string()));
        numbers.push(("classes", found.classes.to_string()));
        numbers.push(("node homophily", format!("{:.3}", found.homophily)));
        numbers.push(("edge homophily", format!("{:.3}", found.edge_homophily)));
        if found.splits > 0 {
            numbers.push(("splits", found.splits.to_string()));
        }
    }
    Ok(numbers)
}

/// Why quantum: the barbell.
pub(super) fn why_quantum(report: Report, session: &Session) -> Result<Report, Failure> {
    let graph = figure::barbell(session)?;
    let numbers = Barbell::new(&graph, &[0.0, 10.0, 50.0, 200.0], &session.watch)?;
    let caption = "Two cliques joined through one vertex; both start at the ringed vertex. Heat evens out inside its clique and \
                   seeps across the bridge; a quantum particle crosses it. (From deep inside a clique it would not: there it \
                   stays.) At t = 0 one vertex holds everything, more than the scale shows.";
    Ok(report.figure("Why quantum", caption, |width| Ok(figures::barbell(&graph, &numbers, width)))?)
}
