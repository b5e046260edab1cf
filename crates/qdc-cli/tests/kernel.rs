//! `qdc kernel` and `qdc merge` as a user runs them.

mod support;

use support::{json, qdc, refused};

#[test]
fn the_report_has_the_keys_scripts_rely_on() {
    let folder = tempfile::tempdir().unwrap();
    let report = json(folder.path(), "kernel karate --mu 0.3 --sigma 0.1 --top-k 8 -o q.npz");
    let keys = "nodes entries density filter parameters pairs solver degree error_bound residual_max captured_mass \
                empty_rows seconds peak_memory_bytes output";
    for key in keys.split_whitespace() {
        assert!(report.get(key).is_some(), "{key}");
    }
    assert_eq!((&report["nodes"], &report["pairs"]), (&34.into(), &"all".into()));
    assert!(report["error_bound"].as_f64().unwrap() <= 1e-10);
    assert!(folder.path().join("q.npz").is_file());
}

#[test]
fn shards_merge_into_the_file_built_at_once() {
    let folder = tempfile::tempdir().unwrap();
    for rule in ["--top-k 5", "--epsilon 0.01 --sign absolute", "--epsilon 0.001 --normalize row"] {
        let options = format!("kernel karate --mu 0.3 --sigma 0.2 {rule}");
        json(folder.path(), &format!("{options} -o whole.mtx"));
        json(folder.path(), &format!("{options} --rows 20:34 -o b.npz"));
        json(folder.path(), &format!("{options} --rows 0:20 -o a.npz"));
        json(folder.path(), "merge b.npz a.npz -o merged.mtx");
        let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
        assert_eq!(read("whole.mtx"), read("merged.mtx"), "{rule}");
    }
    refused(folder.path(), "merge a.npz -o merged.mtx", 1, "row 20 is in none of the shards");
    std::fs::remove_file(folder.path().join("a.npz.json")).unwrap();
    refused(folder.path(), "merge a.npz b.npz -o merged.mtx", 1, "manifest");
}

#[test]
fn bad_input_is_refused_with_what_is_wrong_and_leaves_no_file() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("kernel karate --sigma 0 -o q.npz", 1, "sigma = 0 is out of range"),
        ("kernel karate --sigma nan -o q.npz", 1, "sigma = NaN is out of range"),
        ("kernel karate --alpha 0.2 -o q.npz", 2, "--alpha does not belong to --filter gaussian"),
        ("kernel karate --epsilon 0.1 --top-k 5 -o q.npz", 2, "cannot be used with"),
        ("kernel karate --pairs 0 -o q.npz", 2, "not a number of pairs"),
        ("kernel karate -o q.docx", 1, "q.docx"),
        ("kernel karate -o missing/q.npz", 1, "there is no folder missing"),
        ("kernel karate --rows 30:40 -o q.npz", 1, "30:40"),
        ("kernel karate --sparsify none --memory 1kB -o q.npz", 1, "the limit is"),
        ("kernel karate --pairs 5 --solver chebyshev -o q.npz", 1, "without computing eigenpairs"),
    ];
    for (arguments, status, message) in cases {
        refused(folder.path(), arguments, status, message);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0, "{arguments}");
    }
}

#[test]
fn what_is_probably_not_meant_is_warned_about() {
    let folder = tempfile::tempdir().unwrap();
    let output = qdc(folder.path(), "kernel karate --mu 3 --sigma 2 --epsilon 50 -o q.npz");
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{stderr}");
    assert!(stderr.contains("warning: mu = 3 lies outside [-2, 2]"), "{stderr}");
    assert!(stderr.contains("keeps nothing") && stderr.contains("would keep one percent"), "{stderr}");
}
