//! Text files line by line, plain or gzipped, with the number of the line for errors.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::Error;
use crate::output::OutputFile;

/// Lines longer than this are no text of ours; the limit keeps a file without line ends from filling the
/// memory.
const LONGEST: u64 = 64 << 20;

/// Whether the name ends in `.gz`.
pub(crate) fn is_gzipped(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("gz"))
}

/// The lines of a file.
pub(crate) struct Lines<'a> {
    path: &'a Path,
    reader: Box<dyn BufRead + 'a>,
    line: Vec<u8>,
    number: u64,
}

impl<'a> Lines<'a> {
    /// Opens a file, unpacking it on the way if its name ends in `.gz`.
    pub(crate) fn open(path: &'a Path) -> Result<Self, Error> {
        let file = File::open(path).map_err(|source| Error::Read { path: path.into(), source })?;
        Ok(Self::new(path, file))
    }

    /// The lines of anything readable; `path` stands for it in errors and says whether it is gzipped.
    pub(crate) fn new(path: &'a Path, reader: impl Read + 'a) -> Self {
        let reader: Box<dyn BufRead> = if is_gzipped(path) {
            Box::new(BufReader::with_capacity(1 << 16, MultiGzDecoder::new(reader)))
        } else {
            Box::new(BufReader::with_capacity(1 << 16, reader))
        };
        Self { path, reader, line: Vec::new(), number: 0 }
    }

    /// The next line, without its end; `None` after the last.
    pub(crate) fn next(&mut self) -> Result<Option<&[u8]>, Error> {
        self.line.clear();
        self.number += 1;
        let count = (&mut self.reader).take(LONGEST).read_until(b'\n', &mut self.line).map_err(|source| {
            if matches!(
                source.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData
            ) {
                let problem = format!("the gzip data are damaged or cut off ({source})");
                Error::malformed(self.path, format!("line {}", self.number), problem)
            } else {
                Error::Read { path: self.path.into(), source }
            }
        })?;
        if count == 0 {
            return Ok(None);
        }
        if count as u64 == LONGEST {
            return Err(self.error("the line does not end: this is no text file"));
        }
        let mut line = self.line.as_slice();
        if self.number == 1 {
            line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line); // the mark some editors put first
        }
        Ok(Some(line.trim_ascii()))
    }

    /// The number of the line read last, from 1.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// An error in the line read last.
    pub(crate) fn error(&self, problem: impl Into<String>) -> Error {
        Error::malformed(self.path, format!("line {}", self.number), problem)
    }
}

/// Writes a text file whole or not at all, gzipped if its name ends in `.gz`.
pub(crate) fn write_text(
    path: &Path,
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), Error> {
    let mut file = OutputFile::create(path)?;
    let outcome = if is_gzipped(path) {
        let mut packed = GzEncoder::new(&mut file, Compression::default());
        write(&mut packed).and_then(|()| packed.finish().map(|_| ()))
    } else {
        write(&mut file)
    };
    outcome.map_err(|source| Error::Write { path: path.into(), source })?;
    file.commit()
}

/// The bytes as text for an error, shortened where long.
pub(crate) fn quoted(bytes: &[u8]) -> String {
    let text: String = String::from_utf8_lossy(bytes).chars().take(40).collect();
    format!("'{}{}'", text.escape_debug(), if bytes.len() > 40 { "..." } else { "" })
}

/// A whole number without sign, by hand: this is most of the time it takes to read an edge list.
pub(crate) fn parse_whole(bytes: &[u8]) -> Option<u64> {
    if bytes.is_empty() || bytes.len() > 18 {
        return None;
    }
    bytes
        .iter()
        .try_fold(0u64, |number, byte| byte.is_ascii_digit().then(|| number * 10 + u64::from(byte - b'0')))
}

/// A real number, spelled as usual; `nan` and `inf` too.
pub(crate) fn parse_real(bytes: &[u8]) -> Option<f64> {
    if bytes == b"1" {
        return Some(1.0);
    }
    std::str::from_utf8(bytes).ok()?.parse().ok()
}
