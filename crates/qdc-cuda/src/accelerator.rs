//! The device as the kernels of the core see it.

use std::sync::OnceLock;

use qdc_core::kernel::{Accelerator, Candidates, ColumnWork, Resident, WholeWork};

use crate::panels::{Failure, columns, whole};
use crate::{Device, Error, cusolver};

/// Operations below which the CPU is done before the device is opened.
const WORTH_IT: f64 = 2e10;

/// Rows from which on a decomposition is done sooner on the device than on one core of the CPU, opening the
/// device and cuSOLVER included.
const ROWS_WORTH_IT: usize = 1200;

/// A device that makes columns of kernels, and decomposes matrices where cuSOLVER is there.
#[derive(Debug)]
pub struct ColumnDevice {
    /// `None`: there is none that works.
    device: OnceLock<Option<Device>>,
    /// Small work is done there too.
    all: bool,
    /// The CPU does what the device fails at.
    yields: bool,
}

impl ColumnDevice {
    /// The first device that is found, opened when there is work that is worth it. Small work and what the
    /// device cannot do are left to the CPU.
    pub fn if_worth_it() -> Self {
        Self { device: OnceLock::new(), all: false, yields: true }
    }

    /// The first device that is found, for all work. What it cannot do is left to the CPU.
    pub fn if_there_is_one() -> Self {
        Self { all: true, ..Self::if_worth_it() }
    }

    /// The same device for the same work, whose failure is an error: what it makes has the same bytes.
    ///
    /// # Errors
    /// If there is none that works.
    pub fn only_if_worth_it() -> Result<Self, Error> {
        Ok(Self { all: false, ..Self::insisting()? })
    }

    /// A device for all work, whose failure is an error.
    ///
    /// # Errors
    /// If there is none that works.
    pub fn insisting() -> Result<Self, Error> {
        Ok(Self { device: OnceLock::from(Some(Device::open()?)), all: true, yields: false })
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
        (self.all || operations >= WORTH_IT) && self.device().is_some()
    }

    fn yields(&self) -> bool {
        self.yields
    }

    fn columns(
        &self,
        work: &ColumnWork<'_>,
        take: &mut dyn FnMut(Candidates<'_>) -> Result<(), qdc_core::Error>,
    ) -> Result<(), qdc_core::Error> {
        let done = match self.device() {
            Some(device) => columns(device, work, take),
            None => Err(Failure::Device(Error::NoDriver)),
        };
        done.map_err(|failure| match failure {
            Failure::Caller(error) => error,
            Failure::Device(error) => error.into(),
        })
    }

    fn whole(&self, work: &WholeWork<'_>) -> Result<Option<Box<dyn Resident>>, qdc_core::Error> {
        let device = self.device().ok_or(Error::NoDriver);
        let made = device.and_then(|device| whole(device, work))?;
        Ok(made.map(|matrix| Box::new(matrix) as Box<dyn Resident>))
    }

    fn decomposes(&self, rows: usize) -> bool {
        rows >= ROWS_WORTH_IT && self.device().is_some() && cusolver::is_there()
    }

    fn decompose(&self, rows: usize, matrix: &mut [f64]) -> Result<Vec<f64>, qdc_core::Error> {
        let device = self.device().ok_or(Error::NoDriver);
        Ok(device.and_then(|device| cusolver::decompose(device, rows, matrix))?)
    }
}
