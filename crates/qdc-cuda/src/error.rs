//! What can go wrong on a device.

use cudarc::driver::DriverError;

/// An error of the device or its driver.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The machine has no CUDA driver.
    #[error("no CUDA driver was found on this machine")]
    NoDriver,

    /// There is a driver, and no device that it can use.
    #[error("the CUDA driver finds no device ({problem})")]
    NoDevice {
        /// What the driver says.
        problem: String,
    },

    /// A call of the driver failed.
    #[error("the CUDA device failed while it was {doing}: {problem}")]
    Driver {
        /// What was being done.
        doing: &'static str,
        /// What the driver says.
        problem: String,
    },

    /// The work needs more memory than the device has free.
    #[error("this needs {needed} bytes on the device, which has {free} free")]
    Memory {
        /// Bytes needed by one run.
        needed: u64,
        /// Bytes free.
        free: u64,
    },

    /// The work is beyond what the kernels can count.
    #[error("{what}: {count} is more than the 2^32 that the device's kernels count to")]
    TooLarge {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        count: u64,
    },

    /// cuSOLVER is not there.
    #[error("a device decomposes matrices by cuSOLVER: {problem}")]
    NoSolver {
        /// Where it was looked for.
        problem: String,
    },

    /// A network has more of something than the kernels know.
    #[error("{what}: {count}, and a device trains at most {most}")]
    TooMany {
        /// What there is too much of.
        what: &'static str,
        /// How much.
        count: u64,
        /// How much there may be.
        most: u64,
    },

    /// An error of the network.
    #[error(transparent)]
    Network(#[from] qdc_nn::Error),
}

impl Error {
    /// What the user can do about it, where there is something to say.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Network(error) => error.hint(),
            Self::NoSolver { .. } => {
                Some("pip install nvidia-cusolver-cu12, or put its folder into LD_LIBRARY_PATH".into())
            }
            _ => Some("use --device cpu, or --device auto, which takes what there is".into()),
        }
    }
}

impl From<Error> for qdc_nn::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Network(error) => error,
            Error::Driver { .. } => Self::DeviceLost { problem: error.to_string() },
            error => Self::Device { problem: error.to_string(), hint: error.hint() },
        }
    }
}

impl From<Error> for qdc_core::Error {
    fn from(error: Error) -> Self {
        Self::Device { problem: error.to_string() }
    }
}

/// Says what was being done when the driver failed.
pub(crate) fn while_doing(doing: &'static str) -> impl Fn(DriverError) -> Error {
    move |error| Error::Driver { doing, problem: text(&error) }
}

/// What the driver says, in a line.
pub(crate) fn text(error: &DriverError) -> String {
    match error.error_string() {
        Ok(text) => text.to_string_lossy().into_owned(),
        Err(_) => format!("{error:?}"),
    }
}
