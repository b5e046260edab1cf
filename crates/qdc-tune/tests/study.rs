//! Studies and their files: what is promised about seeds, batches, kills and bad input.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use qdc_tune::storage::{self, Memory, NewTrial, Sqlite, Storage, journal};
use qdc_tune::{
    Asked, Direction, Distribution, Error, Outcome, Pruning, Sampler, Space, State, Study, Trial,
};
use serde_json::{Value, json};

fn space() -> Space {
    Space::new([
        ("layers", Distribution::categorical([1, 2]).unwrap()),
        ("rate", Distribution::log_uniform(1e-4, 0.1).unwrap()),
        ("mu", Distribution::uniform(-1.0, 1.0).unwrap()),
        ("heads", Distribution::integer(1, 5).unwrap()),
    ])
    .unwrap()
}

fn value(asked: &Asked) -> f64 {
    let (mu, rate) = (asked.number("mu").unwrap(), asked.number("rate").unwrap());
    -(mu - 0.3).powi(2) - (rate.log10() + 2.0).powi(2) - 0.1 * (asked.number("heads").unwrap() - 3.0).abs()
}

fn study(file: &Path, batch: u64) -> Study {
    Study::open(Sqlite::open(file).unwrap(), "s", Direction::Maximize, space()).unwrap().seed(3).batch(batch)
}

/// Runs to `trials`, at most `jobs` at once; the youngest trial under way always finishes first.
fn run(study: &mut Study, trials: usize, jobs: usize) {
    let mut under_way: Vec<Asked> = Vec::new();
    loop {
        while under_way.len() < jobs && study.len() < trials && study.may_ask() {
            under_way.push(study.ask().unwrap());
        }
        let Some(asked) = under_way.pop() else { break };
        assert!(study.tell(&asked, Outcome::complete(value(&asked)).with("seed", 3)).unwrap());
    }
}

fn record(study: &Study) -> Vec<(u64, Option<f64>, BTreeMap<String, Value>)> {
    study.trials().map(|trial| (trial.number, trial.value, trial.parameters())).collect()
}

#[test]
fn results_depend_on_seed_and_batch_but_not_on_the_number_of_workers() {
    for sampler in [Sampler::Random, Sampler::Tpe, Sampler::TpeMultivariate] {
        let search = |batch: u64, jobs: usize| {
            let mut study = Study::open(Memory::new(), "s", Direction::Maximize, space())
                .unwrap()
                .sampler(sampler)
                .seed(11)
                .batch(batch);
            run(&mut study, 40, jobs);
            record(&study)
        };
        let alone = search(4, 1);
        assert_eq!(alone, search(4, 2), "{sampler:?}");
        assert_eq!(alone, search(4, 4), "{sampler:?}");
        assert_eq!(alone, search(4, 9), "{sampler:?}: no more than a batch at once");
        assert_eq!(search(1, 1), search(1, 5), "{sampler:?}");
    }
}

#[test]
fn a_study_killed_and_resumed_ends_like_one_that_was_not() {
    let folder = tempfile::tempdir().unwrap();
    let mut whole = study(&folder.path().join("whole.db"), 3);
    run(&mut whole, 30, 3);
    let file = folder.path().join("killed.db");
    for stop in [1usize, 7, 12, 20, 26] {
        let mut study = study(&file, 3);
        run(&mut study, stop, 3);
        let lost = study.ask().unwrap(); // asked, never told: the process is gone
        study.release(&lost).unwrap();
    }
    let mut last = study(&file, 3);
    run(&mut last, 30, 3);
    assert_eq!(record(&last), record(&whole));
    assert_eq!(record(&study(&file, 3)), record(&whole), "and it reads back the same");
}

