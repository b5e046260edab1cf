//! Fetching the original files of a dataset over HTTPS, each checked against its pinned checksum.
//!
//! A file is held in memory until it is whole (the largest has 8 MB), taken up again where a transfer broke
//! off, and written only when size and checksum are right. The transfer runs on a thread of its own, so that
//! a connection that stalls never keeps a stop waiting. A lock on the folder lets several processes fetch
//! into it one after the other. Proxies come from the environment (`HTTPS_PROXY`, ...).

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

use qdc_core::Watch;
use qdc_core::watch::Phase;
use ureq::Agent;

use crate::output::write_file;
use crate::registry::{Entry, PinnedFile};
use crate::{DataDir, Error};

/// Where the files are fetched from, unless a mirror is named.
pub const HOST: &str = "https://raw.githubusercontent.com";

/// The most bytes a file may have whose size is not pinned.
const MOST_BYTES: u64 = 1 << 30;

/// How often a transfer is taken up again.
const ATTEMPTS: u32 = 4;
/// How often a stop is looked for while nothing arrives.
const LOOK: Duration = Duration::from_millis(100);

/// What [`download`] did.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Downloaded {
    /// The dataset.
    pub name: String,
    /// The folder it lies in.
    #[serde(serialize_with = "crate::lossy_path")]
    pub folder: PathBuf,
    /// Files fetched now.
    pub fetched: usize,
    /// Files that were there already, with the right checksum.
    pub present: usize,
    /// Bytes fetched now.
    pub bytes: u64,
}

/// Fetches the files of a dataset that are not in the folder yet.
///
/// `mirror` replaces [`HOST`]: an address below which the files lie as OWNER/REPOSITORY/COMMIT/PATH.
///
/// # Errors
/// [`Error::UnknownDataset`], [`Error::Write`], [`Error::Download`] with every file still missing, and an
/// interruption.
pub fn download(
    folder: &DataDir,
    name: &str,
    mirror: Option<&str>,
    watch: &Watch,
) -> Result<Downloaded, Error> {
    let Some(entry) = Entry::find(name) else { return Err(Error::UnknownDataset { name: name.into() }) };
    let _lock = lock(folder.path(), watch)?;
    let files = entry.files();
    let missing: Vec<PinnedFile> = files.iter().copied().filter(|file| !is_present(folder, file)).collect();
    let total = missing.iter().filter_map(|file| file.size).sum();
    let phase = watch.phase(&format!("fetching {name}"), total);
    let fetcher =
        Fetcher { agent: agent(), base: mirror.unwrap_or(HOST).trim_end_matches('/'), watch, phase: &phase };
    let mut fetched = 0;
    for (done, file) in missing.iter().enumerate() {
        let bytes = fetcher.fetch(file).map_err(|failure| match failure {
            Failure::Stopped => Error::Core(qdc_core::Error::Interrupted),
            Failure::Remote(problem) => Error::Download {
                address: fetcher.address(file),
                problem,
                missing: missing[done..]
                    .iter()
                    .map(|file| (fetcher.address(file), folder.path().join(file.path)))
                    .collect(),
            },
        })?;
        let target = folder.path().join(file.path);
        let parent = target.parent().unwrap_or(Path::new("."));
        fs::create_dir_all(parent).map_err(|source| Error::Write { path: parent.into(), source })?;
        fetched += bytes.len() as u64;
        write_file(&target, |out| out.write_all(&bytes))?;
    }
    Ok(Downloaded {
        name: name.into(),
        folder: folder.path().into(),
        fetched: missing.len(),
        present: files.len() - missing.len(),
        bytes: fetched,
    })
}

/// Makes the folder and locks it until the file returned is dropped. Where the system has no such locks,
/// nothing is locked: every file is written whole all the same.
fn lock(folder: &Path, watch: &Watch) -> Result<Option<File>, Error> {
    let fail = |source| Error::Write { path: folder.into(), source };
    fs::create_dir_all(folder).map_err(fail)?;
    let Ok(handle) = File::open(folder) else { return Ok(None) };
    let mut told = false;
    loop {
        match handle.try_lock() {
            Ok(()) => return Ok(Some(handle)),
            Err(fs::TryLockError::Error(_)) => return Ok(None),
            Err(fs::TryLockError::WouldBlock) => {
                if !std::mem::replace(&mut told, true) {
                    watch.note(&format!("waiting: another process fetches into {}", folder.display()));
                }
                watch.check()?;
                std::thread::sleep(LOOK);
            }
        }
    }
}

/// Whether a file is in the folder (or its subfolder `raw`) with the right content.
fn is_present(folder: &DataDir, file: &PinnedFile) -> bool {
    folder.raw_roots().iter().any(|root| {
        let path = root.join(file.path);
        fs::metadata(&path).is_ok_and(|found| file.size.is_none_or(|size| found.len() == size))
            && fs::read(&path).is_ok_and(|bytes| file.checksum.fits(&bytes))
    })
}

fn agent() -> Agent {
    Agent::config_builder()
        .http_status_as_error(false)
        .timeout_connect(Some(Duration::from_secs(20)))
        .timeout_recv_response(Some(Duration::from_secs(60)))
        .timeout_per_read(Some(Duration::from_secs(60)))
        .user_agent(concat!("qdc/", env!("CARGO_PKG_VERSION")))
        .build()
        .new_agent()
}

