//! Numbers in a file seen as a slice, without reading them first.

#![allow(unsafe_code)]

use std::fs::File;
use std::io;
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
