//! Complete spectra on disk: computed once for each graph, mapped into memory for every filter and every mu
//! after that.
//!
//! A file is named by the SHA-256 of the transition matrix and holds, after a header of one page, the
//! eigenvalues and the eigenvectors column after column, in the byte order of the machine that wrote it. The
//! last sixteen digits of the page are a checksum of everything else in the file. It is checked whenever the
//! file is opened, which takes one pass over the file. A file is written whole or not at all and never
//! changed.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use qdc_core::hash::{ContentHash, Digest as ContentDigest};
use qdc_core::kernel::SpectrumStore;
use qdc_core::spectrum::{Origin, Pairs, SpectrumReport};
use qdc_core::{Eigensolver, Spectrum, Transition, Watch};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::mapped::Mapped;
use crate::output::write_file;
use crate::{Error, hexadecimal};

/// The header's size: a page, so that the numbers behind it are aligned.
const HEADER: usize = 4096;
/// Bytes of the header before the checksum, sixteen hexadecimal digits.
const TEXT: usize = HEADER - 16;
/// The layout of the file.
const FORMAT: u32 = 2;
/// Spectra of fewer vertices are computed faster than found.
const WORTH_KEEPING: usize = 500;
const EXTENSION: &str = "spectrum";

/// The folder of stored spectra.
///
/// ```no_run
/// use qdc_core::{Eigensolver, Transition, Watch};
/// use qdc_data::SpectrumCache;
///
/// let solver = Eigensolver::new();
/// let cora = qdc_data::load("cora")?;
/// let cache = SpectrumCache::from_environment();
/// let spectrum = cache.load_or_compute(&Transition::new(&cora.graph), &solver, &Watch::silent())?; // seconds
/// let again = cache.load_or_compute(&Transition::new(&cora.graph), &solver, &Watch::silent())?; // milliseconds
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
    origin: Origin,
    fingerprint: String,
    report: SpectrumReport,
}

