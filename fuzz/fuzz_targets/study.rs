#![no_main]

use std::path::PathBuf;

use qdc_lab::Config;
use qdc_lab::table::{Filter, Table};
use qdc_tune::storage::{self, Memory, Storage, journal};

const LIMIT: u64 = 64 << 20;

thread_local! {
    static FILE: PathBuf = std::env::temp_dir().join(format!("qdc-fuzz-{}.db", std::process::id()));
}

/// What commands ask of a study.
fn read(mut storage: Box<dyn Storage>) {
    if let Ok(studies) = storage.studies() {
        for study in studies {
            let _ = storage.trials(study.id, -1, &[]);
            let _ = Config::of_trial(storage.as_mut(), Some(&study.name), None)
                .and_then(|(config, _)| config.hyperparameters());
        }
    }
    let _ = Table::read(&mut [storage], &Filter::default());
}

// A study: an SQLite file by its first bytes, else a journal.
libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    if bytes.starts_with(b"SQLite") {
        FILE.with(|file| {
            std::fs::write(file, bytes).unwrap();
            if let Ok(storage) = storage::open(file.to_str().unwrap(), LIMIT) {
                read(storage);
            }
        });
    } else if let Ok(recorded) = journal::read("fuzz.log", bytes, LIMIT) {
        let mut storage = Memory::new();
        if journal::import(&mut storage, recorded).is_ok() {
            read(Box::new(storage));
        }
    }
});
