//! SDRF and the dynamics: what flows on a graph.

use numpy::ndarray::Array2;
use numpy::{IntoPyArray, PyArray2, PyReadonlyArray1};
use pyo3::prelude::*;
use pyo3::types::PyAny;
use qdc_core::rewire::{Sdrf, Variant};
use qdc_core::{Dynamics, Transition};

use crate::errors::{Problem, parameter_error};
use crate::graph::Graph;
use crate::kernel::report;
use crate::matrix::{CsrArrays, csr_arrays};
use crate::watch::Call;

/// The adjacency after stochastic discrete Ricci flow, and its report.
#[pyfunction]
pub(crate) fn sdrf<'py>(
    py: Python<'py>,
    graph: Graph,
    iterations: usize,
    tau: f64,
    removal_bound: f64,
    variant: &str,
    seed: u64,
    call: Call,
) -> PyResult<(CsrArrays<'py>, Bound<'py, PyAny>)> {
    let variant = match variant {
        "formula" => Variant::Formula,
        "code" => Variant::Code,
        other => return Err(parameter_error(py, format!("variant = {other:?} is unknown: formula or code"))),
    };
    let flow = Sdrf::new(iterations).tau(tau).removal_bound(removal_bound).variant(variant).seed(seed);
    let (rewired, made) = call.run(py, move |watch| flow.run(&graph.0, watch))?;
    Ok((csr_arrays(py, rewired.adjacency().clone()), report(py, &made)?))
}

type States<'py> = Bound<'py, PyArray2<f64>>;

/// The states at each time: real parts, and imaginary parts where there are any.
#[pyfunction]
pub(crate) fn dynamics<'py>(
    py: Python<'py>,
    graph: Graph,
    equation: &str,
    start: PyReadonlyArray1<'py, f64>,
    times: PyReadonlyArray1<'py, f64>,
    potential: Option<PyReadonlyArray1<'py, f64>>,
    self_loop: f64,
    call: Call,
) -> PyResult<(States<'py>, Option<States<'py>>)> {
    let raise = |error| Problem::from(error).raise(py);
    let mut dynamics = Dynamics::new(&Transition::with_self_loop(&graph.0, self_loop).map_err(raise)?);
    if let Some(potential) = potential {
        dynamics = dynamics.with_potential(potential.as_array().to_vec()).map_err(raise)?;
    }
    let (start, times) = (start.as_array().to_vec(), times.as_array().to_vec());
    match equation {
        "heat" => {
            let evolution = call.run(py, move |watch| dynamics.heat(&start, &times, watch))?;
            Ok((stacked(py, evolution.states, graph.0.nodes()), None))
        }
        "schrodinger" => {
            let evolution = call.run(py, move |watch| dynamics.schrodinger(&start, &times, watch))?;
            let (real, imaginary) =
                evolution.states.into_iter().map(|wave| (wave.real, wave.imaginary)).unzip();
            let nodes = graph.0.nodes();
            Ok((stacked(py, real, nodes), Some(stacked(py, imaginary, nodes))))
        }
        other => {
            Err(parameter_error(py, format!("equation = {other:?} is unknown: \"heat\" or \"schrodinger\"")))
        }
    }
}

fn stacked(py: Python<'_>, rows: Vec<Vec<f64>>, columns: usize) -> States<'_> {
    let count = rows.len();
    let array =
        Array2::from_shape_vec((count, columns), rows.concat()).expect("every state has all vertices");
    array.into_pyarray(py)
}