impl SpectrumCache {
    /// The spectra in a folder of their own; it need not exist yet.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// The spectra in the folder `QDC_CACHE`, or in the user's cache folder where that is not set.
    pub fn from_environment() -> Self {
        Self::new(crate::cache_folder().join("spectra"))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The complete spectrum: from its file if there is a sound one, else computed by `solver` and, from five
    /// hundred vertices on, stored.
    ///
    /// A damaged file is replaced, and a folder that cannot be written costs only the saving; the watch is
    /// told of both.
    pub fn load_or_compute(
        &self,
        transition: &Transition,
        solver: &Eigensolver,
        watch: &Watch,
    ) -> Result<Spectrum, Error> {
        if let Some(spectrum) = self.find(transition, watch) {
            return Ok(spectrum);
        }
        let spectrum = solver.clone().pairs(Pairs::All).solve(transition, watch)?;
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
        let (header, page) = read_header(&file).ok_or_else(|| damaged("the header cannot be read".into()))?;
        if header.one != 1f64.to_bits() || header.fingerprint != fingerprint {
            return Err(damaged("the header belongs to another graph or machine".into()));
        }
        header.origin.check(transition).map_err(|error| damaged(error.to_string()))?;
        let nodes = header.origin.nodes;
        let mapped = Mapped::open(&file, HEADER, nodes + nodes * nodes)
            .map_err(|source| Error::Read { path: path.clone(), source })?
            .ok_or_else(|| damaged("the file has the wrong length".into()))?;
        let (values, vectors) = mapped.as_ref().split_at(nodes);
        let (stored, computed) =
            (String::from_utf8_lossy(&page[TEXT..]), checksum(&page[..TEXT], values, vectors));
        if stored != computed.to_string() {
            return Err(damaged(format!("its checksum is {computed}, expected {stored}")));
        }
        let eigenvalues = values.to_vec();
        let vectors = Arc::new(mapped.skip(nodes));
        Ok(Some(Spectrum::from_parts(header.origin, eigenvalues, vectors, header.report)))
    }

    /// Stores a complete spectrum and says where.
    ///
    /// # Errors
    /// Eigenpairs of another matrix are refused.
    ///
    /// # Panics
    /// If the spectrum is not complete.
    pub fn store(&self, transition: &Transition, spectrum: &Spectrum) -> Result<PathBuf, Error> {
        assert!(spectrum.is_complete(), "only complete spectra are stored");
        spectrum.origin().check(transition)?;
        let (path, fingerprint) = self.locate(transition);
        std::fs::create_dir_all(&self.folder)
            .map_err(|source| Error::Write { path: self.folder.clone(), source })?;
        let header = Header {
            format: FORMAT,
            one: 1f64.to_bits(),
            origin: *spectrum.origin(),
            fingerprint,
            report: spectrum.report().clone(),
        };
        let mut page = serde_json::to_vec(&header).expect("a header of plain numbers and texts");
        assert!(page.len() <= TEXT, "the header fits in a page");
        page.resize(TEXT, b' ');
        let checksum = checksum(&page, spectrum.eigenvalues(), spectrum.vectors());
        write_file(&path, |out| {
            out.write_all(&page)?;
            out.write_all(checksum.to_string().as_bytes())?;
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
                let header = File::open(&path).ok().and_then(|file| read_header(&file));
                let nodes = header.map(|(header, _)| header.origin.nodes);
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
        let fingerprint = hexadecimal(&digest.finalize());
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
        let first = !self.folder.exists();
        match self.store(transition, spectrum) {
            // The folder is announced when it is made, and not again.
            Ok(_) if first => watch.note(&format!(
                "spectra are kept in {} from now on, to be found again; QDC_CACHE or --cache-dir names another folder, and \
                 `qdc cache clear` empties it",
                self.folder.display()
            )),
            Ok(path) => watch.note(&format!("the spectrum is stored in {}", path.display())),
            Err(error) => watch.note(&format!("the spectrum is not stored: {error}")),
        }
    }
}

/// A hash of everything in a file but itself.
fn checksum(text: &[u8], eigenvalues: &[f64], vectors: &[f64]) -> ContentHash {
    ContentDigest::new("stored spectrum").bytes(text).floats(eigenvalues).floats(vectors).finish()
}

/// The header and the page it stands in.
fn read_header(mut file: &File) -> Option<(Header, Vec<u8>)> {
    let mut page = vec![0; HEADER];
    file.read_exact(&mut page).ok()?;
    let header: Header = serde_json::from_slice(&page[..TEXT]).ok()?;
    (header.format == FORMAT).then_some((header, page))
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
        let computed = cache.load_or_compute(&ring(501), &Eigensolver::new(), &Watch::silent()).unwrap();
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
    fn damage_to_any_part_of_a_stored_spectrum_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SpectrumCache::new(folder.path());
        let transition = ring(40);
        let spectrum = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap();
        let path = cache.store(&transition, &spectrum).unwrap();
        let sound = std::fs::read(&path).unwrap();
        assert!(cache.load(&transition).unwrap().is_some());
        let text = String::from_utf8_lossy(&sound[..TEXT]).into_owned();
        let residual = text.find("residual_max").unwrap();
        let vector = HEADER + 8 * (40 + 17 * 40);
        // A sign, a last bit, a swap of two vectors, one number of the report, the checksum itself.
        for at in [HEADER + 7, HEADER + 8 * 39, vector, vector + 7, sound.len() - 1, residual + 15, TEXT] {
            let mut damaged = sound.clone();
            damaged[at] ^= 1;
            std::fs::write(&path, &damaged).unwrap();
            assert!(cache.load(&transition).is_err(), "byte {at}");
        }
        let mut zeroed = sound.clone();
        zeroed[vector..vector + 8 * 40].fill(0);
        let mut swapped = sound.clone();
        swapped.copy_within(vector..vector + 8 * 40, vector + 8 * 40);
        swapped[vector..vector + 8 * 40].copy_from_slice(&sound[vector + 8 * 40..vector + 16 * 40]);
        for damaged in [zeroed, swapped] {
            std::fs::write(&path, &damaged).unwrap();
            let error = cache.load(&transition).unwrap_err();
            assert!(error.to_string().contains("checksum"), "{error}");
        }
    }

    #[test]
    fn eigenpairs_of_another_matrix_are_not_stored() {
        let folder = tempfile::tempdir().unwrap();
        let cache = SpectrumCache::new(folder.path());
        let spectrum = Eigensolver::new().solve(&ring(40), &Watch::silent()).unwrap();
        assert!(cache.store(&ring(41), &spectrum).is_err());
        let chord = Graph::from_edges(40, (0..40).map(|i| (i, (i + 3) % 40)), EdgeRule::Undirected).unwrap();
        assert!(cache.store(&Transition::new(&chord), &spectrum).is_err());
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
            let again = cache.load_or_compute(&transition, &Eigensolver::new(), &Watch::silent()).unwrap();
            assert_eq!(again.eigenvalues(), spectrum.eigenvalues());
        }
    }
}
