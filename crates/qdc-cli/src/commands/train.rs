//! `qdc train`: a model on a dataset, split by split.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;

use clap::Args;
use qdc_data::Shares;
use qdc_lab::hyperparameters::TABLE;
use qdc_lab::{
    Config, DatasetIdentity, Ensemble, GivenKernel, Keep, Learned, Model, NetworkKind, RewiringKind,
    Rewirings, Run, RunRecord, Scores, TowerReport, Training, save_best, save_learned_filter,
};
use serde::Serialize;

use super::figure::mean_shares;
use super::study::open_existing;
use crate::device_argument::DeviceArgument;
use crate::failure::Failure;
use crate::graph_arguments::EdgeArguments;
use crate::model_argument::model;
use crate::output::{self, Show};
use crate::session::Session;
use crate::training_arguments::{TrainingArguments, metric, seeds, split, splits};
use crate::units;

/// Train a model on the splits of a dataset
///
/// Prints the score on each split at the step that was best on validation, and their mean.
#[derive(Debug, Args)]
#[command(after_long_help = hyperparameter_help())]
pub(crate) struct Train {
    /// A dataset (cora), a dataset .npz, or a labelled generator (csbm:n=1000,homophily=0.2)
    #[arg(value_name = "DATASET", required_unless_present_any = ["config", "from"])]
    dataset: Option<String>,
    #[command(flatten)]
    edges: EdgeArguments,
    /// mlp, gcn or gat, and +gdc, +sdrf, +bpdc, +qdc or +multiscale for what is done to the graph; towers are
    /// joined by /; or bank, or window
    #[arg(long, value_name = "MODEL", value_parser = model, required_unless_present_any = ["config", "from"])]
    #[arg(conflicts_with_all = ["config", "from"])]
    model: Option<Model>,
    /// Train what a TOML file says; options come before it
    #[arg(long, value_name = "FILE.toml", conflicts_with = "from")]
    config: Option<PathBuf>,
    /// Train a trial of a study again, with the same scores
    #[arg(long, value_name = "STUDY")]
    from: Option<String>,
    /// The study of the file, where it holds several
    #[arg(long, value_name = "NAME", requires = "from")]
    study_name: Option<String>,
    /// The trial of the study [default: the best]
    #[arg(long, value_name = "N", requires = "from")]
    trial: Option<u64>,
    /// The configuration of a bank: ends, ends-dropout, ends-knn, ranks or plain; short for --set preset=NAME
    #[arg(long, value_name = "NAME")]
    preset: Option<String>,
    /// A hyper-parameter; may be repeated (names: --help)
    #[arg(long, value_name = "NAME=VALUE", value_parser = assignment)]
    set: Vec<(String, String)>,
    #[command(flatten)]
    training: TrainingArguments,
    /// Make ten random splits with these percentages of training, validation and test, in place of the
    /// dataset's own [default: the dataset's own; 48/32/20 where it has none]
    #[arg(long, value_name = "A/B/C")]
    split: Option<Shares>,
    /// Fixes every random choice [default: 0]
    #[arg(long, value_name = "S")]
    seed: Option<u64>,
    /// Train every split with this many seeds: S, S + 1, ... [default: 1]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(1..=qdc_lab::MOST_SEEDS))]
    seeds: Option<u64>,
    /// Ask K seeds together: the mean of their class probabilities, beside the single networks' score [seeds: K]
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u64).range(2..=1000))]
    ensemble: Option<u64>,
    /// A kernel made before (qdc kernel -o FILE), in the place of every kernel of the model
    #[arg(long, value_name = "FILE", conflicts_with = "save")]
    kernel: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceArgument,
    /// Save the weights of the split that is best on validation
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    /// Save the window that --model window learned on the split that is best on validation; qdc kernel --filter reads it
    #[arg(long, value_name = "FILE.toml")]
    save_filter: Option<PathBuf>,
    /// Write losses and scores of every step
    #[arg(long, value_name = "FILE.csv")]
    curves: Option<PathBuf>,
    /// Write the scores of every split and seed
    #[arg(long, value_name = "FILE.csv")]
    scores: Option<PathBuf>,
}

