//! The zip archive under an `.npz`: its directory, and its entries, stored or deflated.

use std::collections::HashSet;
use std::fs::File;
use std::io::{self, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::read::DeflateDecoder;

use crate::budget::Account;
use crate::{Budget, Error};

/// Deflate packs at most this well; a larger claim is a lie (and a way to exhaust memory).
const DEFLATE_LIMIT: u64 = 1032;
const STORED: u16 = 0;
const DEFLATED: u16 = 8;
/// In 32-bit fields: look for the number in the 64-bit extension.
const SATURATED: u64 = u32::MAX as u64;

#[derive(Debug)]
enum Source {
    File,
    Memory(Vec<u8>),
}

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    unpacked: u64,
    offset: u64,
}

/// An archive whose directory has been read.
#[derive(Debug)]
pub(super) struct Archive {
    path: PathBuf,
    source: Source,
    length: u64,
    entries: Vec<Entry>,
    account: Account,
}

impl Archive {
    pub(super) fn open(path: &Path, budget: Budget) -> Result<Self, Error> {
        let fail = |source| Error::Read { path: path.into(), source };
        let found = std::fs::metadata(path).map_err(fail)?;
        if found.is_dir() {
            return Err(fail(io::ErrorKind::IsADirectory.into()));
        }
        Self::with_directory(path.into(), Source::File, found.len(), budget)
    }

    pub(super) fn from_bytes(path: PathBuf, bytes: Vec<u8>, budget: Budget) -> Result<Self, Error> {
        let length = bytes.len() as u64;
        Self::with_directory(path, Source::Memory(bytes), length, budget)
    }

    fn with_directory(path: PathBuf, source: Source, length: u64, budget: Budget) -> Result<Self, Error> {
        let account = budget.account(&path);
        let mut archive = Self { path, source, length, entries: Vec::new(), account };
        archive.entries = archive.directory()?;
        Ok(archive)
    }

    /// Where the memory that arrays of this archive take is counted.
    pub(super) fn account(&self) -> &Account {
        &self.account
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|entry| entry.name.as_str())
    }

    /// Opens the entry of this name; its promised size is one its packed bytes can fill.
    pub(super) fn entry(&self, name: &str) -> Result<EntryReader<'_>, Error> {
        let Some(entry) = self.entries.iter().find(|entry| entry.name == name) else {
            return Err(Error::MissingArray {
                path: self.path.clone(),
                name: name.into(),
                present: self.names().map(Into::into).collect(),
            });
        };
        let broken = |problem: String| {
            Error::malformed(&self.path, format!("array '{name}'"), problem)
                .remedy("the file is damaged; fetch or write it again")
        };
        let local = self.bytes(entry.offset, 30)?;
        if local[..4] != *b"PK\x03\x04" {
            return Err(broken(format!("no entry begins at byte {}", entry.offset)));
        }
        let start = entry.offset + 30 + number(&local, 26, 2) + number(&local, 28, 2);
        if start.checked_add(entry.packed).is_none_or(|end| end > self.length) {
            return Err(broken("it reaches beyond the end of the file".into()));
        }
        let possible = match entry.method {
            STORED => entry.unpacked == entry.packed,
            DEFLATED => entry.unpacked / DEFLATE_LIMIT <= entry.packed,
            method => return Err(broken(format!("packing method {method} is not known"))),
        };
        if !possible {
            let (packed, unpacked) = (entry.packed, entry.unpacked);
            return Err(broken(format!("{packed} packed bytes cannot hold {unpacked}")));
        }
        let packed = self.open_at(start)?.take(entry.packed);
        let data = match entry.method {
            STORED => Data::Stored(packed),
            _ => Data::Deflated(Box::new(DeflateDecoder::new(packed))),
        };
        Ok(EntryReader { data, left: entry.unpacked, checksum: entry.checksum, seen: Crc::new() })
    }

    /// The entries, from the directory at the end of the file.
    fn directory(&self) -> Result<Vec<Entry>, Error> {
        let broken = |problem: &str| {
            Error::malformed(&self.path, format!("byte {}", self.length), problem)
                .remedy("the file is cut off or is no .npz; fetch or write it again")
        };
        let tail_length = self.length.min(22 + 65_535 + 20);
        let tail = self.bytes(self.length - tail_length, tail_length)?;
        let Some(end) =
            tail.windows(4).rposition(|window| window == b"PK\x05\x06").filter(|end| end + 22 <= tail.len())
        else {
            return Err(broken("no zip directory at the end of the file"));
        };
        let record = &tail[end..];
        let (mut count, mut size, mut offset) =
            (number(record, 10, 2), number(record, 12, 4), number(record, 16, 4));
        if end >= 20 && tail[end - 20..end - 16] == *b"PK\x06\x07" {
            let wide = self.bytes(number(&tail, end - 20 + 8, 8), 56)?;
            if wide[..4] != *b"PK\x06\x06" {
                return Err(broken("the 64-bit zip directory is not where it should be"));
            }
            (count, size, offset) = (number(&wide, 32, 8), number(&wide, 40, 8), number(&wide, 48, 8));
        }
        let directory = self.bytes(offset, size)?;
        let mut entries: Vec<Entry> = Vec::new();
        let mut names = HashSet::new();
        let mut at = 0;
        for _ in 0..count {
            let Some(record) =
                directory.get(at..).filter(|rest| rest.len() >= 46 && rest[..4] == *b"PK\x01\x02")
            else {
                return Err(broken("the zip directory is damaged"));
            };
            let name_end = 46 + number(record, 28, 2) as usize;
            let extra_end = name_end + number(record, 30, 2) as usize;
            let next = extra_end + number(record, 32, 2) as usize;
            let (Some(name), Some(extra)) = (record.get(46..name_end), record.get(name_end..extra_end))
            else {
                return Err(broken("the zip directory is damaged"));
            };
            if number(record, 8, 2) & 1 == 1 {
                return Err(broken("the archive is encrypted"));
            }
            let [unpacked, packed, offset] =
                widen([number(record, 24, 4), number(record, 20, 4), number(record, 42, 4)], extra);
            let name = String::from_utf8_lossy(name);
            let name = name.strip_suffix(".npy").unwrap_or(&name).to_owned();
            // Readers differ in which of two they take: such a file means different things to different
            // programs.
            self.account.charge::<[u64; 16]>("the zip directory", 1 + name.len() / 64)?;
            if !names.insert(name.clone()) {
                return Err(broken(&format!("the array '{name}' is there twice")));
            }
            let entry = Entry {
                name,
                method: number(record, 10, 2) as u16,
                checksum: number(record, 16, 4) as u32,
                packed,
                unpacked,
                offset,
            };
            entries.push(entry);
            at += next;
        }
        Ok(entries)
    }

    /// `count` bytes from `offset`, which must lie within the file.
    fn bytes(&self, offset: u64, count: u64) -> Result<Vec<u8>, Error> {
        if offset.checked_add(count).is_none_or(|end| end > self.length) {
            let problem = format!("bytes {offset} to {} are wanted", offset.saturating_add(count));
            return Err(Error::malformed(&self.path, format!("byte {}", self.length), problem)
                .remedy("the file is damaged; fetch or write it again"));
        }
        let mut bytes = self.account.room("the zip directory", count as usize)?;
        bytes.resize(count as usize, 0);
        self.open_at(offset)?
            .read_exact(&mut bytes)
            .map_err(|source| Error::Read { path: self.path.clone(), source })?;
        Ok(bytes)
    }

    fn open_at(&self, offset: u64) -> Result<Place<'_>, Error> {
        match &self.source {
            Source::Memory(bytes) => Ok(Place::Memory(Cursor::new(&bytes[offset as usize..]))),
            Source::File => File::open(&self.path)
                .and_then(|mut file| {
                    file.seek(SeekFrom::Start(offset))?;
                    Ok(Place::File(file))
                })
                .map_err(|source| Error::Read { path: self.path.clone(), source }),
        }
    }
}

