//! Finding cuSOLVER and calling it: the functions of its 64-bit interface that a decomposition takes.

#![allow(unsafe_code)] // calls of a foreign library

use std::ffi::{c_int, c_void};
use std::path::{Path, PathBuf};
use std::ptr::{null, null_mut};

use cudarc::driver::CudaStream;
use libloading::Library as Shared;

use crate::Error;
use crate::state::Address;

/// `CUDA_R_64F`.
const DOUBLE: c_int = 1;
/// `CUSOLVER_EIG_MODE_VECTOR`.
const VECTORS: c_int = 1;
/// `CUBLAS_FILL_MODE_LOWER`.
const LOWER: c_int = 0;

type Opaque = *mut c_void;
type Create = unsafe extern "C" fn(*mut Opaque) -> c_int;
type Destroy = unsafe extern "C" fn(Opaque) -> c_int;
type SetStream = unsafe extern "C" fn(Opaque, Opaque) -> c_int;
type BufferSize = unsafe extern "C" fn(
    Opaque,
    Opaque,
    c_int,
    c_int,
    i64,
    c_int,
    *const c_void,
    i64,
    c_int,
    *const c_void,
    c_int,
    *mut usize,
    *mut usize,
) -> c_int;
type Solve = unsafe extern "C" fn(
    Opaque,
    Opaque,
    c_int,
    c_int,
    i64,
    c_int,
    *mut c_void,
    i64,
    c_int,
    *mut c_void,
    c_int,
    *mut c_void,
    usize,
    *mut c_void,
    usize,
    *mut c_int,
) -> c_int;

/// The functions, and the libraries that hold them.
pub(super) struct Library {
    create: Create,
    destroy: Destroy,
    set_stream: SetStream,
    create_parameters: Create,
    destroy_parameters: Destroy,
    buffer_size: BufferSize,
    solve: Solve,
    _shared: Vec<Shared>,
}

impl Library {
    /// Looks for the library; an error says where.
    pub(super) fn open() -> Result<Self, String> {
        let folders = folders();
        let mut shared = Vec::new();
        // What cuSOLVER itself needs, loaded first: it is then found whatever folder it lies in.
        for name in ["nvJitLink", "cublasLt", "cublas", "cusparse"] {
            shared.extend(load(name, &folders));
        }
        let solver = load("cusolver", &folders).ok_or_else(|| {
            format!(
                "libcusolver is neither among the system's libraries nor in {} other folders",
                folders.len()
            )
        })?;
        // SAFETY: the names and types are those of cusolverDn.h; the library stays loaded as long as `Self`.
        let found = unsafe {
            Self {
                create: function(&solver, "cusolverDnCreate")?,
                destroy: function(&solver, "cusolverDnDestroy")?,
                set_stream: function(&solver, "cusolverDnSetStream")?,
                create_parameters: function(&solver, "cusolverDnCreateParams")?,
                destroy_parameters: function(&solver, "cusolverDnDestroyParams")?,
                buffer_size: function(&solver, "cusolverDnXsyevd_bufferSize")?,
                solve: function(&solver, "cusolverDnXsyevd")?,
                _shared: Vec::new(),
            }
        };
        shared.push(solver);
        Ok(Self { _shared: shared, ..found })
    }
}

/// A function of a library.
///
/// # Safety
/// `F` must be the function's type.
unsafe fn function<F: Copy>(library: &Shared, name: &str) -> Result<F, String> {
    // SAFETY: the caller knows the type.
    let symbol = unsafe { library.get::<F>(name.as_bytes()) };
    symbol.map(|symbol| *symbol).map_err(|error| format!("libcusolver has no {name}: {error}"))
}

/// The newest library of a name, of the system or of a folder.
fn load(name: &str, folders: &[PathBuf]) -> Option<Shared> {
    let plain = [format!("lib{name}.so"), format!("lib{name}.so.13"), format!("lib{name}.so.12")];
    let mut candidates: Vec<PathBuf> = folders.iter().flat_map(|folder| versions(folder, name)).collect();
    candidates.extend(plain.iter().map(PathBuf::from));
    candidates.push(format!("lib{name}.so.11").into());
    candidates.iter().find_map(|path| open(path))
}

/// The files of a library in a folder, newest version first.
fn versions(folder: &Path, name: &str) -> Vec<PathBuf> {
    let prefix = format!("lib{name}.so");
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = |path: &PathBuf| {
        let file = path.file_name().and_then(|file| file.to_str());
        file.is_some_and(|file| file == prefix || file.starts_with(&format!("{prefix}.")))
    };
    let mut found: Vec<PathBuf> = entries.map(|entry| entry.path()).filter(named).collect();
    found.sort_by_key(|path| std::cmp::Reverse(version(path)));
    found
}

/// The numbers behind `.so`.
fn version(path: &Path) -> Vec<u32> {
    let text = path.to_string_lossy();
    let numbers = text.rsplit_once(".so").map_or("", |(_, numbers)| numbers);
    numbers.split('.').filter_map(|number| number.parse().ok()).collect()
}

#[cfg(unix)]
fn open(path: &Path) -> Option<Shared> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_NOW};
    // SAFETY: opening runs the initialisers of NVIDIA's libraries, which are theirs. Global symbols, so that the
    // libraries find one another.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }.ok().map(Shared::from)
}

#[cfg(not(unix))]
fn open(path: &Path) -> Option<Shared> {
    // SAFETY: opening runs the initialisers of NVIDIA's libraries, which are theirs.
    unsafe { Shared::new(path) }.ok()
}

