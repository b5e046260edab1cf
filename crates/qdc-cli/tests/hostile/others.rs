//! Saved models, shards, studies, search spaces and potentials, each made whole by the program and then spoiled.

use std::path::Path;
use std::process::Command;

use super::archives::written;
use super::running::Case;

fn qdc(folder: &Path, arguments: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("QDC_CACHE", folder.join("cache"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `bytes` cut off at `count` places.
fn cuts(bytes: &[u8], count: usize) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
    (0..count).map(move |part| {
        let cut = bytes.len() * part / count;
        (cut, bytes[..cut].to_vec())
    })
}

pub(super) fn cases() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    qdc(folder.path(), "train karate --model gcn --splits 0 --max-steps 2 --save model -q");
    qdc(folder.path(), "kernel karate --rows 0:17 -o a.npz -q");
    qdc(folder.path(), "tune csbm:n=40 --model gcn --trials 1 --study s.db -q");
    let mut cases = Vec::new();

    let model = read("model");
    for (cut, bytes) in cuts(&model, 16) {
        cases.push(Case::file(format!("model cut at {cut}"), "model", bytes, "predict FILE"));
    }
    let header = u64::from_le_bytes(model[..8].try_into().unwrap()) as usize;
    let text = String::from_utf8(model[8..8 + header].to_vec()).unwrap();
    let with_header = |text: String| {
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.extend(text.bytes());
        bytes.extend(&model[8 + header..]);
        bytes
    };
    for (name, from, to) in [
        ("no configuration", "\"qdc\"", "\"cdq\""),
        ("another dataset", "karate", "cycles"),
        ("a huge network", "\\\"hidden\\\":64", "\\\"hidden\\\":4000000000"),
        ("many layers", "\\\"layers\\\":2", "\\\"layers\\\":2000000000"),
        ("no hyper-parameter", "hidden", "hiddem"),
        ("no model", "\\\"gcn\\\"", "\\\"gnc\\\""),
        ("another type", "F32", "I32"),
        ("an open brace", "}", "{"),
    ] {
        let changed = text.replace(from, to);
        if changed != text {
            cases.push(Case::file(
                format!("model with {name}"),
                "model",
                with_header(changed),
                "predict FILE",
            ));
        }
    }
    let mut lengths = model.clone();
    lengths[..8].copy_from_slice(&u64::MAX.to_le_bytes());
    cases.push(Case::file("model with an endless header", "model", lengths, "predict FILE"));

    let (shard, manifest) = (read("a.npz"), read("a.npz.json"));
    let merge = |name: String, shard: Vec<u8>, manifest: Option<Vec<u8>>| Case {
        name,
        files: [("a.npz".to_owned(), shard)]
            .into_iter()
            .chain(manifest.map(|manifest| ("a.npz.json".to_owned(), manifest)))
            .collect(),
        arguments: "merge a.npz -o q.npz".into(),
    };
    cases.push(merge("half of the shards".into(), shard.clone(), Some(manifest.clone())));
    cases.push(merge("no manifest".into(), shard.clone(), None));
    for (cut, bytes) in cuts(&shard, 12) {
        cases.push(merge(format!("shard cut at {cut}"), bytes, Some(manifest.clone())));
    }
    for (cut, bytes) in cuts(&manifest, 12) {
        cases.push(merge(format!("manifest cut at {cut}"), shard.clone(), Some(bytes)));
    }
    for (name, bytes) in [
        ("deep brackets", "[".repeat(1_000_000).into_bytes()),
        ("binary", vec![0xff; 1000]),
        ("an empty object", b"{}".to_vec()),
    ] {
        cases.push(merge(format!("manifest of {name}"), shard.clone(), Some(bytes)));
    }

    let study = read("s.db");
    for (cut, bytes) in cuts(&study, 12).skip(1) {
        cases.push(Case::file(format!("study cut at {cut}"), "s.db", bytes, "table FILE"));
    }
    cases.push(Case::file(
        "study of text",
        "s.db",
        "not a database at all, but long enough to be read as one".repeat(40),
        "table FILE",
    ));
    cases.push(Case::file("study of another program", "s.db", written(|_| {}), "table FILE"));

    for text in [
        "[search",
        "[search]\ndropout = 1\n",
        "[search]\ndropout = { low = 0.9, high = 0.1 }\n",
        "[search]\ndropout = { low = nan, high = 1 }\n",
        "[search]\nnothing = { low = 0, high = 1 }\n",
        "[search]\nhidden = { low = -5, high = 64 }\n",
        "[fixed]\nhidden = -1\n",
        "[fixed]\nhidden = \"\u{1b}\"\n",
        "\u{0}",
    ] {
        cases.push(Case::file(
            format!("space {text:?}"),
            "own.toml",
            text,
            "tune karate --model gcn --trials 1 --study new.db --space FILE",
        ));
    }
    let deep = format!("a = {}1{}", "[".repeat(100_000), "]".repeat(100_000));
    cases.push(Case::file(
        "space of deep brackets",
        "own.toml",
        deep,
        "tune karate --model gcn --trials 1 --study new.db --space FILE",
    ));
    for text in ["", "x", "1 2 3", "nan", "\u{1b}[2J"] {
        cases.push(Case::file(
            format!("potential {text:?}"),
            "v.txt",
            text,
            "dynamics karate --equation schrodinger --from 0 --times 1 --potential FILE",
        ));
    }
    cases
}
