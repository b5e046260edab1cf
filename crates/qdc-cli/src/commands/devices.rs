//! `qdc devices`: the devices networks can be trained on.

use std::fmt::Write as _;

use clap::Args;
use qdc_cuda::DeviceInfo;
use serde::Serialize;

use crate::failure::Failure;
use crate::output::Show;
use crate::session::Session;

/// List the devices networks can be trained on
///
/// The CPU is always there. A CUDA device is found through its driver, which is loaded when this program runs.
#[derive(Debug, Args)]
pub(crate) struct Devices {}

impl Devices {
    pub(crate) fn run(self, session: &Session) -> Result<(), Failure> {
        let found = qdc_cuda::devices()?;
        session
            .show(&List { threads: rayon::current_num_threads(), cuda: found.iter().map(Cuda::of).collect() })
    }
}

#[derive(Serialize)]
struct List {
    threads: usize,
    cuda: Vec<Cuda>,
}

#[derive(Serialize)]
struct Cuda {
    number: usize,
    name: String,
    memory_bytes: u64,
    compute_capability: String,
    multiprocessors: u32,
    driver: String,
}

impl Cuda {
    fn of(info: &DeviceInfo) -> Self {
        Self {
            number: info.number,
            name: info.name.clone(),
            memory_bytes: info.memory,
            compute_capability: format!("{}.{}", info.capability.0, info.capability.1),
            multiprocessors: info.multiprocessors,
            driver: format!("{}.{}", info.driver.0, info.driver.1),
        }
    }
}

impl Show for List {
    fn text(&self) -> String {
        let mut text = format!("cpu     {} threads\n", self.threads);
        for device in &self.cuda {
            let _ = writeln!(
                text,
                "cuda:{}  {}, {:.1} GB, compute capability {}, {} multiprocessors, driver for CUDA {}",
                device.number,
                device.name,
                device.memory_bytes as f64 / 1e9,
                device.compute_capability,
                device.multiprocessors,
                device.driver
            );
        }
        if self.cuda.is_empty() {
            text.push_str("no CUDA device was found\n");
        }
        text
    }
}
