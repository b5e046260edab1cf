//! `--device`: where networks are trained.

use clap::Args;
use qdc_cuda::Choice;
use qdc_nn::Trainer;

use crate::arguments::words;
use crate::failure::Failure;
use crate::session::Session;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DeviceArgument {
    /// Where to train: on a CUDA device where there is one (auto), on the CPU, or on a CUDA device and nowhere else
    #[arg(long, value_name = "DEVICE", default_value = "auto", value_parser = words::<Choice>(&["auto", "cpu", "cuda"]))]
    device: Choice,
}

impl DeviceArgument {
    /// Who trains; says so when `auto` takes the CPU for want of a device.
    pub(crate) fn trainer(self, session: &Session) -> Result<Box<dyn Trainer>, Failure> {
        Ok(self.device.trainer(&session.watch)?)
    }
}
