//! The one way to write a file: whole or not at all, through links, devices and pipes.
//!
//! A regular file grows under a temporary name in its own folder and takes its name when it is whole. A link
//! stays a link: what it points at is replaced. A device or a pipe is never replaced; its bytes are kept
//! aside and sent when they are whole. The name `-` stands for stdout.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tempfile::{NamedTempFile, SpooledTempFile};

use crate::Error;

/// Bytes for a pipe or a device that are kept in memory; more of them go to an unnamed temporary file.
const KEPT_IN_MEMORY: usize = 64 << 20;
/// The most links that may follow one another, as in Linux.
const MOST_LINKS: usize = 40;

/// A file in the making, which takes its name only when [`OutputFile::commit`] succeeds.
///
/// Dropped before that, it leaves nothing behind.
#[derive(Debug)]
pub struct OutputFile {
    path: PathBuf,
    writer: BufWriter<Target>,
}

#[derive(Debug)]
enum Target {
    /// A regular file: its temporary file, and the place it takes.
    Replacing(NamedTempFile, Unfinished, PathBuf),
    /// A device or a pipe: what will be written to it.
    Through(SpooledTempFile),
}

/// The files of this process: those being written, and those that were.
struct Files {
    unfinished: BTreeSet<PathBuf>,
    finished: Vec<PathBuf>,
    abandoned: bool,
}

fn files() -> MutexGuard<'static, Files> {
    static FILES: Mutex<Files> =
        Mutex::new(Files { unfinished: BTreeSet::new(), finished: Vec::new(), abandoned: false });
    FILES.lock().unwrap_or_else(PoisonError::into_inner) // whole after every operation
}

/// Removes every temporary file of this process and refuses new ones: the process is about to end at once,
/// and what it holds will not be dropped.
pub fn abandon_all() {
    let mut files = files();
    files.abandoned = true;
    for path in &files.unfinished {
        fs::remove_file(path).ok(); // the process ends; there is nothing to do about a failure
    }
}

/// The files this process has finished writing, in that order.
pub fn finished() -> Vec<PathBuf> {
    files().finished.clone()
}

/// The entry of a temporary file in the list of those that have not taken their names yet.
#[derive(Debug)]
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        files().unfinished.remove(&self.0);
    }
}

impl OutputFile {
    /// Begins the file `path`.
    ///
    /// # Errors
    /// [`Error::Write`] where `path` is a folder, a file marked read-only, or in a folder that cannot be
    /// written.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let target = Target::create(path).map_err(|source| Error::Write { path: path.into(), source })?;
        Ok(Self { path: path.into(), writer: BufWriter::with_capacity(1 << 16, target) })
    }

    /// Writes what is buffered and gives the file its name, or sends it to its device or pipe.
    ///
    /// # Errors
    /// [`Error::Write`]; a regular file that stood there before is then as it was.
    pub fn commit(self) -> Result<(), Error> {
        let path = self.path;
        let fail = |source| Error::Write { path: path.clone(), source };
        match self.writer.into_inner().map_err(|error| fail(error.into_error()))? {
            Target::Replacing(file, _entry, target) => {
                file.persist(target).map_err(|error| fail(error.error))?;
            }
            Target::Through(mut bytes) => {
                send(&mut bytes, &path).map_err(fail)?;
            }
        }
        files().finished.push(path);
        Ok(())
    }

    /// The name the file will have.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Target {
    fn create(path: &Path) -> io::Result<Self> {
        if is_stdout(path) || is_written_through(path) {
            return Ok(Self::Through(SpooledTempFile::new(KEPT_IN_MEMORY)));
        }
        let target = behind_links(path)?;
        let permissions = match fs::metadata(&target) {
            Ok(found) if found.is_dir() => return Err(io::ErrorKind::IsADirectory.into()),
            Ok(found) if found.permissions().readonly() => {
                return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is read-only"));
            }
            Ok(found) => Some(found.permissions()),
            Err(_) => None,
        };
        // The lock is held while the file is made, so that `abandon_all` misses none.
        let mut files = files();
        if files.abandoned {
            return Err(io::ErrorKind::Interrupted.into());
        }
        let file = temporary_beside(&target, permissions)?;
        files.unfinished.insert(file.path().into());
        let entry = Unfinished(file.path().into());
        Ok(Self::Replacing(file, entry, target))
    }
}

/// Whether the name stands for stdout.
fn is_stdout(path: &Path) -> bool {
    path.as_os_str() == OsStr::new("-")
}

/// Whether a file of this name exists and is no regular file, or is one that this process already holds open
/// under a name of the system (`/dev/stdout`): such a file must not be replaced.
fn is_written_through(path: &Path) -> bool {
    let system = path.is_absolute() && (path.starts_with("/dev") || path.starts_with("/proc"));
    fs::metadata(path).is_ok_and(|found| !found.is_dir() && (system || !found.is_file()))
}

