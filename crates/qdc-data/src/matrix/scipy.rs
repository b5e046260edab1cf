//! The `.npz` files of `scipy.sparse.save_npz`: csr, csc and coo are read, csr is written.

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

use qdc_core::Csr;

use super::{from_entries, plausible_size};
use crate::Error;
use crate::mapped::{Numbers, Plain};
use crate::npz::{Element, Npz, NpzWriter};

pub(super) fn read(archive: &Npz) -> Result<Csr<f64>, Error> {
    let format = archive.text("format")?;
    let shape = archive.vector::<u64>("shape")?;
    let &[rows, columns] = &shape[..] else {
        return Err(archive.malformed("shape", format!("expected rows and columns, found {shape:?}")));
    };
    let values = archive.vector::<f64>("data")?;
    let entries = values.len() as u64;
    if !plausible_size(rows.max(columns), entries.max(row_pointers(archive))) {
        let problem = format!("{rows} x {columns} is too large for a file of {entries} entries");
        return Err(archive.malformed("shape", problem));
    }
    let (rows, columns) = (rows as usize, columns as usize);
    match format.as_str() {
        "csr" => compressed(archive, rows, columns, values),
        "csc" => {
            let matrix = compressed(archive, columns, rows, values)?;
            archive.account().charge::<[usize; 2]>("the transpose", rows.saturating_add(matrix.entries()))?;
            Ok(matrix.transpose())
        }
        "coo" => {
            let (row, column) = (archive.vector::<u32>("row")?, archive.vector::<u32>("col")?);
            for (name, indices, size) in [("row", &row, rows), ("col", &column, columns)] {
                if indices.len() != values.len() {
                    let problem = format!("{} indices for {} values", indices.len(), values.len());
                    return Err(archive.malformed(name, problem));
                }
                if let Some((at, index)) =
                    indices.iter().enumerate().find(|(_, index)| **index as usize >= size)
                {
                    return Err(archive.malformed(name, format!("value {at}: {index} is outside 0..{size}")));
                }
            }
            let account = archive.account();
            account.charge::<(u32, u32, f64)>("the entries", values.len())?;
            let entries: Vec<_> =
                row.into_iter().zip(column).zip(values).map(|((i, j), v)| (i, j, v)).collect();
            from_entries(archive.path(), rows, columns, &entries, account)
        }
        other => Err(archive
            .malformed("format", format!("'{other}' matrices are not read"))
            .remedy("convert it before saving: scipy.sparse.save_npz(file, matrix.tocsr())")),
    }
}

/// The matrix in single precision, its entries in a mapped file.
pub(super) fn map(archive: &Npz) -> Result<Csr<f32>, Error> {
    let single = |matrix: Csr<f64>| matrix.map(|value| value as f32);
    let shape = archive.vector::<usize>("shape")?;
    let (&[rows, columns], "csr") = (&shape[..], archive.text("format")?.as_str()) else {
        return Ok(single(read(archive)?));
    };
    let pointers = archive.vector::<usize>("indptr")?;
    let indices = numbers::<u32>(archive, "indices")?;
    let values = numbers::<f32>(archive, "data")?;
    // Columns that do not ascend within a row are put in order in memory.
    Csr::shared(rows, columns, pointers, Arc::new(indices), Arc::new(values))
        .or_else(|_| Ok(single(read(archive)?)))
}

/// The numbers of an array in an unnamed file beside the archive, mapped.
fn numbers<T: Element + Plain>(archive: &Npz, name: &str) -> Result<Numbers<T>, Error> {
    const AT_ONCE: usize = 1 << 16;
    let failed = |source| Error::Write { path: archive.path().into(), source };
    let folder = archive.path().parent().filter(|folder| !folder.as_os_str().is_empty());
    let mut file = BufWriter::with_capacity(
        1 << 18,
        tempfile::tempfile_in(folder.unwrap_or(Path::new("."))).map_err(failed)?,
    );
    let mut reader = archive.reader(name)?;
    let count = reader.header.shape.iter().product::<usize>();
    let (mut left, mut values, mut bytes) = (count, Vec::new(), Vec::new());
    while left > 0 {
        let now = left.min(AT_ONCE);
        values.clear();
        bytes.clear();
        reader.read::<T>(now, &mut values)?;
        values.iter().for_each(|&value| value.put(&mut bytes));
        file.write_all(&bytes).map_err(failed)?;
        left -= now;
    }
    reader.finish()?;
    file.flush().map_err(failed)?;
    Numbers::of(file.get_ref(), count).map_err(failed)
}

/// How many rows the file itself has pointers for.
fn row_pointers(archive: &Npz) -> u64 {
    archive.shape("indptr").map_or(0, |shape| shape.iter().product::<usize>() as u64)
}

