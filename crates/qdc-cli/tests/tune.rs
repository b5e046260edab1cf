//! `qdc tune`, `study`, `space` and `table` as a user runs them, on a small generated graph.

mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use qdc_tune::storage::{Sqlite, Storage};
use qdc_tune::{State, Trial};
use support::{command, json, qdc, refused, text};

const GRAPH: &str = "csbm:n=60";

fn trials(file: &Path) -> Vec<Trial> {
    let mut storage = Sqlite::open(file).unwrap();
    let studies = storage.studies().unwrap();
    studies.iter().flat_map(|study| storage.trials(study.id, 0, &[]).unwrap()).collect()
}

/// What does not depend on the clock.
fn results(file: &Path) -> Vec<(u64, Option<f64>, String)> {
    let parameters = |trial: &Trial| format!("{:?} {:?}", trial.parameters(), trial.user_attributes["test"]);
    trials(file).iter().map(|trial| (trial.number, trial.value, parameters(trial))).collect()
}

#[test]
fn a_search_reports_its_best_and_the_same_command_has_nothing_left_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let arguments = format!("tune {GRAPH} --model gcn+qdc --trials 6 --study s.db");
    let report = json(folder.path(), &arguments);
    assert_eq!((&report["trials"], &report["left"]), (&6.into(), &0.into()));
    for key in ["number", "validation", "test_mean", "test_std", "parameters"] {
        assert!(!report["best"][key].is_null(), "{key}");
    }
    let stored = trials(&folder.path().join("s.db"));
    let best = report["best"]["number"].as_u64().unwrap();
    assert!(stored.iter().all(|trial| trial.value <= stored[best as usize].value));
    for key in ["test", "validation", "seed", "kernel", "seconds"] {
        assert!(stored.iter().all(|trial| trial.user_attributes.contains_key(key)), "{key}");
    }
    let again = json(folder.path(), &arguments);
    assert_eq!(again["best"], report["best"]);
    assert_eq!(trials(&folder.path().join("s.db")).len(), 6);
}

#[test]
fn what_is_found_does_not_depend_on_jobs_or_threads() {
    let folder = tempfile::tempdir().unwrap();
    for (file, workers) in [("one.db", "--jobs 1 --threads 1"), ("three.db", "--jobs 3 --threads 2")] {
        text(
            folder.path(),
            &format!("tune {GRAPH} --model gcn+multiscale --trials 14 --seed 5 --study {file} {workers} -q"),
        );
    }
    assert_eq!(results(&folder.path().join("one.db")), results(&folder.path().join("three.db")));
}

#[test]
fn a_search_killed_again_and_again_loses_and_doubles_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("killed.db");
    let whole = folder.path().join("whole.db");
    let arguments =
        |file: &str| format!("tune {GRAPH} --model gcn+qdc --trials 12 --jobs 2 --study {file} --quiet");
    let mut before = Vec::new();
    for kill in 0..6 {
        let mut child =
            command(folder.path(), &arguments("killed.db")).stdout(Stdio::null()).spawn().expect("it runs");
        std::thread::sleep(Duration::from_millis(40 + 90 * kill));
        child.kill().unwrap(); // SIGKILL
        child.wait().unwrap();
        let after: Vec<_> = if file.exists() {
            trials(&file).into_iter().filter(|trial| trial.state == State::Complete).collect()
        } else {
            Vec::new()
        };
        assert!(before.iter().all(|trial| after.contains(trial)), "lost at kill {kill}");
        before = after;
    }
    text(folder.path(), &arguments("killed.db"));
    text(folder.path(), &arguments("whole.db"));
    assert_eq!(results(&file), results(&whole), "as if it had never been killed");
}

#[cfg(unix)]
#[test]
fn ctrl_c_ends_a_search_cleanly_and_its_trials_wait_for_the_next_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let child = command(folder.path(), "tune csbm:n=300 --model gcn --trials 100000 --study s.db --quiet")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it runs");
    while !(file.exists() && Sqlite::open(&file).is_ok() && trials(&file).len() > 2) {
        std::thread::sleep(Duration::from_millis(20));
    }
    let interrupt = std::process::Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    assert!(interrupt.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("left (the same command resumes)"), "{said}");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(stderr.contains("every trial that had ended is saved in s.db"), "{stderr}");
    let after = trials(&file);
    assert!(after.iter().all(|trial| trial.state != State::Running), "none is left hanging");
    let next = after.len();
    text(folder.path(), &format!("tune csbm:n=300 --model gcn --trials {next} --study s.db --quiet"));
    assert!(trials(&file).iter().all(|trial| trial.state == State::Complete));
}

#[test]
fn a_limit_of_time_or_memory_is_a_failure_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let report =
        json(folder.path(), "tune csbm:n=200 --model gcn+qdc --trials 2 --trial-time 0.000001s --study a.db");
    assert_eq!(report["failed"].as_object().unwrap().len(), 1, "{report}");
    assert!(report["failed"].to_string().contains("over the time limit"), "{report}");
    assert!(report["best"].is_null());
    let limited = |model: &str, limit: &str, study: &str| {
        let space = "[search]\nepsilon = [1e-7, 10.0]\n";
        std::fs::write(folder.path().join("space.toml"), space).unwrap();
        let command = format!(
            "tune csbm:n=200 --model {model} --space space.toml --trials 8 {limit} --max-steps 2 --study {study}.db"
        );
        json(folder.path(), &command)
    };
    let some = limited("gat+qdc", "--attention-limit 5000", "c");
    let reason = "attention would weigh more than 5000 entries";
    let failed = some["failed"][reason].as_u64().unwrap();
    assert!((1..8).contains(&failed), "dense kernels fail, empty ones are trained: {some}");
    assert_eq!(some["failed"].as_object().unwrap().len(), 1, "{some}");
    let gcn = limited("gcn+qdc", "--attention-limit 5000", "d");
    assert_eq!(gcn["failed"], serde_json::json!({}), "a sum over neighbours has no such limit");
    refused(
        folder.path(),
        "tune csbm:n=200 --model gat+qdc --space space.toml --trials 9 --attention-limit 5001 --max-steps 2 --study c.db",
        1,
        "attention_limit",
    );
    let budget = json(folder.path(), &format!("tune {GRAPH} --model gcn --budget 0.001s --study b.db"));
    assert_eq!(budget["left"].as_u64().unwrap() + budget["trials"].as_u64().unwrap(), 250);
}

