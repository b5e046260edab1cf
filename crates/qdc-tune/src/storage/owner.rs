//! Who works on a trial, so that a trial whose worker is gone can be taken over at once.
//!
//! A worker is named by its machine (this boot of it, this process namespace), its process and the moment the
//! process started. A worker of this machine counts as gone when its process is, and not before; heartbeats
//! decide about all others.

use std::fs;

use serde_json::{Value, json};

/// The system attribute that names the worker of a trial.
pub(super) const KEY: &str = "qdc:owner";

/// This process.
pub(super) fn current() -> Value {
    let process = std::process::id();
    json!({ "machine": machine(), "process": process, "started": started(process) })
}

/// What is known of a worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Presence {
    /// Its process runs on this machine.
    Alive,
    /// Its process ran on this machine and has ended.
    Gone,
    /// It is on another machine, or the system does not tell: heartbeats decide.
    Unknown,
}

/// Looks for a worker.
pub(super) fn presence(owner: &Value) -> Presence {
    let here = machine().is_some_and(|machine| owner["machine"] == machine.as_str());
    let (Some(process), Some(then), true) = (owner["process"].as_u64(), owner["started"].as_u64(), here)
    else {
        return Presence::Unknown;
    };
    if started(process as u32) == Some(then) { Presence::Alive } else { Presence::Gone }
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
        if machine().is_some() {
            assert_eq!(presence(&owner), Presence::Alive);
            owner["started"] = json!(1);
            assert_eq!(presence(&owner), Presence::Gone);
            owner["machine"] = json!("another");
            assert_eq!(presence(&owner), Presence::Unknown, "nothing is known about other machines");
        }
        assert_eq!(presence(&Value::Null), Presence::Unknown);
    }
}