/// A little-endian number of `size` bytes.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    bytes[at..at + size].iter().rev().fold(0, |number, &byte| number << 8 | u64::from(byte))
}

/// Replaces saturated fields by those of the 64-bit extension, which lists just these, in this order.
fn widen(mut fields: [u64; 3], mut extra: &[u8]) -> [u64; 3] {
    while extra.len() >= 4 {
        let (id, size) = (number(extra, 0, 2), number(extra, 2, 2) as usize);
        let body = &extra[4..(4 + size).min(extra.len())];
        if id == 1 {
            let mut wide = body.chunks_exact(8).map(|bytes| number(bytes, 0, 8));
            for field in fields.iter_mut().filter(|field| **field == SATURATED) {
                *field = wide.next().unwrap_or(*field);
            }
            break;
        }
        extra = &extra[4 + body.len()..];
    }
    fields
}

/// Where an entry's bytes come from.
pub(super) enum Place<'a> {
    File(File),
    Memory(Cursor<&'a [u8]>),
}

impl Read for Place<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::File(file) => file.read(bytes),
            Self::Memory(cursor) => cursor.read(bytes),
        }
    }
}

enum Data<'a> {
    Stored(io::Take<Place<'a>>),
    Deflated(Box<DeflateDecoder<io::Take<Place<'a>>>>),
}

/// The unpacked bytes of one entry.
pub(super) struct EntryReader<'a> {
    data: Data<'a>,
    left: u64,
    checksum: u32,
    seen: Crc,
}

impl EntryReader<'_> {
    /// Bytes still to come.
    pub(super) fn remaining(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    /// Checks the checksum once everything has been read.
    pub(super) fn finish(&self) -> Result<(), String> {
        if self.left == 0 && self.seen.sum() != self.checksum {
            return Err("the checksum is wrong: the file is damaged".into());
        }
        Ok(())
    }
}

impl Read for EntryReader<'_> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let most = bytes.len().min(self.remaining());
        let count = match &mut self.data {
            Data::Stored(data) => data.read(&mut bytes[..most])?,
            Data::Deflated(data) => data.read(&mut bytes[..most])?,
        };
        self.seen.update(&bytes[..count]);
        self.left -= count as u64;
        Ok(count)
    }
}
