//! One function for each reader that takes whatever bytes there are and must neither panic nor exhaust the
//! memory.
//!
//! `fuzz/` drives them with cargo-fuzz; the tests here drive them with mutated real files, a little in every
//! run.

use std::path::Path;

use crate::{Budget, EdgeReading, dataset_file, matrix, npz, registry};

/// What one reading may hold: far less than a fuzzer's own limit.
const BUDGET: Budget = Budget::bytes(64 << 20);

/// Reads every array of an archive as every kind of number.
pub fn archive(bytes: &[u8]) {
    let Ok(archive) = npz::Npz::from_bytes("fuzz.npz", bytes.to_vec(), BUDGET) else { return };
    for name in archive.names() {
        let _ = archive.array::<f64>(name);
        let _ = archive.array::<u32>(name);
        let _ = archive.text(name);
    }
}

/// Reads a dataset.
pub fn dataset(bytes: &[u8]) {
    let Ok(archive) = npz::Npz::from_bytes("fuzz.npz", bytes.to_vec(), BUDGET) else { return };
    let _ = dataset_file::from_archive(&archive, "fuzz", EdgeReading::default());
}

/// Reads a matrix of SciPy.
pub fn scipy(bytes: &[u8]) {
    if let Ok(matrix) = matrix::from_bytes::scipy(Path::new("fuzz.npz"), bytes, BUDGET) {
        let _ = matrix::to_graph(Path::new("fuzz.npz"), &matrix, EdgeReading::default());
    }
}

/// Maps a kernel made before, as training does: its links are those that a reader finds.
///
/// # Panics
/// If they are not.
pub fn kernel(bytes: &[u8]) {
    let path = std::env::temp_dir().join("fuzz.npz");
    let Ok(mapped) = matrix::from_bytes::mapped(&path, bytes, BUDGET) else { return };
    if let Ok(read) = matrix::from_bytes::scipy(&path, bytes, BUDGET) {
        assert_eq!((mapped.rows(), mapped.columns()), (read.rows(), read.columns()));
        assert_eq!((mapped.pointers(), mapped.indices()), (read.pointers(), read.indices()));
    }
}

/// Reads a Matrix Market file.
pub fn market(bytes: &[u8]) {
    let _ = matrix::from_bytes::market(Path::new("fuzz.mtx"), bytes, BUDGET);
}

/// Reads an edge list, plain and as if gzipped.
pub fn edge_list(bytes: &[u8]) {
    for name in ["fuzz.csv", "fuzz.csv.gz"] {
        if let Ok(list) = matrix::from_bytes::edge_list(Path::new(name), bytes, BUDGET) {
            let _ = list.into_graph(EdgeReading::default());
        }
    }
}

/// Reads a pickle.
pub fn pickle(bytes: &[u8]) {
    let _ = registry::from_bytes::pickle(Path::new("fuzz.pickle"), bytes, BUDGET);
}

/// Reads the name of a generator, and makes what the budget allows.
pub fn generator(bytes: &[u8]) {
    if let Ok(name) = std::str::from_utf8(bytes) {
        let _ = crate::generators::generate(name, Budget::bytes(1 << 20));
    }
}

