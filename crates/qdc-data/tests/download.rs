//! Downloads from a server on this machine that behaves well, badly, or not at all.
//!
//! The files served are the originals below `QDC_DATA/raw`: their checksums are pinned, so no others will do.

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use qdc_core::Watch;
use qdc_data::{DataDir, Error, download};

/// How the server treats a file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Manner {
    Honest,
    /// Breaks off half-way, the first time it is asked.
    BreaksOffOnce,
    /// The same, and does not know what a range is.
    BreaksOffOnceWithoutRanges,
    /// Sends bytes of the right number that are wrong.
    Corrupted,
    Missing,
}

struct Server {
    address: String,
    requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves `root`; names that contain `special` get that manner.
    fn start(root: PathBuf, special: &'static str, manner: Manner) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&requests);
        let seen = Arc::new(Mutex::new(HashMap::new()));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (root, log, seen) = (root.clone(), Arc::clone(&log), Arc::clone(&seen));
                std::thread::spawn(move || answer(stream, &root, special, manner, &log, &seen));
            }
        });
        Self { address, requests }
    }

    fn requests(&self) -> Vec<String> {
        self.requests.lock().unwrap().clone()
    }
}

/// Answers one request and closes the connection.
fn answer(
    mut stream: TcpStream,
    root: &std::path::Path,
    special: &str,
    manner: Manner,
    log: &Mutex<Vec<String>>,
    seen: &Mutex<HashMap<String, u32>>,
) -> Option<()> {
    let mut lines = BufReader::new(stream.try_clone().ok()?).lines();
    let path = lines.next()?.ok()?.split(' ').nth(1)?.trim_start_matches('/').to_owned();
    let mut start = 0;
    for line in lines {
        let line = line.ok()?;
        if line.is_empty() {
            break;
        }
        if let Some(range) = line.to_ascii_lowercase().strip_prefix("range: bytes=") {
            start = range.trim_end_matches('-').parse().ok()?;
        }
    }
    log.lock().unwrap().push(format!("{path} from {start}"));
    let times = {
        let mut seen = seen.lock().unwrap();
        let times = seen.entry(path.clone()).or_insert(0);
        *times += 1;
        *times
    };
    let manner = if path.contains(special) { manner } else { Manner::Honest };
    let found = if manner == Manner::Missing { None } else { std::fs::read(root.join(&path)).ok() };
    let Some(mut bytes) = found else {
        return stream
            .write_all(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
            .ok();
    };
    if manner == Manner::Corrupted {
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
    }
    if manner == Manner::BreaksOffOnceWithoutRanges {
        start = 0;
    }
    let (status, extra) = if start > 0 {
        (
            "206 Partial Content",
            format!("Content-Range: bytes {start}-{}/{}\r\n", bytes.len() - 1, bytes.len()),
        )
    } else {
        ("200 OK", String::new())
    };
    let body = &bytes[start..];
    write!(stream, "HTTP/1.1 {status}\r\nContent-Length: {}\r\n{extra}Connection: close\r\n\r\n", body.len())
        .ok()?;
    let breaks = matches!(manner, Manner::BreaksOffOnce | Manner::BreaksOffOnceWithoutRanges) && times == 1;
    stream.write_all(if breaks { &body[..body.len() / 2] } else { body }).ok()
}

/// The originals, where there are any.
fn originals() -> Option<PathBuf> {
    let raw = qdc_testing::data_dir()?.join("raw");
    raw.is_dir().then_some(raw)
}

/// Fetches texas from a server of this manner into a new folder.
fn fetch(
    special: &'static str,
    manner: Manner,
) -> Option<(tempfile::TempDir, Server, Result<qdc_data::Downloaded, Error>)> {
    let server = Server::start(originals()?, special, manner);
    let folder = tempfile::tempdir().unwrap();
    let outcome = download(&DataDir::new(folder.path()), "texas", Some(&server.address), &Watch::silent());
    Some((folder, server, outcome))
}

fn leftovers(folder: &tempfile::TempDir) -> Vec<PathBuf> {
    let mut open = vec![folder.path().to_path_buf()];
    let mut parts = Vec::new();
    while let Some(place) = open.pop() {
        for entry in std::fs::read_dir(place).unwrap().flatten() {
            if entry.path().is_dir() {
                open.push(entry.path());
            } else if entry.path().extension().is_some_and(|extension| extension == "part") {
                parts.push(entry.path());
            }
        }
    }
    parts
}

#[test]
fn a_dataset_is_fetched_once_and_loads() {
    let Some((folder, server, outcome)) = fetch("none", Manner::Honest) else { return };
    let report = outcome.unwrap();
    assert_eq!((report.fetched, report.present), (12, 0));
    let dir = DataDir::new(folder.path());
    assert_eq!(dir.load("texas").unwrap().graph.nodes(), 183);
    let again = download(&dir, "texas", Some(&server.address), &Watch::silent()).unwrap();
    assert_eq!((again.fetched, again.present, again.bytes), (0, 12, 0));
    assert_eq!(server.requests().len(), 12);
    assert!(leftovers(&folder).is_empty());
}

#[test]
fn four_downloads_at_once_fetch_every_file_once() {
    let Some(originals) = originals() else { return };
    let server = Server::start(originals, "none", Manner::Honest);
    let folder = tempfile::tempdir().unwrap();
    let fetch = || download(&DataDir::new(folder.path()), "texas", Some(&server.address), &Watch::silent());
    let reports: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..4).map(|_| scope.spawn(fetch)).collect();
        workers.into_iter().map(|worker| worker.join().unwrap().unwrap()).collect()
    });
    assert_eq!(reports.iter().map(|report| report.fetched).sum::<usize>(), 12);
    assert!(reports.iter().all(|report| report.fetched + report.present == 12));
    assert_eq!(server.requests().len(), 12);
    assert!(leftovers(&folder).is_empty());
}

