//! NumPy's `.npz`: a zip archive of `.npy` arrays.
//!
//! Reads every boolean, integer and real type in either memory order, stored or deflated, and converts to the type
//! asked for where no value changes (reals may be rounded to `f32`). Nothing is allocated that the file cannot fill,
//! and pickled objects are refused.
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

use crate::Error;
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
    /// Opens an archive and reads its directory; arrays are read when asked for.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        Ok(Self { archive: Archive::open(path.as_ref())? })
    }

    /// An archive in memory; `name` stands for the file in errors.
    pub fn from_bytes(name: impl Into<PathBuf>, bytes: Vec<u8>) -> Result<Self, Error> {
        Ok(Self { archive: Archive::from_bytes(name.into(), bytes)? })
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
        // The archive's directory vouches for the size (see `Archive::entry`), so this cannot run away.
        let mut data = Vec::with_capacity(count);
        reader.read(count, &mut data)?;
        reader.finish()?;
        let shape = reader.header.shape;
        if reader.header.fortran_order {
            data = to_c_order(&shape, &data);
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
