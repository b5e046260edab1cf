//! A program of its own: what is abandoned is everything the process writes.

use std::fs;
use std::io::Write;

use qdc_data::output::{OutputFile, abandon_all, write_file};

#[test]
fn what_is_being_written_can_be_abandoned_and_what_is_written_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_file(&path("whole"), |file| file.write_all(b"old")).unwrap();
    let mut begun = [OutputFile::create(&path("whole")).unwrap(), OutputFile::create(&path("new")).unwrap()];
    begun.iter_mut().for_each(|file| file.write_all(b"half").unwrap());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 3);
    abandon_all();
    let names: Vec<_> =
        fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(names, ["whole"]);
    assert!(begun.into_iter().all(|file| file.commit().is_err()));
    assert_eq!(fs::read(path("whole")).unwrap(), b"old");
}
