//! `qdc spectrum` and `qdc cache` as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

use qdc_data::npz::Npz;
use serde_json::Value;

fn qdc(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments)
        .args(["--quiet", "--data-dir"])
        .arg(folder)
        .output()
        .expect("the program runs")
}

fn json(output: &Output) -> Value {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON object")
}

#[test]
fn the_report_has_the_keys_scripts_rely_on_and_the_file_holds_the_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pairs.npz");
    let arguments =
        ["spectrum", "karate", "--pairs", "5", "--around=-0.2", "--json", "-o", file.to_str().unwrap()];
    let report = json(&qdc(folder.path(), &arguments));
    for key in [
        "pairs",
        "around",
        "solver",
        "residual_max",
        "orthogonality",
        "operator_applications",
        "shift",
        "counted",
        "seconds",
    ] {
        assert!(!report[key].is_null(), "{key} is missing in {report}");
    }
    let npz = Npz::open(&file).unwrap();
    let values = npz.vector::<f64>("eigenvalues").unwrap();
    let (rows, columns, vectors) = npz.matrix::<f64>("eigenvectors").unwrap();
    assert_eq!((rows, columns), (34, values.len()));
    assert_eq!(report["pairs"], values.len());
    let norm: f64 = (0..rows).map(|row| vectors[row * columns].powi(2)).sum();
    assert!((norm - 1.0).abs() < 1e-12, "columns are vectors");
}

#[test]
fn a_complete_spectrum_is_stored_once_listed_and_cleared() {
    let folder = tempfile::tempdir().unwrap();
    let solve = || json(&qdc(folder.path(), &["spectrum", "cycle:600", "--json"]));
    let (first, second) = (solve(), solve());
    assert_eq!((&first["pairs"], &first["residual_max"]), (&second["pairs"], &second["residual_max"]));
    let listed = json(&qdc(folder.path(), &["cache", "list", "--json"]));
    assert_eq!(listed["spectra"].as_array().unwrap().len(), 1);
    assert_eq!(listed["spectra"][0]["nodes"], 600);
    assert_eq!(json(&qdc(folder.path(), &["cache", "clear", "--json"]))["removed"], true);
    assert_eq!(json(&qdc(folder.path(), &["cache", "list", "--json"]))["bytes"], 0);
}

#[test]
fn wrong_usage_and_impossible_wishes_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let status = |arguments: &[&str]| {
        let output = qdc(folder.path(), arguments);
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    assert_eq!(status(&["spectrum", "karate", "--pairs", "0"]).0, Some(2));
    assert_eq!(status(&["spectrum", "karate", "-o", "pairs.csv"]).0, Some(2));
    let (code, talk) = status(&["spectrum", "karate", "--solver", "chebyshev", "--pairs", "4"]);
    assert!(code == Some(1) && talk.contains("hint: choose --solver"), "{talk}");
    let (code, talk) = status(&["spectrum", "cycle:600", "--memory", "1MB"]);
    assert!(code == Some(1) && talk.contains("hint: raise --memory"), "{talk}");
}
