//! Memory by plan: arrays are placed one after the other in one allocation, whose size is known before it is
//! made.
//!
//! The same code runs twice: first with a dry [`Room`], which only counts, then with the real one.

#![allow(unsafe_code)] // copies to addresses

use std::sync::Arc;

use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DeviceRepr, result};

use crate::error::while_doing;
use crate::state::Address;
use crate::{Device, Error};

/// Arrays begin at multiples of this.
const ALIGNMENT: u64 = 256;

/// A place for arrays.
pub(crate) struct Room {
    base: Address,
    length: u64,
    /// The stream of the allocation; none in a dry room.
    stream: Option<Arc<CudaStream>>,
}

impl Room {
    /// A room that only counts.
    pub(crate) fn dry() -> Self {
        Self { base: 0, length: 0, stream: None }
    }

    /// The room of an allocation.
    pub(crate) fn of(allocation: &Allocation) -> Self {
        Self { base: allocation.base, length: 0, stream: Some(allocation.memory.stream().clone()) }
    }

    /// Bytes placed so far.
    pub(crate) fn bytes(&self) -> u64 {
        self.length
    }

    /// Room for `count` numbers of type `T`, which begin at 0.
    pub(crate) fn reserve<T>(&mut self, count: u64) -> Address {
        let place = self.length;
        self.length += (count * size_of::<T>() as u64).next_multiple_of(ALIGNMENT);
        self.base + place
    }

    /// Room for `count` numbers, and the numbers copied there; a dry room does not ask for them.
    pub(crate) fn upload<T: DeviceRepr>(
        &mut self,
        count: u64,
        numbers: impl FnOnce() -> Vec<T>,
    ) -> Result<Address, Error> {
        let place = self.reserve::<T>(count);
        if let Some(stream) = self.stream.as_ref().filter(|_| count > 0) {
            let numbers = numbers();
            assert_eq!(numbers.len() as u64, count, "numbers to be copied to the device");
            write(stream, place, &numbers)?;
        }
        Ok(place)
    }

    /// Room for numbers that lie in the host's memory, and the numbers copied there.
    pub(crate) fn copy<T: DeviceRepr>(&mut self, numbers: &[T]) -> Result<Address, Error> {
        let place = self.reserve::<T>(numbers.len() as u64);
        if let Some(stream) = self.stream.as_ref().filter(|_| !numbers.is_empty()) {
            write(stream, place, numbers)?;
        }
        Ok(place)
    }
}

/// Memory of the device, of zeros at first.
pub(crate) struct Allocation {
    memory: CudaSlice<u8>,
    base: Address,
}

impl Allocation {
    /// Allocates `bytes`.
    ///
    /// # Errors
    /// If the device has less free.
    pub(crate) fn new(device: &Device, stream: &Arc<CudaStream>, bytes: u64) -> Result<Self, Error> {
        let memory = match stream.alloc_zeros::<u8>(bytes.max(1) as usize) {
            Err(error) if error.0 == cudarc::driver::sys::CUresult::CUDA_ERROR_OUT_OF_MEMORY => {
                return Err(Error::Memory { needed: bytes, free: device.free_memory()? });
            }
            other => other.map_err(while_doing("allocating memory"))?,
        };
        stream.synchronize().map_err(while_doing("allocating memory"))?;
        let base = memory.device_ptr(stream).0;
        Ok(Self { memory, base })
    }

    /// Copies numbers to an address within.
    ///
    /// # Panics
    /// If they do not lie within.
    pub(crate) fn write<T: DeviceRepr>(&self, to: Address, numbers: &[T]) -> Result<(), Error> {
        let end = to + size_of_val(numbers) as u64;
        assert!(
            to >= self.base && end <= self.base + self.memory.len() as u64,
            "numbers beyond the allocation"
        );
        write(self.memory.stream(), to, numbers)
    }
}

/// Copies `count` numbers from the device; `stream` has finished its work afterwards.
pub(crate) fn read<T: DeviceRepr + Default + Clone>(
    stream: &CudaStream,
    from: Address,
    count: usize,
) -> Result<Vec<T>, Error> {
    let mut numbers = vec![T::default(); count];
    read_into(stream, from, &mut numbers)?;
    Ok(numbers)
}

/// Fills `numbers` from the device; `stream` has finished its work afterwards.
pub(crate) fn read_into<T: DeviceRepr>(
    stream: &CudaStream,
    from: Address,
    numbers: &mut [T],
) -> Result<(), Error> {
    let failed = while_doing("copying from it");
    stream.synchronize().map_err(&failed)?;
    // SAFETY: the caller reserved as many numbers of this type there, and nothing writes to them now.
    unsafe { result::memcpy_dtoh_sync(numbers, from) }.map_err(&failed)
}

/// Copies numbers to an address that the caller reserved for them, after what `stream` does now; they are there
/// when it returns.
///
/// The copy must be on the stream whose kernels read it. The driver's synchronous copy returns when the numbers
/// have left ordinary memory, not when they have arrived; it uses the default stream, and ours do not wait for that
/// one: under load a first step would read what is not there yet.
pub(crate) fn write<T: DeviceRepr>(stream: &CudaStream, to: Address, numbers: &[T]) -> Result<(), Error> {
    let failed = while_doing("copying to it");
    // SAFETY: the caller reserved as many numbers of this type there, and they live until the stream is done.
    unsafe { result::memcpy_htod_async(to, numbers, stream.cu_stream()) }.map_err(&failed)?;
    stream.synchronize().map_err(&failed)
}

/// Waits until `stream` has finished its work.
pub(crate) fn wait(stream: &CudaStream) -> Result<(), Error> {
    stream.synchronize().map_err(while_doing("working"))
}

/// Fills reserved bytes with zeros, in the order of the stream.
pub(crate) fn clear(stream: &CudaStream, at: Address, bytes: usize) -> Result<(), Error> {
    // SAFETY: the caller reserved the bytes there.
    unsafe { result::memset_d8_async(at, 0, bytes, stream.cu_stream()) }
        .map_err(while_doing("clearing memory"))
}
