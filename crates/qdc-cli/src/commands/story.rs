//! The chapters that reports and the demo share.

use std::ops::ControlFlow;

use qdc_core::homophily::{homophily_of, spectral_homophily};
use qdc_core::{Filter, Watch};
use qdc_data::{Dataset, Source};
use qdc_lab::{Experiment, Hyperparameters, Keep, Model, Patience, RewiringKind, Rewirings, Run};
use qdc_plot::figures::{self, Barbell, Curve};
use qdc_plot::report::{INTERACTIVE_LIMIT, Report, Table, Window};

use super::figure;
use super::studies::Studies;
use crate::failure::Failure;
use crate::session::Session;

/// Above this many vertices a report leaves out what needs every eigenvector.
pub(super) const SPECTRUM_LIMIT: usize = 3500;

/// What the homophily figure shows: windows always, eigenvalues where they were computed.
const WINDOWS: &str = "The share of like pairs in the graph that a part of the spectrum draws. Triangles: a window of width 0.1, \
    entries counting their squares.";
const EIGENVALUES: &str = " Dots: the eigenvectors of one eigenvalue, every positive entry counting the same. Such a graph joins \
    half of all pairs, so that most dots lie where pairs at random would; a repeated eigenvalue lives on few vertices, and the \
    others, without a link, count 0.";

/// A graph: its numbers, its spectrum under the filter, the graph before and after, where its labels show, and, if it is
/// small, a kernel to play with.
pub(super) fn tell_graph(
    mut report: Report,
    source: &Source,
    window: Window,
    best_mu: Option<f64>,
    session: &Session,
) -> Result<Report, Failure> {
    let (graph, labels) = (source.graph(), source.labels());
    let nodes = graph.nodes();
    report = report.statistics(statistics(source)?);
    let spectrum = if nodes <= SPECTRUM_LIMIT { Some(figure::spectrum(graph, session)?) } else { None };
    let Window { mu, sigma, epsilon } = window;
    match &spectrum {
        Some(spectrum) => {
            let filter = figures::filter(spectrum.eigenvalues(), &Filter::gaussian(mu, sigma)?)?;
            let caption = "Bars: how many eigenvalues L has there. Line: the weight the filter gives their eigenvectors. \
                           Eigenvectors at 1 vary slowly over the graph, those at the low end change sign along most edges.";
            report = report.figure("The spectrum and the filter", caption, &filter.svg);
        }
        None => {
            let text = format!(
                "This graph has {nodes} vertices; a report computes every eigenvector of graphs of up to {SPECTRUM_LIMIT}. \
                 qdc figure filter and qdc figure homophily draw what is left out here, and wait for it."
            );
            report = report.note("The spectrum and the filter", &text);
        }
    }
    let kernel = figure::kernel(source, window, session)?;
    let mut caption = format!(
        "L, and the kernel of μ = {mu:.3}, σ = {sigma:.3} with entries of at least {epsilon:.2e}. The stronger the ink, the fuller the cell."
    );
    if let Some(labels) = labels {
        let (before, after) =
            (qdc_core::homophily(graph, labels)?.node, homophily_of(&kernel.matrix, labels)?.node);
        caption += &format!(
            " Vertices stand class by class: what lies in the squares along the diagonal joins like with like. Homophily: \
             {before:.3} before, {after:.3} after."
        );
    }
    report = report.figure("Before and after", &caption, &figure::sparsity(source, &kernel).svg);
    if let Source::Dataset(dataset) = source {
        let mut panel = figure::homophily_panel(dataset, session)?;
        if let Some(spectrum) = &spectrum {
            panel.points = spectral_homophily(spectrum, &dataset.labels, &session.watch)?;
        }
        panel.best_mu = best_mu;
        let caption = format!("{WINDOWS}{}", if spectrum.is_some() { EIGENVALUES } else { "" });
        report = report.figure("Where like is joined to like", &caption, &figures::homophily(&[panel])?.svg);
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
        numbers.push(("splits", found.splits.to_string()));
    }
    Ok(numbers)
}

/// Trains models on some splits with default hyper-parameters, kernels with `window`; every step is kept.
pub(super) fn train(
    models: &[&str],
    dataset: &Dataset,
    splits: &[usize],
    window: Window,
    watch: &Watch,
    mut each: impl FnMut(&Run) -> Result<(), Failure>,
) -> Result<Vec<Run>, Failure> {
    let rewirings = Rewirings::new(&dataset.graph);
    let mut runs = Vec::new();
    for name in models {
        let model: Model = name.parse()?;
        let windowed = model.has(|tower| tower.rewiring == RewiringKind::Qdc);
        let mut hyperparameters = Hyperparameters::new(model);
        if windowed {
            for (name, value) in [("mu", window.mu), ("sigma", window.sigma), ("epsilon", window.epsilon)] {
                hyperparameters.set_value(name, value)?;
            }
        }
        let experiment = Experiment {
            dataset,
            hyperparameters: &hyperparameters,
            seed: 0,
            splits,
            patience: Patience::default(),
            metric: dataset.usual_metric(),
            keep: Keep { curve: true, ..Keep::default() },
        };
        let run = qdc_lab::train(&experiment, &rewirings, watch, &|_| ControlFlow::Continue(()))?;
        each(&run)?;
        runs.push(run);
    }
    Ok(runs)
}

