//! The bank and the learned window as models: every preset trains, is tried once by its space, is saved and
//! predicts.

use std::ops::ControlFlow;

use qdc_core::{Metric, Resources, Watch};
use qdc_data::{Budget, DataDir, Dataset, EdgeReading, Shares, SpectrumCache};
use qdc_lab::tune::{Search, SearchSpace, search};
use qdc_lab::{
    Ensemble, Error, Hyperparameters, Keep, Patience, Preset, Rewirings, Run, SavedModel, Training,
    read_filter, save_best, save_learned_filter,
};
use qdc_nn::{Cpu, Criterion, EarlyStopping};
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
    train_with(dataset, values, splits, threads, &[7])
}

fn train_with(
    dataset: &Dataset,
    values: &Hyperparameters,
    splits: &[usize],
    threads: usize,
    seeds: &[u64],
) -> Run {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let patience = Patience { max_steps: 40, ..Patience::of(values.model()) };
    let keep = Keep { weights: true, probabilities: true, ..Keep::default() };
    let metric = Metric::Accuracy;
    let training = Training { dataset, hyperparameters: values, seeds, splits, patience, metric, keep };
    let rewirings = Rewirings::new(dataset);
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
        assert_eq!(one.record.learned, two.record.learned, "{model} {set:?}");
        assert_eq!(one.probabilities, two.probabilities, "{model} {set:?}");
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
        save_best(&path, &run, &dataset, "csbm").unwrap().unwrap();
        let saved = SavedModel::open(&path, Budget::default()).unwrap();
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
fn a_bank_stops_by_loss_and_a_window_by_the_metric_after_400_steps_at_most() {
    let bank = Patience::of(&"bank".parse().unwrap());
    assert_eq!((bank.max_steps, bank.stopping.patience, bank.stopping.criterion), (400, 50, Criterion::Loss));
    let window = Patience::of(&"window".parse().unwrap());
    assert_eq!((window.max_steps, window.stopping), (400, EarlyStopping::default()));
    assert_eq!(Patience::of(&"gcn".parse().unwrap()), Patience::default());
}

/// A search over a space, of a few steps on two splits.
fn searched<'a>(
    dataset: &'a Dataset,
    space: &'a SearchSpace,
    trials: usize,
    spectra: SpectrumCache,
) -> Search<'a> {
    Search {
        dataset,
        source: None,
        splits: &[0, 1],
        space,
        trials: space.trials(trials),
        seed: 3,
        seeds: 1,
        finalists: 1,
        ensemble: 3,
        batch: 2,
        jobs: 2,
        sampler: Sampler::Tpe,
        pruning: Pruning::Off,
        memory: None,
        trial_time: None,
        attention_limit: None,
        until: None,
        patience: Patience { max_steps: 5, ..Patience::of(&space.model) },
        metric: Metric::Accuracy,
        trainer: &Cpu,
        accelerator: None,
        spectra,
        pool: None,
        workers: None,
    }
}

#[test]
fn the_wide_space_of_banks_and_windows_is_searched_without_a_failure() {
    let (dataset, folder) = (dataset(), tempfile::tempdir().unwrap());
    for model in ["bank", "window"] {
        let space = SearchSpace::named("wide", model.parse().unwrap()).unwrap();
        assert_eq!(space.trials(12), 12);
        let settings = searched(&dataset, &space, 12, SpectrumCache::new(folder.path()));
        let storage = Box::new(Sqlite::open(folder.path().join(model)).unwrap());
        let report = search(&settings, storage, "study", &Watch::silent()).unwrap();
        assert_eq!((report.trials, report.left, report.failed.len()), (12, 0, 0), "{:?}", report.failed);
        let best = report.best.unwrap();
        assert_eq!(best.parameters.contains_key("channels"), model == "bank");
        assert!(best.parameters.contains_key("readout_decay") && best.validation > 0.5, "{best:?}");
        assert_eq!(report.ensemble.unwrap().scores.members, 3);
    }
}

