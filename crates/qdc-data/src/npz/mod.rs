//! NumPy's `.npz`: a zip archive of `.npy` arrays.
//!
//! Reads every boolean, integer and real type in either memory order, stored or deflated, and converts to the
//! type asked for where no value changes (reals may be rounded to `f32`). Nothing is allocated that the file
//! cannot fill or the [`Budget`] does not allow, names of arrays are never used as paths, and pickled objects
//! are refused.
//!
//! ```
//! use qdc_data::npz::{Npz, NpzWriter};
//! # let folder = tempfile::tempdir().unwrap();
//! let path = folder.path().join("numbers.npz");
//! let mut writer = NpzWriter::create(&path)?;
//! writer.array("pairs", &[2, 2], &[0i32, 1, 1, 2])?;
//! writer.finish()?;
//!
//! let archive = Npz::open(&path)?;
//! let pairs = archive.array::<u64>("pairs")?; // converted, each value checked
//! assert_eq!((pairs.shape, pairs.data), (vec![2, 2], vec![0, 1, 1, 2]));
//! # Ok::<(), qdc_data::Error>(())
//! ```

mod archive;
mod element;
mod header;
mod writer;

use std::io::Read;
use std::path::{Path, PathBuf};

pub use element::Element;
pub use writer::NpzWriter;

use crate::budget::Account;
use crate::{Budget, Error};
use archive::{Archive, EntryReader};
pub(crate) use element::decode;
use header::Header;
pub(crate) use header::Kind;

/// How many bytes are decoded at a time.
const CHUNK: usize = 1 << 16;

/// An array: its shape, and its values in C order (last index fastest).
#[derive(Clone, Debug, PartialEq)]
pub struct Array<T> {
    /// The length of each axis; empty for a single number.
    pub shape: Vec<usize>,
    /// All values, the last index running fastest.
    pub data: Vec<T>,
}

/// An open archive of arrays.
#[derive(Debug)]
pub struct Npz {
    archive: Archive,
}

