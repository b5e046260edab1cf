//! `qdc tune`: hyper-parameters searched as published, resumable, one study file for many searches.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use qdc_data::{Dataset, EdgeReading, PUBLISHED, Shares};
use qdc_lab::tune::{Search, SearchReport, SearchSpace, TrialEnsemble, search, study_name};
use qdc_lab::{Config, Model};
use qdc_tune::{Pruning, Sampler, storage};
use serde::Serialize;
use serde_json::json;

use crate::device_argument::DeviceArgument;
use crate::failure::Failure;
use crate::model_argument::model;
use crate::output::Show;
use crate::session::Session;
use crate::signals;
use crate::training_arguments::{TrainingArguments, metric, split, splits};
use crate::units::{self, Bytes};

/// Search the hyper-parameters of a model on a dataset
///
/// The validation score over the splits is searched for; the test score is recorded beside it. The study file
/// is Optuna's: optuna.load_study and optuna-dashboard open it. The same command resumes a search that was
/// stopped or killed.
#[derive(Debug, Args)]
pub(crate) struct Tune {
    /// A dataset (cora), a dataset .npz, or a labelled generator
    #[arg(value_name = "DATASET", required_unless_present = "all")]
    dataset: Option<String>,
    /// The model, such as gcn+qdc
    #[arg(long, value_name = "MODEL", value_parser = model, required_unless_present = "all")]
    model: Option<Model>,
    /// The published table: its nine datasets, every model (or those of DATASET and --model)
    #[arg(long)]
    all: bool,
    /// Trials the study shall have
    #[arg(long, value_name = "N", default_value_t = 250)]
    trials: usize,
    /// paper, wide, presets (the five of the bank, the one of the window), or a TOML file
    #[arg(long, value_name = "SPACE", default_value = "paper")]
    space: String,
    /// Try this point first, then search: defaults, or values that take the place of defaults, such as
    /// mu=0.9,sigma=0.2 (repeatable)
    #[arg(long, value_name = "POINT", value_parser = point)]
    start: Vec<Point>,
    /// The study file, or postgresql://user@host/database
    #[arg(long, value_name = "STUDY", default_value = "studies.db")]
    study: String,
    /// The study's name in the file; with --all the beginning of the names [default: DATASET MODEL SPACE]
    #[arg(long, value_name = "NAME")]
    study_name: Option<String>,
    /// Trials at once [default: as many as the batch and the threads allow]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Trial n may not look at the last N-1 trials; seed and N determine the search
    #[arg(long, value_name = "N", default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..))]
    batch: u64,
    /// Fixes every random choice
    #[arg(long, value_name = "S", default_value_t = 0)]
    seed: u64,
    #[command(flatten)]
    device: DeviceArgument,
    /// Who proposes points
    #[arg(long, value_name = "NAME", default_value = "tpe")]
    sampler: SamplerName,
    #[command(flatten)]
    training: TrainingArguments,
    /// Score the best trial with this many seeds in the end: S, S + 1, ...
    #[arg(long, value_name = "K", default_value_t = 1, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seeds: u64,
    /// Score the N best trials with these seeds, two or more; the one of the highest mean validation is the best
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    finalists: u16,
    /// Ask the K best trials together in the end: the mean of their class probabilities, beside the best
    /// trial's score
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u16).range(2..=1000))]
    ensemble: Option<u16>,
    /// Give up trials whose running mean over splits is below the median of others
    #[arg(long)]
    prune: bool,
    /// Begin no further trial after this time, such as 2h, 30m or 90s
    #[arg(long, value_name = "TIME", value_parser = duration)]
    budget: Option<Duration>,
    /// A trial that takes longer is a failure
    #[arg(long, value_name = "TIME", value_parser = duration)]
    trial_time: Option<Duration>,
    /// A trial whose attention would weigh more than N entries of a matrix is a failure
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    attention_limit: Option<u64>,
    /// Make ten random splits with these percentages of training, validation and test, in place of the
    /// dataset's own [default: the dataset's own; 48/32/20 where it has none]
    #[arg(long, value_name = "A/B/C")]
    split: Option<Shares>,
}

/// The values of a point that are not the defaults.
#[derive(Debug, Clone)]
struct Point(Vec<(String, String)>);

