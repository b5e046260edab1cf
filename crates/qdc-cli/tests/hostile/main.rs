//! The hostile suite: crafted files and names that must be refused properly, whatever they claim.
//!
//! Every input is made here, none is stored. Each runs in a folder of its own under limits on address space
//! (4 GB) and CPU time (10 s), with `--memory 500MB`. It behaves if it ends by itself with status 1 or 2,
//! says an error and a hint (as JSON too), holds at most the budget and 200 MB, and leaves no file behind.
//! Damaged spectra, which are made again, are only warned of.

#![cfg(target_os = "linux")]

mod archives;
mod configurations;
mod names;
mod others;
mod pickles;
mod running;
mod seeds;
mod spectra;
mod studies;
mod texts;

use std::path::Path;

use running::Case;

fn cases() -> Vec<Case> {
    let kinds = [
        archives::cases(),
        texts::cases(),
        names::cases(),
        others::cases(),
        spectra::cases(),
        studies::cases(),
        configurations::cases(),
    ];
    kinds.into_iter().flatten().collect()
}

#[test]
#[allow(clippy::print_stdout)] // the count and the peak, for `--nocapture`
fn every_hostile_input_is_refused_with_a_hint_within_its_limits() {
    let cases = cases();
    let mut wrong = Vec::new();
    let mut peak = 0;
    for case in &cases {
        match case.run() {
            Ok(memory) => peak = peak.max(memory),
            Err(problem) => wrong.push(format!("{}: {problem}", case.name)),
        }
    }
    println!(
        "{} hostile inputs, {} behaved, largest peak {} MB",
        cases.len(),
        cases.len() - wrong.len(),
        peak / 1_000_000
    );
    assert!(cases.len() >= 300, "{} are too few", cases.len());
    assert!(wrong.is_empty(), "{} misbehaved:\n{}", wrong.len(), wrong.join("\n"));
}

/// Run by hand before fuzzing: `cargo test --test hostile -- --ignored`.
#[test]
#[ignore = "writes fuzz/corpus, the seeds of the fuzzers"]
fn the_fuzzers_begin_with_the_hostile_files() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    seeds::plant(&corpora, &cases());
}
