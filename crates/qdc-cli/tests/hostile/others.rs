//! Saved models, shards, kernels, results and potentials, each made whole by the program and then spoiled.

use std::path::Path;
use std::process::Command;

use serde_json::json;

use super::running::{Case, Expected};

/// Runs the program, which must succeed.
pub(super) fn qdc(folder: &Path, arguments: &str) {
    let output = Command::new(env!("CARGO_BIN_EXE_qdc"))
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("QDC_CACHE", folder.join("cache"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
}

/// `bytes` cut off at `count` places.
pub(super) fn cuts(bytes: &[u8], count: usize) -> impl Iterator<Item = (usize, Vec<u8>)> + '_ {
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
        ("a negative width", "\\\"hidden\\\":64", "\\\"hidden\\\":-64"),
        ("an infinite rate", "\\\"learning_rate\\\":0.01", "\\\"learning_rate\\\":1e999"),
        ("features of another graph", "6cc4b8c07215f761", "6cc4b8c07215f762"),
        ("escapes", "\\\"gcn\\\"", "\\\"\\\\u001b[2J\\\""),
        ("a shape beyond the file", "[34,64]", "[34000000000,64000000000]"),
        ("offsets beyond the file", "[256,8960]", "[256,18446744073709551615]"),
        ("offsets that cross", "[256,8960]", "[8960,256]"),
        ("many classes", "\\\"classes\\\":2", "\\\"classes\\\":4000000000"),
        ("classes beyond counting", "\\\"classes\\\":2", "\\\"classes\\\":18446744073709551615"),
    ] {
        let changed = text.replace(from, to);
        assert_ne!(changed, text, "{name}: the model's header does not hold {from}");
        let bytes = with_header(changed);
        cases.push(Case::file(format!("model with {name}"), "model", bytes.clone(), "predict FILE"));
        if !name.contains("another dataset") && !name.contains("another graph") {
            let elsewhere = "predict FILE --graph karate";
            cases.push(Case::file(format!("model with {name}, elsewhere"), "model", bytes, elsewhere));
        }
    }
    // The largest network that may be asked for: 64 layers of 16384 x 16384 weights, 68 GB.
    let largest = text
        .replace("\\\"hidden\\\":64", "\\\"hidden\\\":16384")
        .replace("\\\"layers\\\":2", "\\\"layers\\\":64");
    cases.push(Case::file("model of 68 GB", "model", with_header(largest), "predict FILE"));
    let entry = |name: usize| format!(r#""{name}":{{"dtype":"F32","shape":[0],"data_offsets":[0,0]}},"#);
    let many = format!("{{{}{}", (0..600_000).map(entry).collect::<String>(), &text[1..]);
    cases.push(Case::file("model of many tensors", "model", with_header(many), "predict FILE"));
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
        expected: Expected::Refused,
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
    let described: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    for (name, place, value) in [
        ("rows beyond counting", "/end", json!(u64::MAX)),
        ("rows from behind", "/start", json!(17)),
        ("negative rows", "/start", json!(-1)),
        ("another graph", "/graph", json!("0123456789abcdef")),
        ("no hash", "/content", json!("\u{1b}[2J")),
        ("another content", "/content", json!("0123456789abcdef")),
        ("more vertices", "/report/nodes", json!(4_000_000_000u64)),
        ("fewer entries", "/report/entries", json!(1)),
        ("no recipe", "/recipe", json!(null)),
    ] {
        let mut changed = described.clone();
        let target = changed.pointer_mut(place).expect(name);
        *target = value;
        cases.push(merge(
            format!("manifest with {name}"),
            shard.clone(),
            Some(changed.to_string().into_bytes()),
        ));
    }

    cases.extend(kernels(folder.path()));
    cases.extend(results(folder.path()));
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

/// Kernels made before, which training maps into memory.
fn kernels(folder: &Path) -> Vec<Case> {
    qdc(folder, "kernel karate -o kernel.npz -q");
    qdc(folder, "kernel cycle:5 -o small.npz -q");
    let read = |name: &str| std::fs::read(folder.join(name)).unwrap();
    let train = "train karate --model gcn+qdc --splits 0 --max-steps 2 --kernel FILE";
    let case = |name: String, bytes: Vec<u8>| Case::file(name, "kernel.npz", bytes, train);
    let whole = read("kernel.npz");
    let mut cases = vec![case("kernel of another graph".into(), read("small.npz"))];
    cases.extend(cuts(&whole, 12).map(|(cut, bytes)| case(format!("kernel cut at {cut}"), bytes)));
    // The first bytes of every member's data: its checksum tells.
    let headers = whole.windows(6).enumerate().filter(|(_, bytes)| bytes == b"\x93NUMPY").map(|(at, _)| at);
    for (member, at) in headers.enumerate() {
        for place in [at, at + 8, at + 16, at + 128] {
            let mut bytes = whole.clone();
            bytes[place] ^= 0xff;
            cases.push(case(format!("kernel with member {member} wrong at {place}"), bytes));
        }
    }
    cases
}

/// A folder of results with a cell that says something else than it should.
fn results(folder: &Path) -> Vec<Case> {
    let search =
        "tune csbm:n=40,seed=0 --model mlp --trials 1 --max-steps 2 --splits 0-1 --study study.db -q";
    qdc(folder, search);
    qdc(folder, "table study.db --write results -q");
    let read = |name: &str| std::fs::read_to_string(folder.join("results").join(name)).unwrap();
    let table = read("table.csv");
    let file = table.trim_end().rsplit(',').next().unwrap().trim_matches('"').to_owned();
    let cell = std::fs::read_to_string(folder.join(&file)).unwrap();
    let mut cases = Vec::new();
    for (name, from, to) in [
        ("without a model", "model = \"mlp\"", ""),
        ("without its score", "test_mean", "test_meen"),
        ("without its graph", "[result.graph]", "[result.grabh]"),
        ("with a score that is text", "validation_mean = ", "validation_mean = \"\u{1b}[2J\" #"),
        ("with scores that are no list", "validation = [", "validation = 7 # ["),
        ("with a negative split", "split = 0", "split = -1"),
        ("with escapes", "[hyperparameters]", "[\u{1b}[2J]"),
        ("that is cut", "[result.search]", "[result.search"),
    ] {
        let changed = cell.replace(from, to);
        assert_ne!(changed, cell, "{name}: the cell does not hold {from}");
        for command in ["table results", "report results -o page.html"] {
            let files = [("results/table.csv".to_owned(), table.clone()), (file.clone(), changed.clone())];
            cases.push(Case {
                name: format!("{command}: a cell {name}"),
                files: files.into_iter().map(|(path, text)| (path, text.into_bytes())).collect(),
                arguments: command.into(),
                expected: Expected::Refused,
            });
        }
    }
    cases
}
