//! What the data commands print, and how they fail: snapshots of the built program.

use std::path::Path;
use std::process::Command;

use qdc_data::npz::NpzWriter;

/// Runs `qdc` in `folder` with no datasets at hand; stdout, stderr and status as one text.
fn qdc(folder: &Path, arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments)
        .current_dir(folder)
        .env("QDC_DATA", "data")
        .env("QDC_CACHE", "cache")
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    format!(
        "{}{}status {}\n",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
        output.status.code().unwrap()
    )
}

#[test]
fn generated_graphs_are_described() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(qdc(folder.path(), &["data", "show", "karate"]));
    insta::assert_snapshot!(qdc(folder.path(), &["data", "show", "karate", "--json"]));
    insta::assert_snapshot!(qdc(folder.path(), &["homophily", "karate"]));
}

#[test]
fn datasets_that_are_not_here_are_listed_and_refused_with_the_way_to_get_them() {
    let folder = tempfile::tempdir().unwrap();
    insta::assert_snapshot!(qdc(folder.path(), &["data", "list"]));
    insta::assert_snapshot!(qdc(folder.path(), &["data", "path", "cora"]));
    insta::assert_snapshot!(qdc(folder.path(), &["data", "show", "corra"]));
    insta::assert_snapshot!(qdc(folder.path(), &["data", "get", "corra"]));
}

#[test]
fn every_kind_of_bad_input_names_file_place_and_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let homophily = |name: &str| qdc(folder.path(), &["homophily", name]);

    // A dataset whose parts can be spoiled one by one.
    let write = |name: &str, edges: &[i32], shape: &[usize], validation: &[bool]| {
        let mut archive = NpzWriter::create(at(name)).unwrap();
        archive.array("node_features", &[3, 2], &[1u8, 0, 0, 1, 1, 1]).unwrap();
        archive.array("node_labels", &[3], &[0, 1, 1]).unwrap();
        archive.array("edges", shape, edges).unwrap();
        archive.array("train_masks", &[1, 3], &[true, false, false]).unwrap();
        archive.array("val_masks", &[1, 3], validation).unwrap();
        archive.array("test_masks", &[1, 3], &[false, false, true]).unwrap();
        archive.finish().unwrap();
    };
    let valid = [false, true, false];
    write("good.npz", &[0, 1, 1, 2], &[2, 2], &valid);
    let bytes = std::fs::read(at("good.npz")).unwrap();
    std::fs::write(at("truncated.npz"), &bytes[..300]).unwrap();
    insta::assert_snapshot!(homophily("truncated.npz"));
    write("shape.npz", &[0, 1, 1, 1, 2, 0], &[2, 3], &valid);
    insta::assert_snapshot!(homophily("shape.npz"));
    write("negative.npz", &[0, 1, 1, -2], &[2, 2], &valid);
    insta::assert_snapshot!(homophily("negative.npz"));
    write("outside.npz", &[0, 1, 1, 3], &[2, 2], &valid);
    insta::assert_snapshot!(homophily("outside.npz"));
    write("overlap.npz", &[0, 1, 1, 2], &[2, 2], &[true, true, false]);
    insta::assert_snapshot!(homophily("overlap.npz"));

    for (name, text) in [
        ("nan.csv", "from,to,weight\n0,1,1\n1,2,nan\n"),
        ("empty.csv", "# nothing\n"),
        ("directed.csv", "0,1,2\n1,0,3\n"),
        ("negative.csv", "0,1\n-1,2\n"),
        ("directed.mtx", "%%MatrixMarket matrix coordinate real general\n2 2 1\n1 2 1\n"),
    ] {
        std::fs::write(at(name), text).unwrap();
    }
    insta::assert_snapshot!(homophily("nan.csv"));
    insta::assert_snapshot!(homophily("empty.csv"));
    insta::assert_snapshot!(homophily("directed.csv"));
    insta::assert_snapshot!(homophily("negative.csv"));
    insta::assert_snapshot!(homophily("directed.mtx"));
    insta::assert_snapshot!(homophily("no/such/file.csv"));
}
