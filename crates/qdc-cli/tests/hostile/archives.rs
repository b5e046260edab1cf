//! Archives: cut off, lying about sizes, unpacking to far more than they are, members twice.

use std::io::Write;

use qdc_data::npz::NpzWriter;

use super::running::Case;

/// The bytes of an archive that `fill` writes.
pub(super) fn written(fill: impl Fn(&mut NpzWriter)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let mut archive = NpzWriter::create(&path).unwrap();
    fill(&mut archive);
    archive.finish().unwrap();
    std::fs::read(path).unwrap()
}

/// A dataset of three vertices without the arrays named.
fn dataset_without(left_out: &[&str], more: impl Fn(&mut NpzWriter)) -> Vec<u8> {
    written(|archive| {
        let keep = |name: &str| !left_out.contains(&name);
        if keep("node_features") {
            archive.array("node_features", &[3, 2], &[1u8, 0, 0, 1, 1, 1]).unwrap();
        }
        if keep("node_labels") {
            archive.array("node_labels", &[3], &[0, 1, 1]).unwrap();
        }
        if keep("edges") {
            archive.array("edges", &[2, 2], &[0, 1, 1, 2]).unwrap();
        }
        for (at, name) in ["train_masks", "val_masks", "test_masks"].into_iter().enumerate() {
            if keep(name) {
                let mask: Vec<bool> = (0..3).map(|vertex| vertex == at).collect();
                archive.array(name, &[1, 3], &mask).unwrap();
            }
        }
        more(archive);
    })
}

fn scipy(format: &str, more: impl Fn(&mut NpzWriter)) -> Vec<u8> {
    written(|archive| {
        archive.text("format", format).unwrap();
        more(archive);
    })
}

/// A zip of stored members, written by hand so that it can lie: (name, content, unpacked size claimed).
fn zip(members: &[(&str, Vec<u8>, u32)]) -> Vec<u8> {
    let (mut file, mut directory) = (Vec::new(), Vec::new());
    for (name, content, claimed) in members {
        let offset = file.len() as u32;
        let mut checksum = flate2::Crc::new();
        checksum.update(content);
        let mut common = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0];
        common.extend(checksum.sum().to_le_bytes());
        common.extend((content.len() as u32).to_le_bytes());
        common.extend(claimed.to_le_bytes());
        common.extend((name.len() as u16).to_le_bytes());
        common.extend([0, 0]);
        file.extend(b"PK\x03\x04");
        file.extend(&common);
        file.extend(name.bytes());
        file.extend(content);
        directory.extend(b"PK\x01\x02\x14\x00");
        directory.extend(&common);
        directory.extend([0; 10]);
        directory.extend(offset.to_le_bytes());
        directory.extend(name.bytes());
    }
    let (start, size) = (file.len() as u32, directory.len() as u32);
    file.extend(directory);
    file.extend(b"PK\x05\x06\0\0\0\0");
    file.extend((members.len() as u16).to_le_bytes());
    file.extend((members.len() as u16).to_le_bytes());
    file.extend(size.to_le_bytes());
    file.extend(start.to_le_bytes());
    file.extend([0, 0]);
    file
}

/// An array with this header text and these data.
fn npy(header: &str, data: &[u8]) -> Vec<u8> {
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    bytes.extend((header.len() as u16).to_le_bytes());
    bytes.extend(header.bytes());
    bytes.write_all(data).unwrap();
    bytes
}

