//! Memory of the host that the device copies to directly: entries of a kernel on their way back.

#![allow(unsafe_code)] // memory of the driver

use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use cudarc::driver::{CudaContext, CudaStream, result};

use crate::Error;
use crate::error::while_doing;
use crate::state::Address;

/// Room for so many entries: values, then rows.
#[derive(Debug)]
pub(crate) struct Pinned {
    context: Arc<CudaContext>,
    start: NonNull<f64>,
    capacity: usize,
}

// SAFETY: it owns its memory, which the driver ties to no thread.
unsafe impl Send for Pinned {}

impl Pinned {
    /// No room yet.
    pub(crate) fn new(context: Arc<CudaContext>) -> Self {
        Self { context, start: NonNull::dangling(), capacity: 0 }
    }

    /// Makes room for at least so many entries; what was there is lost.
    pub(crate) fn make_room(&mut self, entries: usize) -> Result<(), Error> {
        if entries <= self.capacity {
            return Ok(());
        }
        let failed = while_doing("taking memory of the host");
        let bytes = entries * (size_of::<f64>() + size_of::<u32>());
        // SAFETY: a plain allocation, which is aligned to pages. It is filled with zeros so that every number in
        // it is one.
        let start = unsafe {
            self.context.bind_to_thread().map_err(&failed)?;
            let start = result::malloc_host(bytes, 0).map_err(&failed)?.cast::<u8>();
            start.write_bytes(0, bytes);
            start.cast::<f64>()
        };
        let (context, start) = (self.context.clone(), NonNull::new(start).expect("the driver gave memory"));
        *self = Self { context, start, capacity: entries };
        Ok(())
    }

    /// Fills the first `count` entries from the device; `stream` has finished its work afterwards.
    ///
    /// # Panics
    /// If there is not so much room.
    pub(crate) fn read(
        &mut self,
        stream: &CudaStream,
        values: Address,
        rows: Address,
        count: usize,
    ) -> Result<(), Error> {
        assert!(count <= self.capacity, "room for the entries");
        let failed = while_doing("copying from it");
        // SAFETY: the memory has room for `count` values and as many rows after all values; the caller reserved
        // as many at the addresses; nothing else uses either before the stream has finished.
        unsafe {
            let own = slice::from_raw_parts_mut(self.start.as_ptr(), count);
            result::memcpy_dtoh_async(own, values, stream.cu_stream()).map_err(&failed)?;
            let own = slice::from_raw_parts_mut(self.rows().as_ptr(), count);
            result::memcpy_dtoh_async(own, rows, stream.cu_stream()).map_err(&failed)?;
        }
        stream.synchronize().map_err(&failed)
    }

    /// The first `count` values and rows.
    ///
    /// # Panics
    /// If there is not so much room.
    pub(crate) fn split(&self, count: usize) -> (&[f64], &[u32]) {
        assert!(count <= self.capacity, "room for the entries");
        // SAFETY: there is room for as many, and numbers are there: zeros at first, then what was copied.
        unsafe {
            (
                slice::from_raw_parts(self.start.as_ptr(), count),
                slice::from_raw_parts(self.rows().as_ptr(), count),
            )
        }
    }

    /// Where the rows begin: after all values.
    fn rows(&self) -> NonNull<u32> {
        // SAFETY: the values end within the allocation, or at its end where there is none.
        unsafe { self.start.add(self.capacity) }.cast()
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        if self.capacity > 0 {
            self.context.bind_to_thread().ok();
            // SAFETY: the driver gave it, and nothing uses it any more. A failure leaves nothing to be done.
            unsafe { result::free_host(self.start.as_ptr().cast()) }.ok();
        }
    }
}
