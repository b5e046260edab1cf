//! Who works on a trial, so that a trial whose worker is gone can be taken over at once.
//!
//! A worker is named by its machine (this boot of it, this process namespace), its process and the moment the process
//! started. Where the system does not tell, heartbeats alone decide.

use std::fs;

use serde_json::{Value, json};

/// The system attribute that names the worker of a trial.
pub(super) const KEY: &str = "qdc:owner";

/// This process.
pub(super) fn current() -> Value {
    let process = std::process::id();
    json!({ "machine": machine(), "process": process, "started": started(process) })
}

/// Whether a worker is known to be gone; false where that cannot be known from here.
pub(super) fn is_gone(owner: &Value) -> bool {
    let Some(machine) = machine() else { return false };
    let (Some(process), true) = (owner["process"].as_u64(), owner["machine"] == machine.as_str()) else {
        return false;
    };
    match (owner["started"].as_u64(), started(process as u32)) {
        (Some(then), Some(now)) => then != now,
        (Some(_), None) => true,
        (None, _) => false,
    }
}

fn machine() -> Option<String> {
    let boot = fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let namespace = fs::read_link("/proc/self/ns/pid").ok()?;
    Some(format!("{} {}", boot.trim(), namespace.display()))
}

/// When a process started, in the system's ticks; `None` if there is none (a zombie counts as none).
fn started(process: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text[text.rfind(')')? + 1..].split_whitespace(); // the name may contain anything
    if fields.next()? == "Z" {
        return None;
    }
    fields.nth(18)?.parse().ok() // field 22, of which three are gone
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_is_here_and_another_start_of_it_is_not() {
        let mut owner = current();
        assert!(!is_gone(&owner));
        if machine().is_some() {
            owner["started"] = json!(1);
            assert!(is_gone(&owner));
            owner["machine"] = json!("another");
            assert!(!is_gone(&owner), "nothing is known about other machines");
        }
    }
}