enum Failure {
    /// The watch asked to stop.
    Stopped,
    /// The other side, or the way there.
    Remote(String),
}

struct Fetcher<'a> {
    agent: Agent,
    base: &'a str,
    watch: &'a Watch,
    phase: &'a Phase<'a>,
}

impl Fetcher<'_> {
    fn address(&self, file: &PinnedFile) -> String {
        format!("{}/{}", self.base, file.path)
    }

    /// The content of a file, with the right size and checksum.
    fn fetch(&self, file: &PinnedFile) -> Result<Vec<u8>, Failure> {
        let mut bytes = Vec::new();
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                self.pause(Duration::from_millis(100 << attempt))?;
            }
            match self.transfer(file, &mut bytes)? {
                Ok(()) => {}
                Err(Trouble { problem, retry: true }) => {
                    last = problem;
                    continue;
                }
                Err(Trouble { problem, .. }) => return Err(Failure::Remote(problem)),
            }
            if file.checksum.fits(&bytes) {
                return Ok(bytes);
            }
            bytes.clear(); // whatever this is, going on from it would be wrong too
            last = format!("the content has another {}", file.checksum);
        }
        Err(Failure::Remote(format!("{last} (tried {ATTEMPTS} times)")))
    }

    /// One request, which goes on from the bytes there are.
    fn transfer(&self, file: &PinnedFile, bytes: &mut Vec<u8>) -> Result<Result<(), Trouble>, Failure> {
        let (sender, receiver) = mpsc::sync_channel(16);
        let (agent, address, have, size) =
            (self.agent.clone(), self.address(file), bytes.len() as u64, file.size.unwrap_or(MOST_BYTES));
        std::thread::spawn(move || {
            let outcome = request(&agent, &address, have, size, &sender);
            sender.send(News::End(outcome)).ok(); // nobody listens after a stop
        });
        loop {
            match receiver.recv_timeout(LOOK) {
                Ok(News::FromStart) => bytes.clear(),
                Ok(News::Bytes(more)) => {
                    bytes.extend_from_slice(&more);
                    self.phase.advance(more.len() as u64).map_err(|_| Failure::Stopped)?;
                }
                Ok(News::End(Err(trouble))) => return Ok(Err(trouble)),
                Ok(News::End(Ok(()))) if file.size.is_some_and(|size| (bytes.len() as u64) < size) => {
                    let problem = format!("the transfer broke off after {} of {size} bytes", bytes.len());
                    return Ok(Err(Trouble { problem, retry: true }));
                }
                Ok(News::End(Ok(()))) => return Ok(Ok(())),
                Err(RecvTimeoutError::Timeout) => self.watch.check().map_err(|_| Failure::Stopped)?,
                Err(RecvTimeoutError::Disconnected) => {
                    let problem = "the transfer ended without a word".to_owned();
                    return Ok(Err(Trouble { problem, retry: true }));
                }
            }
        }
    }

    /// Waits, unless a stop is asked for.
    fn pause(&self, time: Duration) -> Result<(), Failure> {
        for _ in 0..time.as_millis().div_ceil(LOOK.as_millis()) {
            std::thread::sleep(LOOK);
            self.watch.check().map_err(|_| Failure::Stopped)?;
        }
        Ok(())
    }
}

/// What the transfer tells.
enum News {
    /// What comes begins at the first byte of the file, whatever was asked for.
    FromStart,
    Bytes(Vec<u8>),
    End(Result<(), Trouble>),
}

/// What went wrong, and whether another attempt may help.
struct Trouble {
    problem: String,
    retry: bool,
}

/// Sends the file from byte `have` on, at most one byte more than its size.
fn request(
    agent: &Agent,
    address: &str,
    have: u64,
    size: u64,
    sender: &SyncSender<News>,
) -> Result<(), Trouble> {
    let retry = |problem: String| Trouble { problem, retry: true };
    if have >= size {
        return Ok(());
    }
    let mut request = agent.get(address);
    if have > 0 {
        request = request.header("Range", format!("bytes={have}-"));
    }
    let response = request.call().map_err(|error| retry(error.to_string()))?;
    match response.status().as_u16() {
        206 if have > 0 && starts_at(&response, have) => {}
        200 => drop(sender.send(News::FromStart)), // the whole file, whatever was asked for
        206 | 416 => {
            sender.send(News::FromStart).ok();
            return Err(retry("the server sent another part than asked for".into()));
        }
        status @ (408 | 429 | 500..=599) => return Err(retry(format!("the server answers {status}"))),
        status => return Err(Trouble { problem: format!("the server answers {status}"), retry: false }),
    }
    let mut body = response.into_body().into_reader().take(size + 1);
    let mut buffer = vec![0; 1 << 16];
    loop {
        let count = match body.read(&mut buffer) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(retry(format!("the transfer broke off: {error}"))),
        };
        if sender.send(News::Bytes(buffer[..count].to_vec())).is_err() {
            return Ok(()); // a stop: nobody waits for the rest
        }
    }
}

/// Whether a partial answer begins where it should.
fn starts_at(response: &ureq::http::Response<ureq::Body>, start: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}
