//! Training runs on a generated graph: reproducible, resumable by split, saved and predicted with.

use std::ops::ControlFlow;

use qdc_core::{Features, Metric, Resources, Split, UNLABELLED, Watch};
use qdc_data::{Budget, DataDir, Dataset, EdgeReading, Shares};
use qdc_lab::hyperparameters::TABLE;
use qdc_lab::{
    Error, Hyperparameters, Keep, Model, Patience, Rewirings, Run, SavedConfiguration, SavedModel, Training,
    save_best,
};
use qdc_nn::training::Step;
use qdc_nn::{Cpu, Criterion, EarlyStopping};

fn dataset() -> Dataset {
    let source =
        qdc_data::open("csbm:n=120,homophily=0.8,seed=1", &DataDir::new("nowhere"), EdgeReading::default());
    source.unwrap().into_dataset().unwrap().with_random_splits(Shares::default(), 0)
}

fn values(model: &str, set: &[(&str, &str)]) -> Hyperparameters {
    let mut values = Hyperparameters::new(model.parse().unwrap());
    values.set("hidden", "8").unwrap();
    set.iter().for_each(|(name, value)| values.set(name, value).unwrap());
    values
}

fn train(
    dataset: &Dataset,
    values: &Hyperparameters,
    splits: &[usize],
    threads: usize,
) -> Result<Run, Error> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
    let patience = Patience { max_steps: 60, ..Patience::default() };
    let keep = Keep { weights: true, curve: true, ..Keep::default() };
    let metric = Metric::Accuracy;
    let training = Training { dataset, hyperparameters: values, seeds: &[7], splits, patience, metric, keep };
    let rewirings = Rewirings::new(dataset);
    pool.install(|| {
        qdc_lab::train(&training, &rewirings, &Cpu, &Watch::silent(), &|_| ControlFlow::Continue(()))
    })
}

#[test]
fn a_run_does_not_depend_on_threads_nor_a_split_on_the_others() {
    let dataset = dataset();
    let values = values("gcn+qdc", &[]);
    let one = train(&dataset, &values, &[0, 1, 2], 1).unwrap();
    let two = train(&dataset, &values, &[0, 1, 2], 2).unwrap();
    let alone = train(&dataset, &values, &[2], 1).unwrap();
    assert_eq!(one.weights, two.weights);
    assert_eq!(one.curves, two.curves);
    assert_eq!(one.weights[2], alone.weights[0]);
    assert_ne!(one.weights[0], one.weights[1]);
}

#[test]
fn every_model_trains_better_than_chance() {
    let dataset = dataset();
    for model in Model::all() {
        let mut values = values(&model.to_string(), &[("dropout", "0.2")]);
        if model.to_string().ends_with("sdrf") {
            values.set("iterations", "5").unwrap();
        }
        let run = train(&dataset, &values, &[0], 1).unwrap();
        let record = &run.record;
        assert!(record.splits[0].train > 1.2 / dataset.classes as f64, "{model}: {:?}", record.splits[0]);
        let json = serde_json::to_value(record).unwrap();
        for key in [
            "dataset",
            "model",
            "hyperparameters",
            "seed",
            "metric",
            "test_mean",
            "test_std",
            "validation_mean",
            "splits",
            "kernel",
            "seconds",
        ] {
            assert!(json.get(key).is_some(), "{model} has no {key}");
        }
    }
}

