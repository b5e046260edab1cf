//! What the datasets hold, as hashes of their content.

/// Of each dataset the hash of the content that its original files give, whose checksums are those of
/// `files.txt`. A one-file archive has no checksum of its own, as its bytes depend on the program that wrote
/// it.
pub(super) const CONTENTS: [(&str, &str); 13] = [
    ("cornell", "d22b0f66ec3121ab"),
    ("texas", "f8a6d1575dad3c4b"),
    ("wisconsin", "d028275ae40336d9"),
    ("chameleon", "63e19400c2444cb3"),
    ("squirrel", "58a22fbcd839a530"),
    ("actor", "ee458be93c828b0f"),
    ("cora", "5468371b46f7a3aa"),
    ("citeseer", "727689a698426fbf"),
    ("pubmed", "3437fb20a1196721"),
    ("chameleon-filtered", "04e3cd538cd39ed7"),
    ("squirrel-filtered", "fd0fb88d3f174746"),
    ("minesweeper", "03f19a61bde72846"),
    ("tolokers", "967c7ba01d1e6f64"),
];
