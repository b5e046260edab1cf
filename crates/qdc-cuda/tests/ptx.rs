//! The PTX in the repository is what its source compiles to. No GPU is needed, only NVRTC from Python's
//! package; where that is missing the test says that it is skipped, and passes.

#![allow(clippy::print_stderr)]

use std::process::Command;

#[test]
fn the_ptx_is_what_its_source_compiles_to() {
    let script = concat!(env!("CARGO_MANIFEST_DIR"), "/ptx.py");
    let python = std::env::var("QDC_PYTHON").unwrap_or_else(|_| "python3".into());
    let Ok(output) = Command::new(&python).args([script, "--check"]).output() else {
        eprintln!("skipped: there is no {python}");
        return;
    };
    let said = String::from_utf8_lossy(&output.stderr);
    match output.status.code() {
        Some(0) => {}
        Some(77) => eprintln!("skipped: {said}"),
        status => panic!("{status:?}: {said}"),
    }
}