impl Npz {
    /// Opens an archive within the budget of this machine; see [`Npz::open_within`].
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Self::open_within(path, Budget::of_this_machine())
    }

    /// Opens an archive and reads its directory; arrays are read when asked for, and all of them together may
    /// hold what `budget` allows.
    pub fn open_within(path: impl AsRef<Path>, budget: Budget) -> Result<Self, Error> {
        Ok(Self { archive: Archive::open(path.as_ref(), budget)? })
    }

    /// An archive in memory; `name` stands for the file in errors.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>, budget: Budget) -> Result<Self, Error> {
        Ok(Self { archive: Archive::from_bytes(name.into(), bytes, budget)? })
    }

    /// Where the memory its arrays take is counted.
    pub(crate) fn account(&self) -> &Account {
        self.archive.account()
    }

    /// The file.
    pub fn path(&self) -> &Path {
        self.archive.path()
    }

    /// The names of the arrays, in the order they are stored.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.archive.names()
    }

    /// Whether there is an array of this name.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|other| other == name)
    }

    /// An array of any shape.
    pub fn array<T: Element>(&self, name: &str) -> Result<Array<T>, Error> {
        let mut reader = self.reader(name)?;
        let count = reader.remaining;
        let what = format!("array '{name}'");
        let mut data = self.account().room(&what, count)?;
        reader.read(count, &mut data)?;
        reader.finish()?;
        let shape = reader.header.shape;
        if reader.header.fortran_order {
            self.account().charge::<T>(&what, count)?; // the copy
            data = to_c_order(&shape, &data);
            self.account().release::<T>(count);
        }
        Ok(Array { shape, data })
    }

    /// An array of one axis.
    pub fn vector<T: Element>(&self, name: &str) -> Result<Vec<T>, Error> {
        let array = self.array(name)?;
        self.expect_axes::<1>(name, &array.shape)?;
        Ok(array.data)
    }

    /// An array of two axes, as (rows, columns, values row after row).
    pub fn matrix<T: Element>(&self, name: &str) -> Result<(usize, usize, Vec<T>), Error> {
        let array = self.array(name)?;
        let [rows, columns] = self.expect_axes(name, &array.shape)?;
        Ok((rows, columns, array.data))
    }

    /// A single number.
    pub fn scalar<T: Element>(&self, name: &str) -> Result<T, Error> {
        let array = self.array(name)?;
        match array.data[..] {
            [value] => Ok(value),
            _ => Err(self.malformed(name, format!("shape {:?} instead of a single number", array.shape))),
        }
    }

    /// A single text, as in SciPy's `format`.
    pub fn text(&self, name: &str) -> Result<String, Error> {
        let mut reader = self.open_array(name)?;
        let width = match reader.header.kind {
            Kind::Bytes(width) | Kind::Unicode(width)
                if reader.header.shape.iter().all(|&axis| axis == 1) =>
            {
                width
            }
            _ => return Err(self.malformed(name, "not a single text")),
        };
        let mut bytes = vec![0; reader.header.byte_count().filter(|&size| size <= CHUNK).unwrap_or(0)];
        reader.fill(&mut bytes)?;
        reader.finish()?;
        if reader.header.big_endian && matches!(reader.header.kind, Kind::Unicode(_)) {
            bytes.chunks_exact_mut(4).for_each(<[u8]>::reverse);
        }
        let characters: Vec<u32> = if matches!(reader.header.kind, Kind::Bytes(_)) {
            bytes.iter().map(|&byte| u32::from(byte)).collect()
        } else {
            bytes
                .chunks_exact(4)
                .map(|four| u32::from_le_bytes([four[0], four[1], four[2], four[3]]))
                .collect()
        };
        debug_assert!(characters.len() <= width.max(1));
        let text: String =
            characters.into_iter().take_while(|&code| code != 0).filter_map(char::from_u32).collect();
        Ok(text)
    }

    /// The shape of an array, without reading its values.
    pub fn shape(&self, name: &str) -> Result<Vec<usize>, Error> {
        Ok(self.open_array(name)?.header.shape)
    }

    /// Reads an array piece by piece, in the order it is stored; for arrays better not held whole.
    pub(crate) fn reader(&self, name: &str) -> Result<ArrayReader<'_>, Error> {
        let reader = self.open_array(name)?;
        if let Kind::Bytes(_) | Kind::Unicode(_) = reader.header.kind {
            return Err(self.malformed(name, "holds text, not numbers"));
        }
        Ok(reader)
    }

    /// An error about one array.
    pub(crate) fn malformed(&self, name: &str, problem: impl Into<String>) -> Error {
        Error::malformed(self.path(), format!("array '{name}'"), problem)
    }

    /// The shape as `AXES` lengths, or an error that says what was found.
    pub(crate) fn expect_axes<const AXES: usize>(
        &self,
        name: &str,
        shape: &[usize],
    ) -> Result<[usize; AXES], Error> {
        shape.try_into().map_err(|_| {
            self.malformed(name, format!("expected {AXES} axes, found {} with shape {shape:?}", shape.len()))
        })
    }

    fn open_array(&self, name: &str) -> Result<ArrayReader<'_>, Error> {
        let mut entry = self.archive.entry(name)?;
        let header = Header::read(&mut entry).map_err(|problem| self.malformed(name, problem))?;
        let size = header.byte_count();
        if size != Some(entry.remaining()) {
            let problem = format!(
                "its header promises shape {:?} of {}, but {} bytes of data follow",
                header.shape,
                header.kind,
                entry.remaining()
            );
            return Err(self.malformed(name, problem));
        }
        let remaining = header.shape.iter().fold(1, |count: usize, &axis| count.saturating_mul(axis));
        Ok(ArrayReader { archive: self, name: name.into(), header, entry, remaining })
    }
}