impl Train {
    /// What is to be trained: the file, the trial or the options, and options over it.
    fn config(&self, session: &Session) -> Result<Config, Failure> {
        let mut config = match (&self.config, &self.from) {
            (Some(path), _) => Config::read(path)?,
            (None, Some(study)) => {
                let mut storage = open_existing(study, session)?;
                let name = self.study_name.as_deref();
                let (config, trial) = Config::of_trial(storage.as_mut(), name, self.trial)?;
                session.watch.note(&format!("trial {trial} of {study}"));
                config
            }
            (None, None) => Config { model: self.model.clone(), ..Config::default() },
        };
        if self.dataset.is_some() || self.split.is_some() {
            config.identity = None; // another dataset on purpose
        }
        config.dataset = self.dataset.clone().or(config.dataset);
        config.split = self.split.map(|shares| shares.to_string()).or(config.split);
        config.seed = self.seed.or(config.seed);
        config.seeds = self.seeds.or(config.seeds);
        Ok(self.training.onto(config))
    }

    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let config = self.config(session)?;
        let mut hyperparameters = config.hyperparameters()?;
        let preset = self.preset.iter().map(|name| ("preset", name.as_str()));
        let set = self.set.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        preset.chain(set).try_for_each(|(name, value)| hyperparameters.set(name, value))?;
        if self.save_filter.is_some()
            && !hyperparameters.model().has(|tower| tower.network == NetworkKind::Window)
        {
            let model = hyperparameters.model();
            return Err(Failure::usage(format!("--save-filter: {model} learns no single filter")).hint(
                "--model window learns one; a bank has a matrix of its own for each of its windows"
                    .to_owned(),
            ));
        }
        let paths = [&self.save, &self.save_filter, &self.curves, &self.scores];
        for path in paths.into_iter().flatten() {
            output::check_writable(path)?; // before the work, not after it
        }
        let seed = config.seed.unwrap_or(0);
        let seeds = seeds(seed, self.seeds_of(&config)?)?;
        let Some(name) = &config.dataset else {
            return Err(Failure::usage("name a DATASET: the file says none"));
        };
        let shares = config.split.as_deref().map(str::parse).transpose().map_err(Failure::usage)?;
        let dataset = qdc_data::open(name, &session.data_dir(), self.edges.reading())?.into_dataset()?;
        let dataset = split(dataset, shares, seed, session);
        if let Some(identity) = &config.identity {
            DatasetIdentity::of(&dataset).check(identity)?;
        }
        let training = Training {
            dataset: &dataset,
            hyperparameters: &hyperparameters,
            seeds: &seeds,
            splits: &splits(&config, &dataset),
            patience: config.schedule.patience(hyperparameters.model()),
            metric: metric(&config, &dataset),
            keep: Keep {
                weights: self.save.is_some(),
                curve: self.curves.is_some(),
                probabilities: self.ensemble.is_some(),
            },
        };
        let written = config.device.as_deref();
        let resources = self.device.resources_of_training(written, session)?;
        let mut rewirings = Rewirings::new(&dataset).with_resources(resources).by_routes(&config.routes);
        if let Some(path) = self.kernel.clone().or(config.kernel.clone().map(PathBuf::from)) {
            let kernel = GivenKernel::new(qdc_data::matrix::map(&path, session.budget())?)?;
            rewirings = rewirings.with_kernel(kernel)?;
        }
        let trainer = self.device.trainer(written, session)?;
        let go_on = |_: &Scores| ControlFlow::Continue(());
        let run = qdc_lab::train(&training, &rewirings, &*trainer, &session.watch, &go_on)?;
        for (path, csv) in [(&self.curves, curves as fn(&Run) -> String), (&self.scores, scores)] {
            if let Some(path) = path {
                output::write_file(path, csv(&run).as_bytes())?;
            }
        }
        let mut saved = None;
        if let Some(path) = &self.save {
            let best = save_best(path, &run, &dataset, name)?;
            let Some(best) = best else {
                return Err(Failure::new("no split had a finite loss, so there are no weights to save"));
            };
            session.watch.note(&format!("saved the weights of split {} to {}", best.split, path.display()));
            saved = Some(path.display().to_string());
        }
        let mut saved_filter = None;
        if let Some(path) = &self.save_filter {
            let Some((filter, scores)) = save_learned_filter(path, &run)? else {
                return Err(Failure::new("no split had a finite loss, so there is no filter to save"));
            };
            let path = path.display().to_string();
            session.watch.note(&format!("saved the filter of split {}, {filter}, to {path}", scores.split));
            saved_filter = Some(path);
        }
        let ensemble = self.ensemble.and_then(|_| Ensemble::of(&[&run], &dataset, training.metric));
        let peak_memory_bytes = units::peak_memory();
        session.show(&Trained { record: &run.record, ensemble, saved, saved_filter, peak_memory_bytes })
    }

    /// How many seeds to train: those said, or as many as an ensemble asks.
    fn seeds_of(&self, config: &Config) -> Result<u64, Failure> {
        match (self.ensemble, config.seeds) {
            (Some(members), Some(seeds)) if seeds != members => {
                Err(Failure::usage(format!("--ensemble {members} asks {members} seeds, not --seeds {seeds}"))
                    .hint("leave out --seeds".to_owned()))
            }
            (Some(members), _) => Ok(members),
            (None, seeds) => Ok(seeds.unwrap_or(1)),
        }
    }
}

