//! How commands end: exit status, words and JSON for what was typed, what was found, and output nobody can
//! take.

mod support;

use std::process::Stdio;

use support::{command, qdc, text};

/// Status, stdout and stderr of a command in a folder of its own.
fn ending(arguments: &str) -> (i32, String, String) {
    let folder = tempfile::tempdir().unwrap();
    let output = qdc(folder.path(), arguments);
    let said = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("no signal ended it"), said(&output.stdout), said(&output.stderr))
}

#[test]
fn what_was_typed_ends_with_2_and_what_was_found_with_1() {
    for (arguments, status) in [
        ("kernle karate", 2),
        ("kernel karate --sigma 0 -o q.npz", 2),
        ("kernel karate --top-k 0 -o q.npz", 2),
        ("kernel karate --epsilon=-1 -o q.npz", 2),
        ("kernel karate --rows 10:5 -o q.npz", 2),
        ("kernel karate --rows 0:99 -o q.npz", 2),
        ("kernel karate --pairs 0 -o q.npz", 2),
        ("kernel karate --self-loop=-1 -o q.npz", 2),
        ("kernel karate --tolerance 0 -o q.npz", 2),
        ("kernel karate -o q.parquet", 2),
        ("kernel petersen -o q.npz", 2),
        ("kernel cycle:2 -o q.npz", 2),
        ("kernel nowhere.csv -o q.npz", 1),
        ("kernel cora -o q.npz", 1),
        ("kernel karate -o no/such/folder/q.npz", 1),
        ("data show corra", 2),
        ("data get corra", 2),
        ("data show cycle:9", 2),
        ("dynamics karate --equation heat --from 99 --times 1", 2),
        ("train karate --model gcn --set hidden=0", 2),
        ("train karate --model gcn --set hiden=8", 2),
        ("sdrf karate --iterations 5 --tau=-1 -o q.npz", 2),
        ("merge nowhere.npz -o q.npz", 1),
        ("predict nowhere.safetensors", 1),
    ] {
        let (found, stdout, stderr) = ending(arguments);
        assert_eq!(found, status, "{arguments}: {stderr}");
        assert!(stdout.is_empty() && stderr.contains("error: "), "{arguments}: {stdout}{stderr}");
    }
}

#[test]
fn every_error_under_json_is_one_object_with_error_hint_and_code() {
    for (arguments, code) in [
        ("kernle karate --json", 2),
        ("kernel karate --json --sigma 0 -o q.npz", 2),
        ("kernel --json", 2),
        ("kernel nowhere.csv -o q.npz --json", 1),
        ("train karate --model gnc --json", 2),
    ] {
        let (status, stdout, _) = ending(arguments);
        let object: serde_json::Value = serde_json::from_str(&stdout).expect(arguments);
        assert_eq!((status, object["code"].as_i64()), (code, Some(i64::from(code))), "{arguments}: {object}");
        assert!(object["error"].as_str().is_some_and(|error| !error.is_empty()), "{arguments}: {object}");
        assert!(object.as_object().unwrap().contains_key("hint"), "{arguments}: {object}");
    }
    let (_, stdout, _) = ending("kernle karate --json");
    assert!(stdout.contains("kernel"), "the tip is the hint: {stdout}");
    let (_, stdout, _) = ending("kernle karate -- --json");
    assert!(stdout.is_empty(), "behind -- it is no option: {stdout}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_device_is_said_with_status_1_and_never_a_panic() {
    let folder = tempfile::tempdir().unwrap();
    let full = || Stdio::from(std::fs::File::options().write(true).open("/dev/full").unwrap());
    for (arguments, status) in
        [("data list", 1), ("data list --json", 1), ("--help", 1), ("kernel --help", 1), ("--version", 1)]
    {
        let output = command(folder.path(), arguments).stdout(full()).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{arguments}: {stderr}");
        assert!(stderr.contains("cannot write to stdout"), "{arguments}: {stderr}");
    }
    for (arguments, status) in [
        ("kernle", 2),
        ("kernel karate --sigma 0 -o q.npz", 2),
        ("kernel nowhere.csv -o q.npz", 1),
        ("kernel karate --mu 3 -o q.npz", 0),
        ("homophily karate --threads 60000", 0),
        ("", 2),
    ] {
        let output = command(folder.path(), arguments).stderr(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(status), "{arguments}");
        let output = command(folder.path(), arguments).stderr(full()).stdout(full()).output().unwrap();
        assert_eq!(output.status.code(), Some(if status == 0 { 1 } else { status }), "{arguments}");
    }
    let output =
        command(folder.path(), "kernel nowhere.csv -o q.npz --json").stdout(full()).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
}

#[test]
#[cfg(unix)]
fn a_reader_that_went_away_is_quiet_success() {
    let folder = tempfile::tempdir().unwrap();
    for arguments in ["data list", "data list --json", "kernel --help", "kernel karate -o -"] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(folder.path(), arguments).stdout(writer).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {stderr}");
        assert!(!stderr.contains("error"), "{arguments}: {stderr}");
    }
}

#[test]
fn quiet_silences_warnings_and_too_many_threads_are_capped_with_one() {
    let (status, _, stderr) = ending("kernel karate --mu 3 -o q.npz --quiet");
    assert_eq!((status, stderr.as_str()), (0, ""));
    let (status, _, stderr) = ending("homophily karate --threads 65535");
    assert!(status == 0 && stderr.contains("warning: 65535 threads are more than"), "{stderr}");
    let (_, _, stderr) = ending("homophily karate --threads 1");
    assert_eq!(stderr, "");
}

#[test]
fn a_misspelt_graph_is_answered_with_the_one_meant() {
    for (arguments, meant) in [
        ("data show corra", "did you mean cora?"),
        ("kernel pubmd -o q.npz", "pubmed?"),
        ("kernel kerate -o q.npz", "did you mean karate?"),
        ("kernel powrlaw:n=10,degree=2 -o q.npz", "did you mean powerlaw?"),
    ] {
        let (_, _, stderr) = ending(arguments);
        assert!(stderr.contains(meant), "{stderr}");
    }
    let (_, _, stderr) = ending("data show petersen");
    assert!(!stderr.contains("did you mean"), "{stderr}");
}

#[test]
fn commands_that_read_leave_the_data_folder_as_it_was() {
    let folder = tempfile::tempdir().unwrap();
    text(folder.path(), "spectrum er:n=520,p=0.01,seed=3");
    assert!(!folder.path().join("data").exists());
    assert_eq!(std::fs::read_dir(folder.path().join("cache/spectra")).unwrap().count(), 1);
}

#[test]
fn the_folder_of_spectra_is_announced_once() {
    let folder = tempfile::tempdir().unwrap();
    let said = |graph: &str| {
        let output = qdc(folder.path(), &format!("spectrum {graph}"));
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let first = said("er:n=501,p=0.02,seed=1");
    assert!(first.contains("spectra are kept in") && first.contains("QDC_CACHE"), "{first}");
    let second = said("er:n=501,p=0.02,seed=2");
    assert!(!second.contains("QDC_CACHE") && second.contains("the spectrum is stored in"), "{second}");
    assert_eq!(std::fs::read_dir(folder.path().join("cache/spectra")).unwrap().count(), 2);
}

#[test]
fn without_a_home_nothing_is_looked_for_in_the_shared_temporary_folder() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = command(folder.path(), "kernel cora -o q.npz");
    command.env_clear().env("TMPDIR", folder.path().join("shared"));
    let output = command.output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the dataset 'cora' is not in ") && !said.contains("shared"), "{said}");
}
