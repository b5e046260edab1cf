//! Fetching the original files of a dataset over HTTPS, each checked against its checksum.
//!
//! A file grows under the name `FILE.part`, which survives a broken transfer and is taken up again where it stopped; it
//! takes its own name only when size and checksum are right. Proxies come from the environment (`HTTPS_PROXY`, ...).

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use qdc_core::Watch;
use qdc_core::watch::Phase;
use ureq::Agent;

use crate::registry::{Entry, PinnedFile};
use crate::{DataDir, Error};

/// Where the files are fetched from, unless a mirror is named.
pub const HOST: &str = "https://raw.githubusercontent.com";

/// The most bytes a file may have whose size is not pinned.
const MOST_BYTES: u64 = 1 << 30;

/// How often a transfer is taken up again.
const ATTEMPTS: u32 = 4;

/// What [`download`] did.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct Downloaded {
    /// The dataset.
    pub name: String,
    /// The folder it lies in.
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
pub fn download(
    folder: &DataDir,
    name: &str,
    mirror: Option<&str>,
    watch: &Watch,
) -> Result<Downloaded, Error> {
    let Some(entry) = Entry::find(name) else { return Err(Error::UnknownDataset { name: name.into() }) };
    let files = entry.files();
    let missing: Vec<PinnedFile> = files.iter().copied().filter(|file| !is_present(folder, file)).collect();
    let total = missing.iter().filter_map(|file| file.size).sum();
    let phase = watch.phase(&format!("fetching {name}"), total);
    let fetcher =
        Fetcher { agent: agent(), base: mirror.unwrap_or(HOST).trim_end_matches('/'), phase: &phase };
    let mut bytes = 0;
    for (done, file) in missing.iter().enumerate() {
        let target = folder.path().join(file.path);
        bytes += fetcher.fetch(file, &target).map_err(|failure| match failure {
            Failure::Stopped => Error::Core(qdc_core::Error::Interrupted),
            Failure::Local(path, source) => Error::Write { path, source },
            Failure::Remote(problem) => Error::Download {
                address: fetcher.address(file),
                problem,
                missing: missing[done..]
                    .iter()
                    .map(|file| (fetcher.address(file), folder.path().join(file.path)))
                    .collect(),
            },
        })?;
    }
    Ok(Downloaded {
        name: name.into(),
        folder: folder.path().into(),
        fetched: missing.len(),
        present: files.len() - missing.len(),
        bytes,
    })
}

/// Whether a file is in the folder (or its subfolder `raw`) with the right content.
fn is_present(folder: &DataDir, file: &PinnedFile) -> bool {
    folder.raw_roots().iter().any(|root| matches_pin(&root.join(file.path), file).unwrap_or(false))
}

/// Whether size and checksum are as pinned.
fn matches_pin(path: &Path, file: &PinnedFile) -> io::Result<bool> {
    let size = fs::metadata(path)?.len();
    if size > MOST_BYTES || file.size.is_some_and(|pinned| pinned != size) {
        return Ok(false);
    }
    Ok(file.checksum.fits(&fs::read(path)?))
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
    /// The disk is at fault.
    Local(PathBuf, io::Error),
    /// The other side, or the way there.
    Remote(String),
}

struct Fetcher<'a> {
    agent: Agent,
    base: &'a str,
    phase: &'a Phase<'a>,
}

impl Fetcher<'_> {
    fn address(&self, file: &PinnedFile) -> String {
        format!("{}/{}", self.base, file.path)
    }

    /// Fetches a file and gives its size.
    fn fetch(&self, file: &PinnedFile, target: &Path) -> Result<u64, Failure> {
        let local = |source| Failure::Local(target.into(), source);
        fs::create_dir_all(target.parent().unwrap_or(Path::new("."))).map_err(local)?;
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let mut last = String::new();
        for attempt in 0..ATTEMPTS {
            if attempt > 0 {
                std::thread::sleep(Duration::from_millis(100 << attempt));
            }
            match self.transfer(file, &part) {
                Ok(()) => {}
                Err(Transfer::Retry(problem)) => {
                    last = problem;
                    continue;
                }
                Err(Transfer::GiveUp(problem)) => return Err(Failure::Remote(problem)),
                Err(Transfer::Local(source)) => return Err(Failure::Local(part, source)),
                Err(Transfer::Stopped) => return Err(Failure::Stopped),
            }
            if matches_pin(&part, file).map_err(local)? {
                let size = fs::metadata(&part).map_err(local)?.len();
                return fs::rename(&part, target).map(|()| size).map_err(local);
            }
            // Whatever this is, going on from it would be wrong too.
            fs::remove_file(&part).map_err(local)?;
            last = format!("the content does not have the {}", file.checksum);
        }
        Err(Failure::Remote(format!("{last} (tried {ATTEMPTS} times)")))
    }

    /// One request, which goes on from what the part already holds.
    fn transfer(&self, file: &PinnedFile, part: &Path) -> Result<(), Transfer> {
        let mut out =
            File::options().create(true).append(false).truncate(false).read(true).write(true).open(part)?;
        let mut have = out.metadata()?.len();
        if file.size.is_none_or(|size| have > size) {
            out.set_len(0)?; // without a size nobody knows how much is missing
            have = 0;
        }
        if file.size == Some(have) {
            return Ok(());
        }
        let mut request = self.agent.get(self.address(file));
        if have > 0 {
            request = request.header("Range", format!("bytes={have}-"));
        }
        let response = request.call().map_err(|error| Transfer::Retry(error.to_string()))?;
        match response.status().as_u16() {
            206 if have > 0 && starts_at(&response, have) => {
                out.seek(SeekFrom::Start(have))?;
            }
            200 => out.set_len(0)?, // the whole file, whatever was asked for
            206 | 416 => {
                out.set_len(0)?;
                return Err(Transfer::Retry("the server sent another part than asked for".into()));
            }
            status @ (408 | 429 | 500..=599) => {
                return Err(Transfer::Retry(format!("the server answers {status}")));
            }
            status => return Err(Transfer::GiveUp(format!("the server answers {status}"))),
        }
        let mut body = response.into_body().into_reader().take(file.size.unwrap_or(MOST_BYTES) + 1);
        let mut buffer = vec![0; 1 << 16];
        loop {
            let count = body
                .read(&mut buffer)
                .map_err(|error| Transfer::Retry(format!("the transfer broke off: {error}")))?;
            if count == 0 {
                break;
            }
            out.write_all(&buffer[..count])?;
            self.phase.advance(count as u64).map_err(|_| Transfer::Stopped)?;
        }
        let size = out.metadata()?.len();
        match file.size {
            Some(whole) if size < whole => {
                Err(Transfer::Retry(format!("the transfer broke off after {size} of {whole} bytes")))
            }
            _ => Ok(()),
        }
    }
}

/// Whether a partial answer begins where it should.
fn starts_at(response: &ureq::http::Response<ureq::Body>, start: u64) -> bool {
    let range = response.headers().get("content-range").and_then(|value| value.to_str().ok());
    range.is_some_and(|range| range.starts_with(&format!("bytes {start}-")))
}

enum Transfer {
    Retry(String),
    GiveUp(String),
    Local(io::Error),
    Stopped,
}

impl From<io::Error> for Transfer {
    fn from(source: io::Error) -> Self {
        Self::Local(source)
    }
}