/// Rows from pointers, indices and values; columns within a row may come in any order.
fn compressed(archive: &Npz, rows: usize, columns: usize, values: Vec<f64>) -> Result<Csr<f64>, Error> {
    let pointers = archive.vector::<usize>("indptr")?;
    let indices = archive.vector::<u32>("indices")?;
    let whole = pointers.len() == rows + 1
        && pointers[0] == 0
        && pointers.is_sorted()
        && pointers[rows] == indices.len()
        && indices.len() == values.len();
    if !whole {
        let problem = format!(
            "{} pointers do not divide {} indices and {} values into {rows} rows",
            pointers.len(),
            indices.len(),
            values.len()
        );
        return Err(archive.malformed("indptr", problem));
    }
    if let Some((at, index)) = indices.iter().enumerate().find(|(_, index)| **index as usize >= columns) {
        return Err(archive.malformed("indices", format!("value {at}: {index} is outside 0..{columns}")));
    }
    let ascending = |row: usize| indices[pointers[row]..pointers[row + 1]].is_sorted_by(|a, b| a < b);
    let invalid = |source| Error::Invalid { path: archive.path().into(), source };
    if (0..rows).all(ascending) {
        return Csr::new(rows, columns, pointers, indices, values).map_err(invalid);
    }
    let account = archive.account();
    account.charge::<(u32, u32, f64)>("the entries", values.len())?;
    let entries: Vec<_> = (0..rows)
        .flat_map(|row| (pointers[row]..pointers[row + 1]).map(move |at| (row as u32, at)))
        .map(|(row, at)| (row, indices[at], values[at]))
        .collect();
    from_entries(archive.path(), rows, columns, &entries, account)
}

/// From this many entries on, about 100 MB, a file is stored as it is: packing it would take longer than making it.
const STORED_FROM: usize = 1 << 23;

/// Writes what `scipy.sparse.load_npz` opens as a `csr_matrix`.
pub(super) fn write(path: &Path, matrix: &Csr<f64>) -> Result<(), Error> {
    let (indices, values) = (matrix.indices(), matrix.values());
    write_rows(
        path,
        matrix.columns(),
        matrix.pointers(),
        |put| indices.iter().copied().try_for_each(put),
        |put| values.iter().copied().try_for_each(put),
    )
}

/// Hands over values one after the other.
pub(crate) type Put<'a, T> = &'a mut dyn FnMut(T) -> io::Result<()>;

/// The same with entries that are handed over value by value, in the order of the rows.
pub(crate) fn write_rows(
    path: &Path,
    columns: usize,
    pointers: &[usize],
    indices: impl FnOnce(Put<'_, u32>) -> io::Result<()>,
    values: impl FnOnce(Put<'_, f64>) -> io::Result<()>,
) -> Result<(), Error> {
    let (rows, entries) = (pointers.len() - 1, pointers[pointers.len() - 1]);
    let mut archive =
        if entries < STORED_FROM { NpzWriter::create(path)? } else { NpzWriter::create_stored(path)? };
    // SciPy wants both index arrays of one type, 32 bits where they suffice.
    if entries.max(columns).max(rows) < i32::MAX as usize {
        archive.array_by::<i32>("indices", &[entries], |put| indices(&mut |index| put(index as i32)))?;
        archive.array_from("indptr", &[pointers.len()], pointers.iter().map(|&pointer| pointer as i32))?;
    } else {
        archive.array_by::<i64>("indices", &[entries], |put| indices(&mut |index| put(i64::from(index))))?;
        archive.array("indptr", &[pointers.len()], pointers)?;
    }
    archive.text("format", "csr")?;
    archive.array("shape", &[2], &[rows, columns])?;
    archive.array_by::<f64>("data", &[entries], values)?;
    archive.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(format: &str, shape: [usize; 2], arrays: &[(&str, &[i64])]) -> Result<Csr<f64>, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        let mut writer = NpzWriter::create(&path)?;
        writer.text("format", format)?;
        writer.array("shape", &[2], &shape)?;
        for (name, values) in arrays {
            writer.array(name, &[values.len()], values)?;
        }
        writer.finish()?;
        read(&Npz::open(&path)?)
    }

    #[test]
    fn the_three_formats_agree() {
        let expected = Csr::new(2, 3, vec![0, 2, 3], vec![0, 2, 1], vec![5.0, 6.0, 7.0]).unwrap();
        let csr =
            archive("csr", [2, 3], &[("indptr", &[0, 2, 3]), ("indices", &[2, 0, 1]), ("data", &[6, 5, 7])]);
        let csc = archive(
            "csc",
            [2, 3],
            &[("indptr", &[0, 1, 2, 3]), ("indices", &[0, 1, 0]), ("data", &[5, 7, 6])],
        );
        let coo = archive(
            "coo",
            [2, 3],
            &[("row", &[1, 0, 0, 0]), ("col", &[1, 2, 0, 2]), ("data", &[7, 2, 5, 4])],
        );
        for matrix in [csr, csc, coo] {
            assert_eq!(matrix.unwrap(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        let message = |format, shape, arrays: &[(&str, &[i64])]| {
            archive(format, shape, arrays).unwrap_err().to_string()
        };
        let out = message("csr", [1, 2], &[("indptr", &[0, 1]), ("indices", &[2]), ("data", &[1])]);
        assert!(out.contains("array 'indices': value 0: 2 is outside 0..2"), "{out}");
        let negative = message("coo", [1, 2], &[("row", &[-1]), ("col", &[0]), ("data", &[1])]);
        assert!(negative.contains("array 'row': value 0: -1 does not fit"), "{negative}");
        let short = message("csr", [2, 2], &[("indptr", &[0, 1]), ("indices", &[0]), ("data", &[1])]);
        assert!(short.contains("2 pointers do not divide"), "{short}");
        let huge = message("coo", [1 << 31, 2], &[("row", &[0]), ("col", &[0]), ("data", &[1])]);
        assert!(huge.contains("too large for a file of 1 entries"), "{huge}");
        let dia = archive("dia", [2, 2], &[("data", &[1])]).unwrap_err();
        assert!(dia.hint().unwrap().contains("tocsr"), "{dia}");
    }
}
