//! `--memory` as a limit of train, tune and predict.

mod support;

use std::path::Path;

use serde_json::Value;
use support::{json, qdc};

const DATASET: &str = "csbm:n=1500,homophily=0.3,seed=1";

/// The figure, in MB, that a command says it needs; it must be refused.
fn figure(folder: &Path, arguments: &str) -> u64 {
    let output = qdc(folder, &format!("{arguments} --json"));
    assert_eq!(output.status.code(), Some(1), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    let refusal: Value = serde_json::from_slice(&output.stdout).unwrap();
    let words = refusal["error"].as_str().unwrap();
    assert!(words.starts_with("this needs about ") && words.contains(" MB of memory, and "), "{words}");
    let number = words.split_whitespace().nth(3).unwrap().parse().unwrap();
    assert!(refusal["hint"].as_str().unwrap().contains(&format!("--memory {number}MB")), "{refusal}");
    number
}

/// The most memory a command took lies between half of what was allowed and a little more than it.
fn assert_near(record: &Value, megabytes: u64) {
    if let Some(peak) = record["peak_memory_bytes"].as_u64() {
        let share = peak as f64 / (1e6 * megabytes as f64);
        assert!((0.5..1.1).contains(&share), "a peak of {peak} bytes for {megabytes} MB");
    }
}

#[test]
fn a_run_over_the_limit_is_refused_with_the_figure_that_allows_it() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["gcn+qdc --set hidden=256", "gat+multiscale", "gat+qdc --set top_k=64", "gat+sdrf"] {
        let command = format!("train {DATASET} --model {model} --max-steps 1 --splits 0-3");
        let needed = figure(folder.path(), &format!("--memory 20MB {command}"));
        let less = needed - needed / 20;
        assert_eq!(figure(folder.path(), &format!("--memory {less}MB {command}")), needed, "{model}");
        let limited = json(folder.path(), &format!("--memory {needed}MB {command}"));
        assert_near(&limited, needed);
        // Fewer splits at once, the same scores.
        let free = json(folder.path(), &command);
        let scores = |record: &Value| -> Vec<Value> {
            record["splits"]
                .as_array()
                .unwrap()
                .iter()
                .map(|split| split["validation_loss"].clone())
                .collect()
        };
        assert_eq!(scores(&limited), scores(&free), "{model}");
    }
}

#[test]
fn what_no_machine_holds_is_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let huge = "--memory 1GB train karate --model gcn --set hidden=16384 --set layers=64 --split 48/32/20";
    assert!(figure(folder.path(), huge) > 100_000);
}

#[test]
fn a_prediction_is_held_to_the_limit_too() {
    let folder = tempfile::tempdir().unwrap();
    let train = format!("train {DATASET} --model gat+qdc --max-steps 2 --splits 0 --save model.qdc");
    json(folder.path(), &train);
    let needed = figure(folder.path(), "--memory 25MB predict model.qdc");
    assert_near(&json(folder.path(), &format!("--memory {needed}MB predict model.qdc")), needed);
}

#[test]
fn a_trial_over_the_limit_fails_with_the_reason_and_the_search_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let space = "[search]\nhidden = [8, 8192]\n[fixed]\nlayers = 3\n";
    std::fs::write(folder.path().join("space.toml"), space).unwrap();
    let command = format!(
        "--memory 300MB tune {DATASET} --model gcn --space space.toml --trials 6 --sampler random --max-steps 2 \
         --splits 0,1"
    );
    let report = json(folder.path(), &command);
    let failed = report["failed"].as_object().unwrap();
    let (reason, count) = failed.iter().next().expect("a trial with 8192 columns");
    assert!(reason.contains("MB of memory, and 300 MB are allowed"), "{reason}");
    assert!((1..6).contains(&count.as_u64().unwrap()), "{report}");
    assert_eq!(
        (report["trials"].as_u64(), report["best"]["parameters"]["hidden"].as_u64()),
        (Some(6), Some(8))
    );
    let peak = report["peak_memory_bytes"].as_u64().unwrap_or(0);
    assert!(peak < 330_000_000, "{peak}");
}
