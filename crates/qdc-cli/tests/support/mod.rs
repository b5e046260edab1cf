//! The built program, as a user runs it in a folder of their own.

#![allow(dead_code)] // each test file uses its part

use std::path::Path;
use std::process::{Command, Output};

/// The program in `folder`, with no datasets at hand and no colours.
pub(crate) fn command(folder: &Path, arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_qdc"));
    command
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("QDC_DATA", folder.join("data"))
        .env("QDC_CACHE", folder.join("cache"))
        .env("NO_COLOR", "1");
    command
}

/// Runs `qdc ARGUMENTS` in `folder`.
pub(crate) fn qdc(folder: &Path, arguments: &str) -> Output {
    command(folder, arguments).output().expect("the program runs")
}

/// What it prints; it must succeed.
pub(crate) fn text(folder: &Path, arguments: &str) -> String {
    let output = qdc(folder, arguments);
    assert!(output.status.success(), "{arguments}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text is UTF-8")
}

/// The one JSON object it prints with `--json`; it must succeed.
pub(crate) fn json(folder: &Path, arguments: &str) -> serde_json::Value {
    serde_json::from_str(&text(folder, &format!("{arguments} --json --quiet"))).expect("one JSON object")
}

/// It must fail with `status` and say `message` on stderr.
pub(crate) fn refused(folder: &Path, arguments: &str, status: i32, message: &str) {
    let output = qdc(folder, arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{arguments}: {stderr}");
    assert!(stderr.contains(message), "{arguments}: {stderr}");
}
