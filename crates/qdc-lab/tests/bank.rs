//! The bank and the learned window as models: every preset trains, is tried once by its space, is saved and predicts.

use std::ops::ControlFlow;

use qdc_core::{Metric, Resources, Watch};
use qdc_data::{DataDir, Dataset, EdgeReading, Shares, SpectrumCache};
use qdc_lab::tune::{Search, SearchSpace, search};
use qdc_lab::{Hyperparameters, Keep, Patience, Preset, Rewirings, Run, SavedModel, Training, save_best};
use qdc_nn::{Cpu, Criterion};
use qdc_tune::storage::{Sqlite, Storage};
use qdc_tune::{Pruning, Sampler};

fn dataset() -> Dataset {
    let source =
        qdc_data::open("csbm:n=90,homophily=0.8,seed=1", &DataDir::new("nowhere"), EdgeReading::default());
    source.unwrap().into_dataset().unwrap().with_random_splits(Shares::default(), 0)
}

fn values(model: &str, set: &[(&str, &str)]) -> Hyperparameters {
    let mut values = Hyperparameters::new(model.parse().unwrap());
    values.set("hidden", "8").unwrap();
    set.iter().for_each(|(name, value)| values.set(name, value).unwrap());
    values
}

fn train(dataset: &Dataset, values: &Hyperparameters, splits: &[usize], threads: usize) -> Run {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let patience = Patience { max_steps: 40, ..Patience::of(values.model()) };
    let keep = Keep { weights: true, curve: false };
    let metric = Metric::Accuracy;
    let training = Training { dataset, hyperparameters: values, seeds: &[7], splits, patience, metric, keep };
    let rewirings = Rewirings::new(&dataset.graph);
    let watch = Watch::silent();
    pool.install(|| qdc_lab::train(&training, &rewirings, &Cpu, &watch, &|_| ControlFlow::Continue(())))
        .unwrap()
}

#[test]
fn every_preset_and_the_window_train_better_than_chance_whatever_the_threads() {
    let dataset = dataset();
    let presets = Preset::NAMES.map(|name| ("bank", vec![("preset", name)]));
    for (model, set) in presets.into_iter().chain([("window", vec![])]) {
        let values = values(model, &set);
        let one = train(&dataset, &values, &[0, 1], 1);
        let two = train(&dataset, &values, &[0, 1], 2);
        assert_eq!(one.weights, two.weights, "{model} {set:?}");
        let chance = 1.0 / dataset.classes as f64;
        assert!(one.record.validation_mean > chance + 0.1, "{model} {set:?}: {}", one.record.validation_mean);
    }
}

#[test]
fn a_saved_bank_predicts_what_it_was_scored_with() {
    let (dataset, folder) = (dataset(), tempfile::tempdir().unwrap());
    for (model, set) in [("bank", vec![("preset", "ends-dropout"), ("dropout", "0.3")]), ("window", vec![])] {
        let run = train(&dataset, &values(model, &set), &[0], 1);
        let path = folder.path().join(model);
        save_best(&path, &run, &dataset, "csbm", &Rewirings::new(&dataset.graph), &Watch::silent())
            .unwrap()
            .unwrap();
        let saved = SavedModel::open(&path).unwrap();
        let predicted = saved.predict(&dataset, &Resources::default(), &Watch::silent()).unwrap().classes();
        let test = dataset.splits[0].test();
        let right = test.iter().filter(|&&v| predicted[v as usize] == dataset.labels[v as usize]).count();
        assert_eq!(right as f64 / test.len() as f64, run.record.splits[0].test, "{model}");
    }
}

#[test]
fn what_is_set_takes_the_place_of_what_the_preset_says() {
    let dataset = dataset();
    let plain = train(&dataset, &values("bank", &[]), &[0], 1);
    let same = train(&dataset, &values("bank", &[("preset", "ends"), ("dropout", "0.5")]), &[0], 1);
    assert_eq!(plain.weights, same.weights); // 0.5 is what `ends` says
    for set in [("dropout", "0.6"), ("readout_decay", "0.1"), ("input_dropout", "0.3"), ("norm", "none")] {
        let other = train(&dataset, &values("bank", &[set]), &[0], 1);
        assert_ne!(plain.weights, other.weights, "{set:?}");
    }
    let dropped = [("input_dropout", "0.3"), ("dropout_on", "features")];
    let on_features = train(&dataset, &values("bank", &dropped), &[0], 1);
    let on_channels =
        train(&dataset, &values("bank", &[("input_dropout", "0.3"), ("dropout_on", "channels")]), &[0], 1);
    assert_ne!(on_features.weights, on_channels.weights);
}

#[test]
fn a_bank_stops_by_loss_after_400_steps_at_most() {
    let bank = Patience::of(&"bank".parse().unwrap());
    assert_eq!((bank.max_steps, bank.stopping.patience, bank.stopping.criterion), (400, 50, Criterion::Loss));
    assert_eq!(Patience::of(&"window".parse().unwrap()), bank);
    assert_eq!(Patience::of(&"gcn".parse().unwrap()), Patience::default());
}

#[test]
fn the_space_of_presets_tries_each_once_and_no_other_model_has_it() {
    let dataset = dataset();
    let space = SearchSpace::named("presets", "bank".parse().unwrap()).unwrap();
    assert_eq!(space.trials(250), 5);
    let folder = tempfile::tempdir().unwrap();
    let settings = Search {
        dataset: &dataset,
        source: None,
        splits: &[0, 1],
        space: &space,
        trials: space.trials(250),
        seed: 3,
        seeds: 1,
        batch: 2,
        jobs: 2,
        sampler: Sampler::Tpe,
        pruning: Pruning::Off,
        memory: None,
        trial_time: None,
        until: None,
        patience: Patience { max_steps: 5, ..Patience::of(&space.model) },
        metric: Metric::Accuracy,
        trainer: &Cpu,
        spectra: SpectrumCache::new(folder.path()),
        pool: None,
    };
    let file = folder.path().join("studies.db");
    let report =
        search(&settings, Box::new(Sqlite::open(&file).unwrap()), "study", &Watch::silent()).unwrap();
    assert_eq!((report.trials, report.left, report.duplicates, report.failed.len()), (5, 0, 0, 0));
    let mut storage = Sqlite::open(&file).unwrap();
    let study = storage.studies().unwrap()[0].id;
    let tried: Vec<String> = storage
        .trials(study, 0, &[])
        .unwrap()
        .iter()
        .map(|trial| trial.parameters()["preset"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(tried, Preset::NAMES);
    assert!(SearchSpace::named("presets", "gcn".parse().unwrap()).is_err());
    assert!(SearchSpace::named("paper", "bank".parse().unwrap()).is_err());
    for model in ["bank", "window"] {
        assert!(SearchSpace::named("wide", model.parse().unwrap()).is_ok());
    }
}