fn point(text: &str) -> Result<Point, String> {
    if text == "defaults" {
        return Ok(Point(Vec::new()));
    }
    let value = |part: &str| match part.split_once('=') {
        Some((name, value)) => Ok((name.trim().to_owned(), value.trim().to_owned())),
        None => Err(format!("'{part}' is not NAME=VALUE; write defaults, or mu=0.9,sigma=0.2")),
    };
    text.split(',').map(value).collect::<Result<_, _>>().map(Point)
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum SamplerName {
    /// One parameter at a time, as Optuna 3.6: the published setting
    Tpe,
    /// All parameters jointly, as Optuna 5
    TpeMultivariate,
    /// At random
    Random,
}

impl Tune {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let start = Instant::now();
        if self.finalists > 1 && self.seeds == 1 {
            return Err(Failure::usage("--finalists needs --seeds 2 or more: one seed has decided already"));
        }
        signals::promise(format!(
            "every trial that had ended is saved in {}; the same command resumes",
            qdc_tune::storage::without_password(&self.study)
        ));
        let until = self.budget.map(|budget| start + budget);
        if !self.all {
            let (Some(dataset), Some(model)) = (&self.dataset, &self.model) else {
                return Err(Failure::usage("name a DATASET and a --model, or --all"));
            };
            let read = self.load(dataset, session)?;
            let report = self.search((dataset, &read), model.clone(), until, session)?;
            return ended(&report_of(report), session);
        }
        let datasets: Vec<String> = self.dataset.as_ref().map_or_else(
            || PUBLISHED.iter().map(|name| (*name).to_owned()).collect(),
            |name| vec![name.clone()],
        );
        let models = self.model.clone().map_or_else(Model::all, |model| vec![model]);
        let mut reports = Vec::new();
        let mut missing = Vec::new();
        for name in &datasets {
            let dataset = match self.load(name, session) {
                Ok(dataset) => dataset,
                Err(failure) => {
                    session.watch.note(&format!("{name} is left out: {}", failure.message()));
                    missing.push(name.clone());
                    continue;
                }
            };
            for model in &models {
                if session.watch.stop_requested() {
                    break;
                }
                reports.push(report_of(self.search((name, &dataset), model.clone(), until, session)?));
            }
        }
        if reports.is_empty() && !session.watch.stop_requested() {
            return Err(Failure::new("none of the datasets could be loaded")
                .hint("qdc data get fetches them".to_owned()));
        }
        ended(&Walk { reports, missing, seconds: start.elapsed().as_secs_f64() }, session)
    }

    fn load(&self, name: &str, session: &Session) -> Result<Dataset, Failure> {
        let dataset = qdc_data::open(name, &session.data_dir(), EdgeReading::default())?.into_dataset()?;
        Ok(split(dataset, self.split, self.seed, session))
    }

    fn search(
        &self,
        (source, dataset): (&str, &Dataset),
        model: Model,
        until: Option<Instant>,
        session: &Session,
    ) -> Result<SearchReport, Failure> {
        let mut space = SearchSpace::named(&self.space, model)?;
        for Point(values) in &self.start {
            space.begin_at(values)?;
        }
        let storage = storage::open(&self.study, session.memory.0)?;
        let threads = rayon::current_num_threads() as u64;
        let jobs = self.jobs.map_or(self.batch.min(threads), u64::from) as usize;
        let Bytes(memory) = session.memory;
        let config = self.training.onto(Config::default());
        let source = json!({
            "dataset": source,
            "split": self.split.map(|shares| shares.to_string()),
        });
        let trainer = self.device.trainer(None, session)?;
        let settings = Search {
            dataset,
            source: Some(source),
            splits: &splits(&config, dataset),
            space: &space,
            trials: space.trials(self.trials),
            seed: self.seed,
            seeds: self.seeds,
            finalists: self.finalists.into(),
            ensemble: self.ensemble.map_or(0, usize::from),
            batch: self.batch,
            jobs,
            sampler: match self.sampler {
                SamplerName::Tpe => Sampler::Tpe,
                SamplerName::TpeMultivariate => Sampler::TpeMultivariate,
                SamplerName::Random => Sampler::Random,
            },
            pruning: if self.prune { Pruning::Median { startup: 10, warm_up: 2 } } else { Pruning::Off },
            memory: Some(memory),
            trial_time: self.trial_time,
            attention_limit: self.attention_limit.map(|entries| entries as usize),
            until,
            patience: config.schedule.patience(&space.model),
            metric: metric(&config, dataset),
            spectra: session.spectra(),
            trainer: &*trainer,
            accelerator: self.device.resources_of_training(None, session)?.accelerator,
            pool: None,
            workers: None,
        };
        let usual = study_name(&dataset.name, &space);
        let name = match &self.study_name {
            None => usual,
            Some(name) if self.all => format!("{name} {usual}"),
            Some(name) => name.clone(),
        };
        Ok(search(&settings, storage, &name, &session.watch)?)
    }
}

