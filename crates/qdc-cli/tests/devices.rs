//! `qdc devices` and `--device`, on machines with and without a CUDA device.

mod support;

use support::{json, qdc, refused, text};

const TRAIN: &str = "train csbm:n=60,homophily=0.8,seed=1 --model gcn --max-steps 12 --splits 0,3";

/// The name of the first CUDA device of this machine.
fn first_device(folder: &std::path::Path) -> Option<String> {
    let list = json(folder, "devices");
    assert!(list["threads"].as_u64() > Some(0), "{list}");
    list["cuda"][0]["name"].as_str().map(str::to_owned)
}

#[test]
fn devices_are_listed_and_auto_takes_what_there_is() {
    let folder = tempfile::tempdir().unwrap();
    let record = json(folder.path(), TRAIN);
    match first_device(folder.path()) {
        Some(name) => {
            assert_eq!(record["device"], name.as_str());
            assert!(text(folder.path(), "devices").contains(&name));
        }
        None => {
            assert_eq!(record["device"], "cpu");
            assert!(text(folder.path(), "devices").contains("no CUDA device was found"));
            let told = String::from_utf8(qdc(folder.path(), TRAIN).stderr).unwrap();
            assert_eq!(told.matches("training on the CPU: ").count(), 1, "{told}");
        }
    }
}

#[test]
fn the_cpu_is_taken_without_a_word_where_it_was_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let output = qdc(folder.path(), &format!("{TRAIN} --device cpu"));
    assert!(output.status.success());
    assert!(!String::from_utf8_lossy(&output.stderr).contains("training on the CPU"));
    assert_eq!(json(folder.path(), &format!("{TRAIN} --device cpu"))["device"], "cpu");
}

#[test]
fn cuda_where_there_is_none_is_an_error_with_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    if first_device(folder.path()).is_some() {
        return; // the tests of qdc-cuda train on it
    }
    let tune = "tune csbm:n=60,homophily=0.8,seed=1 --model gcn --trials 2";
    for command in [TRAIN, tune] {
        refused(folder.path(), &format!("{command} --device cuda"), 1, "--device cpu");
    }
    refused(folder.path(), &format!("{TRAIN} --device gpu"), 2, "cuda");
}
