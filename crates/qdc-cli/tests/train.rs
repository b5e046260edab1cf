//! `qdc train` and `qdc predict` as a user runs them, on small generated datasets.

use std::path::Path;
use std::process::{Command, Output};

use qdc_core::{Features, Split};
use qdc_data::{DataDir, Dataset, EdgeReading, Shares};
use serde_json::Value;

const DATASET: &str = "csbm:n=60,homophily=0.8,seed=1";

fn qdc(folder: &Path, arguments: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("QDC_DATA", folder)
        .env("QDC_CACHE", folder.join("cache"))
        .output()
        .expect("the binary runs")
}

fn json(folder: &Path, arguments: &str) -> Value {
    let output = qdc(folder, &format!("{arguments} --json --quiet"));
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// Trains splits 0 and 3 for at most 12 steps.
fn train(folder: &Path, arguments: &str) -> Value {
    json(folder, &format!("train {arguments} --max-steps 12 --splits 0,3"))
}

fn refused(folder: &Path, arguments: &str, status: i32, message: &str) {
    let output = qdc(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments}: {stderr}");
    assert!(stderr.contains(message), "{arguments}: {stderr}");
}

/// The generated dataset, changed by `change`, as a file of `folder`.
fn write(folder: &Path, name: &str, change: impl FnOnce(&mut Dataset)) {
    let source = qdc_data::open(DATASET, &DataDir::new(folder), EdgeReading::default()).unwrap();
    let mut dataset = source.into_dataset().unwrap().with_random_splits(Shares::default(), 0);
    change(&mut dataset);
    qdc_data::write_dataset(&folder.join(name), &dataset).unwrap();
}

/// Leaves only those training vertices of split 0 that `stays` accepts.
fn thin_out(dataset: &mut Dataset, stays: impl Fn(u32) -> bool) {
    let split = &dataset.splits[0];
    let train = split.train().iter().copied().filter(|&vertex| stays(vertex)).collect();
    let (validation, test) = (split.validation().to_vec(), split.test().to_vec());
    dataset.splits[0] = Split::new(dataset.labels.len(), train, validation, test).unwrap();
}

#[test]
fn every_model_trains_and_says_what_it_did() {
    let folder = tempfile::tempdir().unwrap();
    for network in ["gcn", "gat"] {
        for rewiring in ["", "+gdc", "+sdrf", "+bpdc", "+qdc", "+multiscale"] {
            let record =
                train(folder.path(), &format!("{DATASET} --model {network}{rewiring} --set hidden=8"));
            assert_eq!(record["model"], format!("{network}{rewiring}"));
            assert_eq!(record["hyperparameters"]["hidden"], 8);
            let splits = record["splits"].as_array().unwrap();
            let numbers: Vec<_> = splits.iter().map(|split| split["split"].as_u64().unwrap()).collect();
            assert_eq!(numbers, [0, 3]);
            for split in splits {
                for part in ["train", "validation", "test"] {
                    assert!((0.0..=1.0).contains(&split[part].as_f64().unwrap()), "{split}");
                }
                assert!((1..=12).contains(&split["steps"].as_u64().unwrap()), "{split}");
                assert!(split["seconds"].as_f64().unwrap() >= 0.0);
            }
            assert_eq!(record["kernel"].is_null(), rewiring.is_empty(), "{}", record["kernel"]);
        }
    }
    let record = train(folder.path(), &format!("{DATASET} --model mlp --seed 4"));
    for key in
        "dataset model hyperparameters seed test_mean test_std validation_mean splits seconds".split(' ')
    {
        assert!(!record[key].is_null(), "{key}");
    }
    assert_eq!(record["seed"], 4);
    let tests: Vec<f64> =
        record["splits"].as_array().unwrap().iter().map(|split| split["test"].as_f64().unwrap()).collect();
    let mean = (tests[0] + tests[1]) / 2.0;
    assert!((record["test_mean"].as_f64().unwrap() - mean).abs() < 1e-12);
    assert!((record["test_std"].as_f64().unwrap() - (tests[0] - mean).abs()).abs() < 1e-12);
}

#[test]
fn the_table_has_a_line_for_each_split_and_ends_in_the_score() {
    let folder = tempfile::tempdir().unwrap();
    let output = qdc(folder.path(), &format!("train {DATASET} --model gcn --max-steps 3 --splits 1-3"));
    let table = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = table.lines().collect();
    assert!(lines[0].starts_with("gcn on csbm"), "{table}");
    assert_eq!(
        lines[2].split_whitespace().collect::<Vec<_>>(),
        ["split", "train", "validation", "test", "steps", "seconds"]
    );
    for (line, split) in lines[3..6].iter().zip(["1", "2", "3"]) {
        let fields: Vec<&str> = line.split_whitespace().collect();
        assert_eq!((fields.len(), fields[0], fields[4]), (6, split, "3"), "{table}");
    }
    let score = lines.last().unwrap();
    assert!(
        score.starts_with("test ") && score.contains(" ± ") && score.contains("over 3 splits"),
        "{table}"
    );
}

#[test]
fn one_thread_and_two_give_the_same_record() {
    let folder = tempfile::tempdir().unwrap();
    let [one, two] = ["1", "2"].map(|threads| {
        let mut record = train(folder.path(), &format!("{DATASET} --model gat+qdc --threads {threads}"));
        for part in
            ["/seconds", "/rewiring_seconds", "/splits/0/seconds", "/splits/1/seconds", "/peak_memory_bytes"]
        {
            record.pointer_mut(part).map(Value::take); // time and memory may differ, nothing else
        }
        record
    });
    assert_eq!(one, two);
}

#[test]
fn a_saved_model_gives_every_vertex_a_class_and_curves_have_a_line_for_each_step() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = format!("{DATASET} --model gcn+multiscale --save model.safetensors --curves curves.csv");
    let record = train(folder.path(), &arguments);
    assert_eq!(record["saved"], "model.safetensors");

    let curves = std::fs::read_to_string(folder.path().join("curves.csv")).unwrap();
    let lines: Vec<&str> = curves.lines().collect();
    assert_eq!(lines[0], "split,seed,step,train_loss,validation_loss,train,validation,test");
    let steps: u64 = record["splits"].as_array().unwrap().iter().map(|s| s["steps"].as_u64().unwrap()).sum();
    assert_eq!(lines.len() as u64, 1 + steps);
    assert!(
        lines[1].starts_with("0,0,1,")
            && lines[1].split(',').skip(2).all(|field| field.parse::<f64>().is_ok())
    );

    let predicted = json(folder.path(), "predict model.safetensors -o classes.csv");
    let classes = std::fs::read_to_string(folder.path().join("classes.csv")).unwrap();
    let rows: Vec<Vec<&str>> = classes.lines().skip(1).map(|line| line.split(',').collect()).collect();
    assert_eq!((rows.len(), &predicted["nodes"]), (60, &60.into()));
    for set in ["train", "validation", "test"] {
        let rows: Vec<_> = rows.iter().filter(|row| row[3] == set).collect();
        let right = rows.iter().filter(|row| row[1] == row[2]).count();
        assert_eq!(predicted["accuracy"][set], right as f64 / rows.len() as f64, "{set}");
        assert_eq!(predicted["scores"][set]["vertices"], rows.len());
    }
    assert!(predicted["accuracy"].get("all").is_none(), "never over training vertices unnamed");
    assert_eq!(predicted["metric"], "accuracy");

    // Without -o the classes go to stdout, the same ones.
    let output = qdc(folder.path(), "predict model.safetensors --quiet");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), classes);

    // Probabilities on request, and another graph with the same features.
    let other = "csbm:n=50,homophily=0.8,seed=9";
    let elsewhere =
        json(folder.path(), &format!("predict model.safetensors --graph {other} --probabilities"));
    assert_eq!((&elsewhere["dataset"], &elsewhere["nodes"]), (&other.into(), &50.into()));
    assert_eq!(elsewhere["scores"]["all"]["vertices"], 50);
    let first: Vec<f64> = serde_json::from_value(elsewhere["probabilities"][0].clone()).unwrap();
    assert!((first.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{first:?}");
    let output = qdc(folder.path(), "predict model.safetensors --probabilities --quiet");
    let table = String::from_utf8(output.stdout).unwrap();
    assert!(table.starts_with("vertex,predicted,label,set,probability_0,probability_1\n"), "{table}");
    assert!(table.lines().all(|line| line.split(',').count() == 6));
}

#[test]
fn the_metric_is_named_and_scores_are_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let hard = "csbm:n=100,homophily=0.5,signal=0.3,seed=1";
    let accuracy = train(folder.path(), &format!("{hard} --model gcn"));
    let auc = train(folder.path(), &format!("{hard} --model gcn --metric auc --save auc.safetensors"));
    assert_eq!((&accuracy["metric"], &auc["metric"]), (&"accuracy".into(), &"auc".into()));
    assert_ne!(accuracy["test_mean"], auc["test_mean"]);
    let predicted = json(folder.path(), "predict auc.safetensors -o classes.csv");
    let best = auc["splits"].as_array().unwrap().iter().find(|split| split["split"] == predicted["split"]);
    let (found, told) = (&predicted["scores"]["test"]["score"], &best.unwrap()["test"]);
    assert!((found.as_f64().unwrap() - told.as_f64().unwrap()).abs() < 1e-12, "{found} {told}");
    let output = qdc(folder.path(), "predict auc.safetensors -o classes.csv");
    assert!(String::from_utf8_lossy(&output.stdout).contains(", ROC-AUC "));
    let stopped = train(folder.path(), &format!("{hard} --model gcn --stop loss"));
    assert_ne!(stopped["splits"], accuracy["splits"]);
    refused(folder.path(), &format!("train {hard} --model gcn --metric recall"), 2, "recall");
}