#[test]
fn a_trial_whose_process_is_gone_is_asked_for_again_with_the_same_parameters() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let mut storage = Sqlite::open(&file).unwrap();
    let record = storage.open_study("s", Direction::Maximize).unwrap();
    let parameters: BTreeMap<String, (Distribution, f64)> = space()
        .iter()
        .zip([1.0, 0.01, 0.25, 4.0])
        .map(|((name, distribution), value)| (name.to_owned(), (distribution.clone(), value)))
        .collect();
    let (id, _) = storage.add_trial(record.id, None, &NewTrial::running(parameters)).unwrap().unwrap();
    assert!(storage.stale(record.id, 60).unwrap().is_empty(), "this process is alive");
    let database = rusqlite::Connection::open(&file).unwrap();
    database
        .execute("UPDATE trial_heartbeats SET heartbeat = '2020-01-01 00:00:00' WHERE trial_id = ?1", [id])
        .unwrap();
    assert!(storage.stale(record.id, 60).unwrap().is_empty(), "it is alive, however old its heartbeat");
    let elsewhere = r#"{"machine": "another", "process": 1, "started": 1}"#;
    database.execute("UPDATE trial_system_attributes SET value_json = ?1", [elsewhere]).unwrap();
    assert_eq!(storage.stale(record.id, 60).unwrap(), [id], "of other machines heartbeats tell");
    database.execute("UPDATE trial_heartbeats SET heartbeat = CURRENT_TIMESTAMP", []).unwrap();
    assert!(storage.stale(record.id, 60).unwrap().is_empty());
    let mut gone: Value = serde_json::from_str(elsewhere).unwrap();
    gone["machine"] = machine();
    database.execute("UPDATE trial_system_attributes SET value_json = ?1", [gone.to_string()]).unwrap();
    let mut study = study(&file, 1);
    let asked = study.ask().unwrap();
    assert_eq!(
        (asked.trial, asked.parameters["heads"].clone(), asked.parameters["mu"].clone()),
        (0, json!(4), json!(0.25))
    );
    assert!(study.tell(&asked, Outcome::complete(1.0)).unwrap());
    assert!(!study.tell(&asked, Outcome::complete(2.0)).unwrap(), "a finished trial cannot be told again");
    assert_eq!(study.best().unwrap().value, Some(1.0));
}

/// What workers on this machine call it.
fn machine() -> Value {
    let file = tempfile::NamedTempFile::new().unwrap();
    let mut study = study(file.path(), 1);
    let asked = study.ask().unwrap();
    let trials = Sqlite::open(file.path()).unwrap().trials(1, 0, &[]).unwrap();
    assert_eq!(trials[0].id, asked.id());
    trials[0].system_attributes["qdc:owner"]["machine"].clone()
}

#[test]
fn trials_under_way_are_said_to_be_worked_on_without_a_call() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let mut study = study(&file, 1).heartbeat_every(Duration::from_millis(5));
    let asked = study.ask().unwrap();
    let database = rusqlite::Connection::open(&file).unwrap();
    let old = "2020-01-01 00:00:00";
    database.execute("UPDATE trial_heartbeats SET heartbeat = ?1", [old]).unwrap();
    let beat = |_| {
        std::thread::sleep(Duration::from_millis(5));
        let query = "SELECT heartbeat FROM trial_heartbeats WHERE trial_id = ?1";
        database.query_row(query, [asked.id()], |row| row.get::<_, String>(0)).unwrap()
    };
    assert!((0..10_000).map(beat).any(|heartbeat| heartbeat != old), "no heartbeat came");
    study.tell(&asked, Outcome::complete(1.0)).unwrap();
    assert_eq!(study.best().unwrap().value, Some(1.0));
}

#[test]
fn a_study_that_is_dropped_puts_its_trials_back_in_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let lost = study(&file, 1).ask().unwrap();
    let mut second = study(&file, 1);
    assert_eq!(second.trial(0).unwrap().state, State::Waiting);
    let again = second.ask().unwrap();
    assert_eq!((again.trial, &again.parameters), (0, &lost.parameters));
}

/// Deletes trials as the shell of SQLite does: rows of other tables that belong to them stay.
fn delete(file: &Path, condition: &str) {
    let database = rusqlite::Connection::open(file).unwrap();
    let statements = format!("PRAGMA foreign_keys = OFF; DELETE FROM trials WHERE {condition}");
    database.execute_batch(&statements).unwrap();
}

#[test]
fn a_gap_in_the_numbers_stays_a_gap_and_the_search_ends() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    run(&mut study(&file, 1), 4, 1);
    delete(&file, "number = 1");
    let mut again = study(&file, 1);
    run(&mut again, 6, 1);
    let numbers: Vec<u64> = again.trials().map(|trial| trial.number).collect();
    assert_eq!(numbers, [0, 2, 3, 4, 5, 6]);
    assert_eq!(record(&study(&file, 1)), record(&again));
}

