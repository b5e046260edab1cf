//! Writing files whole or not at all: under a temporary name in the same folder, then renamed.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::NamedTempFile;

use crate::Error;

/// A file in the making, which takes its name only when [`OutputFile::commit`] succeeds.
///
/// Dropped before that, it leaves nothing behind. A path that names a device or a pipe (`/dev/stdout`) is written
/// directly.
#[derive(Debug)]
pub struct OutputFile {
    target: PathBuf,
    writer: BufWriter<Target>,
}

#[derive(Debug)]
enum Target {
    Temporary(NamedTempFile, Unfinished),
    Direct(File),
}

/// Removes every temporary file of this process, which is about to end at once: what it holds will not be dropped.
pub fn abandon_all() {
    for path in unfinished().iter() {
        std::fs::remove_file(path).ok(); // there is nobody left to tell
    }
}

/// The entry of a temporary file in the list of those that have not taken their names yet.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(path: &Path) -> Self {
        unfinished().insert(path.into());
        Self(path.into())
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        unfinished().remove(&self.0);
    }
}

fn unfinished() -> MutexGuard<'static, BTreeSet<PathBuf>> {
    static LIST: Mutex<BTreeSet<PathBuf>> = Mutex::new(BTreeSet::new());
    LIST.lock().unwrap_or_else(PoisonError::into_inner) // whole after every operation
}

impl OutputFile {
    /// Begins the file `path`.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let fail = |source| Error::Write { path: path.into(), source };
        // A link keeps pointing where it points: what it names is replaced.
        let target = path.canonicalize().unwrap_or_else(|_| path.into());
        let inner = match target.metadata() {
            Ok(found) if found.is_dir() => return Err(fail(io::ErrorKind::IsADirectory.into())),
            Ok(found) if !found.is_file() => {
                Target::Direct(File::options().write(true).open(&target).map_err(fail)?)
            }
            _ => {
                let file = temporary_beside(&target).map_err(fail)?;
                let entry = Unfinished::new(file.path());
                Target::Temporary(file, entry)
            }
        };
        Ok(Self { target: path.into(), writer: BufWriter::with_capacity(1 << 16, inner) })
    }

    /// Writes what is buffered and gives the file its name.
    pub fn commit(self) -> Result<(), Error> {
        let path = self.target;
        let fail = |source| Error::Write { path: path.clone(), source };
        match self.writer.into_inner().map_err(|error| fail(error.into_error()))? {
            Target::Direct(mut file) => file.flush().map_err(fail),
            Target::Temporary(file, _entry) => {
                let target = path.canonicalize().unwrap_or_else(|_| path.clone());
                file.persist(target).map_err(|error| fail(error.error))?;
                Ok(())
            }
        }
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        &self.target
    }
}

impl Write for OutputFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.writer.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

impl Seek for OutputFile {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        self.writer.seek(position)
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Temporary(file, _) => file.write(bytes),
            Self::Direct(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Temporary(file, _) => file.flush(),
            Self::Direct(file) => file.flush(),
        }
    }
}

impl Seek for Target {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Temporary(file, _) => file.seek(position),
            Self::Direct(file) => file.seek(position),
        }
    }
}

/// Writes the file `path` whole or not at all.
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// let path = folder.path().join("greeting.txt");
/// qdc_data::output::write_file(&path, |file| file.write_all(b"hello\n"))?;
/// assert_eq!(std::fs::read_to_string(path).unwrap(), "hello\n");
/// # Ok::<(), qdc_data::Error>(())
/// ```
pub fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut file = OutputFile::create(path)?;
    write(&mut file).map_err(|source| Error::Write { path: path.into(), source })?;
    file.commit()
}

/// A temporary file in the folder of `target`, with the permissions any new file has.
fn temporary_beside(target: &Path) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".qdc-").suffix(".part");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(std::fs::Permissions::from_mode(0o666)); // less the umask
    }
    builder.tempfile_in(folder)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        write_file(&path, |file| file.write_all(b"old")).unwrap();
        let error = write_file(&path, |file| {
            file.write_all(b"new")?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert!(error.hint().unwrap().contains("disk is full"), "{error}");
        assert_eq!(std::fs::read(&path).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_with_the_path() {
        let error = write_file(Path::new("no/such/folder/file"), |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("no/such/folder/file"), "{error}");
        assert!(write_file(Path::new("."), |_| Ok(())).is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_device_is_a_typed_error_and_devices_are_written_directly() {
        let error = write_file(Path::new("/dev/full"), |file| file.write_all(b"x")).unwrap_err();
        assert!(matches!(&error, Error::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull));
        write_file(Path::new("/dev/null"), |file| file.write_all(b"x")).unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }
}