#[test]
fn an_unknown_hyperparameter_is_answered_with_the_known_ones_closest_first() {
    let folder = tempfile::tempdir().unwrap();
    let with = |set: &str| format!("train {DATASET} --model gcn --set {set}");
    refused(folder.path(), &with("hiden=8"), 2, "there is no hyper-parameter 'hiden'");
    refused(folder.path(), &with("hiden=8"), 2, "hint: known: hidden, ");
    refused(folder.path(), &with("heads=8"), 2, "gcn has no hyper-parameter 'heads'");
    refused(folder.path(), &with("hidden=0"), 2, "hidden = 0: it must be a whole number from 1 to");
    refused(folder.path(), &with("dropout=1"), 2, "dropout = 1");
    refused(folder.path(), &with("hidden"), 2, "it must look like hidden=64");
    refused(folder.path(), &format!("train {DATASET} --model gnc"), 2, "there is no model 'gnc'");
}

#[test]
fn bad_data_is_refused_with_its_place_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    write(folder, "empty.npz", |dataset| thin_out(dataset, |_| false));
    write(folder, "nan.npz", |dataset| {
        let mut values = dataset.features.to_dense();
        values[dataset.features.columns() + 2] = f32::NAN;
        dataset.features = Features::from_dense(dataset.features.columns(), values);
    });
    let save = "--model gcn --max-steps 3 --save model.safetensors --curves curves.csv";
    refused(folder, &format!("train empty.npz {save}"), 1, "the training set of split 0 is empty");
    refused(folder, &format!("train nan.npz {save}"), 1, "row 1, column 2: the value is not finite");
    refused(folder, &format!("train empty.npz {save} --splits 12"), 1, "there is no split 12");
    refused(
        folder,
        &format!("train {DATASET} --model gcn --save missing/model.safetensors"),
        1,
        "missing/model.safetensors",
    );
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(files.len(), 2, "{files:?}");
}

