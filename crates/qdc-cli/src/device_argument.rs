//! `--device`: where kernels are made and networks trained.

use clap::Args;
use qdc_core::Resources;
use qdc_cuda::Choice;
use qdc_nn::Trainer;

use crate::arguments::words;
use crate::failure::Failure;
use crate::session::Session;

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct DeviceArgument {
    /// Where the work is done: on a CUDA device where there is one and it gains (auto), on the CPU, or on a
    /// CUDA device and nowhere else [default: auto; for a trial or a file that says where it was trained,
    /// there]
    #[arg(long, value_name = "DEVICE", value_parser = words::<Choice>(&["auto", "cpu", "cuda"]))]
    device: Option<Choice>,
}

impl DeviceArgument {
    /// The session's resources, and the device for kernels.
    pub(crate) fn resources(self, session: &Session) -> Result<Resources, Failure> {
        let accelerator = self.device.unwrap_or_default().accelerator()?;
        Ok(Resources { accelerator, ..session.resources() })
    }

    /// Who trains; says so when `auto` takes the CPU for want of a device.
    /// `written` is where it was trained before.
    pub(crate) fn trainer(
        self,
        written: Option<&str>,
        session: &Session,
    ) -> Result<Box<dyn Trainer>, Failure> {
        Ok(self.choice(written)?.trainer(&session.watch)?)
    }

    /// The session's resources with the device for the kernels and spectra of a training.
    pub(crate) fn resources_of_training(
        self,
        written: Option<&str>,
        session: &Session,
    ) -> Result<Resources, Failure> {
        let accelerator = self.choice(written)?.accelerator_of_training()?;
        Ok(Resources { accelerator, ..session.resources() })
    }

    fn choice(self, written: Option<&str>) -> Result<Choice, Failure> {
        let written = written.map(str::parse).transpose().map_err(Failure::usage)?;
        Ok(self.device.or(written).unwrap_or_default())
    }
}