/// The file that `path` names once every link is followed; the last one need not exist.
fn behind_links(path: &Path) -> io::Result<PathBuf> {
    let mut path = path.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::symlink_metadata(&path) {
            Ok(found) if found.is_symlink() => {
                let target = fs::read_link(&path)?;
                path = path.parent().unwrap_or(Path::new("")).join(target); // an absolute target replaces it
            }
            _ => return Ok(path),
        }
    }
    Err(io::Error::other("too many links follow one another"))
}

/// Sends finished bytes to a device, a pipe or stdout.
fn send(bytes: &mut SpooledTempFile, path: &Path) -> io::Result<u64> {
    bytes.rewind()?;
    if is_stdout(path) {
        let mut stdout = io::stdout().lock();
        let count = io::copy(bytes, &mut stdout)?;
        stdout.flush()?;
        return Ok(count);
    }
    // Opened only now: a pipe that is opened and closed before tells its reader that nothing will come.
    let mut file = File::options().write(true).open(path)?;
    io::copy(bytes, &mut file)
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
            Self::Replacing(file, ..) => file.write(bytes),
            Self::Through(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Replacing(file, ..) => file.flush(),
            Self::Through(file) => file.flush(),
        }
    }
}

impl Seek for Target {
    fn seek(&mut self, position: SeekFrom) -> io::Result<u64> {
        match self {
            Self::Replacing(file, ..) => file.seek(position),
            Self::Through(file) => file.seek(position),
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
///
/// # Errors
/// Those of [`OutputFile::create`] and [`OutputFile::commit`], and what `write` fails with.
pub fn write_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), Error> {
    let mut file = OutputFile::create(path)?;
    write(&mut file).map_err(|source| Error::Write { path: path.into(), source })?;
    file.commit()
}

/// A temporary file in the folder of `target`, with the permissions of the file it replaces, or those any new
/// one has.
fn temporary_beside(target: &Path, replaced: Option<Permissions>) -> io::Result<NamedTempFile> {
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut builder = tempfile::Builder::new();
    builder.prefix(".qdc-").suffix(".part");
    #[cfg(unix)]
    if replaced.is_none() {
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666)); // less the umask
    }
    let file = builder.tempfile_in(folder)?;
    if let Some(permissions) = replaced {
        file.as_file().set_permissions(permissions)?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(path: &Path, bytes: &[u8]) -> Result<(), Error> {
        write_file(path, |file| file.write_all(bytes))
    }

    #[test]
    fn a_failed_write_leaves_the_old_file_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("result");
        write(&path, b"old").unwrap();
        let error = write_file(&path, |file| {
            file.write_all(b"new")?;
            Err(io::ErrorKind::StorageFull.into())
        })
        .unwrap_err();
        assert!(error.hint().unwrap().contains("disk is full"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn what_was_finished_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("known");
        assert!(!finished().contains(&path));
        OutputFile::create(&path).unwrap(); // dropped
        assert!(!finished().contains(&path));
        write(&path, b"").unwrap();
        assert!(finished().contains(&path));
    }

    #[test]
    fn a_folder_that_is_not_there_is_an_error_with_the_path() {
        let error = write(Path::new("no/such/folder/file"), b"").unwrap_err();
        assert!(error.to_string().contains("no/such/folder/file"), "{error}");
        assert!(write(Path::new("."), b"").is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_full_device_is_a_typed_error_and_devices_are_written_directly() {
        let error = write(Path::new("/dev/full"), b"x").unwrap_err();
        assert!(matches!(&error, Error::Write { source, .. } if source.kind() == io::ErrorKind::StorageFull));
        write(Path::new("/dev/null"), b"x").unwrap();
        assert!(!Path::new("/dev/null").is_file());
    }

    #[test]
    #[cfg(unix)]
    fn links_stay_links_and_permissions_stay_as_they_were() {
        use std::os::unix::fs::{PermissionsExt, symlink};
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::create_dir(at("deep")).unwrap();
        symlink("deep/target", at("dangling")).unwrap();
        symlink("dangling", at("link")).unwrap();
        write(&at("link"), b"one").unwrap();
        assert_eq!(fs::read(at("deep/target")).unwrap(), b"one");
        fs::set_permissions(at("deep/target"), Permissions::from_mode(0o600)).unwrap();
        write(&at("link"), b"two").unwrap();
        assert_eq!(fs::read(at("deep/target")).unwrap(), b"two");
        assert!(at("link").is_symlink() && at("dangling").is_symlink());
        assert_eq!(fs::metadata(at("deep/target")).unwrap().permissions().mode() & 0o777, 0o600);
        fs::set_permissions(at("deep/target"), Permissions::from_mode(0o400)).unwrap();
        assert!(write(&at("link"), b"three").unwrap_err().to_string().contains("read-only"));
        symlink("round", at("round")).unwrap();
        assert!(write(&at("round"), b"four").is_err());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn a_pipe_is_written_through_and_stays_a_pipe() {
        use std::os::unix::fs::FileTypeExt;
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        OutputFile::create(&pipe).unwrap(); // a trial: the reader must not take it for the end
        write(&pipe, b"through").unwrap();
        assert_eq!(reader.join().unwrap(), b"through");
        assert!(fs::metadata(&pipe).unwrap().file_type().is_fifo());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }
}