#[test]
fn metric_and_criterion_decide_which_step_counts() {
    let hard = "csbm:n=120,homophily=0.5,classes=3,signal=0.5,seed=1";
    let source = qdc_data::open(hard, &DataDir::new("nowhere"), EdgeReading::default()).unwrap();
    let dataset = source.into_dataset().unwrap().with_random_splits(Shares::default(), 0);
    let values = values("gcn", &[]);
    let mut best_steps = Vec::new();
    for metric in Metric::ALL {
        for criterion in [Criterion::Metric, Criterion::Loss] {
            let stopping = EarlyStopping { patience: 15, warm_up: 0, criterion };
            let training = Training {
                dataset: &dataset,
                hyperparameters: &values,
                seeds: &[7],
                splits: &[1],
                patience: Patience { max_steps: 60, stopping, batch_nodes: None },
                metric,
                keep: Keep { curve: true, ..Keep::default() },
            };
            let rewirings = Rewirings::new(&dataset);
            let run =
                qdc_lab::train(&training, &rewirings, &Cpu, &Watch::silent(), &|_| ControlFlow::Continue(()));
            let run = run.unwrap();
            let (scores, curve) = (&run.record.splits[0], &run.curves[0]);
            let better = |a: &Step, b: &Step| match criterion {
                Criterion::Metric => (a.validation, -a.validation_loss) > (b.validation, -b.validation_loss),
                Criterion::Loss => (-a.validation_loss, a.validation) > (-b.validation_loss, b.validation),
            };
            let best =
                curve.iter().reduce(|best, step| if better(step, best) { step } else { best }).unwrap();
            assert_eq!(scores.best_step, best.step, "{metric} {criterion:?}");
            let at_best = (best.train, best.validation, best.test, Some(best.validation_loss));
            assert_eq!((scores.train, scores.validation, scores.test, scores.validation_loss), at_best);
            assert!(scores.steps == 60 || scores.steps == best.step + 15, "{scores:?}");
            assert_eq!((run.record.metric, scores.split, scores.seed), (metric, 1, 7));
            assert_eq!(run.record.test_mean, scores.test);
            best_steps.push((metric, scores.best_step, scores.test));
        }
    }
    assert_ne!(best_steps[0].1, best_steps[1].1, "score and loss choose differently here");
    assert_ne!(best_steps[0].2, best_steps[2].2, "accuracy and macro-F1 differ here");
    assert_ne!(best_steps[0].2, best_steps[4].2, "accuracy and ROC-AUC differ here");
}

#[test]
fn vertices_without_label_may_stand_outside_the_split_and_nowhere_else() {
    let mut dataset = dataset();
    let split = &dataset.splits[0];
    let (train_set, validation) = (split.train().to_vec(), split.validation().to_vec());
    let (unlabelled, rest) = split.test().split_at(5);
    let (unlabelled, rest) = (unlabelled.to_vec(), rest.to_vec());
    dataset.splits[0] = Split::new(120, train_set, validation, rest).unwrap();
    let values = values("gcn", &[]);
    let before = train(&dataset, &values, &[0], 1).unwrap();
    unlabelled.iter().for_each(|&vertex| dataset.labels[vertex as usize] = UNLABELLED);
    let after = train(&dataset, &values, &[0], 1).unwrap();
    assert_eq!(before.weights, after.weights, "labels outside the split are not looked at");
    let vertex = dataset.splits[0].test()[0];
    dataset.labels[vertex as usize] = UNLABELLED;
    let error = train(&dataset, &values, &[0], 1).unwrap_err();
    assert_eq!(error.to_string(), format!("vertex {vertex} of the test set of split 0 has no label"));
    assert!(error.hint().is_some());
}

#[test]
fn roc_auc_is_refused_where_a_set_has_one_class_only() {
    let mut dataset = dataset();
    let split = &dataset.splits[0];
    let of_class_zero = split.validation().iter().copied().filter(|&v| dataset.labels[v as usize] == 0);
    let validation: Vec<u32> = of_class_zero.collect();
    dataset.splits[0] = Split::new(120, split.train().to_vec(), validation, split.test().to_vec()).unwrap();
    let values = values("mlp", &[]);
    let training = Training {
        dataset: &dataset,
        hyperparameters: &values,
        seeds: &[0],
        splits: &[0],
        patience: Patience::default(),
        metric: Metric::Auc,
        keep: Keep::default(),
    };
    let rewirings = Rewirings::new(&dataset);
    let error = qdc_lab::train(&training, &rewirings, &Cpu, &Watch::silent(), &|_| ControlFlow::Continue(()));
    let error = error.unwrap_err().to_string();
    assert!(error.contains("the validation set of split 0") && error.contains("ROC-AUC"), "{error}");
}

