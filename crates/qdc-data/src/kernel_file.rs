//! A kernel on its way to a `.npz` file that may be larger than memory.
//!
//! Shards come in the order of their rows. What they keep goes to unnamed temporary files beside the output, which
//! vanish with the process: the rows as they are, and every entry that stands in another row too into a bucket of
//! rows. In the end the buckets are taken up one after the other, those with hubs in several parts, each is joined with
//! its own rows, and the result, now that all row sums are known, is normalised as it is written. Held at a time: a
//! shard, a part of a bucket, and three numbers for each vertex.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use qdc_core::kernel::{Joined, Joining};
use qdc_core::{Csr, KernelReport, Shard};

use crate::Error;
use crate::matrix::write_rows;

/// Bytes of an entry in a bucket: row, column, value.
const ENTRY: usize = 16;
/// Bytes that an entry takes while its bucket is joined: in the bucket, in its own row, and twice in the result.
const JOINING: u64 = 64;
/// The most buckets: each is an open file.
const MOST_BUCKETS: usize = 256;

/// A kernel whose shards are written as they come.
///
/// ```
/// use qdc_core::{EdgeRule, Filter, Graph, Recipe, Resources, Sparsify, Watch};
/// use qdc_data::KernelFile;
/// # let folder = tempfile::tempdir().unwrap();
/// # let path = folder.path().join("kernel.npz");
/// let ring = Graph::from_edges(60, (0..60).map(|i| (i, (i + 1) % 60)), EdgeRule::Undirected)?;
/// let (recipe, watch) = (Recipe::new(Filter::heat(3.0)?).sparsify(Sparsify::top_k(4)?), Watch::silent());
/// let job = recipe.prepare(&ring, &Resources::default(), &watch)?;
/// let mut file = KernelFile::create(&path, 1 << 20)?;
/// for start in [0, 20, 40] {
///     file.push(&job.rows(start..start + 20, &watch)?)?;
/// }
/// let report = file.finish()?;
/// let whole = job.build(&watch)?;
/// assert_eq!(report, whole.report);
/// assert_eq!(qdc_data::matrix::read(&path, qdc_data::Budget::default())?, whole.matrix);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct KernelFile {
    path: PathBuf,
    memory: u64,
    parts: Option<Parts>,
}

#[derive(Debug)]
struct Parts {
    joining: Joining,
    rows: RowFile,
    buckets: Vec<BufWriter<File>>,
    /// The rows of a bucket.
    each: usize,
}

impl KernelFile {
    /// Begins the file `path`; joining may hold about `memory` bytes.
    ///
    /// # Errors
    /// [`Error::Write`] where no file can be made beside it.
    pub fn create(path: &Path, memory: u64) -> Result<Self, Error> {
        let file = Self { path: path.into(), memory, parts: None };
        file.temporary()?;
        Ok(file)
    }

