//! What large graphs need: training in mini-batches, over kernels that were made before.

mod support;

use std::fs;

use support::{json, qdc, refused};

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

#[test]
fn a_kernel_that_does_not_fit_in_memory_goes_to_disk_and_is_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // 3,000 rows of at most 64 entries: 4.6 MB while they are kept, and less than 1 MB to make them.
    for kept in ["--top-k 32", "--epsilon 1e-3"] {
        let kernel =
            format!("kernel powerlaw:n=3000,degree=4,seed=1 --filter heat --solver chebyshev {kept}");
        let whole = json(folder, &format!("{kernel} --memory 1GB -o whole.npz"));
        let output = qdc(folder, &format!("{kernel} --memory 3MB --json -o streamed.npz"));
        let talk = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "{talk}");
        assert!(talk.contains("does not fit in memory"), "{talk}");
        let streamed: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        for key in ["entries", "density", "diagonal_share", "error_bound", "empty_rows", "warnings"] {
            assert_eq!(streamed[key], whole[key], "{key}");
        }
        let read = |name: &str| fs::read(folder.join(name)).unwrap();
        assert!(read("whole.npz") == read("streamed.npz"), "{kept}");
    }
    assert_eq!(fs::read_dir(folder).unwrap().count(), 2, "temporary files are gone");
}

#[test]
fn the_memory_allowed_holds_the_graph_too() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // The panels take 10.4 MB, the graph of 20,000 vertices and its L 5.4 MB.
    let kernel =
        "kernel powerlaw:n=20000,degree=10,seed=1 --filter heat --solver chebyshev --top-k 8 --rows 0:20";
    json(folder, &format!("{kernel} --threads 1 --memory 16MB -o q.npz"));
    refused(folder, &format!("{kernel} --threads 1 --memory 12MB -o q.npz"), 1, "besides its graph");
}

#[test]
fn a_kernel_made_before_takes_the_place_of_the_models_own_and_gives_the_same_scores() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    json(folder, &format!("kernel {DATASET} --mu 0.5 --sigma 0.3 --epsilon 1e-3 -o kernel.npz"));
    let train = format!("train {DATASET} --model gcn+qdc --splits 0 --max-steps 8 --set hidden=8");
    let own = json(folder, &format!("{train} --set mu=0.5 --set sigma=0.3 --set epsilon=1e-3"));
    // The hyper-parameters of the kernel do not matter any more.
    let given = json(folder, &format!("{train} --set mu=0.1 --kernel kernel.npz"));
    assert_eq!(given["splits"][0]["validation_loss"], own["splits"][0]["validation_loss"]);
    assert_eq!(given["kernel"]["entries"], own["kernel"]["entries"]);
    let share = |record: &serde_json::Value| record["kernel"]["diagonal_share"].as_f64().unwrap();
    assert!((share(&given) - share(&own)).abs() < 0.2);
    let mine = json(folder, &format!("{train} --set mu=0.1"));
    assert_ne!(given["experiment"], mine["experiment"], "the kernel is part of the record");
    assert_ne!(given["splits"][0]["validation_loss"], mine["splits"][0]["validation_loss"]);
    let batched = json(folder, &format!("{train} --kernel kernel.npz --batch-nodes 30"));
    assert_ne!(batched["experiment"], given["experiment"]);

    let run = format!(
        "dataset = '{DATASET}'\nmodel = 'gcn+qdc'\nsplits = [0]\nkernel = 'kernel.npz'\n\
         [hyperparameters]\nhidden = 8\nmu = 0.1\n[schedule]\nmax_steps = 8\n"
    );
    fs::write(folder.join("run.toml"), run).unwrap();
    assert_eq!(json(folder, "train --config run.toml")["experiment"], given["experiment"]);

    let plain = format!("train {DATASET} --model gcn --kernel kernel.npz");
    refused(folder, &plain, 1, "gcn has no kernel whose place it could take");
    json(folder, "kernel karate -o small.npz");
    refused(folder, &format!("{train} --kernel small.npz"), 1, "it has 34 rows");
    refused(folder, &format!("{train} --kernel kernel.npz --save m.qdc"), 2, "cannot be used with");
}

#[test]
fn a_kernel_beyond_the_memory_allowed_is_mapped_and_trained_over_in_batches() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let dataset = "csbm:n=3000,homophily=0.8,features=12,seed=1";
    // 1.3 million entries or more: 10 MB in single precision, and a few times that ready for full batches.
    let kernel = json(folder, &format!("kernel {dataset} --filter heat --top-k 400 -o kernel.npz"));
    assert!(kernel["entries"].as_u64().unwrap() > 1_200_000);
    let train = format!(
        "train {dataset} --model gcn+gdc --kernel kernel.npz --splits 0 --max-steps 2 --set hidden=8 --memory 45MB"
    );
    refused(folder, &train, 1, "MB are allowed");
    let trained = json(folder, &format!("{train} --batch-nodes 100"));
    assert_eq!(trained["kernel"]["entries"], kernel["entries"]);
    assert_eq!(fs::read_dir(folder).unwrap().count(), 1, "temporary files are gone");
}