/// An array being read, value after value.
pub(crate) struct ArrayReader<'a> {
    archive: &'a Npz,
    name: String,
    pub(crate) header: Header,
    entry: EntryReader<'a>,
    remaining: usize,
}

impl ArrayReader<'_> {
    /// Appends the next `count` values to `out`.
    pub(crate) fn read<T: Element>(&mut self, count: usize, out: &mut Vec<T>) -> Result<(), Error> {
        let size = self.header.kind.size();
        let per_chunk = (CHUNK / size.max(1)).max(1);
        let mut buffer = vec![0; per_chunk.min(count) * size];
        let mut left = count;
        while left > 0 {
            let now = left.min(per_chunk);
            let bytes = &mut buffer[..now * size];
            self.fill(bytes)?;
            if self.header.big_endian {
                bytes.chunks_exact_mut(size.max(1)).for_each(<[u8]>::reverse);
            }
            let before = out.len();
            decode(self.header.kind, bytes, out).map_err(|problem| {
                let at = self.header.shape.iter().product::<usize>() - self.remaining + (out.len() - before);
                self.archive.malformed(&self.name, format!("value {at}: {problem}"))
            })?;
            self.remaining -= now;
            left -= now;
        }
        Ok(())
    }

    /// Checks that the data ended where it should, with the right checksum.
    pub(crate) fn finish(&mut self) -> Result<(), Error> {
        self.entry.finish().map_err(|problem| self.archive.malformed(&self.name, problem))
    }

    fn fill(&mut self, bytes: &mut [u8]) -> Result<(), Error> {
        self.entry.read_exact(bytes).map_err(|error| {
            let problem = match error.kind() {
                std::io::ErrorKind::UnexpectedEof => "the data end too early".into(),
                _ => format!("the data cannot be unpacked ({error})"),
            };
            self.archive.malformed(&self.name, problem).remedy("the file is damaged; fetch or write it again")
        })
    }
}