/// The result: the record, and where the weights went.
#[derive(Serialize)]
struct Trained<'a> {
    #[serde(flatten)]
    record: &'a RunRecord,
    #[serde(flatten)]
    ensemble: Option<Ensemble>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    saved_filter: Option<String>,
    peak_memory_bytes: Option<u64>,
}

impl Show for Trained<'_> {
    fn text(&self) -> String {
        let record = self.record;
        let metric = record.metric.title();
        let several = record.seeds.len() > 1;
        let seeds = match record.seeds.as_slice() {
            [first, .., last] => format!("seeds {first} to {last}"),
            _ => format!("seed {}", record.seed),
        };
        let mut text = format!("{} on {}, {seeds}, {metric} in %\n\n", record.model, record.dataset);
        let rewired = || record.towers.iter().filter(|tower| tower.rewiring != RewiringKind::Plain);
        rewired().for_each(|tower| text += &line_of(tower));
        if rewired().next().is_some() {
            text.push('\n');
        }
        text += if several { "split  seed " } else { "split " };
        text += "  train  validation    test  steps  seconds\n";
        for split in &record.splits {
            let seed = if several { format!("  {:>4}", split.seed) } else { String::new() };
            let _ = write!(
                text,
                "{:>5}{seed}  {:>6.2}  {:>10.2}  {:>6.2}  {:>5}  {:>7.2}",
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
            "\ntest {:.2} ± {:.2} %, validation {:.2} %, over {} splits{} in {:.2} s",
            100.0 * record.test_mean,
            100.0 * record.test_std,
            100.0 * record.validation_mean,
            record.splits.len() / record.seeds.len().max(1),
            if several { format!(" and {} seeds", record.seeds.len()) } else { String::new() },
            record.seconds
        );
        if let Some(Ensemble { members, test_mean, test_std, .. }) = self.ensemble {
            let (mean, deviation) = (100.0 * test_mean, 100.0 * test_std);
            let _ = writeln!(text, "{members} seeds together: test {mean:.2} ± {deviation:.2} %");
        }
        text + &learned(&record.learned)
    }
}

/// What the matrix of a tower is, in one line.
fn line_of(tower: &TowerReport) -> String {
    let TowerReport { tower: number, entries_per_row, homophily_before, homophily_after, .. } = *tower;
    let diagonal = tower
        .diagonal_share
        .map_or(String::new(), |share| format!(", {:.1} % of its mass on the diagonal", 100.0 * share));
    let route = tower.route.map_or(String::new(), |route| format!(" by {route}"));
    format!(
        "tower {number}{route}: {entries_per_row:.1} entries a row{diagonal}; homophily {homophily_before:.3} before, \
         {homophily_after:.3} after\n"
    )
}

/// What was learnt besides matrices: windows split by split, shares as their mean.
fn learned(all: &[Learned]) -> String {
    let windows: Vec<String> = all
        .iter()
        .filter_map(|one| one.window.map(|window| format!("{:.2}, {:.2}", window.mu, window.sigma)))
        .collect();
    if !windows.is_empty() {
        return format!("learned windows (mu, sigma): {}\n", windows.join("; "));
    }
    if all.is_empty() {
        return String::new();
    }
    let mut text = String::from("shares of the channels, mean over the splits:\n");
    for (channel, share) in mean_shares(all) {
        let _ = writeln!(text, "  {share:.2}  {channel}");
    }
    text
}

fn curves(run: &Run) -> String {
    let mut csv = String::from("split,seed,step,train_loss,validation_loss,train,validation,test\n");
    for (record, steps) in run.record.splits.iter().zip(&run.curves) {
        for step in steps {
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{},{}",
                record.split,
                record.seed,
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

fn scores(run: &Run) -> String {
    let mut csv = String::from("split,seed,train,validation,test,steps,seconds\n");
    for one in &run.record.splits {
        let Scores { split, seed, train, validation, test, steps, seconds, .. } = one;
        let _ = writeln!(csv, "{split},{seed},{train},{validation},{test},{steps},{seconds}");
    }
    csv
}

fn assignment(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("it must look like hidden=64")?;
    Ok((name.trim().into(), value.trim().into()))
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
