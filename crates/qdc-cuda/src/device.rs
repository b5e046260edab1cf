//! The device: what is there, and the kernels loaded into it.

#![allow(unsafe_code)] // calls of the driver

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cudarc::driver::sys::CUdevice_attribute as Attribute;
use cudarc::driver::{CudaContext, CudaFunction, CudaStream, result, sys};
use cudarc::nvrtc::Ptx;

use crate::Error;
use crate::error::{text, while_doing};
use crate::pinned::Pinned;

/// The kernels, as PTX.
pub(crate) const SOURCES: [&str; 10] = [
    include_str!("device/sparse.ptx"),
    include_str!("device/dense.ptx"),
    include_str!("device/attention.ptx"),
    include_str!("device/steps.ptx"),
    include_str!("device/panels.ptx"),
    include_str!("device/pairs.ptx"),
    include_str!("device/whole.ptx"),
    include_str!("device/bank.ptx"),
    include_str!("device/series.ptx"),
    include_str!("device/scores.ptx"),
];

/// Kernels that take all the shared memory that there is.
const HOLDING: [&str; 2] = ["chain_f32", "chain_f64"];

/// What is known of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Its number, counting from 0.
    pub number: usize,
    /// What its maker calls it.
    pub name: String,
    /// Bytes of memory.
    pub memory: u64,
    /// Its compute capability.
    pub capability: (u32, u32),
    /// Its multiprocessors.
    pub multiprocessors: u32,
    /// The CUDA version its driver supports, such as 13.0.
    pub driver: (u32, u32),
}

/// The devices of this machine: none where there is no driver.
///
/// # Errors
/// If there is a driver that does not work.
pub fn devices() -> Result<Vec<DeviceInfo>, Error> {
    if !driver_is_there() {
        return Ok(Vec::new());
    }
    let failed = while_doing("listing devices");
    match result::init() {
        Err(error) if error.0 == sys::CUresult::CUDA_ERROR_NO_DEVICE => return Ok(Vec::new()),
        other => other.map_err(|error| Error::NoDevice { problem: text(&error) })?,
    }
    let count = result::device::get_count().map_err(&failed)?;
    (0..count)
        .map(|number| {
            let device = result::device::get(number).map_err(&failed)?;
            // SAFETY: the device comes from the driver.
            let attribute = |of| unsafe { result::device::get_attribute(device, of) }.map_err(&failed);
            Ok(DeviceInfo {
                number: number as usize,
                name: result::device::get_name(device).map_err(&failed)?,
                // SAFETY: the device comes from the driver.
                memory: unsafe { result::device::total_mem(device) }.map_err(&failed)? as u64,
                capability: (
                    attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)? as u32,
                    attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)? as u32,
                ),
                multiprocessors: attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32,
                driver: driver_version()?,
            })
        })
        .collect()
}

fn driver_version() -> Result<(u32, u32), Error> {
    let mut version = 0;
    // SAFETY: the driver writes one number.
    let status = unsafe { sys::cuDriverGetVersion(&mut version) };
    status.result().map_err(while_doing("asking for the driver's version"))?;
    Ok((version as u32 / 1000, version as u32 % 1000 / 10))
}

fn driver_is_there() -> bool {
    // SAFETY: it only tries to open the driver's library, whose initialisers are the driver's.
    unsafe { sys::is_culib_present() }
}

/// A device with the kernels loaded; cheap to clone, to be shared by threads.
#[derive(Clone)]
pub struct Device {
    context: Arc<CudaContext>,
    kernels: Arc<HashMap<&'static str, CudaFunction>>,
    name: String,
    /// Bytes of shared memory that a block can ask for.
    pub(crate) shared: u32,
    pub(crate) multiprocessors: u32,
    /// Held while memory is planned and taken: two batches must not plan with the same free memory.
    pub(crate) planning: Arc<Mutex<()>>,
    /// Memory of the host for copies, kept because taking it is slow.
    pinned: Arc<Mutex<Vec<Pinned>>>,
}

