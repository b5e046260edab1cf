//! The device as the kernels of the core see it.

use std::sync::OnceLock;

use qdc_core::kernel::{Accelerator, Candidates, ColumnWork};

use crate::panels::{Failure, columns};
use crate::{Device, Error};

/// Operations below which the CPU is done before the device is opened.
const WORTH_IT: f64 = 2e10;

/// A device that makes columns of kernels.
#[derive(Debug)]
pub struct ColumnDevice {
    /// `None`: there is none that works.
    device: OnceLock<Option<Device>>,
    /// Nothing is left to the CPU.
    insists: bool,
}

impl ColumnDevice {
    /// The first device that is found, opened when there is work that is worth it. Small work and what the
    /// device cannot do are left to the CPU.
    pub fn if_worth_it() -> Self {
        Self { device: OnceLock::new(), insists: false }
    }

    /// A device for all work, whose failure is an error.
    ///
    /// # Errors
    /// If there is none that works.
    pub fn insisting() -> Result<Self, Error> {
        Ok(Self { device: OnceLock::from(Some(Device::open()?)), insists: true })
    }

    fn device(&self) -> Option<&Device> {
        self.device.get_or_init(|| Device::open().ok()).as_ref()
    }
}

impl Accelerator for ColumnDevice {
    fn name(&self) -> &str {
        self.device().map_or("no device", Device::name)
    }

    fn takes(&self, operations: f64) -> bool {
        self.insists || (operations >= WORTH_IT && self.device().is_some())
    }

    fn yields(&self) -> bool {
        !self.insists
    }

    fn columns(
        &self,
        work: &ColumnWork<'_>,
        take: &mut dyn FnMut(Candidates) -> Result<(), qdc_core::Error>,
    ) -> Result<(), qdc_core::Error> {
        let done = match self.device() {
            Some(device) => columns(device, work, take),
            None => Err(Failure::Device(Error::NoDriver)),
        };
        done.map_err(|failure| match failure {
            Failure::Caller(error) => error,
            Failure::Device(error) => qdc_core::Error::Device { problem: error.to_string() },
        })
    }
}
