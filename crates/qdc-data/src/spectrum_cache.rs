//! Complete spectra on disk: computed once for each graph, mapped into memory for every filter and every mu after that.
//!
//! A file is named by the SHA-256 of the transition matrix and holds, after a header of one page, the eigenvalues
//! and the eigenvectors column after column, in the byte order of the machine that wrote it. It is written whole or not at all and never changed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qdc_core::kernel::SpectrumStore;
use qdc_core::spectrum::SpectrumReport;
use qdc_core::{Eigensolver, Spectrum, Transition, Watch};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::mapped::Mapped;
use crate::output::write_file;
use crate::{DataDir, Error};

/// The header's size: a page, so that the numbers behind it are aligned.
const HEADER: usize = 4096;
/// Spectra of fewer vertices are computed faster than found.
const WORTH_KEEPING: usize = 500;
/// Pairs tried on L when a file is opened.
const TRIED: usize = 8;
const EXTENSION: &str = "spectrum";

/// The folder of stored spectra.
///
/// ```no_run
/// use qdc_core::{Transition, Watch};
/// use qdc_data::{DataDir, SpectrumCache};
///
/// let cora = qdc_data::load("cora")?;
/// let cache = SpectrumCache::of(&DataDir::from_environment());
/// let spectrum = cache.load_or_compute(&Transition::new(&cora.graph), None, &Watch::silent())?; // seconds
/// let again = cache.load_or_compute(&Transition::new(&cora.graph), None, &Watch::silent())?; // milliseconds
/// # Ok::<(), qdc_data::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct SpectrumCache {
    folder: PathBuf,
}

/// One stored spectrum.
#[derive(Clone, Debug, Serialize)]
pub struct StoredSpectrum {
    /// The file.
    pub path: PathBuf,
    /// Number of vertices; `None` if the header cannot be read.
    pub nodes: Option<usize>,
    /// Size of the file.
    pub bytes: u64,
}

#[derive(Serialize, Deserialize)]
struct Header {
    format: u32,
    /// 1.0 as this machine stores it; another byte order reads another number.
    one: u64,
    nodes: usize,
    fingerprint: String,
    report: SpectrumReport,
}

