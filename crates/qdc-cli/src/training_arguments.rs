//! The options that say how a model is trained, shared by `train` and `tune`.

use clap::Args;
use qdc_core::Metric;
use qdc_data::{Dataset, Shares};
use qdc_lab::Config;
use qdc_nn::Criterion;

use crate::arguments::words;
use crate::failure::Failure;
use crate::session::Session;

/// Which splits are trained, for how long, and by which metric.
#[derive(Debug, Clone, Args)]
pub(crate) struct TrainingArguments {
    /// The splits to train: 0-9, or 0,3,5 [default: all]
    #[arg(long, value_name = "LIST", value_parser = split_list)]
    splits: Option<SplitList>,
    /// The most steps there can be [default: 1000; 400 for a bank or a window]
    #[arg(long, value_name = "N")]
    max_steps: Option<usize>,
    /// Stop when validation has not improved for this many steps [default: 50]
    #[arg(long, value_name = "N")]
    patience: Option<usize>,
    /// Do not stop within this many steps [default: 0]
    #[arg(long, value_name = "N")]
    warm_up: Option<usize>,
    /// Train on N vertices at a time, drawn anew in every step: for graphs that do not fit in memory. A step is a pass
    /// over the training vertices [default: all at once]
    #[arg(long, value_name = "N", value_parser = at_least_one)]
    batch_nodes: Option<usize>,
    /// What the scores are, and what decides which step is the best [default: the dataset's usual one; accuracy]
    #[arg(long, value_parser = words::<Metric>(&["accuracy", "f1", "auc"]))]
    metric: Option<Metric>,
    /// Which step is the best: the one with the best metric on validation, or with the lowest loss [default:
    /// metric; loss for a bank]
    #[arg(long, value_parser = words::<Criterion>(&["metric", "loss"]))]
    stop: Option<Criterion>,
}

impl TrainingArguments {
    /// Puts what was typed in the place of what is written down.
    pub(crate) fn onto(&self, mut config: Config) -> Config {
        let schedule = &mut config.schedule;
        schedule.max_steps = self.max_steps.or(schedule.max_steps);
        schedule.patience = self.patience.or(schedule.patience);
        schedule.warm_up = self.warm_up.or(schedule.warm_up);
        schedule.stop = self.stop.or(schedule.stop);
        schedule.batch_nodes = self.batch_nodes.or(schedule.batch_nodes);
        config.metric = self.metric.or(config.metric);
        config.splits = self.splits.as_ref().map(|list| list.0.clone()).or(config.splits);
        config
    }
}

/// The splits asked for, or all of the dataset.
pub(crate) fn splits(config: &Config, dataset: &Dataset) -> Vec<usize> {
    config.splits.clone().unwrap_or_else(|| (0..dataset.splits.len()).collect())
}

/// The metric asked for, or the dataset's usual one.
pub(crate) fn metric(config: &Config, dataset: &Dataset) -> Metric {
    config.metric.unwrap_or_else(|| dataset.usual_metric())
}

/// `--split A/B/C`: random splits in place of the dataset's own, and a remark if it has some.
pub(crate) fn split(dataset: Dataset, shares: Option<Shares>, seed: u64, session: &Session) -> Dataset {
    match shares {
        None if !dataset.splits.is_empty() => dataset,
        None => dataset.with_random_splits(Shares::default(), seed),
        Some(shares) => {
            if !dataset.splits.is_empty() {
                let (name, own) = (&dataset.name, dataset.splits.len());
                session.watch.note(&format!("--split: random splits in place of the {own} that {name} has"));
            }
            dataset.with_random_splits(shares, seed)
        }
    }
}

/// `count` seeds from `first` on.
pub(crate) fn seeds(first: u64, count: u64) -> Result<Vec<u64>, Failure> {
    let last = first.checked_add(count - 1).ok_or_else(|| Failure::usage("--seed and --seeds: too large"))?;
    Ok((first..=last).collect())
}

fn at_least_one(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("a batch has at least one vertex".into()),
        number => number.map_err(|_| format!("'{text}' is no number of vertices")),
    }
}

/// The list given to `--splits`; a type of its own, so that one option takes one list.
#[derive(Debug, Clone)]
struct SplitList(Vec<usize>);

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