/// What Python 2 writes for a small matrix in compressed rows: a sound input for [`pickle`].
pub fn pickled_matrix() -> Vec<u8> {
    let mut bytes =
        b"\x80\x02cscipy.sparse.csr\ncsr_matrix\nq\x01)\x81q\x02}q\x03(U\x06_shapeK\x01K\x02\x86".to_vec();
    for (name, code, data) in [
        ("indptr", "i4", vec![0u8, 0, 0, 0, 1, 0, 0, 0]),
        ("indices", "i4", vec![1, 0, 0, 0]),
        ("data", "f4", vec![0, 0, 128, 63]),
    ] {
        bytes.extend([b'U', name.len() as u8]);
        bytes.extend(name.bytes());
        bytes.extend(b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85U\x01b\x87R(K\x01K");
        bytes.push(data.len() as u8 / 4);
        bytes.extend(b"\x85cnumpy\ndtype\nU\x02");
        bytes.extend(code.bytes());
        bytes.extend(b"K\x00K\x01\x87R(K\x03U\x01<NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T");
        bytes.extend((data.len() as u32).to_le_bytes());
        bytes.extend(data);
        bytes.extend(b"tb");
    }
    bytes.extend(b"ub.");
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generators::ContextualBlocks;
    use crate::{Shares, write_dataset};
    use proptest::prelude::*;
    use qdc_core::Csr;

    /// Changes to a file: (position, what to do, byte).
    fn changes() -> impl Strategy<Value = Vec<(u16, u8, u8)>> {
        proptest::collection::vec(any::<(u16, u8, u8)>(), 1..8)
    }

    fn changed(file: &[u8], changes: &[(u16, u8, u8)]) -> Vec<u8> {
        let mut bytes = file.to_vec();
        for &(position, what, byte) in changes {
            if bytes.is_empty() {
                break;
            }
            let at = (position as usize * bytes.len()) >> 16;
            match what % 6 {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte % 8),
                2 => bytes.truncate(at),
                3 => bytes.insert(at, byte),
                4 => drop(bytes.remove(at)),
                _ => bytes[at] = *[0, 0xff, 0x7f, 0x80].get(byte as usize % 4).unwrap_or(&0),
            }
        }
        bytes
    }

    fn file(name: &str, write: impl Fn(&Path)) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(name);
        write(&path);
        std::fs::read(path).unwrap()
    }

    fn sample() -> Csr<f64> {
        Csr::new(3, 3, vec![0, 1, 3, 4], vec![1, 0, 2, 1], vec![1.0, 1.0, 2.5, 2.5]).unwrap()
    }

    #[test]
    fn the_unchanged_files_are_read() {
        assert!(registry::from_bytes::pickle(Path::new("p"), &pickled_matrix(), BUDGET).is_ok());
        let written = file("m.npz", |path| matrix::write(path, &sample()).unwrap());
        let place = std::env::temp_dir().join("m.npz");
        let mapped = matrix::from_bytes::mapped(&place, &written, BUDGET).unwrap();
        assert_eq!(mapped, sample().map(|value| value as f32));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(200))]

        #[test]
        fn a_changed_dataset_or_matrix_never_panics(changes in changes()) {
            let written = file("d.npz", |path| {
                let model = ContextualBlocks { n: 12, features: 3, ..Default::default() };
                write_dataset(path, &model.generate().unwrap().with_random_splits(Shares::default(), 0)).unwrap();
            });
            let bytes = changed(&written, &changes);
            archive(&bytes);
            dataset(&bytes);
            let matrix = changed(&file("m.npz", |path| matrix::write(path, &sample()).unwrap()), &changes);
            scipy(&matrix);
            kernel(&matrix);
        }

        #[test]
        fn a_changed_text_never_panics(changes in changes()) {
            market(&changed(&file("m.mtx", |path| matrix::write(path, &sample()).unwrap()), &changes));
            edge_list(&changed(b"# nodes: 9\nfrom,to,weight\n0,1,0.5\n1,2,1e3\n", &changes));
            edge_list(&changed(&file("m.csv.gz", |path| matrix::write(path, &sample()).unwrap()), &changes));
        }

        #[test]
        fn a_changed_pickle_never_panics(changes in changes()) {
            pickle(&changed(&pickled_matrix(), &changes));
        }

        #[test]
        fn a_changed_name_never_panics(changes in changes()) {
            for name in ["grid:20x30", "er:n=100,p=0.01,seed=0", "csbm:n=10,homophily=0.2", "barbell:20,1"] {
                generator(&changed(name.as_bytes(), &changes));
            }
        }
    }
}
