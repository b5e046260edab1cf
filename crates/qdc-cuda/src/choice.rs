//! Which device is to do the work: `--device` and Python's `device=`.

use std::ops::ControlFlow;
use std::str::FromStr;
use std::sync::Arc;

use qdc_core::Watch;
use qdc_core::kernel::Accelerator;
use qdc_nn::training::{Scores, Trained};
use qdc_nn::{Batch, Cpu, Trainer};

use crate::{ColumnDevice, Device, Error};

/// Where work is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// On a CUDA device where there is one that can do the work, otherwise on the CPU.
    #[default]
    Auto,
    /// On the CPU.
    Cpu,
    /// On a CUDA device, and nowhere else.
    Cuda,
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda),
            _ => Err(format!("'{text}' is none of auto, cpu and cuda")),
        }
    }
}

impl Choice {
    /// The device on which columns of kernels are made, if any: under `auto` one that is opened for large
    /// work only.
    ///
    /// # Errors
    /// If `cuda` was asked for and there is no device that works.
    pub fn accelerator(self) -> Result<Option<Arc<dyn Accelerator>>, Error> {
        Ok(match self {
            Self::Cpu => None,
            Self::Auto => Some(Arc::new(ColumnDevice::if_worth_it())),
            Self::Cuda => Some(Arc::new(ColumnDevice::insisting()?)),
        })
    }

    /// The device beside a training, for its kernels and spectra: whether `auto` or `cuda` was said, the same
    /// work is done there, so that a trial and its repetition agree.
    ///
    /// # Errors
    /// If `cuda` was asked for and there is no device that works.
    pub fn accelerator_of_training(self) -> Result<Option<Arc<dyn Accelerator>>, Error> {
        Ok(match self {
            Self::Cpu => None,
            Self::Auto => Some(Arc::new(ColumnDevice::if_worth_it())),
            Self::Cuda => Some(Arc::new(ColumnDevice::only_if_worth_it()?)),
        })
    }

    /// Who trains. `auto` notes on `watch` when it takes the CPU for want of a device.
    ///
    /// # Errors
    /// If `cuda` was asked for and there is no device that works.
    pub fn trainer(self, watch: &Watch) -> Result<Box<dyn Trainer>, Error> {
        match self {
            Self::Cpu => Ok(Box::new(Cpu)),
            Self::Cuda => Ok(Box::new(Device::open()?)),
            Self::Auto => Ok(match Device::open() {
                Ok(device) => Box::new(OrCpu(device)),
                Err(error) => {
                    watch.note(&format!("training on the CPU: {error}"));
                    Box::new(Cpu)
                }
            }),
        }
    }
}

/// Trains on the CPU what a device cannot do. A training says where it was really computed.
#[derive(Debug)]
pub(crate) struct OrCpu<T>(pub(crate) T);

impl<T: Trainer> Trainer for OrCpu<T> {
    fn device(&self) -> &str {
        self.0.device()
    }

    fn dense_advantage(&self) -> f64 {
        self.0.dense_advantage()
    }

    fn train(
        &self,
        batch: &Batch<'_>,
        watch: &Watch,
        on_end: &(dyn Fn(&Scores) -> ControlFlow<()> + Sync),
    ) -> Result<Vec<Option<Trained<f32>>>, qdc_nn::Error> {
        match self.0.train(batch, watch, on_end) {
            Err(qdc_nn::Error::Device { problem, .. }) => {
                watch.note(&format!("training on the CPU: {problem}"));
                Cpu.train(batch, watch, on_end)
            }
            other => other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_without_a_device_trains_on_the_cpu_unless_cuda_was_asked_for() {
        assert_eq!("auto".parse(), Ok(Choice::Auto));
        assert_eq!("cpu".parse(), Ok(Choice::Cpu));
        assert_eq!("cuda".parse(), Ok(Choice::Cuda));
        assert!("gpu".parse::<Choice>().is_err());
        let watch = Watch::silent();
        assert_eq!(Choice::Cpu.trainer(&watch).unwrap().device(), "cpu");
        if crate::devices().unwrap().is_empty() {
            assert_eq!(Choice::Auto.trainer(&watch).unwrap().device(), "cpu");
            let error = Choice::Cuda.trainer(&watch).unwrap_err();
            assert!(error.hint().unwrap().contains("--device cpu"));
        }
    }
}
