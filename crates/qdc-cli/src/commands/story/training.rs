//! Training: networks compared over the splits of a dataset, and how each went.

use std::ops::ControlFlow;

use qdc_core::Watch;
use qdc_data::Dataset;
use qdc_lab::{
    Hyperparameters, Keep, Model, Patience, RewiringKind, RewiringReport, Rewirings, Run, RunRecord, Training,
};
use qdc_nn::Cpu;
use qdc_nn::training::Step;
use qdc_plot::Report;
use qdc_plot::figures::{self, Curve, Layer, ModelScore};
use qdc_plot::report::{NEARLY_IDENTITY, Table, Window};

use crate::failure::Failure;

/// What decides, and is drawn first.
const VALIDATION: &str = "validation";

/// A score after a step.
type Score = fn(&Step) -> f64;

/// The curves of a training.
const PARTS: [(&str, Score); 3] =
    [(VALIDATION, |step| step.validation), ("test", |step| step.test), ("training", |step| step.train)];

/// Trains models on some splits with default hyper-parameters, kernels with `window`; every step is kept.
pub(crate) fn train(
    models: &[&str],
    dataset: &Dataset,
    splits: &[usize],
    window: Window,
    watch: &Watch,
    mut each: impl FnMut(&Run) -> Result<(), Failure>,
) -> Result<Vec<Run>, Failure> {
    let rewirings = Rewirings::new(dataset);
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
        let training = Training {
            dataset,
            hyperparameters: &hyperparameters,
            seeds: &[0],
            splits,
            metric: dataset.usual_metric(),
            patience: Patience::default(),
            keep: Keep { curve: true, ..Keep::default() },
        };
        let run = qdc_lab::train(&training, &rewirings, &Cpu, watch, &|_| ControlFlow::Continue(()))?;
        each(&run)?;
        runs.push(run);
    }
    Ok(runs)
}

/// Training: the runs compared, their table, and how each went, split by split. `made` says how splits were
/// made where the dataset has none; the curves show the first `shown` splits.
pub(crate) fn tell_training(
    report: Report,
    runs: &[Run],
    made: Option<&str>,
    shown: usize,
) -> Result<Report, Failure> {
    let Some(first) = runs.first() else { return Ok(report) };
    let splits = first.record.splits.len();
    let over = if splits == 1 { "one split".to_owned() } else { format!("{splits} splits") };
    let made = made.map_or(String::new(), |made| format!(" {made}"));
    let measure = format!("test {} (%)", first.record.metric.title());
    let scores: Vec<ModelScore> = runs.iter().map(score).collect();
    let mut caption = format!("Networks with default hyper-parameters, trained on {over}.{made} ");
    caption += match splits {
        1 => "qdc train gives all splits, qdc tune searches.",
        _ => {
            "Dot and whisker: mean and standard deviation over the splits; small circles: each split, at the same height in \
             every row. qdc tune searches for better hyper-parameters."
        }
    };
    let report = report.figure("Networks compared", &caption, |width| figures::comparison(&scores, width))?;
    let report = report.table(&table(runs, &measure));
    let layers = layers(runs, shown);
    let measure = format!("{} (%)", first.record.metric.title());
    let caption = "Step by step, on the split that is picked. A curve ends where fifty steps brought nothing better on validation; \
                   the dot is the step whose weights were kept. A network whose training score climbs while the others stay \
                   behind overfits.";
    Ok(report
        .figure("Training curves", caption, |width| figures::curves("step", &measure, &layers, width))?)
}

fn score(run: &Run) -> ModelScore {
    let record = &run.record;
    ModelScore {
        dataset: record.dataset.clone(),
        model: record.model.to_string(),
        metric: record.metric.title().to_owned(),
        mean: record.test_mean,
        deviation: record.test_std,
        splits: record.splits.iter().map(|split| split.test).collect(),
        published: None,
        identity: diagonal_share(record).is_some_and(|share| share > NEARLY_IDENTITY),
    }
}

/// The share of the diagonal in the kernel of a network that sees nothing else of the graph.
fn diagonal_share(record: &RunRecord) -> Option<f64> {
    match &record.kernel {
        Some(RewiringReport::Kernel(report)) if record.model.towers().len() == 1 => report.diagonal_share,
        _ => None,
    }
}

fn table(runs: &[Run], measure: &str) -> Table {
    let rows = runs.iter().map(|run| {
        let record = &run.record;
        let count = record.splits.len().max(1);
        let train: f64 = record.splits.iter().map(|split| split.train).sum();
        let steps: usize = record.splits.iter().map(|split| split.steps).sum();
        let percent = |share: f64| format!("{:.2}", 100.0 * share);
        let deviation = if count > 1 { format!(" ± {}", percent(record.test_std)) } else { String::new() };
        vec![
            record.model.to_string(),
            format!("{}{deviation}", percent(record.test_mean)),
            percent(record.validation_mean),
            percent(train / count as f64),
            (steps / count).to_string(),
            format!("{:.2}", record.seconds),
        ]
    });
    Table {
        title: "The same in numbers".into(),
        note: "Means over the splits; seconds of all of them together. Press a heading to sort.".into(),
        columns: ["model", measure, "validation", "training", "steps", "seconds"].map(str::to_owned).to_vec(),
        rows: rows.collect(),
    }
}

/// A layer for each split, three curves for each model.
fn layers(runs: &[Run], shown: usize) -> Vec<Layer> {
    let splits = runs.iter().map(|run| run.curves.len()).min().unwrap_or(0);
    (0..splits.min(shown))
        .map(|place| {
            let curves = runs.iter().flat_map(|run| {
                PARTS.into_iter().map(move |(part, score)| {
                    let steps = run.curves[place].iter();
                    let points: Vec<(f64, f64)> =
                        steps.map(|step| (step.step as f64, 100.0 * score(step))).collect();
                    let best = run.record.splits[place].best_step as f64;
                    let mark = points.iter().copied().find(|point| part == VALIDATION && point.0 == best);
                    Curve { name: run.record.model.to_string(), part: part.into(), points, mark }
                })
            });
            let name = format!("split {}", runs[0].record.splits[place].split);
            Layer { name, curves: curves.collect() }
        })
        .collect()
}