#[test]
fn trials_deleted_during_a_search_do_not_stop_it() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let mut search = study(&file, 1);
    run(&mut search, 5, 1);
    delete(&file, "number >= 3");
    run(&mut search, 6, 1);
    let numbers: Vec<u64> = search.trials().map(|trial| trial.number).collect();
    assert_eq!(numbers, [0, 1, 2, 3, 4, 5]);
    assert_eq!(record(&study(&file, 1)), record(&search));
}

#[test]
fn two_trials_of_one_number_are_an_error_that_names_them() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let mut search = study(&file, 1);
    run(&mut search, 3, 1);
    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute("UPDATE trials SET number = 0 WHERE number = 2", []).unwrap();
    let opened = Study::open(Sqlite::open(&file).unwrap(), "s", Direction::Maximize, space());
    let Err(error @ Error::TrialNumber { number: 0, keys: (1, 3), .. }) = opened else {
        panic!("{opened:?}");
    };
    assert!(error.to_string().contains("two trials with the number 0") && error.hint().is_some(), "{error}");
    assert!(matches!(search.ask(), Err(Error::TrialNumber { .. })), "found during a search too");
    database.execute("UPDATE trials SET number = -2 WHERE number = 0", []).unwrap();
    let opened = Study::open(Sqlite::open(&file).unwrap(), "s", Direction::Maximize, space());
    assert!(matches!(opened, Err(Error::Malformed { .. })), "{opened:?}");
}

#[test]
fn a_file_that_cannot_be_written_is_named_with_a_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    run(&mut study(&file, 1), 1, 1);
    let storage = Sqlite::open(&file).unwrap();
    storage.forbid_writing().unwrap();
    let mut study = Study::open(storage, "t", Direction::Maximize, space());
    let error = study.as_mut().map(Study::ask).unwrap_err();
    assert!(matches!(error, Error::ReadOnly { .. }), "{error}");
    assert!(error.to_string().ends_with("s.db cannot be written to"), "{error}");
    assert!(error.hint().unwrap().contains("copy the file"));
}

#[test]
fn two_studies_on_one_file_never_double_a_trial() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| run(&mut study(&file, 2), 40, 2));
        }
    });
    let both = study(&file, 2);
    let numbers: Vec<u64> = both.trials().map(|trial| trial.number).collect();
    assert!(
        numbers.iter().copied().eq(0..numbers.len() as u64) && (40..=43).contains(&numbers.len()),
        "{numbers:?}"
    );
    assert!(both.trials().all(|trial| trial.state == State::Complete));
}

#[test]
fn a_failed_trial_keeps_its_reason_and_the_search_goes_on() {
    let mut study = Study::open(Memory::new(), "s", Direction::Maximize, space()).unwrap().seed(1);
    for number in 0..30 {
        let asked = study.ask().unwrap();
        let outcome =
            if number % 3 == 0 { Outcome::failed("over 1.0 GB") } else { Outcome::complete(value(&asked)) };
        study.tell(&asked, outcome).unwrap();
    }
    let failed: Vec<&Trial> = study.trials().filter(|trial| trial.state == State::Failed).collect();
    assert_eq!(failed.len(), 10);
    assert_eq!(failed[0].user_attributes["failure"], "over 1.0 GB");
    let nan = study.ask().unwrap();
    study.tell(&nan, Outcome::complete(f64::NAN)).unwrap();
    assert_eq!(study.trials().last().unwrap().state, State::Failed);
}

#[test]
fn exact_duplicates_are_noticed() {
    let coin = Space::new([("side", Distribution::categorical(["heads", "tails"]).unwrap())]).unwrap();
    let mut study = Study::open(Memory::new(), "s", Direction::Maximize, coin).unwrap();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for _ in 0..8 {
        let asked = study.ask().unwrap();
        let side = asked.parameters["side"].to_string();
        assert_eq!(asked.duplicate_of, seen.get(&side).copied());
        seen.entry(side).or_insert(asked.trial);
        study.tell(&asked, Outcome::complete(0.0)).unwrap();
    }
}