impl SpectrumCache {
    /// The spectra in a folder of their own; it need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The spectra beside the datasets.
    pub fn of(data: &DataDir) -> Self {
        Self::new(data.path().join("spectra"))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The complete spectrum: from its file if there is a sound one, else computed and, from five hundred vertices
    /// on, stored.
    ///
    /// A damaged file is replaced, and a folder that cannot be written costs only the saving; the watch is told of both.
    pub fn load_or_compute(
        &self,
        transition: &Transition,
        memory: Option<u64>,
        watch: &Watch,
    ) -> Result<Spectrum, Error> {
        if let Some(spectrum) = self.find(transition, watch) {
            return Ok(spectrum);
        }
        let spectrum = Eigensolver::new().memory(memory).solve(transition, watch)?;
        self.keep(transition, &spectrum, watch);
        Ok(spectrum)
    }

    /// The stored spectrum, mapped into memory; `None` if there is none, an error if its file is damaged.
    pub fn load(&self, transition: &Transition) -> Result<Option<Spectrum>, Error> {
        let (path, fingerprint) = self.locate(transition);
        let file = match File::open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::Read { path, source }),
        };
        let damaged = |problem: String| Error::Malformed {
            path: path.clone(),
            place: "stored spectrum".into(),
            problem,
            remedy: Some("remove it with qdc cache clear; it will be computed again".into()),
        };
        let header = read_header(&file).ok_or_else(|| damaged("the header cannot be read".into()))?;
        if header.one != 1f64.to_bits()
            || header.nodes != transition.nodes()
            || header.fingerprint != fingerprint
        {
            return Err(damaged("the header belongs to another graph or machine".into()));
        }
        let nodes = header.nodes;
        let mapped = Mapped::open(&file, HEADER, nodes + nodes * nodes)
            .map_err(|source| Error::Read { path: path.clone(), source })?
            .ok_or_else(|| damaged("the file has the wrong length".into()))?;
        let eigenvalues = mapped.as_ref()[..nodes].to_vec();
        let sound = |pair: &[f64]| pair[0] <= pair[1] && pair[0] >= -1.01 && pair[1] <= 1.01;
        if !eigenvalues.windows(2).all(sound) {
            return Err(damaged("the eigenvalues do not ascend from -1 to 1".into()));
        }
        let spectrum = Spectrum::from_parts(nodes, eigenvalues, Arc::new(mapped.skip(nodes)), header.report);
        let worst = (0..TRIED.min(nodes))
            .map(|at| residual(transition, &spectrum, at * (nodes - 1) / (TRIED - 1).max(1)))
            .fold(
                0.0,
                |worst: f64, residual| if residual.is_nan() { f64::INFINITY } else { worst.max(residual) },
            );
        if worst > 1e-6 {
            return Err(damaged(format!("a vector is not an eigenvector: residual {worst:.1e}")));
        }
        Ok(Some(spectrum))
    }

    /// Stores a complete spectrum and says where.
    ///
    /// # Panics
    /// If the spectrum is not complete or belongs to another graph.
    pub fn store(&self, transition: &Transition, spectrum: &Spectrum) -> Result<PathBuf, Error> {
        assert!(spectrum.is_complete(), "only complete spectra are stored");
        assert_eq!(spectrum.nodes(), transition.nodes(), "the spectrum of this graph");
        let (path, fingerprint) = self.locate(transition);
        std::fs::create_dir_all(&self.folder)
            .map_err(|source| Error::Write { path: self.folder.clone(), source })?;
        let header = Header {
            format: 1,
            one: 1f64.to_bits(),
            nodes: spectrum.nodes(),
            fingerprint,
            report: spectrum.report().clone(),
        };
        let mut page = serde_json::to_vec(&header).expect("a header of plain numbers and texts");
        assert!(page.len() < HEADER, "the header fits in a page");
        page.resize(HEADER, b' ');
        write_file(&path, |out| {
            out.write_all(&page)?;
            write_numbers(out, spectrum.eigenvalues())?;
            write_numbers(out, spectrum.vectors())
        })?;
        Ok(path)
    }

    /// Every stored spectrum, by name.
    pub fn list(&self) -> Result<Vec<StoredSpectrum>, Error> {
        let fail = |source| Error::Read { path: self.folder.clone(), source };
        let entries = match std::fs::read_dir(&self.folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(fail(error)),
        };
        let mut stored = Vec::new();
        for entry in entries {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) {
                let bytes = path.metadata().map_err(fail)?.len();
                let nodes =
                    File::open(&path).ok().and_then(|file| read_header(&file)).map(|header| header.nodes);
                stored.push(StoredSpectrum { path, nodes, bytes });
            }
        }
        stored.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(stored)
    }

    /// Removes every stored spectrum and says which they were.
    pub fn clear(&self) -> Result<Vec<StoredSpectrum>, Error> {
        let stored = self.list()?;
        for spectrum in &stored {
            let fail = |source| Error::Write { path: spectrum.path.clone(), source };
            std::fs::remove_file(&spectrum.path).map_err(fail)?;
        }
        Ok(stored)
    }

    /// The file of a graph's spectrum, and the full fingerprint.
    fn locate(&self, transition: &Transition) -> (PathBuf, String) {
        let matrix = transition.matrix();
        let mut digest = Sha256::new();
        matrix.pointers().iter().for_each(|&pointer| digest.update((pointer as u64).to_le_bytes()));
        matrix.indices().iter().for_each(|index| digest.update(index.to_le_bytes()));
        matrix.values().iter().for_each(|value| digest.update(value.to_le_bytes()));
        let fingerprint: String = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        (self.folder.join(format!("{}.{EXTENSION}", &fingerprint[..32])), fingerprint)
    }
}

impl SpectrumStore for SpectrumCache {
    fn find(&self, transition: &Transition, watch: &Watch) -> Option<Spectrum> {
        self.load(transition).unwrap_or_else(|error| {
            watch.note(&format!("{error}; it is not used"));
            None
        })
    }

