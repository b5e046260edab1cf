//! Filters and sparsification rules as Python objects, checked when they are made.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use pyo3::prelude::*;
use qdc_core::Error;

use crate::errors::Problem;

/// The first exception a Python filter raised; the core only sees NaN.
pub(crate) type Raised = Arc<Mutex<Option<PyErr>>>;

/// The function of the eigenvalue behind `qdc.Filter`.
#[pyclass(frozen, module = "qdc._core", from_py_object)]
#[derive(Clone)]
pub(crate) struct Filter {
    pub(crate) filter: qdc_core::Filter,
    pub(crate) raised: Raised,
}

#[pymethods]
impl Filter {
    /// One of the named filters: `gaussian` and `band` take two parameters, `ppr` and `heat` one.
    #[staticmethod]
    #[pyo3(signature = (name, first, second=f64::NAN))]
    fn named(py: Python<'_>, name: &str, first: f64, second: f64) -> PyResult<Self> {
        let filter = match name {
            "gaussian" => qdc_core::Filter::gaussian(first, second),
            "band" => qdc_core::Filter::band(first, second),
            "ppr" => qdc_core::Filter::ppr(first),
            "heat" => qdc_core::Filter::heat(first),
            _ => panic!("qdc.filters checks the name"),
        };
        let filter = filter.map_err(|error| Problem::from(error).raise(py))?;
        Ok(Self { filter, raised: Raised::default() })
    }

    /// w_1 P_1(E) + w_2 P_2(E) + ..., of filters that are no Python functions.
    #[staticmethod]
    fn sum(py: Python<'_>, terms: Vec<(f64, Self)>) -> PyResult<Self> {
        let terms = terms.into_iter().map(|(weight, term)| (weight, term.filter));
        let filter = qdc_core::Filter::sum(terms).map_err(|error| Problem::from(error).raise(py))?;
        Ok(Self { filter, raised: Raised::default() })
    }

    /// Any function from a float to a float.
    #[staticmethod]
    fn custom(name: String, function: Py<PyAny>) -> Self {
        let raised = Raised::default();
        let slot = Arc::clone(&raised);
        let evaluate = move |energy: f64| {
            Python::attach(|py| {
                function.call1(py, (energy,)).and_then(|value| value.extract(py)).unwrap_or_else(|error| {
                    slot.lock().expect("nothing panics while it is held").get_or_insert(error);
                    f64::NAN
                })
            })
        };
        Self { filter: qdc_core::Filter::custom(name, evaluate), raised }
    }

    /// P(E).
    fn evaluate(&self, energy: f64) -> PyResult<f64> {
        let value = self.filter.evaluate(energy);
        self.raised.lock().expect("nothing panics while it is held").take().map_or(Ok(value), Err)
    }

    /// `gaussian`, `band`, `ppr`, `heat`, `sum`, or the name of a custom filter.
    #[getter]
    fn name(&self) -> &str {
        self.filter.name()
    }

    /// The parameters by name.
    #[getter]
    fn parameters(&self) -> BTreeMap<String, f64> {
        self.filter.parameters()
    }
}

impl Filter {
    /// What the Python function raised, or else the core's own error.
    pub(crate) fn problem(raised: &Raised, error: Error) -> Problem {
        match raised.lock().expect("nothing panics while it is held").take() {
            Some(raised) => Problem::Raised(raised),
            None => Problem::Core(error),
        }
    }
}