#[test]
fn the_space_of_presets_tries_each_once_and_no_other_model_has_it() {
    let dataset = dataset();
    let space = SearchSpace::named("presets", "bank".parse().unwrap()).unwrap();
    assert_eq!(space.trials(250), 5);
    let folder = tempfile::tempdir().unwrap();
    let settings = searched(&dataset, &space, 250, SpectrumCache::new(folder.path()));
    let file = folder.path().join("studies.db");
    let report =
        search(&settings, Box::new(Sqlite::open(&file).unwrap()), "study", &Watch::silent()).unwrap();
    assert_eq!((report.trials, report.left, report.duplicates, report.failed.len()), (5, 0, 0, 0));
    let ensemble = report.ensemble.unwrap();
    assert_eq!((ensemble.trials.len(), ensemble.scores.members), (3, 3));
    assert_eq!(Some(ensemble.trials[0]), report.best.map(|best| best.number));
    assert!(ensemble.trials[1..].iter().all(|number| *number != ensemble.trials[0]));
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
}

#[test]
fn shares_and_windows_are_recorded_and_the_best_window_is_saved() {
    let (dataset, folder) = (dataset(), tempfile::tempdir().unwrap());
    let bank = train(&dataset, &values("bank", &[]), &[0, 2], 1);
    assert_eq!(bank.record.learned.len(), 2);
    let first = &bank.record.learned[0];
    assert_eq!((first.split, first.seed, first.window, first.shares.len()), (0, 7, None, 8));
    assert_eq!(first.shares[1].channel, "L X");
    let mean = first.shares.iter().map(|share| share.share).sum::<f64>() / 8.0;
    assert!((mean - 1.0).abs() < 1e-5 && first.shares.iter().any(|share| (share.share - 1.0).abs() > 1e-3));
    let path = folder.path().join("filter.toml");
    assert_eq!(save_learned_filter(&path, &bank).unwrap(), None);
    assert!(!path.exists());

    let run = train(&dataset, &values("window", &[]), &[0, 1, 2], 1);
    let (filter, scores) = save_learned_filter(&path, &run).unwrap().unwrap();
    let highest = run.record.splits.iter().map(|split| split.validation).fold(0.0, f64::max);
    assert_eq!(scores.validation, highest);
    let learned = run.record.learned.iter().find(|learned| learned.split == scores.split).unwrap();
    let window = learned.window.unwrap();
    assert!(learned.shares.is_empty());
    assert_eq!(read_filter(&path).unwrap(), filter);
    assert_eq!(filter.parameters()["mu"], window.mu);
    assert!(std::fs::read_to_string(&path).unwrap().starts_with("# Learned by window on csbm"));
}

#[test]
fn an_ensemble_of_one_is_the_network_and_of_several_the_mean_of_their_probabilities() {
    let dataset = dataset();
    for model in ["bank", "window", "gcn"] {
        let values = values(model, &[]);
        let alone = train(&dataset, &values, &[0, 1], 1);
        let one = Ensemble::of(&[&alone], &dataset, Metric::Accuracy).unwrap();
        assert_eq!((one.members, one.test_mean), (1, alone.record.test_mean), "{model}");
        assert_eq!(
            (one.test_std, one.validation_mean),
            (alone.record.test_std, alone.record.validation_mean)
        );
        let run = train_with(&dataset, &values, &[0, 1], 2, &[7, 8, 9]);
        let three = Ensemble::of(&[&run], &dataset, Metric::Accuracy).unwrap();
        assert_eq!(three.members, 3);
        // By hand: the class of the largest sum over the seeds.
        for split in [0, 1] {
            let members: Vec<&Vec<f32>> = (0..run.record.splits.len())
                .filter(|&at| run.record.splits[at].split == split)
                .map(|at| run.probabilities[at].as_ref().unwrap())
                .collect();
            assert_eq!(members.len(), 3);
            let right = dataset.splits[split].test().iter().filter(|&&vertex| {
                let sum = |class: usize| -> f32 {
                    members.iter().map(|shares| shares[vertex as usize * dataset.classes + class]).sum()
                };
                let best = (0..dataset.classes).max_by(|&a, &b| sum(a).total_cmp(&sum(b))).unwrap();
                best as u32 == dataset.labels[vertex as usize]
            });
            let expected = right.count() as f64 / dataset.splits[split].test().len() as f64;
            assert!((three.test[split] - expected).abs() < 1e-12, "{model} {split}");
        }
        let mut bare = alone.clone();
        bare.probabilities.clear();
        assert_eq!(Ensemble::of(&[&bare], &dataset, Metric::Accuracy), None);
    }
}