/// Training: the table of the runs, and how each went on its first split.
pub(super) fn tell_training(report: Report, runs: &[Run]) -> Result<Report, Failure> {
    let splits = runs.first().map_or(0, |run| run.record.splits.len());
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let rows = runs.iter().map(|run| {
        let record = &run.record;
        let steps: usize = record.splits.iter().map(|split| split.steps).sum();
        let mut row = vec![
            record.model.to_string(),
            percent(record.test_mean),
            percent(record.test_std),
            percent(record.validation_mean),
            (steps / splits.max(1)).to_string(),
            format!("{:.2}", record.seconds),
        ];
        if splits == 1 {
            row.remove(2);
        }
        row
    });
    let mut columns = ["model", "test accuracy (%)", "± over splits", "validation (%)", "steps", "seconds"]
        .map(str::to_owned)
        .to_vec();
    if splits == 1 {
        columns.remove(2);
    }
    let over = if splits == 1 { "the first split".to_owned() } else { format!("{splits} splits") };
    let table = Table {
        title: "Training".into(),
        note: format!(
            "Default hyper-parameters, {over}; qdc train gives all splits, qdc tune searches. Press a heading to sort."
        ),
        columns,
        rows: rows.collect(),
    };
    let curves: Vec<Curve> = runs
        .iter()
        .filter_map(|run| {
            let points = run.curves.first()?.iter().map(|step| (step.step as f64, 100.0 * step.validation));
            Some(Curve { name: run.record.model.to_string(), points: points.collect() })
        })
        .collect();
    let figure = figures::curves("validation accuracy", "step", "accuracy (%)", &curves)?;
    let caption = "Accuracy on the validation vertices of the first split, step by step; a curve ends where fifty steps brought \
                   nothing better.";
    Ok(report.table(&table).figure("Training curves", caption, &figure.svg))
}

/// Studies: the table, all trials, and how accuracy depends on the window.
pub(super) fn tell_studies(report: Report, studies: &Studies) -> Result<Report, Failure> {
    let percent = |share: f64| format!("{:.2}", 100.0 * share);
    let rows = studies.table.cells.iter().map(|cell| {
        let model = cell.model.to_string();
        let of_cell =
            studies.trials.iter().filter(|trial| trial.dataset == cell.dataset && trial.model == model);
        let best = figures::chosen(of_cell);
        let number = |value: Option<f64>| value.map_or(String::new(), |value| format!("{value:.3}"));
        vec![
            cell.dataset.clone(),
            model,
            percent(cell.test_mean),
            percent(cell.test_std),
            percent(cell.validation),
            cell.published.map_or(String::new(), |(mean, _)| percent(mean)),
            number(cell.p_value),
            number(best.and_then(|trial| trial.mu)),
            number(best.and_then(|trial| trial.sigma)),
            cell.trials.0.to_string(),
        ]
    });
    let columns =
        ["dataset", "model", "test (%)", "±", "validation (%)", "published (%)", "p", "μ", "σ", "trials"];
    let table = Table {
        title: "Studies".into(),
        note: "Each line is the trial that validation chose: test accuracy, its deviation over the splits, validation accuracy. \
               p: the exact sign-flip test of the paired differences to the plain network. Press a heading to sort."
            .into(),
        columns: columns.map(str::to_owned).to_vec(),
        rows: rows.collect(),
    };
    let mut report = if table.rows.is_empty() { report } else { report.table(&table) };
    let caption = "The spread of test accuracy over all trials of a search. White line: the median trial; ring: the trial that \
                   validation chose.";
    report = report.figure("All trials", caption, &figures::violin(&studies.trials)?.svg);
    if studies.trials.iter().any(|trial| trial.mu.is_some() && trial.sigma.is_some()) {
        let caption = "Each mark is a trial: mean test accuracy against the centre (above) and the width (below) of its window.";
        report = report.figure("Accuracy against μ and σ", caption, &figures::scatter(&studies.trials)?.svg);
    }
    Ok(report)
}

/// Why quantum: the barbell.
pub(super) fn why_quantum(report: Report, session: &Session) -> Result<Report, Failure> {
    let graph = figure::barbell(session)?;
    let numbers = Barbell::new(&graph, &[0.0, 10.0, 50.0, 200.0], &session.watch)?;
    let caption = "Two cliques joined through one vertex; both start at the ringed vertex. Heat evens out inside its clique and \
                   seeps across the bridge; a quantum particle crosses it. (From deep inside a clique it would not: there it \
                   stays.)";
    Ok(report.figure("Why quantum", caption, &figures::barbell(&graph, &numbers).svg))
}
