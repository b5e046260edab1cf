//! Studies, in SQLite files and in journals, made whole by the program and then spoiled.

use std::path::Path;

use super::archives::written;
use super::others::{cuts, qdc};
use super::running::Case;

/// What reads a study.
const READERS: [&str; 4] =
    ["table FILE", "report FILE -o r.html", "figure violin FILE -o v.svg", "train --from FILE"];

/// Changes to a sound file, as statements.
const CHANGES: [(&str, &str); 18] = [
    (
        "rows without end",
        "ALTER TABLE trials RENAME TO kept; CREATE VIEW trials AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT i AS trial_id, i AS number, 1 AS study_id, 'COMPLETE' AS state, NULL AS datetime_start, NULL AS datetime_complete FROM n",
    ),
    ("a trigger", "CREATE TRIGGER t AFTER INSERT ON trials BEGIN DELETE FROM trials; END"),
    ("another version", "UPDATE alembic_version SET version_num = 'v9.9.9.z'"),
    ("a version with escapes", "UPDATE alembic_version SET version_num = char(27) || '[2J'"),
    ("no version", "DELETE FROM alembic_version"),
    ("no table of trials", "DROP TABLE trials"),
    ("no table of values", "DROP TABLE trial_values"),
    ("no study", "DELETE FROM studies"),
    ("no trial", "DELETE FROM trials"),
    ("an unknown state", "UPDATE trials SET state = 'NONSENSE'"),
    ("a state with escapes", "UPDATE trials SET state = char(27) || '[2J'"),
    ("a negative number", "UPDATE trials SET number = -1"),
    ("a number beyond counting", "UPDATE trials SET number = 9223372036854775807"),
    ("attributes of trials that are not JSON", "UPDATE trial_user_attributes SET value_json = '{'"),
    ("attributes that are not JSON", "UPDATE study_user_attributes SET value_json = char(27) || '[2J'"),
    (
        "attributes of deep brackets",
        "UPDATE study_user_attributes SET value_json = replace(hex(zeroblob(200000)), '0', '[')",
    ),
    (
        "attributes that grow when read",
        "UPDATE study_user_attributes SET value_json = '[' || replace(hex(zeroblob(60000)), '0', '{},') || '0]'",
    ),
    (
        "parameters of no distribution",
        "UPDATE trial_params SET distribution_json = '{\"name\": \"Nonsense\", \"attributes\": {}}'",
    ),
];

fn changed(folder: &Path, whole: &[u8], statements: &str) -> Vec<u8> {
    let path = folder.join("changed.db");
    std::fs::write(&path, whole).unwrap();
    let connection = rusqlite::Connection::open(&path).unwrap();
    connection.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    connection.execute_batch(statements).unwrap_or_else(|error| panic!("{statements}: {error}"));
    drop(connection);
    std::fs::read(path).unwrap()
}

pub(super) fn cases() -> Vec<Case> {
    let folder = tempfile::tempdir().unwrap();
    let read = |name: &str| std::fs::read(folder.path().join(name)).unwrap();
    qdc(folder.path(), "tune csbm:n=40 --model gcn --trials 1 --study s.db -q");
    qdc(folder.path(), "study export s.db -o s.log -q");
    let study = read("s.db");
    let mut cases = Vec::new();
    for (cut, bytes) in cuts(&study, 12).skip(1) {
        cases.push(Case::file(format!("study cut at {cut}"), "s.db", bytes, "table FILE"));
    }
    let text = "not a database at all, but long enough to be read as one".repeat(40);
    cases.push(Case::file("study of text", "s.db", text, "table FILE"));
    cases.push(Case::file("study of another program", "s.db", written(|_| {}), "table FILE"));
    for (at, (name, statements)) in CHANGES.into_iter().enumerate() {
        let bytes = changed(folder.path(), &study, statements);
        let reader = READERS[at % READERS.len()];
        for reader in ["table FILE", reader] {
            cases.push(Case::file(format!("study with {name}: {reader}"), "s.db", bytes.clone(), reader));
        }
    }
    // Four hundred thousand attributes of one trial; a column that SQLite makes of nothing, a gigabyte a row.
    let rows = "WITH RECURSIVE n(i) AS (SELECT 100 UNION ALL SELECT i + 1 FROM n LIMIT 400000) \
                INSERT INTO trial_user_attributes (trial_user_attribute_id, trial_id, \"key\", value_json) SELECT i + 1000, 1, i, '0' FROM n";
    cases.push(Case::file(
        "study of many attributes",
        "s.db",
        changed(folder.path(), &study, rows),
        "table FILE",
    ));
    let column = "ALTER TABLE study_user_attributes RENAME COLUMN value_json TO kept; \
                  ALTER TABLE study_user_attributes ADD COLUMN value_json TEXT GENERATED ALWAYS AS (hex(zeroblob(400000000))) VIRTUAL";
    cases.push(Case::file(
        "study of made-up columns",
        "s.db",
        changed(folder.path(), &study, column),
        "table FILE",
    ));
    cases.extend(journals(&read("s.log")));
    cases
}