/// Shows what a search did; one that a signal ended is a failure all the same.
fn ended(report: &impl Show, session: &Session) -> Result<(), Failure> {
    if !session.watch.stop_requested() {
        return session.show(report);
    }
    if !session.json() {
        session.show(report)?;
    }
    Err(Failure::interrupted().with(report))
}

#[derive(Serialize)]
struct Shown {
    #[serde(flatten)]
    report: SearchReport,
    peak_memory_bytes: Option<u64>,
}

fn report_of(report: SearchReport) -> Shown {
    Shown { report, peak_memory_bytes: units::peak_memory() }
}

impl Show for Shown {
    fn text(&self) -> String {
        let report = &self.report;
        let mut text = format!("{}: {} trials in {}", report.study, report.trials, report.storage);
        if report.left > 0 {
            let _ = write!(text, ", {} left (the same command resumes)", report.left);
        }
        let _ = writeln!(text, ", {:.1} s now", report.seconds);
        for (reason, count) in &report.failed {
            let _ = writeln!(text, "  {count} failed: {reason}");
        }
        if report.pruned > 0 {
            let _ = writeln!(text, "  {} given up early", report.pruned);
        }
        if let Some(best) = &report.best {
            let _ = writeln!(
                text,
                "  best: trial {}, validation {:.2} %, test {:.2} ± {:.2} %{}",
                best.number,
                100.0 * best.validation,
                100.0 * best.test_mean,
                100.0 * best.test_std,
                if best.seeds > 1 { format!(" over {} seeds", best.seeds) } else { String::new() }
            );
            for (name, value) in &best.parameters {
                let _ = writeln!(
                    text,
                    "    {name:<14} {}",
                    value.as_str().map_or(value.to_string(), str::to_owned)
                );
            }
        }
        if let Some(TrialEnsemble { trials, scores }) = &report.ensemble {
            let numbers: Vec<String> = trials.iter().map(ToString::to_string).collect();
            let _ = writeln!(
                text,
                "  together: trials {}, test {:.2} ± {:.2} %",
                numbers.join(", "),
                100.0 * scores.test_mean,
                100.0 * scores.test_std
            );
        }
        text
    }
}

/// What `--all` did.
#[derive(Serialize)]
struct Walk {
    reports: Vec<Shown>,
    missing: Vec<String>,
    seconds: f64,
}

impl Show for Walk {
    fn text(&self) -> String {
        let mut text: String = self.reports.iter().map(Shown::text).collect();
        if !self.missing.is_empty() {
            let _ = writeln!(text, "left out: {}", self.missing.join(", "));
        }
        let _ = writeln!(text, "{:.1} s in all", self.seconds);
        text
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    let digits = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
    let factor = match &text[digits.len()..] {
        "" | "s" => 1.0,
        "m" | "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => f64::NAN,
    };
    match digits.parse::<f64>() {
        Ok(number) if number > 0.0 && factor > 0.0 && number * factor < 1e9 => {
            Ok(Duration::from_secs_f64(number * factor))
        }
        _ => Err(format!("'{text}' is not a time; write a number and a unit, such as 90s, 30m or 2h")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_with_their_units() {
        assert_eq!(duration("2h"), Ok(Duration::from_secs(7200)));
        assert_eq!(duration("1.5m"), Ok(Duration::from_secs(90)));
        assert!(["", "h", "-1s", "3 parsecs", "1e300h"].iter().all(|wrong| duration(wrong).is_err()));
    }
}