    fn keep(&self, transition: &Transition, spectrum: &Spectrum, watch: &Watch) {
        if transition.nodes() < WORTH_KEEPING {
            return;
        }
        match self.store(transition, spectrum) {
            Ok(path) => watch.note(&format!("the spectrum is stored in {}", path.display())),
            Err(error) => watch.note(&format!("the spectrum is not stored: {error}")),
        }
    }
}

fn read_header(mut file: &File) -> Option<Header> {
    let mut page = vec![0; HEADER];
    file.read_exact(&mut page).ok()?;
    let header: Header = serde_json::from_slice(&page).ok()?;
    (header.format == 1).then_some(header)
}

fn write_numbers(out: &mut dyn Write, numbers: &[f64]) -> std::io::Result<()> {
    let mut bytes = Vec::with_capacity(8 * 8192);
    for chunk in numbers.chunks(8192) {
        bytes.clear();
        chunk.iter().for_each(|number| bytes.extend(number.to_ne_bytes()));
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// |L v - E v| of one pair.
fn residual(transition: &Transition, spectrum: &Spectrum, pair: usize) -> f64 {
    let vector = spectrum.vector(pair);
    let mut image = vec![0.0; vector.len()];
    transition.matrix().apply(vector, &mut image);
    let eigenvalue = spectrum.eigenvalues()[pair];
    let norm: f64 = vector.iter().map(|v| v * v).sum();
    let square: f64 = image.iter().zip(vector).map(|(a, v)| (a - eigenvalue * v).powi(2)).sum();
    if (norm - 1.0).abs() > 1e-6 { f64::INFINITY } else { square.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use qdc_core::{EdgeRule, Graph};

    fn ring(nodes: u64) -> Transition {
        let edges = (0..nodes).map(|i| (i, (i + 1) % nodes));
        Transition::new(&Graph::from_edges(nodes as usize, edges, EdgeRule::Undirected).unwrap())
    }

    #[test]
    fn a_stored_spectrum_reads_back_bit_for_bit_and_only_for_its_graph() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SpectrumCache::new(folder.path().join("spectra"));
        assert!(cache.list().unwrap().is_empty());
        let computed = cache.load_or_compute(&ring(501), None, &Watch::silent()).unwrap();
        let mapped = cache.load(&ring(501)).unwrap().unwrap();
        assert_eq!(mapped.eigenvalues(), computed.eigenvalues());
        assert_eq!(mapped.vectors(), computed.vectors());
        assert_eq!(mapped.report(), computed.report());
        assert!(cache.load(&ring(502)).unwrap().is_none());

        let stored = cache.list().unwrap();
        assert_eq!((stored.len(), stored[0].nodes), (1, Some(501)));
        assert_eq!(stored[0].bytes, (HEADER + 8 * (501 + 501 * 501)) as u64);
        assert_eq!(cache.clear().unwrap().len(), 1);
        assert!(cache.load(&ring(501)).unwrap().is_none());
        assert_eq!(mapped.vector(500).len(), 501, "a mapped file outlives its name");
    }

    #[test]
    fn a_damaged_file_is_an_error_with_a_remedy_and_is_computed_again() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SpectrumCache::new(folder.path());
        let transition = ring(40);
        let spectrum = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap();
        let path = cache.store(&transition, &spectrum).unwrap();
        let sound = std::fs::read(&path).unwrap();
        let truncated = sound[..sound.len() - 8].to_vec();
        let (mut header, mut numbers) = (sound.clone(), sound.clone());
        header[0] = b'?';
        numbers[HEADER + 8 * 40..].fill(0);
        for damaged in [truncated, header, numbers, Vec::new()] {
            std::fs::write(&path, damaged).unwrap();
            let error = cache.load(&transition).unwrap_err();
            assert!(error.hint().unwrap().contains("qdc cache clear"), "{error}");
            let again = cache.load_or_compute(&transition, None, &Watch::silent()).unwrap();
            assert_eq!(again.eigenvalues(), spectrum.eigenvalues());
        }
    }
}
