//! The window that a network learned, over the spectrum and the homophily of its parts.

use std::ops::ControlFlow;

use qdc_data::{Dataset, Source};
use qdc_lab::{Hyperparameters, Keep, Patience, Rewirings, Training};
use qdc_nn::Cpu;
use qdc_plot::Report;
use qdc_plot::figures::{self, Curve, FilterPlot};

use crate::commands::figure;
use crate::failure::Failure;
use crate::session::Session;

/// Trains a network with one learned window on the first split, and draws where the window ended.
pub(crate) fn tell_window(report: Report, dataset: &Dataset, session: &Session) -> Result<Report, Failure> {
    let hyperparameters = Hyperparameters::new("window".parse()?);
    let training = Training {
        dataset,
        hyperparameters: &hyperparameters,
        seeds: &[0],
        splits: &[0],
        patience: Patience::of(hyperparameters.model()),
        metric: dataset.usual_metric(),
        keep: Keep::default(),
    };
    let rewirings = Rewirings::new(dataset).with_resources(session.resources());
    let go_on = |_: &_| ControlFlow::Continue(());
    let record = qdc_lab::train(&training, &rewirings, &Cpu, &session.watch, &go_on)?.record;
    let Some(window) = record.learned.first().and_then(|learned| learned.window) else { return Ok(report) };
    let source = Source::Dataset(dataset.clone());
    let eigenvalues = figure::spectrum(&dataset.graph, session)?.eigenvalues().to_vec();
    let mut plot = figure::filter_plot(&source, eigenvalues, &[window.filter()?]);
    plot.responses[0].name = "learned window".into();
    let estimates = figure::homophily_panel(dataset, session)?.windows;
    let points = estimates.iter().map(|window| (window.mu, window.homophily)).collect();
    let plot = FilterPlot { homophily: Some(Curve::new("homophily", points)), ..plot };
    let caption = format!(
        "Where a network with one window ended (qdc train --model window, first split, the best of several starts): \
         μ = {:.2}, σ = {:.2}, test {} {:.1} %. Bars: eigenvalues of L. The homophily is that of windows of width 0.1; a \
         learned window often stands where it is high, or is so wide that it sees everything.",
        window.mu,
        window.sigma,
        record.metric.title(),
        100.0 * record.test_mean
    );
    Ok(report.figure("The window that was learned", &caption, |width| figures::filter(&plot, width))?)
}
