//! Numbers in a file seen as a slice, without reading them first.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
use std::marker::PhantomData;
use std::sync::Arc;

use memmap2::Mmap;

/// `f64`s of a mapped file.
pub(crate) struct Mapped {
    // Invariant: `start` is a multiple of 8 and `start + 8 * count` does not exceed the mapping's length.
    map: Arc<Mmap>,
    start: usize,
    count: usize,
}

impl Mapped {
    /// Maps `count` numbers from byte `start` on; `None` if the file does not hold exactly those.
    ///
    /// # Panics
    /// If `start` is not a multiple of 8.
    pub(crate) fn open(file: &File, start: usize, count: usize) -> io::Result<Option<Self>> {
        assert_eq!(start % 8, 0, "numbers are aligned");
        if file.metadata()?.len() != (start + 8 * count) as u64 {
            return Ok(None);
        }
        // SAFETY: a mapping is sound as long as nobody changes the file. Stored spectra are written under
        // another name and renamed, never changed in place; removing one leaves the mapping alive.
        let map = Arc::new(unsafe { Mmap::map(file)? });
        Ok((map.len() == start + 8 * count).then_some(Self { map, start, count }))
    }

    /// Without the first `count` numbers.
    ///
    /// # Panics
    /// If there are not so many.
    pub(crate) fn skip(self, count: usize) -> Self {
        assert!(count <= self.count, "{count} of {} numbers", self.count);
        Self { start: self.start + 8 * count, count: self.count - count, map: self.map }
    }
}

impl AsRef<[f64]> for Mapped {
    fn as_ref(&self) -> &[f64] {
        let bytes = &self.map[self.start..self.start + 8 * self.count];
        // SAFETY: by the invariant the bytes hold `count` numbers, and every pattern of bits is an f64; a
        // mapping starts at a page, so a multiple of 8 is aligned. The slice lives no longer than the
        // mapping.
        unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast::<f64>(), self.count) }
    }
}

/// Numbers of which every pattern of bits is one.
pub(crate) trait Plain: Copy + Send + Sync + 'static {}

impl Plain for u32 {}
impl Plain for f32 {}

/// All numbers of an unnamed file of this process.
pub(crate) struct Numbers<T> {
    // Invariant: the mapping holds at least `count` numbers of type T. None where there are none.
    map: Option<Mmap>,
    count: usize,
    kind: PhantomData<T>,
}

impl<T: Plain> Numbers<T> {
    /// Maps the first `count` numbers of `file`, which must have no name and must not be written to any more.
    pub(crate) fn of(file: &File, count: usize) -> io::Result<Self> {
        if count == 0 {
            return Ok(Self { map: None, count, kind: PhantomData });
        }
        // SAFETY: a mapping is sound as long as nobody changes the file; this one has no name, so that no other process
        // opens it, and this process has finished writing it.
        let map = unsafe { Mmap::map(file)? };
        if map.len() / size_of::<T>() < count {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(Self { map: Some(map), count, kind: PhantomData })
    }
}

impl<T: Plain> AsRef<[T]> for Numbers<T> {
    fn as_ref(&self) -> &[T] {
        match &self.map {
            None => &[],
            // SAFETY: by the invariant the bytes hold `count` numbers, of which every pattern of bits is one; a mapping
            // starts at a page, which is aligned for them. The slice lives no longer than the mapping.
            Some(map) => unsafe { std::slice::from_raw_parts(map.as_ptr().cast::<T>(), self.count) },
        }
    }
}
