//! Stored spectra. A damaged one is no obstacle: the command says so and computes the spectrum again.

use super::others::{cuts, qdc};
use super::running::{Case, Expected};

const COMMAND: &str = "spectrum er:n=501,p=0.02";

pub(super) fn cases() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    qdc(folder.path(), &format!("{COMMAND} -q"));
    let stored = std::fs::read_dir(folder.path().join("cache/spectra")).unwrap().next().unwrap().unwrap();
    let name = format!("cache/spectra/{}", stored.file_name().to_string_lossy());
    let whole = std::fs::read(stored.path()).unwrap();
    let case = |what: String, bytes: Vec<u8>| Case {
        name: format!("stored spectrum {what}"),
        files: vec![(name.clone(), bytes)],
        arguments: COMMAND.into(),
        expected: Expected::Warned("it is not used"),
    };
    let mut cases: Vec<Case> =
        cuts(&whole, 6).map(|(cut, bytes)| case(format!("cut at {cut}"), bytes)).collect();
    let page = String::from_utf8(whole[..4080].to_vec()).unwrap();
    let with_header = |text: String| {
        let mut bytes = text.into_bytes();
        bytes.resize(4080, b' ');
        bytes.extend(&whole[4080..]);
        bytes
    };
    for (what, from, to) in [
        ("of many vertices", "\"nodes\":501", "\"nodes\":4294967295"),
        ("of vertices beyond counting", "\"nodes\":501", "\"nodes\":18446744073709551615"),
        ("of no vertices", "\"nodes\":501", "\"nodes\":0"),
        ("of another layout", "\"format\":2", "\"format\":3"),
        ("of another machine", "\"one\":", "\"one\":1"),
        ("with escapes", "\"fingerprint\":\"", "\"fingerprint\":\"\\u001b[2J"),
    ] {
        assert!(page.contains(from), "{page}");
        cases.push(case(what.to_owned(), with_header(page.replacen(from, to, 1))));
    }
    let mut brackets = vec![b'['; 4080];
    brackets.extend(&whole[4080..]);
    cases.push(case("of deep brackets".into(), brackets));
    for (what, at) in [
        ("with another eigenvalue", 4096 + 80),
        ("with another vector", 4096 + 9000),
        ("with another end", whole.len() - 1),
    ] {
        let mut bytes = whole.clone();
        bytes[at] ^= 0x40;
        cases.push(case(what.into(), bytes));
    }
    let mut bytes = whole.clone();
    bytes[5000..9000].fill(0xff); // no numbers
    cases.push(case("of no numbers".into(), bytes));
    cases
}