#[test]
fn pruning_stops_what_is_below_the_median_and_is_off_unless_asked_for() {
    let rule = Pruning::Median { startup: 3, warm_up: 1 };
    for (pruning, expected) in [(Pruning::Off, false), (rule, true)] {
        let mut study =
            Study::open(Memory::new(), "s", Direction::Maximize, space()).unwrap().pruning(pruning);
        for level in [0.5, 0.6, 0.7] {
            let asked = study.ask().unwrap();
            for split in 0..3 {
                study.report(&asked, split, level).unwrap();
            }
            study.tell(&asked, Outcome::complete(level)).unwrap();
        }
        let asked = study.ask().unwrap();
        study.report(&asked, 0, 0.1).unwrap();
        assert!(!study.should_prune(&asked), "not before the warm-up is over");
        study.report(&asked, 1, 0.1).unwrap();
        assert_eq!(study.should_prune(&asked), expected);
        study.report(&asked, 2, 0.65).unwrap();
        assert!(!study.should_prune(&asked));
        study.tell(&asked, Outcome::pruned()).unwrap();
        assert_eq!(study.trials().last().unwrap().value, Some(0.65));
    }
}

#[test]
fn a_journal_carries_a_study_there_and_back_and_a_torn_line_is_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let mut first = study(&folder.path().join("a.db"), 1);
    run(&mut first, 12, 1);
    let mut storage = Sqlite::open(folder.path().join("a.db")).unwrap();
    let studies = storage.studies().unwrap();
    let written = journal::export(&mut storage, &studies).unwrap();
    assert_eq!(written.trials, 12);
    let mut bytes = Vec::new();
    written.write(&mut bytes).unwrap();
    let whole = bytes.len();
    bytes.extend(br#"{"op_code":4,"study_id":0,"datetime_sta"#);
    let read = |bytes: &[u8]| journal::read("journal.log", bytes, 1 << 30).unwrap();
    let mut copy = Sqlite::open(folder.path().join("b.db")).unwrap();
    let imported = journal::import(&mut copy, read(&bytes)).unwrap();
    assert_eq!(imported.studies, [("s".to_owned(), 12)]);
    assert_eq!(imported.torn_line, Some(14), "one line for the study, twelve for its trials, one torn");
    assert!(journal::import(&mut copy, read(&bytes)).is_err(), "its name is taken now");
    assert_eq!(record(&study(&folder.path().join("b.db"), 1)), record(&first));

    // A line that ends but makes no sense is torn too; a whole journal is not.
    bytes.push(b'\n');
    let torn = journal::import(&mut Memory::new(), read(&bytes)).unwrap();
    assert_eq!((torn.studies[0].1, torn.torn_line), (12, Some(14)));
    bytes.truncate(whole);
    assert_eq!(journal::import(&mut Memory::new(), read(&bytes)).unwrap().torn_line, None);
    let refused = journal::read("journal.log", &bytes, whole as u64);
    assert!(matches!(refused, Err(Error::Memory { allowed, .. }) if allowed == whole as u64));
}

#[test]
fn a_file_with_views_or_triggers_or_more_rows_than_allowed_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    run(&mut study(&file, 1), 3, 1);
    let allowed = |memory: u64| {
        Sqlite::open(&file).unwrap().within(memory).unwrap().trials(1, 0, &[]).map(|trials| trials.len())
    };
    assert_eq!(allowed(1 << 30).unwrap(), 3);
    let connection = rusqlite::Connection::open(&file).unwrap();
    let rows = "WITH RECURSIVE n(i) AS (SELECT 10 UNION ALL SELECT i + 1 FROM n LIMIT 200000) \
                INSERT INTO trials (trial_id, number, study_id, state) SELECT i, i, 1, 'WAITING' FROM n";
    connection.execute_batch(rows).unwrap();
    assert!(matches!(allowed(1 << 27), Err(Error::Memory { .. })));
    for (make, drop) in [
        ("CREATE VIEW v AS SELECT 1", "DROP VIEW v"),
        ("CREATE TRIGGER t AFTER INSERT ON trials BEGIN SELECT 1; END", "DROP TRIGGER t"),
    ] {
        connection.execute_batch(make).unwrap();
        assert!(matches!(Sqlite::open(&file), Err(Error::Malformed { .. })), "{make}");
        connection.execute_batch(drop).unwrap();
        assert!(Sqlite::open(&file).is_ok(), "{drop}");
    }
}

