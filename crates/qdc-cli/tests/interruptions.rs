//! Signals, full disks, closed pipes and read-only places: the right status, true words, nothing
//! half-written.
//!
//! Each function counts the interruptions it made; a wrong ending fails.

#![cfg(target_os = "linux")]

mod support;

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use support::command;

/// Commands that take long, and the file each would write.
const LONG: [(&str, &str); 6] = [
    ("kernel er:n=9000,p=0.002,seed=1 --sigma 0.02 --solver chebyshev -o q.npz", "q.npz"),
    ("spectrum er:n=4000,p=0.002,seed=1 -o s.npz", "s.npz"),
    ("train csbm:n=3000 --model gcn --max-steps 1000000 --patience 1000000 --save m", "m"),
    ("tune csbm:n=300 --model gcn --trials 100000 --study s.db", ""),
    ("figure filter er:n=4000,p=0.002,seed=1 -o f.svg", "f.svg"),
    ("report csbm:n=20000 -o r.html", "r.html"),
];

/// The same commands on little work, and the file each writes; a search keeps its study open, and is told
/// apart.
const SHORT: [(&str, &str); 5] = [
    ("kernel karate -o q.npz", "q.npz"),
    ("spectrum karate -o s.npz", "s.npz"),
    ("train karate --model gcn --splits 0 --max-steps 2 --save m", "m"),
    ("figure barbell -o f.svg", "f.svg"),
    ("report karate -o r.html", "r.html"),
];

fn names(folder: &Path) -> BTreeSet<String> {
    let mut open = vec![folder.to_path_buf()];
    let mut found = BTreeSet::new();
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap().flatten() {
            if entry.path().is_dir() && !entry.path().is_symlink() {
                open.push(entry.path());
            } else {
                found.insert(entry.file_name().to_string_lossy().into_owned());
            }
        }
    }
    found
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The signals that end a command, and the status of each; SIGHUP where nohup does not hold it off from all
/// of us.
fn endings() -> Vec<(&'static str, i32)> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).unwrap();
    let held_off = u64::from_str_radix(ignored.trim(), 16).unwrap() & 1 == 1;
    let mut endings = vec![("-INT", 130), ("-TERM", 143)];
    if !held_off {
        endings.push(("-HUP", 129));
    }
    endings
}

/// Runs `arguments`, sends the signals once the program listens for them, and gives what it said at its end.
fn interrupted(folder: &Path, arguments: &str, signals: &[&str]) -> Output {
    let child = command(folder, arguments)
        .args(["--threads", "2"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let listens = || {
        let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap_or("0");
        u64::from_str_radix(caught.trim(), 16).is_ok_and(|caught| caught >> 14 & 1 == 1) // SIGTERM
    };
    while !listens() {
        std::thread::sleep(Duration::from_millis(5));
    }
    for signal in signals {
        // Into its work, and the signal before taken: two that wait at once have no order.
        std::thread::sleep(Duration::from_millis(150));
        let id = child.id().to_string();
        assert!(Command::new("kill").args([*signal, &id]).status().unwrap().success(), "{arguments}");
    }
    child.wait_with_output().unwrap()
}

/// Interrupts commands, and counts how often.
type Interrupt = fn() -> usize;

#[test]
#[allow(clippy::print_stdout)] // the count, for `--nocapture`
fn every_interruption_ends_with_the_right_status_and_true_words_and_leaves_nothing_half_written() {
    let kinds: [(&str, Interrupt); 8] = [
        ("signals", signals_end_every_command),
        ("second signals", a_second_signal_ends_a_command_at_once),
        ("stalled downloads", a_stalled_download_is_interrupted),
        ("full disks", a_full_disk_is_said),
        ("full devices behind stdout", a_full_stdout_is_said),
        ("read-only files", read_only_files_stay_as_they_were),
        ("places that cannot be written", places_that_cannot_be_written_are_refused),
        ("devices, links and closed pipes", devices_links_and_closed_pipes_take_what_they_get),
    ];
    let mut all = 0;
    for (kind, interrupt) in kinds {
        let count = interrupt();
        println!("{count} interruptions by {kind}");
        all += count;
    }
    println!("{all} interruptions, all behaved");
    assert!(all >= 40, "{all} are too few");
}

fn signals_end_every_command() -> usize {
    let mut count = 0;
    for (arguments, file) in LONG {
        for (signal, status) in endings() {
            let folder = tempfile::tempdir().unwrap();
            let output = interrupted(folder.path(), arguments, &[signal]);
            let stderr = said(&output);
            assert_eq!(output.status.code(), Some(status), "{arguments} {signal}: {stderr}");
            let words = if file.is_empty() { "saved in s.db" } else { "interrupted; nothing was written" };
            assert!(stderr.contains(words), "{arguments} {signal}: {stderr}");
            let names = names(folder.path());
            let left = names.iter().find(|name| name.ends_with(".part") || *name == file);
            assert_eq!(left, None, "{arguments} {signal}");
            count += 1;
        }
    }
    count
}

fn a_second_signal_ends_a_command_at_once() -> usize {
    let folder = tempfile::tempdir().unwrap();
    let output = interrupted(folder.path(), &format!("{} --json", LONG[1].0), &["-INT", "-TERM"]);
    assert_eq!(output.status.code(), Some(130), "the first signal counts: {}", said(&output));
    let object: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(object["code"], 130, "{object}");
    assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
    1
}

fn a_stalled_download_is_interrupted() -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let open: Vec<_> = listener.incoming().collect(); // taken, and never answered
        drop(open);
    });
    let endings = endings();
    for &(signal, status) in &endings {
        let folder = tempfile::tempdir().unwrap();
        let output = interrupted(folder.path(), &format!("data get texas --mirror {address}"), &[signal]);
        assert_eq!(output.status.code(), Some(status), "{}", said(&output));
        assert!(said(&output).contains("interrupted; nothing was written"), "{}", said(&output));
        assert!(names(folder.path()).is_empty(), "{:?}", names(folder.path()));
    }
    endings.len()
}