fn member(name: &'static str, content: Vec<u8>) -> (&'static str, Vec<u8>, u32) {
    let size = content.len() as u32;
    (name, content, size)
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    let good = dataset_without(&[], |_| {});
    for tenth in 0..60 {
        let cut = good.len() * tenth / 60;
        cases.push(Case::file(format!("dataset cut at {cut}"), "d.npz", &good[..cut], "data show FILE"));
    }
    for name in ["node_features", "node_labels", "edges", "train_masks", "val_masks", "test_masks"] {
        let without = dataset_without(&[name], |_| {});
        cases.push(Case::file(format!("no {name}"), "d.npz", without, "train FILE --model gcn"));
        let text = dataset_without(&[name], |archive| archive.text(name, "words").unwrap());
        cases.push(Case::file(format!("{name} is text"), "d.npz", text, "train FILE --model gcn"));
        let flat = dataset_without(&[name], |archive| archive.array(name, &[], &[7]).unwrap());
        cases.push(Case::file(format!("{name} is a number"), "d.npz", flat, "train FILE --model gcn"));
        let deep = dataset_without(&[name], |archive| archive.array(name, &[1, 1, 1, 1], &[1]).unwrap());
        cases.push(Case::file(format!("{name} has four axes"), "d.npz", deep, "train FILE --model gcn"));
        // 250 million zero bytes in a quarter of a megabyte; as 64-bit numbers they would be two gigabytes.
        if name == "edges" || name == "node_labels" {
            let bomb = dataset_without(&[name], |archive| {
                let shape = if name == "edges" { vec![125_000_000, 2] } else { vec![250_000_000] };
                archive.array_from(name, &shape, std::iter::repeat_n(0u8, 250_000_000)).unwrap();
            });
            cases.push(Case::file(format!("{name} is a bomb"), "d.npz", bomb, "homophily FILE"));
        }
        if name == "edges" {
            continue; // a graph without edges is one
        }
        let none = dataset_without(&[name], |archive| archive.array(name, &[0, 2], &[] as &[f64]).unwrap());
        cases.push(Case::file(format!("{name} is empty"), "d.npz", none, "train FILE --model gcn"));
    }
    let wrong: [(&str, &[usize], &[f64]); 8] = [
        ("edges", &[1, 2], &[0.0, -1.0]),
        ("edges", &[1, 2], &[0.0, 3.0]),
        ("edges", &[1, 2], &[0.0, 0.5]),
        ("edges", &[1, 2], &[0.0, f64::NAN]),
        ("edges", &[1, 2], &[0.0, 1e300]),
        ("node_labels", &[3], &[0.0, 1e9, 1.0]),
        ("node_features", &[3, 1], &[0.0, f64::INFINITY, 1.0]),
        ("train_masks", &[1, 3], &[2.0, 0.0, 0.0]),
    ];
    for (at, (name, shape, values)) in wrong.into_iter().enumerate() {
        let bytes = dataset_without(&[name], |archive| archive.array(name, shape, values).unwrap());
        cases.push(Case::file(format!("wrong {name} {at}"), "d.npz", bytes, "train FILE --model gcn"));
    }
    let csr = |rows: u64, pointers: Vec<i64>, indices: Vec<i64>, values: Vec<f64>| {
        scipy("csr", |archive| {
            archive.array("shape", &[2], &[rows, rows]).unwrap();
            archive.array("indptr", &[pointers.len()], &pointers).unwrap();
            archive.array("indices", &[indices.len()], &indices).unwrap();
            archive.array("data", &[values.len()], &values).unwrap();
        })
    };
    for (at, bytes) in [
        csr(2, vec![0, 1, 1], vec![5], vec![1.0]),
        csr(2, vec![0, 2, 1], vec![1], vec![1.0]),
        csr(2, vec![0, 1], vec![1], vec![1.0]),
        csr(2, vec![1, 1, 1], vec![1], vec![1.0]),
        csr(2, vec![0, 1, 1], vec![-1], vec![1.0]),
        csr(2, vec![0, 1, 2], vec![1, 0], vec![1.0]),
        csr(2, vec![0, 1, 2], vec![1, 0], vec![1.0, 2.0]),
        csr(2, vec![0, 1, 2], vec![1, 0], vec![-1.0, -1.0]),
        csr(2, vec![0, 1, 2], vec![1, 0], vec![f64::NAN, 1.0]),
        csr(4_000_000_000, vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0]),
        csr(u64::MAX, vec![0, 1, 2], vec![1, 0], vec![1.0, 1.0]),
        csr(0, vec![0], vec![], vec![]),
        scipy("dia", |_| {}),
        scipy("csr", |_| {}),
        scipy("\u{1b}[2J", |archive| archive.array("shape", &[2], &[2, 2]).unwrap()),
        scipy("coo", |archive| {
            // Five million entries in one place of a matrix with 4.2 billion rows: 34 GB of row pointers.
            archive.array("shape", &[2], &[4_200_000_000u64, 4_200_000_000]).unwrap();
            let zeros = |archive: &mut NpzWriter, name: &str| {
                archive.array_from(name, &[5_000_000], std::iter::repeat_n(0u8, 5_000_000)).unwrap();
            };
            ["row", "col", "data"].iter().for_each(|name| zeros(archive, name));
        }),
    ]
    .into_iter()
    .enumerate()
    {
        cases.push(Case::file(format!("matrix {at}"), "m.npz", bytes, "kernel FILE -o q.npz"));
    }
    let header = |descr: &str, shape: &str| {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n")
    };
    for (at, text) in [
        header("|O", "(3,)"),
        header("<c16", "(3,)"),
        header("<f16", "(3,)"),
        header("<f8", "(-3,)"),
        header("<f8", "(9223372036854775807, 9223372036854775807)"),
        header("<f8", "(99999999999999999999999,)"),
        header("<f8", "(1000000000,)"),
        header("<i8", "(2, 2"),
        header("", "(3,)"),
        header("<U1000000000", "()"),
        header("[('a', '<f8')]", "(3,)"),
        "no dictionary".into(),
        "{}".into(),
        String::new(),
        "\u{1b}[31m".repeat(40),
    ]
    .into_iter()
    .enumerate()
    {
        let bytes = zip(&[member("edges.npy", npy(&text, &[0; 24]))]);
        cases.push(Case::file(format!("header {at}"), "d.npz", bytes.clone(), "homophily FILE"));
        let bytes = zip(&[member("format.npy", npy(&text, &[0; 24]))]);
        cases.push(Case::file(format!("header of format {at}"), "m.npz", bytes, "kernel FILE -o q.npz"));
    }
    let edges = || npy(&header("|u1", "(2, 2)"), &[0, 1, 1, 2]);
    for (name, bytes) in [
        ("a member twice", zip(&[member("edges.npy", edges()), member("edges.npy", edges())])),
        ("a name that is a path", zip(&[member("../../edges.npy", edges())])),
        ("an absolute name", zip(&[member("/etc/edges.npy", edges())])),
        ("a name with escapes", zip(&[member("\u{1b}[2Jedges.npy", edges())])),
        ("a size that is a lie", zip(&[("edges.npy", edges(), u32::MAX - 1)])),
        ("a size of a 64-bit field that is missing", zip(&[("edges.npy", edges(), u32::MAX)])),
        ("no member", zip(&[])),
        ("magic alone", b"PK\x05\x06".to_vec()),
        ("an end alone", [b"PK\x05\x06".to_vec(), vec![0xff; 18]].concat()),
        ("nothing", Vec::new()),
        ("zeros", vec![0; 100_000]),
        ("not a zip", b"From: someone\n".to_vec()),
    ] {
        cases.push(Case::file(name, "d.npz", bytes.clone(), "data show FILE"));
        cases.push(Case::file(format!("{name}, as a matrix"), "m.npz", bytes, "kernel FILE -o q.npz"));
    }
    // A directory that claims more members than there are bytes, and offsets beyond the end.
    for (at, place) in [8, 10, 12, 16].into_iter().enumerate() {
        let mut bytes = good.clone();
        let end = bytes.len() - 22 + place;
        bytes[end] = 0xff;
        bytes[end + 1] = 0xff;
        if at > 0 {
            cases.push(Case::file(format!("end record {at}"), "d.npz", bytes, "data show FILE"));
        }
    }
    cases
}