/// The values of a Fortran-ordered array (first index fastest) in C order.
pub(crate) fn to_c_order<T: Copy>(shape: &[usize], data: &[T]) -> Vec<T> {
    let mut strides = vec![1; shape.len()];
    for axis in 1..shape.len() {
        strides[axis] = strides[axis - 1] * shape[axis - 1];
    }
    let mut index = vec![0; shape.len()];
    let mut at = 0;
    let mut out = Vec::with_capacity(data.len());
    for _ in 0..data.len() {
        out.push(data[at]);
        for axis in (0..shape.len()).rev() {
            index[axis] += 1;
            at += strides[axis];
            if index[axis] < shape[axis] {
                break;
            }
            at -= strides[axis] * shape[axis];
            index[axis] = 0;
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fortran_order_is_turned_into_c_order() {
        assert_eq!(to_c_order(&[2, 3], &[1, 4, 2, 5, 3, 6]), [1, 2, 3, 4, 5, 6]);
        assert_eq!(to_c_order(&[2, 1, 2], &[1, 3, 2, 4]), [1, 2, 3, 4]);
        assert_eq!(to_c_order(&[], &[7]), [7]);
        assert_eq!(to_c_order(&[0, 3], &[] as &[u8]), Vec::<u8>::new());
    }

    /// A stored archive of one array whose content is `change`d, its checksum set right again.
    fn changed(data: &[i16], change: impl Fn(&mut Vec<u8>)) -> Npz {
        let crc = |content: &[u8]| {
            let mut crc = flate2::Crc::new();
            crc.update(content);
            crc.sum().to_le_bytes()
        };
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut writer = NpzWriter::create_stored(&path).unwrap();
        writer.array("a", &[2, data.len() / 2], data).unwrap();
        writer.finish().unwrap();
        let mut file = std::fs::read(&path).unwrap();
        let start = file.windows(6).position(|six| six == b"\x93NUMPY").unwrap();
        let end = file.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
        let mut content = file[start..end].to_vec();
        let before = crc(&content);
        change(&mut content);
        let after = crc(&content);
        file.splice(start..end, content);
        for at in 0..file.len() - 4 {
            if file[at..at + 4] == before {
                file[at..at + 4].copy_from_slice(&after);
            }
        }
        Npz::from_bytes("a.npz", file, Budget::default()).unwrap()
    }

    fn replace(content: &mut [u8], from: &[u8], to: &[u8]) {
        let at = content.windows(from.len()).position(|window| window == from).unwrap();
        content[at..at + to.len()].copy_from_slice(to);
    }

    #[test]
    fn either_byte_order_and_either_memory_order_give_the_same_array() {
        let expected = (2, 3, vec![1i64, 2, 3, -4, 500, 6]);
        let plain = changed(&[1, 2, 3, -4, 500, 6], |_| {});
        assert_eq!(plain.matrix::<i64>("a").unwrap(), expected);
        let big_endian = changed(&[1, 2, 3, -4, 500, 6], |content| {
            replace(content, b"'<i2'", b"'>i2'");
            let data = content.len() - 12;
            content[data..].chunks_exact_mut(2).for_each(<[u8]>::reverse);
        });
        assert_eq!(big_endian.matrix::<i64>("a").unwrap(), expected);
        let fortran = changed(&[1, -4, 2, 500, 3, 6], |content| replace(content, b"False,", b"True, "));
        assert_eq!(fortran.matrix::<i64>("a").unwrap(), expected);
    }

    #[test]
    fn an_array_beyond_the_budget_is_refused_with_its_name_and_its_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("zeros.npz");
        let mut writer = NpzWriter::create(&path).unwrap();
        writer.array_from("zeros", &[1_000_000], std::iter::repeat_n(0u8, 1_000_000)).unwrap();
        writer.finish().unwrap();
        assert!(path.metadata().unwrap().len() < 20_000, "a small file");
        let archive = Npz::open_within(&path, Budget::bytes(2_000_000)).unwrap();
        assert_eq!(archive.vector::<u8>("zeros").unwrap().len(), 1_000_000);
        let error = archive.vector::<f64>("zeros").unwrap_err();
        let Error::Memory { what, asked, allowed, .. } = &error else { panic!("{error}") };
        assert_eq!((what.as_str(), *asked, *allowed), ("array 'zeros'", 8_000_000, 2_000_000));
    }

    #[test]
    fn a_golden_file_of_numpy_is_read() {
        let archive = Npz::open(qdc_testing::golden("kernels_karate.npz")).unwrap();
        let (rows, columns, edges) = archive.matrix::<u64>("edges").unwrap();
        assert_eq!((rows, columns), (78, 2)); // Zachary's club has 78 ties
        assert!(edges.iter().all(|&vertex| vertex < 34));
        let eigenvalues = archive.vector::<f64>("eigenvalues").unwrap();
        assert_eq!(eigenvalues.len(), 34);
        assert!((eigenvalues[33] - 1.0).abs() < 1e-12, "the largest eigenvalue of L is 1");
        assert!(archive.names().count() > 10);
    }

    #[test]
    fn shapes_and_types_that_do_not_fit_are_named() {
        let archive = Npz::open(qdc_testing::golden("kernels_karate.npz")).unwrap();
        let message = |error: Error| error.to_string();
        let missing = message(archive.vector::<f64>("no such").unwrap_err());
        assert!(missing.contains("no array 'no such'") && missing.contains("edges"), "{missing}");
        let wrong = message(archive.vector::<u64>("edges").unwrap_err());
        assert!(wrong.contains("array 'edges': expected 1 axes, found 2 with shape [78, 2]"), "{wrong}");
        let fraction = message(archive.vector::<i32>("eigenvalues").unwrap_err());
        assert!(fraction.contains("value 0: -"), "{fraction}");
    }
}