/// Runs `arguments` where no file may grow beyond a kilobyte.
fn on_a_full_disk(folder: &Path, arguments: &str) -> Output {
    Command::new("sh")
        .args(["-c", "ulimit -f 1; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_qdc")])
        .args(arguments.split_whitespace())
        .current_dir(folder)
        .env("QDC_DATA", folder.join("data"))
        .env("QDC_CACHE", folder.join("cache"))
        .output()
        .unwrap()
}

/// A server that has 100 kB of zeros for everybody.
fn generous_server() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
            let head = "HTTP/1.1 200 OK\r\nContent-Length: 100000\r\nConnection: close\r\n\r\n";
            let _ = stream.write_all(&[head.as_bytes(), &[0; 100_000]].concat()); // the reader may be gone
        }
    });
    address
}

fn a_full_disk_is_said() -> usize {
    // A search and a download have no file that takes its name at the end.
    let others = [
        "tune karate --model gcn --trials 1 --study s.db".to_owned(),
        format!("data get texas --mirror {}", generous_server()),
    ];
    for arguments in &others {
        let folder = tempfile::tempdir().unwrap();
        let output = on_a_full_disk(folder.path(), arguments);
        let stderr = said(&output);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {stderr}");
        assert!(stderr.contains("error: ") && stderr.contains("hint: "), "{arguments}: {stderr}");
        let names = names(folder.path());
        assert!(!names.iter().any(|name| name.ends_with(".part")), "{arguments}: {names:?}");
    }
    for (arguments, file) in SHORT {
        let folder = tempfile::tempdir().unwrap();
        let output = on_a_full_disk(folder.path(), arguments);
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", said(&output));
        assert!(
            said(&output).contains("cannot write") && said(&output).contains("hint: "),
            "{}",
            said(&output)
        );
        assert!(names(folder.path()).is_empty(), "{arguments}: {:?}", names(folder.path()));
        // A link to a device that is full.
        std::os::unix::fs::symlink("/dev/full", folder.path().join(file)).unwrap();
        let output = command(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", said(&output));
        assert!(said(&output).contains("No space left"), "{arguments}: {}", said(&output));
        assert!(folder.path().join(file).is_symlink(), "{arguments}");
        assert_eq!(names(folder.path()).len(), 1, "{arguments}: {:?}", names(folder.path()));
    }
    others.len() + 2 * SHORT.len()
}

fn a_full_stdout_is_said() -> usize {
    for (arguments, _) in SHORT {
        let folder = tempfile::tempdir().unwrap();
        let full = std::fs::File::options().write(true).open("/dev/full").unwrap();
        let output = command(folder.path(), arguments).arg("--json").stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", said(&output));
        assert!(said(&output).contains("No space left"), "{arguments}: {}", said(&output));
    }
    SHORT.len()
}

fn places_that_cannot_be_written_are_refused() -> usize {
    let mut all: Vec<String> = SHORT
        .iter()
        .map(|(arguments, file)| arguments.replace(&format!(" {file}"), &format!(" /proc/{file}")))
        .collect();
    all.push("tune karate --model gcn --trials 1 --study /proc/s.db".into());
    all.push(format!("data get texas --data-dir /proc/data --mirror {}", generous_server()));
    for arguments in &all {
        let folder = tempfile::tempdir().unwrap();
        let output = command(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", said(&output));
        assert!(
            said(&output).contains("/proc/") && said(&output).contains("hint: "),
            "{arguments}: {}",
            said(&output)
        );
        assert!(names(folder.path()).is_empty(), "{arguments}: {:?}", names(folder.path()));
    }
    all.len()
}

fn read_only_files_stay_as_they_were() -> usize {
    use std::os::unix::fs::PermissionsExt;
    for (arguments, file) in SHORT {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(file);
        std::fs::write(&path, "mine").unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o444)).unwrap();
        let output = command(folder.path(), arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments}: {}", said(&output));
        assert!(said(&output).contains("read-only") && said(&output).contains("hint: "), "{}", said(&output));
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
        assert_eq!(names(folder.path()).len(), 1, "{:?}", names(folder.path()));
    }
    SHORT.len()
}

fn devices_links_and_closed_pipes_take_what_they_get() -> usize {
    for (arguments, file) in SHORT {
        let folder = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/dev/null", folder.path().join(file)).unwrap();
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = command(folder.path(), arguments).stdout(writer).output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments}: {}", said(&output));
        assert!(folder.path().join(file).is_symlink(), "{arguments}");
        assert!(!Path::new("/dev/null").is_file());
    }
    let folder = tempfile::tempdir().unwrap();
    let output = command(folder.path(), "kernel karate -o - --quiet").output().unwrap();
    assert!(output.status.success() && output.stdout.starts_with(b"row,column,value\n"), "{}", said(&output));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let arguments = "tune karate --model gcn --trials 1 --study s.db";
    let output = command(folder.path(), arguments).stdout(writer).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments}: {}", said(&output));
    SHORT.len() + 2
}
