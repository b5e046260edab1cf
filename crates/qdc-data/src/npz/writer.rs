//! Writing `.npz` archives that NumPy and SciPy open.

use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use flate2::write::DeflateEncoder;
use flate2::{Compression, Crc};

use super::element::Element;
use super::header::header_bytes;
use crate::Error;
use crate::output::OutputFile;

/// The date of every entry, so that the same arrays give the same bytes: 1 January 1980.
const DATE: [u8; 4] = [0, 0, 0x21, 0];
/// Unpacked sizes from here on (with room for what deflate may add) get 64-bit fields.
const WIDE: u64 = 0xff00_0000;

/// An `.npz` archive in the making; it takes its name when [`NpzWriter::finish`] succeeds.
#[derive(Debug)]
pub struct NpzWriter {
    file: OutputFile,
    entries: Vec<Entry>,
    compression: Option<Compression>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    method: u16,
    checksum: u32,
    packed: u64,
    unpacked: u64,
    offset: u64,
}

impl NpzWriter {
    /// Begins an archive whose entries are deflated, fast rather than tight.
    pub fn create(path: impl AsRef<Path>) -> Result<Self, Error> {
        let file = OutputFile::create(path.as_ref())?;
        Ok(Self { file, entries: Vec::new(), compression: Some(Compression::fast()) })
    }