    /// Takes the next shard.
    ///
    /// # Errors
    /// A shard of another kernel, or one that does not begin where the last one ended; [`Error::Write`].
    pub fn push(&mut self, shard: &Shard) -> Result<(), Error> {
        let manifest = &shard.manifest;
        if self.parts.is_none() {
            let report = &manifest.report;
            let row = (JOINING as f64 * report.entries_per_row.max(1.0)).min(1e18) as u64;
            let each = usize::try_from(self.memory / row).unwrap_or(usize::MAX).clamp(1, report.nodes.max(1));
            let each = each.max(report.nodes.div_ceil(MOST_BUCKETS)).max(1);
            let bucket = |_| Ok(BufWriter::new(self.temporary()?));
            let buckets = (0..report.nodes.div_ceil(each)).map(bucket).collect::<Result<_, Error>>()?;
            let rows = RowFile::new(self.temporary()?, self.temporary()?, report.nodes);
            self.parts = Some(Parts { joining: Joining::new(manifest), rows, buckets, each });
        }
        let failed = |source| Error::Write { path: self.path.clone(), source };
        let Some(Parts { joining, rows, buckets, each }) = &mut self.parts else { return Ok(()) };
        joining.add(manifest)?;
        rows.push(&shard.matrix).map_err(failed)?;
        for (row, column, value) in shard.matrix.iter() {
            let row = (manifest.start + row) as u32;
            if joining.reflects(row, column) {
                let mut bytes = [0; ENTRY];
                bytes[..4].copy_from_slice(&column.to_le_bytes());
                bytes[4..8].copy_from_slice(&row.to_le_bytes());
                bytes[8..].copy_from_slice(&value.to_le_bytes());
                buckets[column as usize / *each].write_all(&bytes).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// Joins the shards, writes the kernel, and gives the file its name.
    ///
    /// # Errors
    /// Rows that are missing; [`Error::Write`].
    pub fn finish(self) -> Result<KernelReport, Error> {
        let finished = (self.temporary()?, self.temporary()?);
        let failed = |source| Error::Write { path: self.path.clone(), source };
        let Some(Parts { mut joining, mut rows, buckets, each }) = self.parts else {
            return Err(qdc_core::Error::ShardRows { row: 0, problem: "is in none of the shards" }.into());
        };
        if rows.pointers.len() <= rows.columns {
            return Ok(joining.finish()?.report); // which is the error that rows are missing
        }
        let mut joined_rows = RowFile::new(finished.0, finished.1, rows.columns);
        let mut reader = rows.reader().map_err(failed)?;
        let pointers = reader.pointers;
        for (number, bucket) in buckets.into_iter().enumerate() {
            let all = number * each..((number + 1) * each).min(pointers.len() - 1);
            let mut bucket = bucket.into_inner().map_err(|error| failed(error.into_error()))?;
            for part in parts(&mut bucket, all, pointers, self.memory).map_err(failed)? {
                let own = reader.next_rows(part.len()).map_err(failed)?;
                let reflected = entries_of(&mut bucket, &part).map_err(failed)?;
                joined_rows.push(&joining.rows(&own, &reflected)).map_err(failed)?;
            }
        }
        drop(reader);
        let joined = joining.finish()?;
        write(&self.path, &mut joined_rows, &joined)?;
        Ok(joined.report)
    }

    /// An unnamed file beside the output.
    fn temporary(&self) -> Result<File, Error> {
        let folder =
            self.path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
        tempfile::tempfile_in(folder).map_err(|source| Error::Write { path: self.path.clone(), source })
    }
}

/// The rows of a bucket in parts that can be joined in so much memory, or are single rows.
fn parts(bucket: &mut File, rows: Range<usize>, own: &[usize], memory: u64) -> io::Result<Vec<Range<usize>>> {
    let all = own[rows.end] - own[rows.start] + bucket.seek(SeekFrom::End(0))? as usize / ENTRY;
    if (all as u64).saturating_mul(JOINING) <= memory {
        return Ok(vec![rows]);
    }
    let mut counts: Vec<u64> = rows.clone().map(|row| (own[row + 1] - own[row]) as u64).collect();
    for_entries(bucket, |(row, _, _)| counts[row as usize - rows.start] += 1)?;
    let (mut parts, mut start, mut held) = (Vec::new(), rows.start, 0);
    for (row, count) in rows.clone().zip(counts) {
        if row > start && (held + count) * JOINING > memory {
            parts.push(start..row);
            (start, held) = (row, 0);
        }
        held += count;
    }
    parts.push(start..rows.end);
    Ok(parts)
}

/// The entries of some rows of a bucket, sorted by row and column.
fn entries_of(bucket: &mut File, rows: &Range<usize>) -> io::Result<Vec<(u32, u32, f64)>> {
    let mut entries = Vec::new();
    for_entries(bucket, |entry| {
        if rows.contains(&(entry.0 as usize)) {
            entries.push(entry);
        }
    })?;
    entries.sort_unstable_by_key(|entry| (entry.0, entry.1));
    Ok(entries)
}

/// Calls `take` with every entry of a bucket: row, column, value.
fn for_entries(bucket: &mut File, mut take: impl FnMut((u32, u32, f64))) -> io::Result<()> {
    let length = bucket.seek(SeekFrom::End(0))? as usize;
    bucket.seek(SeekFrom::Start(0))?;
    let mut reader = BufReader::with_capacity(1 << 16, bucket);
    let mut bytes = [0; ENTRY];
    for _ in 0..length / ENTRY {
        reader.read_exact(&mut bytes)?;
        let index = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four bytes"));
        take((index(0), index(4), f64::from_le_bytes(bytes[8..].try_into().expect("eight bytes"))));
    }
    Ok(())
}

/// Normalises the rows as they are written.
fn write(path: &Path, rows: &mut RowFile, joined: &Joined) -> Result<(), Error> {
    let pointers = std::mem::take(&mut rows.pointers);
    let failed = |source| Error::Write { path: path.into(), source };
    let mut indices = rows.indices().map_err(failed)?;
    let (mut columns, mut values) = (rows.indices().map_err(failed)?, rows.values().map_err(failed)?);
    let entries = pointers[pointers.len() - 1];
    write_rows(
        path,
        rows.columns,
        &pointers,
        |put| (0..entries).try_for_each(|_| put(u32::from_le_bytes(read(&mut indices)?))),
        |put| {
            for (row, ends) in pointers.windows(2).enumerate() {
                for _ in ends[0]..ends[1] {
                    let column = u32::from_le_bytes(read(&mut columns)?) as usize;
                    put(f64::from_le_bytes(read(&mut values)?) * joined.scale(row, column))?;
                }
            }
            Ok(())
        },
    )
}

fn read<const N: usize>(file: &mut impl Read) -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    file.read_exact(&mut bytes)?;
    Ok(bytes)
}

/// Rows in two files, columns and values.
#[derive(Debug)]
struct RowFile {
    indices: BufWriter<File>,
    values: BufWriter<File>,
    pointers: Vec<usize>,
    columns: usize,
}

impl RowFile {
    fn new(indices: File, values: File, columns: usize) -> Self {
        let writer = |file| BufWriter::with_capacity(1 << 18, file);
        Self { indices: writer(indices), values: writer(values), pointers: vec![0], columns }
    }

    fn push(&mut self, rows: &Csr<f64>) -> io::Result<()> {
        rows.indices().iter().try_for_each(|index| self.indices.write_all(&index.to_le_bytes()))?;
        rows.values().iter().try_for_each(|value| self.values.write_all(&value.to_le_bytes()))?;
        let before = self.pointers[self.pointers.len() - 1];
        self.pointers.extend(rows.pointers()[1..].iter().map(|pointer| before + pointer));
        Ok(())
    }

    /// The columns from the first on.
    fn indices(&mut self) -> io::Result<BufReader<At>> {
        self.indices.flush()?;
        At::start_of(self.indices.get_ref())
    }

    /// The values from the first on.
    fn values(&mut self) -> io::Result<BufReader<At>> {
        self.values.flush()?;
        At::start_of(self.values.get_ref())
    }

    fn reader(&mut self) -> io::Result<RowReader<'_>> {
        let (indices, values) = (self.indices()?, self.values()?);
        Ok(RowReader { pointers: &self.pointers, columns: self.columns, next: 0, indices, values })
    }
}

/// A place in a file that others read too: each reader keeps its own.
#[derive(Debug)]
struct At {
    file: File,
    place: u64,
}

impl At {
    fn start_of(file: &File) -> io::Result<BufReader<Self>> {
        Ok(BufReader::with_capacity(1 << 18, Self { file: file.try_clone()?, place: 0 }))
    }
}

impl Read for At {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.seek(SeekFrom::Start(self.place))?; // a copy of a file shares its place
        let count = self.file.read(buffer)?;
        self.place += count as u64;
        Ok(count)
    }
}