fn save(path: &std::path::Path, run: &Run, dataset: &Dataset) -> SavedConfiguration {
    save_best(path, run, dataset, "csbm").unwrap().unwrap()
}

#[test]
fn features_are_checked_and_another_graph_with_the_same_features_is_predicted_on() {
    let dataset = dataset();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let run = train(&dataset, &values("gcn+qdc", &[]), &[0], 1).unwrap();
    let saved = save(&path, &run, &dataset);
    assert_eq!((saved.metric, saved.feature_columns), (Metric::Accuracy, Some(dataset.features.columns())));
    assert_eq!(saved.class_names, ["0", "1"]);
    let model = SavedModel::open(&path, Budget::default()).unwrap();
    let watch = Watch::silent();

    let mut permuted = dataset.clone();
    let columns = dataset.features.columns();
    let mut dense = dataset.features.to_dense();
    dense.rotate_left(columns);
    permuted.features = Features::from_dense(columns, dense);
    let error = model.predict(&permuted, &Resources::default(), &watch).unwrap_err();
    assert!(matches!(error, Error::OtherFeatures { .. }) && error.hint().is_some(), "{error}");

    // A sample of the same model, of another size: its kernel is made anew, and classes are found there too.
    let elsewhere = |source: &str| {
        let source = qdc_data::open(source, &DataDir::new("nowhere"), EdgeReading::default());
        source.unwrap().into_dataset().unwrap()
    };
    let same_graph = model.predict_elsewhere(&dataset, &Resources::default(), &watch).unwrap();
    let own = model.predict(&dataset, &Resources::default(), &watch).unwrap();
    assert_eq!(same_graph.probabilities(), own.probabilities());
    assert_eq!(same_graph.sets, None);
    let other = elsewhere("csbm:n=90,homophily=0.8,seed=5");
    let predicted = model.predict_elsewhere(&other, &Resources::default(), &watch).unwrap();
    assert_eq!(predicted.classes().len(), 90);
    assert_eq!(predicted.fit(&other.labels, Metric::Accuracy)["all"].vertices, 90);

    let narrow = elsewhere("csbm:n=90,homophily=0.8,features=7,seed=5");
    let error = model.predict_elsewhere(&narrow, &Resources::default(), &watch).unwrap_err();
    assert!(matches!(error, Error::OtherFeatureColumns { expected: 32, found: 7, .. }), "{error}");
    let more = elsewhere("csbm:n=90,homophily=0.8,classes=3,seed=5");
    let error = model.predict_elsewhere(&more, &Resources::default(), &watch).unwrap_err();
    assert!(matches!(error, Error::MoreClasses { known: 2, found: 3, .. }), "{error}");
}

#[test]
fn vertices_without_a_label_are_predicted_and_not_scored() {
    let mut dataset = dataset();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let run = train(&dataset, &values("gcn", &[]), &[0], 1).unwrap();
    save(&path, &run, &dataset);
    let model = SavedModel::open(&path, Budget::default()).unwrap();
    let test = dataset.splits[0].test().to_vec();
    dataset.labels[test[0] as usize] = UNLABELLED;
    let predicted = model.predict(&dataset, &Resources::default(), &Watch::silent()).unwrap();
    let fits = predicted.fit(&dataset.labels, Metric::Auc);
    assert_eq!((predicted.classes().len(), fits["test"].vertices), (120, test.len() - 1));
    let one_class: Vec<u32> = dataset.labels.iter().map(|_| 0).collect();
    let fits = predicted.fit(&one_class, Metric::Auc);
    assert!(fits["test"].score.is_none() && fits["test"].accuracy.is_some(), "ROC-AUC needs two classes");
}

