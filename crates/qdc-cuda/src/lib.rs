//! Work on a CUDA device that is found at run time.
//!
//! Nothing of CUDA is needed to build this crate, and none to run it: the driver is loaded when a [`Device`]
//! is asked for, and where there is none the caller stays on the CPU. The kernels lie in `device/`, each
//! source beside the PTX it compiles to (`ptx.py`); the driver compiles that for the GPU it finds.
//!
//! [`ColumnDevice`] makes the columns of kernels in panels, of which only what is kept comes back, or stays as a
//! [`ResidentMatrix`]. A device
//! is a [`qdc_nn::Trainer`]: it trains a batch of runs that share the graph and the network's shape, such as
//! all splits and seeds of a trial. A run gives the same bytes whichever runs share its batch.

mod accelerator;
mod bank;
mod choice;
mod cusolver;
mod device;
mod error;
mod frame;
mod grid;
mod launch;
mod matrices;
mod network;
mod panels;
mod pinned;
mod room;
mod scores;
mod state;
mod towers;
mod training;

#[cfg(test)]
mod tests;

pub use accelerator::ColumnDevice;
pub use choice::Choice;
pub use device::{Device, DeviceInfo, devices};
pub use error::Error;
pub use panels::ResidentMatrix;
