//! Edge lists and Matrix Market files, plain and gzipped.

use std::io::Write;

use super::running::Case;

fn gzipped(text: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    out.write_all(text).unwrap();
    out.finish().unwrap()
}

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for text in [
        "",
        "\n\n\n",
        "# nothing\n",
        "from,to\n",
        "0\n",
        "0,1,2,3\n",
        "0,1\n1\n",
        "0,1\n1,2,3\n",
        "0,-1\n",
        "0,1.5\n",
        "0,x\n",
        "0,1\n\u{1b}[2J,1\n",
        "0,1\n1,\u{9b}31m\n",
        "0,4294967295\n",
        "0,4000000000\n",
        "0,99999999999999999999\n",
        "0,1,nan\n",
        "0,1,inf\n",
        "0,1,-1\n",
        "0,1,1e999\n",
        "0,1,x\n",
        "0,1,2\n1,0,3\n",
        "# nodes: 1\n0,1\n",
        "# nodes: 4000000000\n0,1\n",
        "# nodes: 0\n",
        "\u{feff}",
        "\"0\",\"x\"\n",
        "'0','1\n",
        "0;1\n0,1\n",
        "0\t1\n0 x\n",
        ",\n",
        "\0\0\0\0",
    ] {
        cases.push(Case::file(format!("edges {text:?}"), "e.csv", text, "homophily FILE --spectral"));
        cases.push(Case::file(format!("kernel of {text:?}"), "e.tsv", text, "kernel FILE -o q.npz"));
    }
    let start = "%%MatrixMarket matrix coordinate real general\n";
    for text in [
        "",
        "2 2 1\n1 1 1\n",
        "%%MatrixMarket matrix array real general\n2 2\n1\n",
        "%%MatrixMarket matrix coordinate complex general\n2 2 1\n1 1 1 1\n",
        "%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 0\n",
        "%%MatrixMarket matrix coordinate real symmetric\n2 2 1\n1 2 1\n",
        "%%MatrixMarket \u{1b}]0;title\u{7}\n",
        start,
        &format!("{start}2 2\n"),
        &format!("{start}2 2 x\n"),
        &format!("{start}2 2 1\n"),
        &format!("{start}2 2 1\n3 1 1\n"),
        &format!("{start}2 2 1\n0 1 1\n"),
        &format!("{start}2 2 1\n1 1\n"),
        &format!("{start}2 2 1\n1 1 nan\n"),
        &format!("{start}2 2 1\n1 1 1 1\n"),
        &format!("{start}2 2 1\n1 1 1\n1 1 1\n"),
        &format!("{start}2 3 1\n1 2 1\n"),
        &format!("{start}2 2 1\n1 2 1\n"),
        &format!("{start}2 2 2\n1 2 1\n2 1 2\n"),
        &format!("{start}2 2 2\n1 2 -1\n2 1 -1\n"),
        &format!("{start}4294967295 4294967295 1\n1 1 1\n"),
        &format!("{start}4000000000 4000000000 4000000\n1 1 1\n"),
        &format!("{start}18446744073709551615 2 1\n1 1 1\n"),
        &format!("{start}0 0 0\n"),
    ] {
        cases.push(Case::file(format!("market {text:?}"), "m.mtx", text, "kernel FILE -o q.npz"));
        cases.push(Case::file(
            format!("market, packed {text:?}"),
            "m.mtx.gz",
            gzipped(text.as_bytes()),
            "kernel FILE -o q.npz",
        ));
    }
    let list = gzipped("0,1\n1,2\n".repeat(500).as_bytes());
    for part in 1..12 {
        let cut = list.len() * part / 12;
        cases.push(Case::file(
            format!("gzip cut at {cut}"),
            "e.csv.gz",
            &list[..cut],
            "homophily FILE --spectral",
        ));
    }
    // Sixty million edges in half a megabyte; a line that never ends; rows for 34 GB of pointers.
    cases.push(Case::file(
        "edges by the million",
        "e.csv.gz",
        gzipped(&b"0,1\n".repeat(60_000_000)),
        "homophily FILE",
    ));
    cases.push(Case::file(
        "a line without end",
        "e.csv.gz",
        gzipped(&vec![b'1'; 200_000_000]),
        "homophily FILE",
    ));
    let rows = format!("{start}4290000000 4290000000 4300000\n{}", "1 1 1\n".repeat(4_300_000));
    cases.push(Case::file(
        "rows by the billion",
        "m.mtx.gz",
        gzipped(rows.as_bytes()),
        "kernel FILE -o q.npz",
    ));
    cases.push(Case::file("no gzip", "e.csv.gz", "0,1\n", "homophily FILE"));
    cases
}