#[test]
fn a_broken_transfer_goes_on_where_it_stopped() {
    let Some((folder, server, outcome)) = fetch("graph_edges", Manner::BreaksOffOnce) else { return };
    outcome.unwrap();
    let requests: Vec<String> =
        server.requests().into_iter().filter(|request| request.contains("graph_edges")).collect();
    assert_eq!(requests.len(), 2, "{requests:?}");
    assert!(requests[0].ends_with("from 0") && requests[1].ends_with("from 1086"), "{requests:?}"); // of 2172 bytes
    assert!(leftovers(&folder).is_empty());
    assert!(DataDir::new(folder.path()).load("texas").is_ok());
}

#[test]
fn a_server_without_ranges_is_asked_for_the_whole_again() {
    let Some((folder, _, outcome)) = fetch("graph_edges", Manner::BreaksOffOnceWithoutRanges) else { return };
    outcome.unwrap();
    assert!(DataDir::new(folder.path()).load("texas").is_ok());
}

#[test]
fn wrong_bytes_never_become_a_file() {
    let Some((folder, _, outcome)) = fetch("graph_edges", Manner::Corrupted) else { return };
    let error = outcome.unwrap_err();
    assert!(
        error.to_string().contains("out1_graph_edges.txt") && error.to_string().contains("SHA-256"),
        "{error}"
    );
    assert!(leftovers(&folder).is_empty());
    let error = DataDir::new(folder.path()).load("texas").unwrap_err();
    assert!(error.hint().unwrap().contains("qdc data get texas"), "{error}");
}

#[test]
fn a_missing_file_is_named_with_the_place_it_belongs() {
    let Some((folder, server, outcome)) = fetch("split_0.6_0.2_7", Manner::Missing) else { return };
    let error = outcome.unwrap_err();
    assert!(
        error.to_string().contains("texas_split_0.6_0.2_7.npz") && error.to_string().contains("404"),
        "{error}"
    );
    let hint = error.hint().unwrap();
    let place = folder.path().join(
        "bingzhewei/geom-gcn/1124af17444d7fd09686504ec46caa3f39f4f632/splits/texas_split_0.6_0.2_7.npz",
    );
    assert!(hint.contains(&place.display().to_string()) && hint.contains(&server.address), "{hint}");
}

#[test]
fn a_host_that_does_not_answer_is_an_error_with_every_file() {
    let folder = tempfile::tempdir().unwrap();
    let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap(); // closed again at once
    let outcome =
        download(&DataDir::new(folder.path()), "cora", Some(&format!("http://{closed}")), &Watch::silent());
    let error = outcome.unwrap_err();
    assert_eq!(error.hint().unwrap().matches("http://").count(), 16, "{error}");
}