#[test]
fn a_class_without_training_vertices_is_a_remark_on_stderr_and_in_the_record() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "absent.npz", |dataset| {
        let labels = dataset.labels.clone();
        thin_out(dataset, |vertex| labels[vertex as usize] != 0);
    });
    let remark = "class 0 has no training vertex in split 0: it cannot be learnt there";
    let record = train(folder.path(), "absent.npz --model gcn");
    assert_eq!(record["notes"], serde_json::json!([remark]));
    let output = qdc(folder.path(), "train absent.npz --model gcn --max-steps 2");
    assert!(output.status.success());
    assert!(String::from_utf8_lossy(&output.stderr).contains(remark));
}

#[test]
fn a_loss_that_is_no_longer_finite_is_recorded_and_not_saved() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "huge.npz", |dataset| {
        let values = dataset.features.to_dense();
        let largest = values.iter().fold(0f32, |a, b| a.max(b.abs()));
        let huge = values.iter().map(|value| value / largest * 3e38).collect(); // sums of them overflow
        dataset.features = Features::from_dense(dataset.features.columns(), huge);
    });
    let record = train(folder.path(), "huge.npz --model gcn --set hidden=256");
    for split in record["splits"].as_array().unwrap() {
        assert!(split["diverged_at"].is_u64() && split["best_step"] == 0, "{split}");
    }
    let output = qdc(folder.path(), "train huge.npz --model gcn --set hidden=256 --splits 0");
    assert!(String::from_utf8_lossy(&output.stdout).contains("the loss was no longer finite at step 1"));
    let save = "train huge.npz --model gcn --set hidden=256 --save model.safetensors";
    refused(folder.path(), save, 1, "no split had a finite loss");
    assert!(!folder.path().join("model.safetensors").exists());
}

#[test]
fn a_model_saved_for_another_graph_and_a_file_that_is_no_model_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    write(folder.path(), "graph.npz", |_| {});
    train(folder.path(), "graph.npz --model gcn --save model.safetensors");
    json(folder.path(), "predict model.safetensors");
    write(folder.path(), "graph.npz", |dataset| {
        let other =
            qdc_data::open("csbm:n=60,homophily=0.8,seed=2", &DataDir::new("."), EdgeReading::default());
        dataset.graph = other.unwrap().into_dataset().unwrap().graph;
    });
    refused(folder.path(), "predict model.safetensors", 1, "was trained on another graph");
    refused(folder.path(), "predict model.safetensors", 1, "hint: name the graph with --graph");
    json(folder.path(), "predict model.safetensors --graph graph.npz");
    write(folder.path(), "graph.npz", |dataset| {
        let mut values = dataset.features.to_dense();
        values.rotate_left(dataset.features.columns()); // every vertex gets its neighbour's features
        dataset.features = Features::from_dense(dataset.features.columns(), values);
    });
    refused(folder.path(), "predict model.safetensors", 1, "was trained with other features");
    std::fs::write(folder.path().join("broken.safetensors"), b"not a model").unwrap();
    refused(folder.path(), "predict broken.safetensors", 1, "broken.safetensors is not a saved model");
    refused(folder.path(), "predict missing.safetensors", 1, "missing.safetensors");
}