    /// Begins an archive whose entries are stored as they are: larger, and several times faster.
    pub fn create_stored(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self { compression: None, ..Self::create(path)? })
    }

    /// Adds an array in C order.
    ///
    /// # Panics
    /// If the shape does not hold as many values as there are.
    pub fn array<T: Element>(&mut self, name: &str, shape: &[usize], data: &[T]) -> Result<(), Error> {
        assert_eq!(shape.iter().product::<usize>(), data.len(), "shape {shape:?} of array '{name}'");
        self.array_from(name, shape, data.iter().copied())
    }

    /// Adds an array in C order, value by value.
    ///
    /// # Panics
    /// If the shape does not hold as many values as come.
    pub fn array_from<T: Element>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: impl IntoIterator<Item = T>,
    ) -> Result<(), Error> {
        self.array_by(name, shape, |put| values.into_iter().try_for_each(put))
    }

    /// Adds an array in C order that `values` hands over value by value; it may fail itself, as where it reads
    /// another file.
    pub fn array_by<T: Element>(
        &mut self,
        name: &str,
        shape: &[usize],
        values: impl FnOnce(&mut dyn FnMut(T) -> io::Result<()>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let header = header_bytes(T::DESCR, shape);
        let count = shape.iter().product::<usize>();
        let unpacked = header.len() as u64 + (count * T::DESCR[2..].parse::<usize>().unwrap_or(8)) as u64;
        self.entry(name, unpacked, |out| {
            out.write_all(&header)?;
            let mut buffer = Vec::with_capacity(super::CHUNK + 8);
            values(&mut |value| {
                value.put(&mut buffer);
                if buffer.len() >= super::CHUNK {
                    out.write_all(&buffer)?;
                    buffer.clear();
                }
                Ok(())
            })?;
            out.write_all(&buffer)
        })
    }

    /// Adds a single text, as SciPy stores a matrix's format.
    ///
    /// # Panics
    /// If the text is not ASCII.
    pub fn text(&mut self, name: &str, text: &str) -> Result<(), Error> {
        assert!(text.is_ascii(), "only ASCII texts are written");
        let mut bytes = header_bytes(&format!("|S{}", text.len()), &[]);
        bytes.extend(text.bytes());
        self.entry(name, bytes.len() as u64, |out| out.write_all(&bytes))
    }

    /// Writes the directory and gives the file its name.
    pub fn finish(mut self) -> Result<(), Error> {
        self.directory().map_err(|source| self.failed(source))?;
        self.file.commit()
    }

    fn failed(&self, source: io::Error) -> Error {
        Error::Write { path: self.file.path().into(), source }
    }

    fn entry(
        &mut self,
        name: &str,
        unpacked: u64,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> Result<(), Error> {
        self.try_entry(name, unpacked, fill).map_err(|source| self.failed(source))
    }

    fn try_entry(
        &mut self,
        name: &str,
        unpacked: u64,
        fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let method = if self.compression.is_some() { 8 } else { 0 };
        let mut entry = Entry {
            name: format!("{name}.npy"),
            method,
            checksum: 0,
            packed: 0,
            unpacked,
            offset: self.file.stream_position()?,
        };
        entry.write_local(&mut self.file)?; // a first time, to take up the room
        let start = self.file.stream_position()?;
        let checksum = match self.compression {
            None => {
                let mut out = Checked { out: &mut self.file, seen: Crc::new() };
                fill(&mut out)?;
                out.seen
            }
            Some(level) => {
                let mut out = Checked { out: DeflateEncoder::new(&mut self.file, level), seen: Crc::new() };
                fill(&mut out)?;
                out.out.finish()?;
                out.seen
            }
        };
        let end = self.file.stream_position()?;
        assert_eq!(
            u64::from(checksum.amount()),
            unpacked & 0xffff_ffff,
            "array '{name}' has another size than its shape"
        );
        entry.checksum = checksum.sum();
        entry.packed = end - start;
        self.file.seek(SeekFrom::Start(entry.offset))?;
        entry.write_local(&mut self.file)?;
        self.file.seek(SeekFrom::Start(end))?;
        self.entries.push(entry);
        Ok(())
    }

    fn directory(&mut self) -> io::Result<()> {
        let offset = self.file.stream_position()?;
        for entry in &self.entries {
            entry.write_central(&mut self.file)?;
        }
        let size = self.file.stream_position()? - offset;
        let count = self.entries.len() as u64;
        if offset >= u64::from(u32::MAX) || count >= u64::from(u16::MAX) {
            let at = offset + size;
            let mut record = b"PK\x06\x06".to_vec();
            record.extend(44u64.to_le_bytes());
            record.extend([45, 0, 45, 0]);
            record.extend([0; 8]); // disk numbers
            for field in [count, count, size, offset] {
                record.extend(field.to_le_bytes());
            }
            record.extend(b"PK\x06\x07");
            record.extend([0; 4]);
            record.extend(at.to_le_bytes());
            record.extend(1u32.to_le_bytes());
            self.file.write_all(&record)?;
        }
        let mut end = b"PK\x05\x06".to_vec();
        end.extend([0; 4]);
        for _ in 0..2 {
            end.extend((count.min(u64::from(u16::MAX)) as u16).to_le_bytes());
        }
        end.extend(narrow(size));
        end.extend(narrow(offset));
        end.extend([0; 2]);
        self.file.write_all(&end)
    }
}

impl Entry {
    fn is_wide(&self) -> bool {
        self.unpacked >= WIDE
    }

    /// What local and central records have in common, from the version to the length of the name.
    fn common(&self) -> Vec<u8> {
        let mut bytes = vec![if self.is_wide() { 45 } else { 20 }, 0, 0, 0];
        bytes.extend(self.method.to_le_bytes());
        bytes.extend(DATE);
        bytes.extend(self.checksum.to_le_bytes());
        for size in [self.packed, self.unpacked] {
            bytes.extend(if self.is_wide() { [0xff; 4] } else { narrow(size) });
        }
        bytes.extend((self.name.len() as u16).to_le_bytes());
        bytes
    }

    /// The 64-bit extension, where one is needed.
    fn extra(&self, with_offset: bool) -> Vec<u8> {
        let mut fields = Vec::new();
        if self.is_wide() {
            fields.extend([self.unpacked, self.packed]);
        }
        if with_offset {
            fields.push(self.offset);
        }
        if fields.is_empty() {
            return Vec::new();
        }
        let mut bytes = vec![1, 0, fields.len() as u8 * 8, 0];
        fields.iter().for_each(|field| bytes.extend(field.to_le_bytes()));
        bytes
    }

    fn write_local(&self, out: &mut impl Write) -> io::Result<()> {
        let extra = self.extra(false);
        let mut bytes = b"PK\x03\x04".to_vec();
        bytes.extend(self.common());
        bytes.extend((extra.len() as u16).to_le_bytes());
        bytes.extend(self.name.bytes());
        bytes.extend(extra);
        out.write_all(&bytes)
    }

    fn write_central(&self, out: &mut impl Write) -> io::Result<()> {
        let extra = self.extra(self.offset >= u64::from(u32::MAX));
        let mut bytes = b"PK\x01\x02\x2d\x03".to_vec(); // made by version 4.5 on unix
        bytes.extend(self.common());
        bytes.extend((extra.len() as u16).to_le_bytes());
        bytes.extend([0; 8]); // comment, disk, internal attributes, and half of ...
        bytes.extend([0xa4, 0x81]); // ... the external ones: a regular file, 0644
        bytes.extend(narrow(self.offset));
        bytes.extend(self.name.bytes());
        bytes.extend(extra);
        out.write_all(&bytes)
    }
}

/// A number in 32 bits, saturated.
fn narrow(number: u64) -> [u8; 4] {
    (number.min(u64::from(u32::MAX)) as u32).to_le_bytes()
}

/// Passes bytes on and remembers their checksum.
struct Checked<W> {
    out: W,
    seen: Crc,
}

impl<W: Write> Write for Checked<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.out.write(bytes)?;
        self.seen.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Npz;
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]
        #[test]
        fn what_is_written_reads_back(
            reals in proptest::collection::vec(any::<f64>().prop_filter("comparable", |x| !x.is_nan()), 0..40),
            whole in proptest::collection::vec(any::<i32>(), 12),
            flags in proptest::collection::vec(any::<bool>(), 6),
            stored in any::<bool>(),
        ) {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("a.npz");
            let mut writer =
                if stored { NpzWriter::create_stored(&path) } else { NpzWriter::create(&path) }.unwrap();
            writer.array("reals", &[reals.len()], &reals).unwrap();
            writer.array("whole", &[3, 4], &whole).unwrap();
            writer.array("flags", &[1, 2, 3], &flags).unwrap();
            writer.text("format", "csr").unwrap();
            writer.array("one", &[], &[7usize]).unwrap();
            writer.finish().unwrap();
            let archive = Npz::open(&path).unwrap();
            prop_assert_eq!(archive.vector::<f64>("reals").unwrap(), reals);
            prop_assert_eq!(archive.matrix::<i32>("whole").unwrap(), (3, 4, whole));
            prop_assert_eq!(archive.array::<bool>("flags").unwrap().data, flags);
            prop_assert_eq!(archive.text("format").unwrap(), "csr");
            prop_assert_eq!(archive.scalar::<u8>("one").unwrap(), 7);
        }
    }

    #[test]
    fn entries_beyond_four_gigabytes_are_described_by_64_bit_fields() {
        let entry = Entry {
            name: "a.npy".into(),
            method: 0,
            checksum: 1,
            packed: 5_000_000_000,
            unpacked: 5_000_000_000,
            offset: 6_000_000_000,
        };
        let mut record = Vec::new();
        entry.write_central(&mut record).unwrap();
        assert_eq!(record.len(), 46 + 5 + 4 + 24);
        assert_eq!(record[46 + 5 + 4..][..8], 5_000_000_000u64.to_le_bytes());
        assert_eq!(record[46 + 5 + 4 + 16..], 6_000_000_000u64.to_le_bytes());
    }
}
