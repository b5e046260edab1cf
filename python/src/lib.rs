//! `qdc._core`: the crates of qdc as a Python extension.
//!
//! Bindings only: what a function means is said in `qdc-core`, what users see is said in `python/qdc`. Inputs
//! arrive as NumPy arrays that the Python side has sorted out; results leave as arrays that own their memory.

mod bank;
mod command_line;
mod datasets;
mod errors;
mod filter;
mod flow;
mod graph;
mod homophily;
mod kernel;
mod matrix;
mod remedy;
mod resident;
mod spectrum;
mod training;
mod tuning;
mod watch;
mod workers;

use pyo3::prelude::*;

#[pymodule]
mod _core {
    #[pymodule_export]
    use super::bank::{bank_features, presets};
    #[pymodule_export]
    use super::command_line::command_line;
    #[pymodule_export]
    use super::datasets::{Dataset, dataset_names};
    #[pymodule_export]
    use super::filter::Filter;
    #[pymodule_export]
    use super::flow::{dynamics, sdrf};
    #[pymodule_export]
    use super::graph::{Graph, transition};
    #[pymodule_export]
    use super::homophily::{homophily, spectral_homophily, suggest, window_homophily};
    #[pymodule_export]
    use super::kernel::{Job, check_sparsify, kernel_from, merge};
    #[pymodule_export]
    use super::resident::{DeviceArray, Resident};
    #[pymodule_export]
    use super::spectrum::Spectrum;
    #[pymodule_export]
    use super::training::{models, train};
    #[pymodule_export]
    use super::tuning::{Search, space_file};
    #[pymodule_export]
    use super::watch::set_threads;

    use super::*;

    /// The defaults of kernels and rewirings, which the crates state once.
    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        use qdc_core::defaults;
        let values = pyo3::types::PyDict::new(module.py());
        values.set_item("mu", defaults::MU)?;
        values.set_item("sigma", defaults::SIGMA)?;
        values.set_item("gamma", defaults::GAMMA)?;
        values.set_item("alpha", defaults::ALPHA)?;
        values.set_item("time", defaults::TIME)?;
        values.set_item("epsilon", defaults::EPSILON)?;
        values.set_item("self_loop", defaults::SELF_LOOP)?;
        values.set_item("tolerance", defaults::TOLERANCE)?;
        values.set_item("tau", defaults::TAU)?;
        values.set_item("removal_bound", defaults::REMOVAL_BOUND)?;
        module.add("DEFAULTS", values)?;
        module.add("SDRF_ITERATIONS", defaults::ITERATIONS)?;
        module.add("PROBES", qdc_core::homophily::PROBES)?;
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