impl std::fmt::Debug for Device {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Device").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Device {
    /// The first device with the kernels loaded; what this process has opened once, it finds open.
    ///
    /// # Errors
    /// If there is no driver or no device, or the driver cannot compile the kernels.
    pub fn open() -> Result<Self, Error> {
        static OPENED: Mutex<Option<Device>> = Mutex::new(None);
        let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
        match &*opened {
            Some(device) => Ok(device.clone()),
            None => Ok(opened.insert(Self::load()?).clone()),
        }
    }

    fn load() -> Result<Self, Error> {
        if !driver_is_there() {
            return Err(Error::NoDriver);
        }
        let context = CudaContext::new(0).map_err(|error| Error::NoDevice { problem: text(&error) })?;
        // SAFETY: no slice of this crate is used on two streams: every batch has a stream and an allocation of its own.
        unsafe { context.disable_event_tracking() };
        let mut kernels = HashMap::new();
        for source in SOURCES {
            let failed = while_doing("loading the kernels");
            let module = context.load_module(Ptx::from_src(source)).map_err(&failed)?;
            for name in names(source) {
                kernels.insert(name, module.load_function(name).map_err(&failed)?);
            }
        }
        let failed = while_doing("asking for what the device has");
        let name = context.name().map_err(&failed)?;
        let attribute = |of| context.attribute(of).map_err(&failed);
        let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)?;
        let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? as u32;
        // A kernel has to be told before it can have more than the usual share.
        let most = sys::CUfunction_attribute_enum::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
        for name in HOLDING {
            kernels[name].set_attribute(most, shared).map_err(&failed)?;
        }
        let (kernels, shared) = (Arc::new(kernels), shared as u32);
        let (planning, pinned) = (Arc::default(), Arc::default());
        Ok(Self { context, kernels, name, shared, multiprocessors, planning, pinned })
    }

    /// What its maker calls it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Bytes of memory that are free now.
    ///
    /// # Errors
    /// If the driver fails.
    pub fn free_memory(&self) -> Result<u64, Error> {
        let (free, _) = self.context.mem_get_info().map_err(while_doing("asking for free memory"))?;
        Ok(free as u64)
    }

    /// Makes the device that of the calling thread.
    pub(crate) fn bind(&self) -> Result<(), Error> {
        self.context.bind_to_thread().map_err(while_doing("turning to the device"))
    }

    /// A stream of its own for a piece of work.
    pub(crate) fn stream(&self) -> Result<Arc<CudaStream>, Error> {
        self.context.new_stream().map_err(while_doing("making a stream"))
    }

    /// The kernel called `name`.
    ///
    /// # Panics
    /// If there is none.
    pub(crate) fn kernel(&self, name: &str) -> CudaFunction {
        self.kernels.get(name).unwrap_or_else(|| panic!("no kernel is called {name}")).clone()
    }

    /// Memory of the host for copies: what an earlier work left, or none yet.
    pub(crate) fn pinned(&self) -> Pinned {
        let kept = self.pinned.lock().unwrap_or_else(PoisonError::into_inner).pop();
        kept.unwrap_or_else(|| Pinned::new(Arc::clone(&self.context)))
    }

    /// Keeps memory of the host for the next work.
    pub(crate) fn keep_pinned(&self, pinned: Pinned) {
        self.pinned.lock().unwrap_or_else(PoisonError::into_inner).push(pinned);
    }
}

/// The names of the kernels in a PTX source.
fn names(source: &'static str) -> impl Iterator<Item = &'static str> {
    let after = source.split(".visible .entry ").skip(1);
    after.filter_map(|text| text.split_once('(')).map(|(name, _)| name.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_has_a_name_of_its_own() {
        let mut all: Vec<&str> = SOURCES.into_iter().flat_map(names).collect();
        let count = all.len();
        assert!(all.contains(&"step_f64") && all.contains(&"pairs_product") && all.contains(&"gather"));
        assert!(HOLDING.iter().all(|name| all.contains(name)));
        assert!(all.iter().all(|name| name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')));
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
    }
}
