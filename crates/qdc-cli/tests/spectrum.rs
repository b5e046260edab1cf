//! `qdc spectrum` and `qdc cache` as a user runs them.

use std::path::Path;
use std::process::{Command, Output};

use qdc_data::npz::Npz;
use serde_json::Value;

fn qdc(folder: &Path, arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments)
        .args(["--quiet", "--cache-dir"])
        .arg(folder)
        .current_dir(folder)
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
    let all = json(&qdc(folder.path(), &["spectrum", "karate", "--json", "-o", "all.npz"]));
    assert!(all["gap_below"].is_null() && all["gap_above"].is_null(), "nothing lies beyond: {all}");
    let everything = Npz::open(folder.path().join("all.npz")).unwrap().vector::<f64>("eigenvalues").unwrap();
    let (first, last) = (values[0], values[values.len() - 1]);
    let below = everything.iter().copied().filter(|value| *value < first - 1e-8).fold(f64::MIN, f64::max);
    let above = everything.iter().copied().filter(|value| *value > last + 1e-8).fold(f64::MAX, f64::min);
    for (gap, truth) in [("gap_below", first - below), ("gap_above", above - last)] {
        let gap = report[gap].as_f64().unwrap();
        assert!(gap <= truth + 1e-14 && gap > 0.1 * truth, "{gap} of {truth}");
    }
    let (rows, columns, vectors) = npz.matrix::<f64>("eigenvectors").unwrap();
    assert_eq!((rows, columns), (34, values.len()));
    assert_eq!(report["pairs"], values.len());
    let norm: f64 = (0..rows).map(|row| vectors[row * columns].powi(2)).sum();
    assert!((norm - 1.0).abs() < 1e-12, "columns are vectors");
}

#[test]
fn the_pairs_nearest_to_a_far_point_are_those_at_the_end_of_the_spectrum() {
    let folder = tempfile::tempdir().unwrap();
    for solver in ["auto", "window", "lobpcg", "dense"] {
        let report = |mu: &str| {
            let around = format!("--around={mu}");
            json(&qdc(
                folder.path(),
                &["spectrum", "cycle:601", "--pairs", "5", &around, "--solver", solver, "--json"],
            ))
        };
        for mu in ["5", "1e6", "1e300"] {
            let high = report(mu);
            assert_eq!((&high["pairs"], &high["counted"]), (&5.into(), &5.into()), "{solver}: {high}");
            assert!((high["largest"].as_f64().unwrap() - 1.0).abs() < 1e-12, "{solver}");
            let low = report(&format!("-{mu}"));
            let end = (1.0 + 2.0 * (std::f64::consts::TAU * 300.0 / 601.0).cos()) / 3.0;
            assert!((low["smallest"].as_f64().unwrap() - end).abs() < 1e-12, "{solver}: {low}");
            assert_eq!(low["pairs"], 6, "{solver}: they come in twos");
        }
    }
}

#[test]
fn the_report_names_the_method_that_was_really_used() {
    let folder = tempfile::tempdir().unwrap();
    let method = |arguments: &[&str]| {
        let all = [&["spectrum", "cycle:2000", "--json"], arguments].concat();
        let report = json(&qdc(folder.path(), &all));
        (report["solver"].as_str().unwrap().to_owned(), report["method"].as_str().unwrap().to_owned())
    };
    let names = |solver: &str, method: &str| (solver.to_owned(), method.to_owned());
    assert_eq!(method(&["--pairs", "8", "--around", "0.3"]), names("window", "shift-invert"));
    assert_eq!(method(&["--pairs", "8", "--solver", "lobpcg"]), names("lobpcg", "lobpcg"));
    assert_eq!(method(&["--pairs", "1500", "--solver", "window"]), names("dense", "dense"));
    assert_eq!(method(&["--pairs", "8", "--solver", "dense"]), names("dense", "dense"));
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
    assert!(code == Some(2) && talk.contains("hint: choose --solver"), "{talk}");
    let (code, talk) = status(&["spectrum", "cycle:600", "--memory", "1MB"]);
    assert!(code == Some(1) && talk.contains("hint: raise --memory"), "{talk}");
}
