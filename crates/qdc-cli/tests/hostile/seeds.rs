//! The hostile files as seeds of the fuzzers, each for the targets that read such a file.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::Path;

use super::pickles;
use super::running::Case;

/// A fuzzer learns nothing more from larger files, and is slowed down by them.
const LARGEST: usize = 150_000;

/// The targets that read a file of this name.
fn targets(file: &str) -> &'static [&'static str] {
    match file {
        "d.npz" => &["archive", "dataset"],
        "m.npz" | "a.npz" | "kernel.npz" => &["archive", "scipy", "kernel"],
        "e.csv" | "e.tsv" | "e.csv.gz" => &["edge_list"],
        "m.mtx" | "m.mtx.gz" => &["market"],
        "a.npz.json" => &["shard"],
        "model" => &["model"],
        "s.db" | "s.log" => &["study"],
        "own.toml" | "run.toml" => &["configuration"],
        _ => &[],
    }
}

fn write(corpora: &Path, target: &str, bytes: &[u8]) {
    if bytes.len() <= LARGEST {
        let mut hash = DefaultHasher::new();
        bytes.hash(&mut hash);
        std::fs::create_dir_all(corpora.join(target)).unwrap();
        std::fs::write(corpora.join(target).join(format!("seed-{:016x}", hash.finish())), bytes).unwrap();
    }
}

/// Writes the files of `cases`, and the graphs they name, to `corpora/TARGET`.
pub(super) fn plant(corpora: &Path, cases: &[Case]) {
    for case in cases {
        for (name, bytes) in &case.files {
            targets(name).iter().for_each(|target| write(corpora, target, bytes));
        }
        let graph = case.arguments.split_whitespace().nth(1).filter(|word| word.contains(':'));
        graph.into_iter().for_each(|name| write(corpora, "generator", name.as_bytes()));
    }
    pickles::seeds().iter().for_each(|bytes| write(corpora, "pickle", bytes));
}