#[test]
fn weights_that_are_not_finite_are_refused() {
    let dataset = dataset();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    let mut run = train(&dataset, &values("mlp", &[]), &[0], 1).unwrap();
    run.weights[0].as_mut().unwrap()[3] = f32::NAN;
    save(&path, &run, &dataset);
    let error = SavedModel::open(&path, Budget::default()).unwrap_err().to_string();
    assert!(
        error.contains("is not a saved model: weight 3 of tensor") && error.ends_with("is NaN"),
        "{error}"
    );
}

#[test]
fn a_saved_model_predicts_what_was_scored_and_refuses_another_graph() {
    let dataset = dataset();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.safetensors");
    for model in ["gat+multiscale", "gcn+gdc"] {
        let run = train(&dataset, &values(model, &[]), &[0, 1], 1).unwrap();
        let best = save(&path, &run, &dataset);
        let saved = SavedModel::open(&path, Budget::default()).unwrap();
        let predicted = saved.predict(&dataset, &Resources::default(), &Watch::silent()).unwrap();
        let fits = predicted.fit(&dataset.labels, best.metric);
        let scores = run.record.splits.iter().find(|scores| scores.split == best.split).unwrap();
        for (set, score) in
            [("train", scores.train), ("validation", scores.validation), ("test", scores.test)]
        {
            assert_eq!((fits[set].score, fits[set].accuracy), (Some(score), Some(score)), "{set}");
        }
        assert_eq!(fits["test"].vertices, dataset.splits[best.split].test().len());
        assert_eq!(predicted.sets.as_ref().unwrap().len(), 120);
        for (row, class) in predicted.probabilities().iter().zip(predicted.classes()) {
            assert!((row.iter().sum::<f64>() - 1.0).abs() < 1e-12);
            assert!(row.iter().all(|p| *p <= row[class as usize]));
        }
        let source = qdc_data::open(
            "csbm:n=120,homophily=0.8,seed=2",
            &DataDir::new("nowhere"),
            EdgeReading::default(),
        );
        let other = source.unwrap().into_dataset().unwrap();
        assert!(matches!(
            saved.predict(&other, &Resources::default(), &Watch::silent()),
            Err(Error::OtherGraph { .. })
        ));
        // A recipe that is not the one its hyper-parameters give belongs to another network.
        let mut altered = SavedModel::open(&path, Budget::default()).unwrap();
        altered.configuration.recipes.last_mut().unwrap().as_mut().unwrap().self_loop = 2.0;
        let refused = altered.predict(&dataset, &Resources::default(), &Watch::silent()).unwrap_err();
        assert!(refused.to_string().contains("kernels are not those of its hyper-parameters"), "{refused}");
    }
    std::fs::write(&path, b"not a model").unwrap();
    assert!(SavedModel::open(&path, Budget::default()).is_err());
}

#[test]
fn bad_input_is_an_error_with_the_place() {
    let mut dataset = dataset();
    let values = values("gcn", &[]);
    let error = train(&dataset, &values, &[10], 1).unwrap_err();
    assert!(error.to_string().contains("there is no split 10"), "{error}");

    let split = &dataset.splits[0];
    let (validation, test) = (split.validation().to_vec(), split.test().to_vec());
    dataset.splits[0] = Split::new(120, vec![], validation, test).unwrap();
    let (hyperparameters, patience) = (&values, Patience::default());
    let splits = &[1, 0];
    let training = Training {
        dataset: &dataset,
        hyperparameters,
        seeds: &[7],
        splits,
        patience,
        metric: Metric::Accuracy,
        keep: Keep::default(),
    };
    let error = qdc_lab::train(&training, &Rewirings::new(&dataset), &Cpu, &Watch::silent(), &|record| {
        panic!("split {} was trained before split 0 was looked at", record.split)
    });
    assert_eq!(error.unwrap_err().to_string(), "the training set of split 0 is empty");

    let mut dense = dataset.features.to_dense();
    dense[5] = f32::NAN;
    dataset.features = Features::from_dense(dataset.features.columns(), dense);
    let error = train(&dataset, &values, &[1], 1).unwrap_err();
    assert_eq!(error.to_string(), "feature 5 of vertex 0 is NaN");
}

