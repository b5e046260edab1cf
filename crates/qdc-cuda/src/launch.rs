//! A kernel ready to be launched: the one place where arguments leave Rust's types.

#![allow(unsafe_code)] // launching a kernel is

use std::ffi::c_void;

use cudarc::driver::{CudaFunction, CudaStream, result};

use crate::Error;
use crate::error::while_doing;

/// A kernel with its grid and its argument, a structure of plain numbers.
pub(crate) struct Launch {
    /// The kernel's name.
    #[cfg_attr(not(test), allow(dead_code))] // tests find kernels by it
    pub(crate) name: String,
    pub(crate) function: CudaFunction,
    pub(crate) grid: (u32, u32, u32),
    pub(crate) block: (u32, u32, u32),
    /// Bytes of shared memory beside what the kernel declares.
    pub(crate) shared: u32,
    /// The bytes of the argument; eight at a time, for its alignment.
    argument: Vec<u64>,
}

/// Structures that a kernel takes: `repr(C)`, of numbers only, aligned to and a multiple of eight bytes, and
/// laid out as in `device/*.cu`.
///
/// # Safety
/// Whoever implements it promises just that.
pub(crate) unsafe trait Argument: Copy {}

impl Launch {
    pub(crate) fn new<A: Argument>(
        name: &str,
        function: CudaFunction,
        grid: (u32, u32, u32),
        block: (u32, u32, u32),
        shared: u32,
        argument: A,
    ) -> Self {
        const { assert!(size_of::<A>().is_multiple_of(8) && align_of::<A>() == 8) };
        let mut bytes = vec![0u64; size_of::<A>() / 8];
        // SAFETY: `bytes` has exactly the argument's size and alignment, and the argument is plain numbers.
        unsafe { bytes.as_mut_ptr().cast::<A>().write(argument) };
        Self { name: name.into(), function, grid, block, shared, argument: bytes }
    }

    /// Puts the kernel on `stream`.
    pub(crate) fn enqueue(&self, stream: &CudaStream) -> Result<(), Error> {
        let mut parameters = [self.argument.as_ptr().cast_mut().cast::<c_void>()];
        // SAFETY: each kernel takes one structure, of which the driver copies the bytes before it returns; the pointers in
        // it lead into the allocation of the batch, which outlives the stream's work (`training.rs`
        // synchronises).
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                self.grid,
                self.block,
                self.shared,
                stream.cu_stream(),
                &mut parameters,
            )
        }
        .map_err(while_doing("launching a kernel"))
    }
}