#[test]
fn bad_studies_and_spaces_are_refused_with_a_hint() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    text(place, &format!("tune {GRAPH} --model gcn --trials 1 --study s.db -q"));
    std::fs::write(place.join("upside_down.toml"), "[search]\ndropout = { low = 0.9, high = 0.1 }\n")
        .unwrap();
    refused(place, &format!("tune {GRAPH} --model gcn --space upside_down.toml"), 1, "dropout");
    refused(place, &format!("tune {GRAPH} --model gcn --space missing.toml"), 1, "missing.toml");
    refused(place, &format!("tune {GRAPH} --model gnc"), 2, "hint: known: gcn");
    refused(place, &format!("tune {GRAPH} --model gcn --budget soon"), 2, "is not a time");

    std::fs::write(place.join("own.toml"), "[search]\ndropout = { low = 0.0, high = 0.5 }\n").unwrap();
    text(place, &format!("tune {GRAPH} --model gcn --trials 1 --space own.toml --study s.db -q"));
    std::fs::write(place.join("own.toml"), "[search]\ndropout = { low = 0.0, high = 0.6 }\n").unwrap();
    let again = format!("tune {GRAPH} --model gcn --trials 2 --space own.toml --study s.db");
    refused(place, &again, 1, "dropout was [0, 0.5] and is now [0, 0.6]");

    std::fs::write(place.join("notes.db"), "these are notes, not a database, and long enough to be one")
        .unwrap();
    refused(place, &format!("tune {GRAPH} --model gcn --study notes.db"), 1, "is not a study");
    refused(place, "study list nowhere.db", 1, "there is no study file nowhere.db");
    refused(place, "table nowhere.db", 1, "hint: qdc tune makes one");
    assert!(!place.join("nowhere.db").exists(), "a reader makes no file");
    let newer = rusqlite::Connection::open(place.join("s.db")).unwrap();
    newer.execute_batch("UPDATE alembic_version SET version_num = 'v9.9.9.a'").unwrap();
    refused(place, &format!("tune {GRAPH} --model gcn --study s.db"), 1, "has schema v9.9.9.a");
}

#[test]
fn studies_are_listed_exported_and_imported() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    for model in ["mlp", "gcn"] {
        text(place, &format!("tune {GRAPH} --model {model} --trials 2 --study s.db -q"));
    }
    let listing = json(place, "study list s.db");
    let names: Vec<&str> =
        listing["studies"].as_array().unwrap().iter().map(|study| study["name"].as_str().unwrap()).collect();
    assert_eq!(names, [format!("{GRAPH} mlp paper"), format!("{GRAPH} gcn paper")]);
    assert!(text(place, "study list s.db").contains("2/2 trials, best validation"));
    assert_eq!(json(place, "study export s.db -o all.log")["trials"], 4);
    assert_eq!(json(place, "study import all.log --study copy.db")["trials"], 4);
    assert_eq!(results(&place.join("copy.db")), results(&place.join("s.db")));
    refused(place, "study export s.db -o all.log --name nonsense", 1, "holds no study 'nonsense'");
    refused(place, "study import all.log --study copy.db", 1, "exists already");
    refused(place, "study import missing.log", 1, "missing.log");
}

#[test]
fn the_table_is_written_in_every_format() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path();
    for model in ["gcn", "gcn+qdc"] {
        text(place, &format!("tune {GRAPH} --model {model} --trials 2 --study s.db -q"));
    }
    let cells = json(place, "table s.db");
    let mean = cells["cells"][0]["test_mean"].as_f64().expect("a mean");
    let percent = format!("{:.2}", 100.0 * mean);
    let number = mean.to_string(); // programs get all digits
    for (format, mark, cell) in [
        ("text", "gcn", &percent),
        ("markdown", "| ", &percent),
        ("latex", "\\begin{tabular}", &percent),
        ("csv", "model,", &number),
        ("json", "{", &number),
    ] {
        let table = text(place, &format!("table s.db --format {format}"));
        assert!(table.contains(mark) && table.contains(cell), "{format}: no {mark} or {cell} in {table}");
    }
    let compared = text(place, "table s.db --compare paper");
    assert!(compared.contains(&percent), "{compared}");
}

#[test]
fn the_published_spaces_are_shown_to_the_letter() {
    let folder = tempfile::tempdir().unwrap();
    for model in ["gcn", "gat+gdc", "gcn+qdc", "gat+multiscale"] {
        insta::assert_snapshot!(text(folder.path(), &format!("space show paper --model {model}")));
    }
    let all = String::from_utf8(qdc(folder.path(), "space show wide").stdout).unwrap();
    assert!(all.matches("wide for ").count() >= 10, "{all}");
}