/// Where the library may lie besides the folders of the system's loader, which knows LD_LIBRARY_PATH too:
/// folders of CUDA, and of the packages of Pythons that are at hand.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = vec!["/usr/local/cuda/lib64".into(), "/opt/cuda/lib64".into()];
    for packages in python_packages() {
        let nvidia = packages.join("nvidia");
        // One folder for each library, or one for each version of CUDA.
        let parts = std::fs::read_dir(&nvidia).into_iter().flatten().flatten();
        let mut parts: Vec<PathBuf> = parts.map(|part| part.path().join("lib")).collect();
        parts.sort();
        folders.extend(parts);
    }
    folders.retain(|folder| folder.is_dir());
    folders
}

/// The folders of packages of the active environment and of every `python3` on the PATH.
fn python_packages() -> Vec<PathBuf> {
    let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
    let mut prefixes: Vec<PathBuf> =
        ["VIRTUAL_ENV", "CONDA_PREFIX"].into_iter().filter_map(variable).collect();
    let path = std::env::var_os("PATH").unwrap_or_default();
    let homes = std::env::split_paths(&path).filter(|folder| folder.join("python3").exists());
    prefixes.extend(homes.filter_map(|folder| folder.parent().map(Path::to_owned)));
    prefixes.extend(variable("HOME").map(|home| home.join(".local")));
    prefixes.push("/usr/local".into());
    let mut packages: Vec<PathBuf> = Vec::new();
    for prefix in prefixes {
        let versions = std::fs::read_dir(prefix.join("lib")).into_iter().flatten().flatten();
        let python =
            |path: &PathBuf| path.file_name().is_some_and(|n| n.to_string_lossy().starts_with("python3"));
        for version in versions.map(|entry| entry.path()).filter(python) {
            packages.extend(["site-packages", "dist-packages"].map(|name| version.join(name)));
        }
    }
    packages.retain(|folder| folder.join("nvidia").is_dir());
    packages.dedup();
    packages
}

/// cuSOLVER made ready for a stream.
pub(super) struct Handle<'a> {
    library: &'a Library,
    handle: Opaque,
    parameters: Opaque,
}

impl<'a> Handle<'a> {
    pub(super) fn new(library: &'a Library, stream: &CudaStream) -> Result<Self, Error> {
        let mut made = Self { library, handle: null_mut(), parameters: null_mut() };
        // SAFETY: the library writes the handles, which `drop` gives back; the stream outlives them, and its context
        // is current on this thread, as it was just made here.
        unsafe {
            checked((library.create)(&mut made.handle))?;
            checked((library.create_parameters)(&mut made.parameters))?;
            checked((library.set_stream)(made.handle, stream.cu_stream().cast()))?;
        }
        Ok(made)
    }

    /// Bytes of scratch memory on the device and on the host.
    pub(super) fn workspace(&self, n: usize) -> Result<(usize, usize), Error> {
        let (mut on_device, mut on_host, rows) = (0, 0, n as i64);
        // SAFETY: the arrays are not looked at, only their sizes; two numbers are written.
        checked(unsafe {
            (self.library.buffer_size)(
                self.handle,
                self.parameters,
                VECTORS,
                LOWER,
                rows,
                DOUBLE,
                null(),
                rows,
                DOUBLE,
                null(),
                DOUBLE,
                &mut on_device,
                &mut on_host,
            )
        })?;
        Ok((on_device, on_host))
    }

    /// Decomposes the matrix at `matrix` in place; eigenvalues go to `values`, the outcome to `info`.
    pub(super) fn solve(
        &self,
        n: usize,
        matrix: Address,
        values: Address,
        (work, bytes): (Address, usize),
        host_work: &mut [u8],
        info: Address,
    ) -> Result<(), Error> {
        let rows = n as i64;
        // SAFETY: the caller reserved n x n and n doubles, `bytes` bytes and one number at these addresses
        // of the device, and waits for the stream before it frees them; the host's scratch memory is a slice
        // that is held until then too.
        checked(unsafe {
            (self.library.solve)(
                self.handle,
                self.parameters,
                VECTORS,
                LOWER,
                rows,
                DOUBLE,
                matrix as *mut c_void,
                rows,
                DOUBLE,
                values as *mut c_void,
                DOUBLE,
                work as *mut c_void,
                bytes,
                host_work.as_mut_ptr().cast(),
                host_work.len(),
                info as *mut c_int,
            )
        })
    }
}

impl Drop for Handle<'_> {
    fn drop(&mut self) {
        // SAFETY: both were made by the library, or are null still.
        unsafe {
            if !self.parameters.is_null() {
                (self.library.destroy_parameters)(self.parameters);
            }
            if !self.handle.is_null() {
                (self.library.destroy)(self.handle);
            }
        }
    }
}

fn checked(status: c_int) -> Result<(), Error> {
    match status {
        0 => Ok(()),
        status => {
            let problem = format!("cuSOLVER gave status {status}");
            Err(Error::Driver { doing: "decomposing a matrix", problem })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_version_of_a_library_is_tried_first_and_others_are_not_taken_for_it() {
        let folder = std::env::temp_dir().join(format!("qdc-libraries-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        for name in ["libcublas.so.12", "libcublas.so.9", "libcublas.so", "libcublasLt.so.12", "cublas.h"] {
            std::fs::write(folder.join(name), "").unwrap();
        }
        let names: Vec<_> = versions(&folder, "cublas")
            .iter()
            .map(|path| path.file_name().unwrap().to_string_lossy().into_owned())
            .collect();
        assert_eq!(names, ["libcublas.so.12", "libcublas.so.9", "libcublas.so"]);
        assert!(open(&folder.join("libcublas.so")).is_none(), "an empty file is no library");
        std::fs::remove_dir_all(&folder).unwrap();
        assert!(versions(&folder, "cublas").is_empty());
    }
}