fn journals(whole: &[u8]) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut journal = |name: String, bytes: Vec<u8>| {
        cases.push(Case::file(name, "s.log", bytes, "study import FILE --study new.db"));
    };
    // The last line may be torn; any other may not.
    let end = "{\"op_code\":9,\"worker_id\":\"w\",\"trial_id\":0,\"system_attr\":{}}\n";
    let study = "{\"op_code\":0,\"worker_id\":\"w\",\"study_name\":\"s\",\"directions\":[2]}\n";
    let trial =
        |more: &str| format!("{study}{{\"op_code\":4,\"worker_id\":\"w\",\"study_id\":0{more}}}\n{end}");
    for text in [
        "x\n".to_owned(),
        "\u{1b}[2J\n".to_owned(),
        "\0\0\n".to_owned(),
        "{}\n".to_owned(),
        "{\"op_code\":-1}\n".to_owned(),
        "{\"op_code\":0}\n".to_owned(),
        "{\"op_code\":0,\"study_name\":\"s\",\"directions\":[1,2]}\n".to_owned(),
        "{\"op_code\":0,\"study_name\":\"\\u001b[2J\",\"directions\":[7]}\n".to_owned(),
        format!("{}\n", "[".repeat(1_000_000)),
        format!("[{}0]\n", "{},".repeat(700_000)),
        trial(",\"state\":99"),
        trial(",\"state\":-1"),
        trial(",\"params\":{},\"distributions\":{\"a\":\"{}\"}"),
        trial(",\"params\":{\"a\":1},\"distributions\":{\"a\":\"nonsense\"}"),
        trial(
            ",\"params\":{\"a\":1},\"distributions\":{\"a\":{\"name\":\"FloatDistribution\",\"attributes\":{\"low\":1,\"high\":0}}}",
        ),
        format!(
            "{study}{{\"op_code\":4,\"study_id\":0}}\n{{\"op_code\":5,\"trial_id\":0,\"param_name\":\"a\",\"distribution\":\"{{}}\"}}\n"
        ),
        format!("{study}{{\"op_code\":4,\"study_id\":0}}\n{{\"op_code\":6,\"trial_id\":0,\"state\":77}}\n"),
    ] {
        let name: String = text.chars().take(60).collect();
        journal(format!("journal {name:?}"), format!("{text}{end}").into_bytes());
    }
    let lines = whole.iter().filter(|&&byte| byte == b'\n').count();
    assert!(lines > 3, "the journal has {lines} lines");
    for (at, byte) in [(2usize, b'#'), (40, 0xff), (90, b'{')] {
        let mut bytes = whole.to_vec();
        bytes[at] = byte;
        if serde_json::from_slice::<serde_json::Value>(bytes.split(|&byte| byte == b'\n').next().unwrap())
            .is_err()
        {
            journal(format!("journal with another byte at {at}"), bytes);
        }
    }
    cases
}
