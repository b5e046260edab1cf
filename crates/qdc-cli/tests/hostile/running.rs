//! One hostile input, and how the program is run on it.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What `--memory` allows, and what a process may hold beside it.
const BUDGET: u64 = 500_000_000;
const BESIDE: u64 = 200_000_000;

/// An input: the files it consists of, what is typed, and how that should end.
pub(super) struct Case {
    pub(super) name: String,
    pub(super) files: Vec<(String, Vec<u8>)>,
    pub(super) arguments: String,
    pub(super) expected: Expected,
}

/// How a case should end.
#[derive(Clone, Copy)]
pub(super) enum Expected {
    /// With status 1 or 2, an error and a hint.
    Refused,
    /// Well, but with these words on stderr: what can be made again need not stop anybody.
    Warned(&'static str),
}

impl Case {
    /// One file, given to a command as FILE.
    pub(super) fn file(
        name: impl Into<String>,
        file: &str,
        bytes: impl Into<Vec<u8>>,
        command: &str,
    ) -> Self {
        let arguments = command.replace("FILE", file);
        let files = vec![(file.into(), bytes.into())];
        Self { name: name.into(), files, arguments, expected: Expected::Refused }
    }

    /// Only words.
    pub(super) fn words(arguments: impl Into<String>) -> Self {
        let arguments = arguments.into();
        Self { name: arguments.clone(), files: Vec::new(), arguments, expected: Expected::Refused }
    }

    /// Runs it; gives the peak of its memory, or what was wrong.
    pub(super) fn run(&self) -> Result<u64, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, bytes) in &self.files {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, bytes).unwrap();
        }
        let before = contents(folder.path());
        // The shell sets the limits, then becomes the program; its last line is the peak of the memory.
        let script = "ulimit -v 4000000; ulimit -t 10; ulimit -c 0; exec \"$0\" \"$@\"";
        let child = Command::new("sh")
            .args(["-c", script, env!("CARGO_BIN_EXE_qdc")])
            .args(self.arguments.split_whitespace())
            .args(["--json", "--threads", "2", "--memory", "500MB"])
            .current_dir(folder.path())
            .env("QDC_DATA", folder.path().join("data"))
            .env("QDC_CACHE", folder.path().join("cache"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        if let Some(signal) = output.status.signal() {
            return Err(format!("signal {signal} ended it: {stderr}"));
        }
        let status = output.status.code().unwrap();
        if stderr.contains('\u{1b}') || stderr.contains("panicked") {
            return Err(format!("a panic, or an escape that reaches the terminal: {stderr:?}"));
        }
        let object: serde_json::Value = serde_json::from_slice(&output.stdout)
            .map_err(|error| format!("stdout is not one JSON object ({error}): {stderr}"))?;
        match self.expected {
            Expected::Refused if !matches!(status, 1 | 2) => {
                return Err(format!("status {status}: {stderr}"));
            }
            Expected::Refused if !stderr.contains("error: ") => {
                return Err(format!("no error is said: {stderr}"));
            }
            Expected::Refused
                if object["hint"].as_str().is_none_or(str::is_empty) || object["code"] != status =>
            {
                return Err(format!("no hint, or another code: {object}"));
            }
            Expected::Warned(words) if status != 0 || !stderr.contains(words) => {
                return Err(format!("status {status}, and not a word of '{words}': {stderr}"));
            }
            Expected::Refused | Expected::Warned(_) => {}
        }
        let after = contents(folder.path());
        if after != before {
            return Err(format!("left behind: {:?}", after.difference(&before).collect::<Vec<_>>()));
        }
        let peak = peak_of_children();
        if peak > BUDGET + BESIDE {
            return Err(format!("held {} MB", peak / 1_000_000));
        }
        Ok(peak)
    }
}

/// Every file below a folder.
fn contents(folder: &Path) -> BTreeSet<PathBuf> {
    let mut open = vec![folder.to_path_buf()];
    let mut found = BTreeSet::new();
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else {
                found.insert(entry.path());
            }
        }
    }
    found
}

/// The largest peak of any process this one has waited for, in bytes.
#[allow(unsafe_code)]
fn peak_of_children() -> u64 {
    // SAFETY: all zeros are a valid `rusage`, and the call fills it.
    let usage = unsafe {
        let mut usage = std::mem::zeroed::<libc::rusage>();
        libc::getrusage(libc::RUSAGE_CHILDREN, &raw mut usage);
        usage
    };
    usage.ru_maxrss as u64 * 1024
}