#[test]
fn bad_input_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    run(&mut study(&file, 1), 2, 1);
    let reopen = |space: Space, direction| Study::open(Sqlite::open(&file).unwrap(), "s", direction, space);

    let other = Space::new([("mu", Distribution::uniform(-1.0, 2.0).unwrap())]).unwrap();
    let error = reopen(other, Direction::Maximize).unwrap_err();
    assert!(
        matches!(&error, Error::SpaceDiffers { difference, .. } if difference == "mu was [-1, 1] and is now [-1, 2]")
    );
    assert!(error.hint().is_some());
    assert!(matches!(reopen(space(), Direction::Minimize), Err(Error::Direction { .. })));

    let database = rusqlite::Connection::open(&file).unwrap();
    database.execute_batch("BEGIN EXCLUSIVE").unwrap();
    let locked = Sqlite::open_with_patience(&file, Duration::from_millis(10));
    assert!(matches!(locked, Err(Error::Locked { .. })));
    database.execute_batch("ROLLBACK; UPDATE alembic_version SET version_num = 'v9.9.9.a'").unwrap();
    assert!(
        matches!(storage::open(file.to_str().unwrap(), u64::MAX), Err(Error::Schema { found, .. }) if found == "v9.9.9.a")
    );

    let text = folder.path().join("notes.txt");
    std::fs::write(&text, "these are not the trials you are looking for, and long enough for a header")
        .unwrap();
    assert!(matches!(Sqlite::open(&text), Err(Error::Malformed { .. })));
    let foreign = folder.path().join("foreign.db");
    rusqlite::Connection::open(&foreign).unwrap().execute_batch("CREATE TABLE birds (name TEXT)").unwrap();
    assert!(matches!(Sqlite::open(&foreign), Err(Error::Malformed { .. })));
    assert!(Sqlite::open(folder.path().join("no/such/folder.db")).is_err());
}

#[test]
fn a_full_disk_is_said_and_costs_nothing_that_was_finished() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    run(&mut study(&file, 1), 5, 1);
    let before = record(&study(&file, 1));
    let mut storage = Sqlite::open(&file).unwrap();
    let id = storage.studies().unwrap()[0].id;
    storage.limit_pages(1).unwrap(); // no page more than there are
    let big = json!("x".repeat(100_000));
    assert!(matches!(storage.set_study_attribute(id, "big", &big), Err(Error::Full { .. })));
    assert_eq!(record(&study(&file, 1)), before);
}

#[test]
fn what_optuna_enqueued_is_run_first_and_the_rest_of_it_is_suggested() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.db");
    let mut storage = Sqlite::open(&file).unwrap();
    let record = storage.open_study("s", Direction::Maximize).unwrap();
    let mut queued = NewTrial::running(BTreeMap::new());
    queued.state = State::Waiting;
    queued.system_attributes.insert("fixed_params".into(), json!({ "layers": 2, "mu": 0.5 }));
    storage.add_trial(record.id, None, &queued).unwrap();
    let mut study = study(&file, 1);
    let asked = study.ask().unwrap();
    assert_eq!(
        (asked.trial, &asked.parameters["layers"], &asked.parameters["mu"]),
        (0, &json!(2), &json!(0.5))
    );
    assert!(asked.number("rate").is_some());
}

#[test]
fn points_in_the_queue_are_given_out_first_and_in_order() {
    let space = Space::new([
        ("word", Distribution::categorical(["a", "b", "c"]).unwrap()),
        ("number", Distribution::uniform(0.0, 1.0).unwrap()),
    ]);
    let mut study =
        Study::open(Memory::new(), "queued", Direction::Maximize, space.unwrap()).unwrap().seed(1);
    for word in ["c", "a"] {
        study.enqueue(&[("word".to_owned(), json!(word))].into()).unwrap();
    }
    let words: Vec<_> = (0..2).map(|_| study.ask().unwrap().parameters["word"].clone()).collect();
    assert_eq!(words, ["c", "a"]);
    let third = study.ask().unwrap();
    assert_eq!((third.trial, third.parameters.len()), (2, 2));
}
