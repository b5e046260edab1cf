//! `qdc train`: a model on a dataset, split by split.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use qdc_core::Metric;
use qdc_lab::hyperparameters::TABLE;
use qdc_lab::{Experiment, Hyperparameters, Keep, Model, Patience, Rewirings, Run, RunRecord, save_best};
use qdc_nn::{Criterion, EarlyStopping};
use serde::Serialize;

use crate::arguments::words;
use crate::failure::Failure;
use crate::graph_arguments::DatasetArguments;
use crate::model_argument::model;
use crate::output::{self, Show};
use crate::session::Session;

/// Train a model on the splits of a dataset
///
/// Prints the score on each split at the step that was best on validation, and their mean.
#[derive(Debug, Args)]
#[command(after_long_help = hyperparameter_help())]
pub(crate) struct Train {
    #[command(flatten)]
    dataset: DatasetArguments,
    /// mlp, gcn or gat, and +gdc, +sdrf, +bpdc, +qdc or +multiscale for what is done to the graph
    #[arg(long, value_name = "MODEL", value_parser = model)]
    model: Model,
    /// A hyper-parameter; may be repeated (names: --help)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    /// The splits to train: 0-9, or 0,3,5 [default: all]
    #[arg(long, value_name = "LIST", value_parser = split_list)]
    splits: Option<SplitList>,
    /// The most steps there can be
    #[arg(long, value_name = "N", default_value_t = Patience::default().max_steps)]
    max_steps: usize,
    /// Stop when validation has not improved for this many steps
    #[arg(long, value_name = "N", default_value_t = Patience::default().stopping.patience)]
    patience: usize,
    /// Do not stop within this many steps
    #[arg(long, value_name = "N", default_value_t = 0)]
    warm_up: usize,
    /// What the scores are, and what decides which step is the best [default: the dataset's usual one; accuracy]
    #[arg(long, value_parser = words::<Metric>(&["accuracy", "f1", "auc"]))]
    metric: Option<Metric>,
    /// Which step is the best: the one with the best metric on validation, or with the lowest loss
    #[arg(long, default_value = "metric", value_parser = words::<Criterion>(&["metric", "loss"]))]
    stop: Criterion,
    /// Save the weights of the split that is best on validation
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Write losses and scores of every step
    #[arg(long, value_name = "FILE.csv")]
    curves: Option<PathBuf>,
}

/// The list given to `--splits`; a type of its own, so that one option takes one list.
#[derive(Debug, Clone)]
struct SplitList(Vec<usize>);

impl Train {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let mut hyperparameters = Hyperparameters::new(self.model.clone());
        for (name, value) in &self.set {
            hyperparameters.set(name, value)?;
        }
        for path in self.save.iter().chain(&self.curves) {
            output::check_writable(path)?; // before the work, not after it
        }
        let dataset = self.dataset.load(session)?;
        let splits = self.splits.map_or_else(|| (0..dataset.splits.len()).collect(), |list| list.0);
        let experiment = Experiment {
            dataset: &dataset,
            hyperparameters: &hyperparameters,
            seed: self.dataset.seed(),
            splits: &splits,
            patience: Patience {
                max_steps: self.max_steps,
                stopping: EarlyStopping {
                    patience: self.patience,
                    warm_up: self.warm_up,
                    criterion: self.stop,
                },
            },
            metric: self.metric.unwrap_or_else(|| dataset.usual_metric()),
            keep: Keep { weights: self.save.is_some(), curve: self.curves.is_some() },
        };
        let rewirings = Rewirings::new(&dataset.graph);
        let run = qdc_lab::train(&experiment, &rewirings, &session.watch, &|_| ControlFlow::Continue(()))?;
        if let Some(path) = &self.curves {
            let csv = curves(&run);
            output::write_file(path, csv.as_bytes())?;
        }
        let mut saved = None;
        if let Some(path) = &self.save {
            let best = save_best(path, &run, &dataset, self.dataset.name(), &session.watch)?;
            let Some(best) = best else {
                return Err(Failure::new("no split had a finite loss, so there are no weights to save"));
            };
            session.watch.note(&format!("saved the weights of split {} to {}", best.split, path.display()));
            saved = Some(path.display().to_string());
        }
        session.show(&Trained { record: &run.record, saved })
    }
}

/// The result: the record, and where the weights went.
#[derive(Serialize)]
struct Trained<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
}

impl Show for Trained<'_> {
    fn text(&self) -> String {
        let record = self.record;
        let metric = record.metric.title();
        let mut text =
            format!("{} on {}, seed {}, {metric} in %\n\n", record.model, record.dataset, record.seed);
        text += "split   train  validation    test  steps  seconds\n";
        for split in &record.splits {
            let _ = write!(
                text,
                "{:>5}  {:>6.2}  {:>10.2}  {:>6.2}  {:>5}  {:>7.2}",
                split.split,
                100.0 * split.train,
                100.0 * split.validation,
                100.0 * split.test,
                split.steps,
                split.seconds
            );
            if let Some(step) = split.diverged_at {
                let _ = write!(text, "  the loss was no longer finite at step {step}");
            }
            text.push('\n');
        }
        let _ = writeln!(
            text,
            "\ntest {:.2} ± {:.2} %, validation {:.2} %, over {} splits in {:.2} s",
            100.0 * record.test_mean,
            100.0 * record.test_std,
            100.0 * record.validation_mean,
            record.splits.len(),
            record.seconds
        );
        text
    }
}

fn curves(run: &Run) -> String {
    let mut csv = String::from("split,step,train_loss,validation_loss,train,validation,test\n");
    for (record, steps) in run.record.splits.iter().zip(&run.curves) {
        for step in steps {
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{}",
                record.split,
                step.step,
                step.train_loss,
                step.validation_loss,
                step.train,
                step.validation,
                step.test
            );
        }
    }
    csv
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must look like hidden=64")?;
    Ok((name.trim().into(), value.trim().into()))
}

fn split_list(text: &str) -> Result<SplitList, String> {
    let number = |text: &str| text.trim().parse::<usize>().map_err(|_| format!("'{text}' is not a split"));
    let mut splits = Vec::new();
    for part in text.split(',') {
        match part.split_once('-') {
            Some((first, last)) => {
                let (first, last) = (number(first)?, number(last)?);
                if last < first || last - first > 1_000_000 {
                    return Err(format!("{first}-{last} is not a range of splits"));
                }
                splits.extend(first..=last);
            }
            None => splits.push(number(part)?),
        }
    }
    splits.sort_unstable();
    splits.dedup();
    Ok(SplitList(splits))
}

/// The table of hyper-parameters, for `--help`.
fn hyperparameter_help() -> String {
    let mut text = String::from("Hyper-parameters:\n");
    for entry in &TABLE {
        let default = entry.default.as_ref().map_or_else(String::new, |value| format!(" [default: {value}]"));
        let _ = writeln!(text, "  {:<14} {}: {}{default}", entry.name, entry.meaning, entry.domain);
    }
    text
}