/// Rows one range after the other.
struct RowReader<'a> {
    pointers: &'a [usize],
    columns: usize,
    next: usize,
    indices: BufReader<At>,
    values: BufReader<At>,
}

impl RowReader<'_> {
    /// The next `count` rows, or as many as there are.
    fn next_rows(&mut self, count: usize) -> io::Result<Csr<f64>> {
        let end = (self.next + count).min(self.pointers.len() - 1);
        let own = &self.pointers[self.next..=end];
        let entries = own[own.len() - 1] - own[0];
        let pointers = own.iter().map(|pointer| pointer - own[0]).collect::<Vec<_>>();
        let indices = (0..entries).map(|_| Ok(u32::from_le_bytes(read(&mut self.indices)?)));
        let indices = indices.collect::<io::Result<Vec<u32>>>()?;
        let values = (0..entries).map(|_| Ok(f64::from_le_bytes(read(&mut self.values)?)));
        let values = values.collect::<io::Result<Vec<f64>>>()?;
        self.next = end;
        let rows = Csr::new(pointers.len() - 1, self.columns, pointers, indices, values);
        rows.map_err(|error| io::Error::other(format!("a temporary file was changed: {error}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_bucket_fit_in_memory_or_are_single_rows_and_every_entry_is_in_one() {
        let mut bucket = tempfile::tempfile().unwrap();
        // Row 12 of the rows 10 to 20 is a hub.
        let mut entries: Vec<(u32, u32, f64)> =
            (0..100).map(|at| (if at < 30 { 10 + at % 10 } else { 12 }, 99 - at, f64::from(at))).collect();
        for &(row, column, value) in &entries {
            bucket.write_all(&row.to_le_bytes()).unwrap();
            bucket.write_all(&column.to_le_bytes()).unwrap();
            bucket.write_all(&value.to_le_bytes()).unwrap();
        }
        let own: Vec<usize> = (0..=25).map(|row| 2 * row).collect();
        entries.sort_unstable_by_key(|entry| (entry.0, entry.1));
        let cut = |bucket: &mut File, memory| parts(bucket, 10..20, &own, memory).unwrap();
        assert_eq!(cut(&mut bucket, 120 * JOINING).len(), 1);
        assert_eq!(cut(&mut bucket, 20 * JOINING), [10..12, 12..13, 13..17, 17..20]);
        assert_eq!(cut(&mut bucket, 0), (10..20).map(|row| row..row + 1).collect::<Vec<_>>());
        for memory in [0, 20 * JOINING, u64::MAX] {
            let parts = cut(&mut bucket, memory);
            let found: Vec<_> =
                parts.iter().flat_map(|part| entries_of(&mut bucket, part).unwrap()).collect();
            assert_eq!(found, entries);
        }
    }
}
