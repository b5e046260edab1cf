//! Sparse matrices in files: SciPy's `save_npz`, Matrix Market, and tables of (row, column, value).
//!
//! The format follows from the name: `.npz`, `.mtx`, `.csv`, `.tsv` or `.txt`, the text formats gzipped too
//! (`.gz`).

mod edge_list;
mod market;
mod scipy;

use std::path::Path;

use qdc_core::{Csr, Graph};

use crate::budget::Account;
use crate::{Budget, EdgeReading, Error, lines};

pub use edge_list::EdgeList;
pub(crate) use scipy::write_rows;

/// Files with more vertices than this for each entry are mistaken or malicious, and need more memory than
/// they are worth.
const VERTICES_PER_ENTRY: u64 = 1000;

/// A format of sparse matrices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// SciPy's `save_npz`.
    SciPy,
    /// Matrix Market coordinates.
    Market,
    /// Lines of row, column and value, separated by commas.
    Csv,
    /// The same, separated by tabs.
    Tsv,
}

impl Format {
    /// The format a file's name tells; `.gz` may follow a text format. Stdout, `-`, takes commas.
    pub fn of(path: &Path) -> Option<Self> {
        if path.as_os_str() == "-" {
            return Some(Self::Csv);
        }
        let name = path.file_name()?.to_string_lossy().to_ascii_lowercase();
        let stem = name.strip_suffix(".gz").unwrap_or(&name);
        match stem.rsplit_once('.')?.1 {
            "npz" if stem == name => Some(Self::SciPy),
            "mtx" => Some(Self::Market),
            "csv" => Some(Self::Csv),
            "tsv" | "txt" | "edges" | "edgelist" => Some(Self::Tsv),
            _ => None,
        }
    }

    fn required(path: &Path) -> Result<Self, Error> {
        Self::of(path).ok_or_else(|| Error::UnknownFormat { path: path.into() })
    }
}

/// Reads a sparse matrix; entries given twice are added.
pub fn read(path: &Path, budget: Budget) -> Result<Csr<f64>, Error> {
    match Format::required(path)? {
        Format::SciPy => scipy::read(&crate::npz::Npz::open_within(path, budget)?),
        Format::Market => market::read(lines::Lines::open(path)?, path, budget),
        Format::Csv | Format::Tsv => {
            EdgeList::from_lines(lines::Lines::open(path)?, path, f64::MIN, budget)?.into_matrix()
        }
    }
}

/// Reads a sparse matrix in single precision for training. The entries of a `.npz` in compressed rows are not held:
/// they go to an unnamed file beside it, which is mapped into memory and vanishes with the process.
///
/// Takes one pass over the file, and memory for the row pointers alone; other formats are read as [`read`] does.
///
/// # Errors
/// As [`read`], and where no file can be made beside it.
pub fn map(path: &Path, budget: Budget) -> Result<Csr<f32>, Error> {
    if Format::required(path)? == Format::SciPy {
        return scipy::map(&crate::npz::Npz::open_within(path, budget)?);
    }
    Ok(read(path, budget)?.map(|value| value as f32))
}

/// Writes a sparse matrix whole or not at all.
///
/// A table (csv, tsv) has a header and does not keep the size of the matrix; the other formats do.
pub fn write(path: &Path, matrix: &Csr<f64>) -> Result<(), Error> {
    match Format::required(path)? {
        Format::SciPy => scipy::write(path, matrix),
        Format::Market => market::write(path, matrix),
        Format::Csv => edge_list::write(path, matrix, ','),
        Format::Tsv => edge_list::write(path, matrix, '\t'),
    }
}

/// Reads a graph from a matrix or an edge list.
pub fn read_graph(path: &Path, reading: EdgeReading, budget: Budget) -> Result<Graph, Error> {
    match Format::required(path)? {
        Format::Csv | Format::Tsv => EdgeList::read(path, budget)?.into_graph(reading),
        _ => {
            let matrix = read(path, budget)?;
            let account = budget.account(path);
            account.charge::<[u64; 2]>("the matrix", matrix.rows().saturating_add(matrix.entries()))?;
            account.charge_graph(matrix.rows(), matrix.entries())?;
            to_graph(path, &matrix, reading)
        }
    }
}

pub(crate) fn to_graph(path: &Path, matrix: &Csr<f64>, reading: EdgeReading) -> Result<Graph, Error> {
    Graph::from_adjacency(matrix, reading.symmetrize)
        .map_err(|source| Error::Invalid { path: path.into(), source })
}

/// Entry points of the fuzzers: readers of bytes that must never panic or exhaust the memory.
pub(crate) mod from_bytes {
    use super::{Budget, Csr, EdgeList, Error, Path, lines::Lines, market, scipy};

    pub(crate) fn scipy(path: &Path, bytes: &[u8], budget: Budget) -> Result<Csr<f64>, Error> {
        scipy::read(&crate::npz::Npz::from_bytes(path, bytes.to_vec(), budget)?)
    }

