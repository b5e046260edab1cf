//! What large graphs need: training in mini-batches, over kernels that were made before.

mod support;

use std::fs;

use support::{json, refused};

const DATASET: &str = "csbm:n=300,homophily=0.8,features=12,seed=1";

#[test]
fn mini_batches_are_part_of_the_experiment_and_repeat_to_the_last_digit() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let train =
        |rest: &str| json(folder, &format!("train {DATASET} --splits 0 --max-steps 8 --set hidden=8 {rest}"));
    let whole = train("--model gcn");
    let batched = train("--model gcn --batch-nodes 20");
    assert_ne!(whole["experiment"], batched["experiment"]);
    assert_ne!(whole["splits"][0]["validation_loss"], batched["splits"][0]["validation_loss"]);
    assert_eq!(batched["device"], "cpu");
    let again = train("--model gcn --batch-nodes 20 --threads 1");
    assert_eq!(batched["experiment"], again["experiment"]);
    assert_eq!(batched["splits"][0]["validation_loss"], again["splits"][0]["validation_loss"]);
    assert_ne!(batched["experiment"], train("--model gcn --batch-nodes 21")["experiment"]);

    let schedule = "[schedule]\nmax_steps = 8\nbatch_nodes = 20\n";
    let run = format!("dataset = '{DATASET}'\nmodel = 'gcn'\nsplits = [0]\n[hyperparameters]\nhidden = 8\n");
    fs::write(folder.join("run.toml"), format!("{run}{schedule}")).unwrap();
    let from_file = json(folder, "train --config run.toml");
    assert_eq!(from_file["experiment"], batched["experiment"]);
    assert_eq!(from_file["test_mean"], batched["test_mean"]);

    fs::write(folder.join("none.toml"), format!("{run}[schedule]\nbatch_nodes = 0\n")).unwrap();
    refused(folder, "train --config none.toml", 1, "a batch has at least one vertex");
    refused(folder, &format!("train {DATASET} --model gcn --batch-nodes 0"), 2, "at least one vertex");
    let bank = format!("train {DATASET} --model bank --batch-nodes 20");
    refused(folder, &bank, 2, "bank is not trained in mini-batches");
}

#[test]
fn a_model_trained_in_batches_predicts_on_the_whole_graph_what_it_scored() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for model in ["gcn", "gat+qdc", "gcn+multiscale", "mlp"] {
        let train = format!("train {DATASET} --model {model} --splits 0 --max-steps 6 --set hidden=8");
        let trained = json(folder, &format!("{train} --batch-nodes 30 --save model.qdc"));
        let predicted = json(folder, "predict model.qdc");
        let score = predicted["accuracy"]["test"].as_f64().expect("a score of the test set");
        let test = trained["test_mean"].as_f64().unwrap();
        assert!((score - test).abs() < 1e-9, "{model}: {predicted} {test}");
    }
}

#[test]
fn a_search_in_batches_writes_down_what_its_trials_were_trained_with() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let tune = format!("tune {DATASET} --model gcn --trials 2 --splits 0 --max-steps 4 --study s.db");
    let found = json(folder, &format!("{tune} --batch-nodes 40"));
    let again = json(folder, "train --from s.db");
    assert_eq!(found["best"]["validation"], again["validation_mean"]);
    refused(folder, &tune, 1, "schedule");
}