/// Two copies of a dataset side by side, without an edge between them.
fn twice(dataset: &Dataset) -> Dataset {
    let nodes = dataset.graph.nodes();
    let edges: Vec<(u64, u64)> = dataset.graph.edge_list().map(|(i, j, _)| (i as u64, j as u64)).collect();
    let copies =
        [0, nodes as u64].into_iter().flat_map(|by| edges.iter().map(move |&(i, j)| (i + by, j + by)));
    let graph = qdc_core::Graph::from_edges(2 * nodes, copies, qdc_core::EdgeRule::Undirected).unwrap();
    let values = [dataset.features.to_dense(), dataset.features.to_dense()].concat();
    let features = qdc_core::Features::from_dense(dataset.features.columns(), values);
    Dataset::new("twice".into(), graph, features, [dataset.labels.clone(), dataset.labels.clone()].concat())
        .unwrap()
}

#[test]
fn a_saved_bank_says_the_same_of_every_copy_of_its_graph() {
    let (dataset, folder) = (dataset(), tempfile::tempdir().unwrap());
    let double = twice(&dataset);
    let (watch, resources) = (Watch::silent(), Resources::default());
    for (model, set) in [
        ("bank", vec![]),
        ("bank", vec![("preset", "plain")]),
        ("window", vec![]),
        ("bank", vec![("preset", "ranks")]),
    ] {
        let run = train(&dataset, &values(model, &set), &[0], 1);
        let path = folder.path().join("model");
        save_best(&path, &run, &dataset, "csbm").unwrap();
        let saved = SavedModel::open(&path, Budget::default()).unwrap();
        let elsewhere = saved.predict_elsewhere(&double, &resources, &watch);
        if set == [("preset", "ranks")] {
            let error = elsewhere.unwrap_err();
            assert!(matches!(&error, Error::VertexChannel { channel, .. } if channel == "adjacency rows"));
            assert!(error.hint().is_some());
            continue;
        }
        let (own, two) = (saved.predict(&dataset, &resources, &watch).unwrap(), elsewhere.unwrap());
        let (own, two) = (own.probabilities(), two.probabilities());
        for (vertex, shares) in two.iter().enumerate() {
            for (class, share) in shares.iter().enumerate() {
                assert!((share - own[vertex % own.len()][class]).abs() < 1e-3, "{model} {set:?} {vertex}");
            }
        }
    }
}

#[test]
fn a_bank_that_takes_more_memory_than_there_is_is_refused() {
    let dataset = dataset();
    let tight = Resources { memory: Some(1_000_000), ..Resources::default() };
    for (model, set) in [("bank", ("hidden", "4096")), ("window", ("hidden", "4096"))] {
        let values = values(model, &[set]);
        let training = Training {
            dataset: &dataset,
            hyperparameters: &values,
            seeds: &[0],
            splits: &[0],
            patience: Patience::of(values.model()),
            metric: Metric::Accuracy,
            keep: Keep::default(),
        };
        let rewirings = Rewirings::new(&dataset).with_resources(tight.clone());
        let go_on = |_: &_| ControlFlow::Continue(());
        let error = qdc_lab::train(&training, &rewirings, &Cpu, &Watch::silent(), &go_on).unwrap_err();
        assert!(
            matches!(error, Error::OverMemory { limit: 1_000_000, needed, .. } if needed > 1_000_000),
            "{error}"
        );
    }
}