    pub(crate) fn mapped(path: &Path, bytes: &[u8], budget: Budget) -> Result<Csr<f32>, Error> {
        scipy::map(&crate::npz::Npz::from_bytes(path, bytes.to_vec(), budget)?)
    }

    pub(crate) fn market(path: &Path, bytes: &[u8], budget: Budget) -> Result<Csr<f64>, Error> {
        market::read(Lines::new(path, bytes), path, budget)
    }

    pub(crate) fn edge_list(path: &Path, bytes: &[u8], budget: Budget) -> Result<EdgeList, Error> {
        EdgeList::from_lines(Lines::new(path, bytes), path, 0.0, budget)
    }
}

/// Whether a matrix of this size may be filled by so few entries.
fn plausible_size(size: u64, entries: u64) -> bool {
    size <= 1_000_000 + entries.saturating_mul(VERTICES_PER_ENTRY) && size < u64::from(u32::MAX)
}

/// Compressed rows from entries in any order; entries given twice are added.
fn from_entries(
    path: &Path,
    rows: usize,
    columns: usize,
    entries: &[(u32, u32, f64)],
    account: &Account,
) -> Result<Csr<f64>, Error> {
    // Two arrays of row ends and one of pointers; the sorted entries, and those of the matrix.
    account.charge::<[usize; 3]>("the matrix's rows", rows.saturating_add(1))?;
    account.charge::<[usize; 4]>("the matrix's entries", entries.len())?;
    let mut ends = vec![0; rows + 1];
    for entry in entries {
        ends[entry.0 as usize + 1] += 1;
    }
    for row in 0..rows {
        ends[row + 1] += ends[row];
    }
    let mut next = ends.clone();
    let mut sorted = vec![(0, 0.0); entries.len()];
    for &(row, column, value) in entries {
        sorted[next[row as usize]] = (column, value);
        next[row as usize] += 1;
    }
    let (mut pointers, mut indices, mut values) = (vec![0], Vec::new(), Vec::new());
    for row in 0..rows {
        let row = &mut sorted[ends[row]..ends[row + 1]];
        row.sort_by_key(|entry| entry.0); // stable: copies are added in the order of the file
        for copies in row.chunk_by(|a, b| a.0 == b.0) {
            indices.push(copies[0].0);
            values.push(copies[1..].iter().fold(copies[0].1, |sum, copy| sum + copy.1));
        }
        pointers.push(indices.len());
    }
    Csr::new(rows, columns, pointers, indices, values)
        .map_err(|source| Error::Invalid { path: path.into(), source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use qdc_core::Symmetrize;

    fn matrices() -> impl Strategy<Value = Csr<f64>> {
        (1usize..6, 1usize..6).prop_flat_map(|(rows, columns)| {
            let value = any::<f64>().prop_filter("finite", |value| value.is_finite() && *value != 0.0);
            proptest::collection::vec(proptest::option::of(value), rows * columns).prop_map(move |cells| {
                let rows = cells
                    .chunks(columns)
                    .map(|row| row.iter().enumerate().filter_map(|(j, v)| v.map(|v| (j as u32, v))).unzip());
                Csr::from_rows(columns, rows).unwrap()
            })
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn every_format_reads_back_what_it_wrote(matrix in matrices()) {
            let folder = tempfile::tempdir().unwrap();
            for name in ["m.npz", "m.mtx", "m.mtx.gz"] {
                let path = folder.path().join(name);
                write(&path, &matrix).unwrap();
                prop_assert_eq!(&read(&path, Budget::default()).unwrap(), &matrix, "{}", name);
            }
            for name in ["m.csv", "m.tsv.gz"] {
                let path = folder.path().join(name);
                write(&path, &matrix).unwrap();
                if matrix.entries() > 0 {
                    let again = read(&path, Budget::default()).unwrap();
                    prop_assert!(again.iter().eq(matrix.iter()), "{}", name);
                } else {
                    prop_assert!(read(&path, Budget::default()).is_err(), "a table without lines is no matrix");
                }
            }
        }
    }

    #[test]
    fn an_asymmetric_matrix_is_no_graph_without_a_rule() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("arc.npz");
        write(&path, &Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap()).unwrap();
        let error = read_graph(&path, EdgeReading::default(), Budget::default()).unwrap_err();
        assert!(error.to_string().contains("arc.npz: edge (0, 1)"), "{error}");
        assert_eq!(error.core().unwrap().remedy(), Some(qdc_core::Remedy::Symmetrize));
        let reading = EdgeReading { directed: true, symmetrize: Some(Symmetrize::Or) };
        assert_eq!(read_graph(&path, reading, Budget::default()).unwrap().edges(), 1);
    }

    #[test]
    fn a_name_without_a_known_ending_is_refused_with_the_list_of_endings() {
        let error = read(Path::new("matrix.parquet"), Budget::default()).unwrap_err();
        assert!(error.hint().unwrap().contains(".mtx"), "{error}");
    }
}
