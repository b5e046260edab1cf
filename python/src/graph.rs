//! A graph handed over from Python as a list of arcs.

use std::sync::Arc;

use numpy::PyReadonlyArray1;
use pyo3::prelude::*;
use qdc_core::{Csr, EdgeRule, Error, Symmetrize, Transition};

use crate::errors::{Problem, graph_error, parameter_error};
use crate::matrix::{CsrArrays, csr_arrays};

/// Indices as NumPy, SciPy and torch store them; read in place.
#[derive(FromPyObject)]
pub(crate) enum Integers<'py> {
    Narrow(PyReadonlyArray1<'py, i32>),
    Wide(PyReadonlyArray1<'py, i64>),
}

impl Integers<'_> {
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Narrow(array) => array.as_array().len(),
            Self::Wide(array) => array.as_array().len(),
        }
    }

    pub(crate) fn get(&self, at: usize) -> i64 {
        match self {
            Self::Narrow(array) => i64::from(array.as_array()[at]),
            Self::Wide(array) => array.as_array()[at],
        }
    }
}

/// Weights in single or double precision; read in place.
#[derive(FromPyObject)]
pub(crate) enum Reals<'py> {
    Double(PyReadonlyArray1<'py, f64>),
    Single(PyReadonlyArray1<'py, f32>),
}

impl Reals<'_> {
    fn len(&self) -> usize {
        match self {
            Self::Double(array) => array.as_array().len(),
            Self::Single(array) => array.as_array().len(),
        }
    }

    fn get(&self, at: usize) -> f64 {
        match self {
            Self::Double(array) => array.as_array()[at],
            Self::Single(array) => f64::from(array.as_array()[at]),
        }
    }
}

/// The undirected graph behind `qdc.Graph`; a clone shares it.
#[pyclass(subclass, frozen, module = "qdc._core", from_py_object)]
#[derive(Clone)]
pub(crate) struct Graph(pub(crate) Arc<qdc_core::Graph>);

#[pymethods]
impl Graph {
    /// The graph of arcs `rows[i] -> columns[i]`.
    ///
    /// `rule` says how to read them: `pairs` (each an undirected edge), `both` (every edge must be there both
    /// ways), or how to join the two orientations: `or`, `max`, `mean`.
    #[new]
    fn new(
        py: Python<'_>,
        nodes: usize,
        rows: Integers<'_>,
        columns: Integers<'_>,
        weights: Option<Reals<'_>>,
        rule: &str,
    ) -> PyResult<Self> {
        let count = rows.len();
        if columns.len() != count || weights.as_ref().is_some_and(|weights| weights.len() != count) {
            let message = format!(
                "{count} edges start, {} end, and {} weights are given",
                columns.len(),
                weights.as_ref().map_or(0, Reals::len)
            );
            return Err(graph_error(py, message, "give one weight for each edge"));
        }
        let mut arcs = Vec::with_capacity(count);
        for at in 0..count {
            let (from, to) = (rows.get(at), columns.get(at));
            let (Ok(from), Ok(to)) = (u64::try_from(from), u64::try_from(to)) else {
                let message = format!("edge ({from}, {to}) names a vertex outside 0..{nodes}");
                return Err(graph_error(py, message, "vertices count from 0"));
            };
            arcs.push((from, to, weights.as_ref().map_or(1.0, |weights| weights.get(at))));
        }
        let directed = |rule| qdc_core::Graph::from_weighted_edges(nodes, arcs.iter().copied(), rule);
        let graph = match rule {
            "pairs" => directed(EdgeRule::Undirected),
            "both" => both_ways(nodes, &mut arcs),
            "or" => directed(EdgeRule::Directed(Symmetrize::Or)),
            "max" => directed(EdgeRule::Directed(Symmetrize::Max)),
            "mean" => directed(EdgeRule::Directed(Symmetrize::Mean)),
            other => {
                let message = format!("symmetrize = {other:?} is unknown: \"or\", \"max\" or \"mean\"");
                return Err(parameter_error(py, message));
            }
        };
        Ok(Self(Arc::new(graph.map_err(|error| Problem::from(error).raise(py))?)))
    }

    /// Number of vertices.
    #[getter]
    fn nodes(&self) -> usize {
        self.0.nodes()
    }

    /// Number of edges, self-loops not counted.
    #[getter]
    fn edges(&self) -> usize {
        self.0.edges()
    }

    /// Number of vertices that had a self-loop in the input; self-loops are dropped.
    #[getter]
    fn self_loops(&self) -> usize {
        self.0.self_loops()
    }

    /// The adjacency matrix as (data, indices, indptr).
    fn arrays<'py>(&self, py: Python<'py>) -> CsrArrays<'py> {
        csr_arrays(py, self.0.adjacency().clone())
    }
}

/// L = D^-1/2 (A + w I) D^-1/2 as (data, indices, indptr).
#[pyfunction]
pub(crate) fn transition<'py>(py: Python<'py>, graph: Graph, self_loop: f64) -> PyResult<CsrArrays<'py>> {
    let transition =
        Transition::with_self_loop(&graph.0, self_loop).map_err(|error| Problem::from(error).raise(py))?;
    Ok(csr_arrays(py, transition.matrix().clone()))
}

/// The graph of arcs that must stand in both orientations with equal weights; agreeing copies merge.
fn both_ways(nodes: usize, arcs: &mut Vec<(u64, u64, f64)>) -> Result<qdc_core::Graph, Error> {
    // Ends, weights and self-loops are the core's to check.
    qdc_core::Graph::from_weighted_edges(nodes, arcs.iter().copied(), EdgeRule::Directed(Symmetrize::Max))?;
    arcs.sort_unstable_by(|a, b| (a.0, a.1).cmp(&(b.0, b.1)).then(a.2.total_cmp(&b.2)));
    arcs.dedup();
    if let Some(pair) = arcs.windows(2).find(|pair| (pair[0].0, pair[0].1) == (pair[1].0, pair[1].1)) {
        let ((from, to, first), (.., second)) = (pair[0], pair[1]);
        return Err(Error::ConflictingWeights { from, to, first, second });
    }
    let mut pointers = vec![0; nodes + 1];
    for arc in arcs.iter() {
        pointers[arc.0 as usize + 1] += 1;
    }
    for row in 0..nodes {
        pointers[row + 1] += pointers[row];
    }
    let (indices, values) = arcs.iter().map(|arc| (arc.1 as u32, arc.2)).unzip();
    qdc_core::Graph::from_adjacency(&Csr::new(nodes, nodes, pointers, indices, values)?, None)
}