#[test]
fn a_class_without_training_vertices_is_a_remark() {
    let mut dataset = dataset();
    let split = &dataset.splits[0];
    let others = split.train().iter().copied().filter(|&v| dataset.labels[v as usize] != 0);
    let train_set: Vec<u32> = others.collect();
    let (validation, test) = (split.validation().to_vec(), split.test().to_vec());
    dataset.splits[0] = Split::new(120, train_set, validation, test).unwrap();
    let run = train(&dataset, &values("mlp", &[]), &[0], 1).unwrap();
    assert_eq!(run.record.notes.len(), 1);
    assert!(
        run.record.notes[0].starts_with("class 0 has no training vertex in split 0"),
        "{:?}",
        run.record.notes
    );
}

#[test]
fn a_loss_that_is_not_finite_ends_its_split_with_a_record() {
    let mut dataset = dataset();
    // As large as single precision goes: sums of them overflow.
    let dense = dataset.features.to_dense();
    let largest = dense.iter().fold(0f32, |a, b| a.max(b.abs()));
    let huge: Vec<f32> = dense.iter().map(|value| value / largest * 3e38).collect();
    dataset.features = Features::from_dense(dataset.features.columns(), huge);
    let run = train(&dataset, &values("gcn", &[("hidden", "256")]), &[0], 1).unwrap();
    assert!(run.record.splits[0].diverged_at.is_some(), "{:?}", run.record.splits[0]);
}

#[test]
fn a_kernel_that_is_the_identity_is_called_what_it_is() {
    let dataset = dataset();
    let narrow = [("sigma", "100"), ("epsilon", "0.9")]; // a flat filter: Q is the identity
    let run = train(&dataset, &values("gcn+qdc", &narrow), &[0], 1).unwrap();
    assert!(run.record.nearly_identity);
    let note = "nearly the identity: this network is an MLP";
    assert!(run.record.notes.iter().any(|said| said.ends_with(note)), "{:?}", run.record.notes);
    let run = train(&dataset, &values("gcn+multiscale", &narrow), &[0], 1).unwrap();
    let said = run.record.notes.last().unwrap();
    assert!(
        said.starts_with("the kernel of tower 2 has 100.00 %") && said.contains("this tower is an MLP"),
        "{said}"
    );
    let run = train(&dataset, &values("gcn+qdc", &[]), &[0], 1).unwrap();
    assert!(!run.record.nearly_identity && run.record.notes.is_empty());
}

#[test]
fn the_callback_can_end_a_run() {
    let dataset = dataset();
    let values = values("mlp", &[]);
    let patience = Patience { max_steps: 2, ..Patience::default() };
    let training = Training {
        dataset: &dataset,
        hyperparameters: &values,
        seeds: &[0],
        splits: &[0, 1, 2, 3],
        patience,
        metric: Metric::Accuracy,
        keep: Keep::default(),
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
    let rewirings = Rewirings::new(&dataset);
    let run = pool
        .install(|| {
            qdc_lab::train(&training, &rewirings, &Cpu, &Watch::silent(), &|_| ControlFlow::Break(()))
        })
        .unwrap();
    assert!(run.record.stopped);
    assert!(run.record.splits.len() < 4);
}

#[test]
fn the_documentation_lists_every_hyperparameter() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/reference/models.md");
    let page = std::fs::read_to_string(path).unwrap();
    for entry in &TABLE {
        assert!(
            page.contains(&format!("`{}`", entry.name)),
            "{} is not in docs/reference/models.md",
            entry.name
        );
    }
}
