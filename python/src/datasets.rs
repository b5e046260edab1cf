//! Labelled graphs, by name or from arrays.

use std::sync::Arc;

use numpy::ndarray::Array2;
use numpy::{
    IntoPyArray, PyArray1, PyArray2, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArray,
    PyUntypedArrayMethods,
};
use pyo3::prelude::*;
use qdc_core::{Features, Split, UNLABELLED};
use qdc_data::{DataDir, EdgeReading};

use crate::errors::Problem;
use crate::graph::Graph;
use crate::matrix::index_arrays;

/// The names of the datasets that `qdc data get` knows.
#[pyfunction]
pub(crate) fn dataset_names() -> Vec<&'static str> {
    qdc_data::NAMES.to_vec()
}

/// The dataset behind `qdc.datasets.Dataset`; a clone shares it.
#[pyclass(frozen, module = "qdc._core", from_py_object)]
#[derive(Clone)]
pub(crate) struct Dataset(pub(crate) Arc<qdc_data::Dataset>);

#[pymethods]
impl Dataset {
    /// A dataset by name, from a file, or from a labelled generator; random splits where it brings none.
    #[new]
    #[pyo3(signature = (name, data_dir=None, split="48/32/20", seed=0))]
    fn new(
        py: Python<'_>,
        name: &str,
        data_dir: Option<std::path::PathBuf>,
        split: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let folder = data_dir.map_or_else(DataDir::from_environment, DataDir::new);
        let shares = crate::kernel::parse(py, split)?;
        let loaded = py.detach(|| {
            let dataset = qdc_data::open(name, &folder, EdgeReading::default())?.into_dataset()?;
            Ok(if dataset.splits.is_empty() { dataset.with_random_splits(shares, seed) } else { dataset })
        });
        let dataset = loaded.map_err(|error: qdc_data::Error| Problem::from(error).raise(py))?;
        Ok(Self(Arc::new(dataset)))
    }

    /// A dataset of arrays: features (N, F), labels from 0, and masks (splits, N) or none for random splits.
    #[staticmethod]
    fn of_arrays(
        py: Python<'_>,
        name: String,
        graph: Graph,
        features: PyReadonlyArray2<'_, f32>,
        labels: PyReadonlyArray1<'_, u32>,
        masks: Option<[PyReadonlyArray2<'_, bool>; 3]>,
        split: &str,
        seed: u64,
    ) -> PyResult<Self> {
        let raise = |error: qdc_data::Error| Problem::from(error).raise(py);
        let columns = features.shape()[1];
        let values = features.as_array().iter().copied().collect();
        let labels = labels.as_array().to_vec();
        let features = Features::from_dense(columns, values);
        let nodes = graph.0.nodes();
        let mut dataset =
            qdc_data::Dataset::new(name, (*graph.0).clone(), features, labels).map_err(raise)?;
        match masks {
            None => dataset = dataset.with_random_splits(crate::kernel::parse(py, split)?, seed),
            Some(masks) => {
                for at in 0..masks[0].shape()[0] {
                    let [train, validation, test] = masks.each_ref().map(|mask| chosen(mask, at));
                    let split = Split::new(nodes, train, validation, test)
                        .map_err(|error| Problem::from(error).raise(py))?;
                    dataset.splits.push(split);
                }
            }
        }
        Ok(Self(Arc::new(dataset)))
    }

    /// What it is called.
    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    /// Number of classes.
    #[getter]
    fn classes(&self) -> usize {
        self.0.classes
    }

    /// The adjacency matrix as (data, indices, indptr).
    fn adjacency_arrays<'py>(&self, py: Python<'py>) -> crate::matrix::CsrArrays<'py> {
        crate::matrix::csr_arrays(py, self.0.graph.adjacency().clone())
    }

    /// Labels, one for each vertex; -1 for those without.
    #[getter]
    fn labels<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
        let number = |label: &u32| if *label == UNLABELLED { -1 } else { i64::from(*label) };
        self.0.labels.iter().map(number).collect::<Vec<_>>().into_pyarray(py)
    }

    /// Features as (data, indices, indptr, columns) where most are 0.
    fn sparse_features<'py>(&self, py: Python<'py>) -> Option<SparseFeatures<'py>> {
        let Features::Sparse(matrix) = &self.0.features else { return None };
        let columns = matrix.columns();
        let (pointers, indices, values) = matrix.clone().into_parts();
        let (indices, pointers) = index_arrays(py, pointers, indices, columns);
        Some((values.into_pyarray(py), indices, pointers, columns))
    }

    /// Features as one row for each vertex.
    fn dense_features<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray2<f32>> {
        let features = &self.0.features;
        let shape = (features.rows(), features.columns());
        Array2::from_shape_vec(shape, features.to_dense()).expect("whole rows").into_pyarray(py)
    }

    /// One row for each split, with true for the vertices of its `part`: train, validation or test.
    fn masks<'py>(&self, py: Python<'py>, part: &str) -> Bound<'py, PyArray2<bool>> {
        let mut masks = Array2::from_elem((self.0.splits.len(), self.0.graph.nodes()), false);
        for (mut row, split) in masks.rows_mut().into_iter().zip(&self.0.splits) {
            let vertices = match part {
                "train" => split.train(),
                "validation" => split.validation(),
                _ => split.test(),
            };
            vertices.iter().for_each(|&vertex| row[vertex as usize] = true);
        }
        masks.into_pyarray(py)
    }
}

type SparseFeatures<'py> =
    (Bound<'py, PyArray1<f32>>, Bound<'py, PyUntypedArray>, Bound<'py, PyUntypedArray>, usize);

fn chosen(mask: &PyReadonlyArray2<'_, bool>, row: usize) -> Vec<u32> {
    mask.as_array()
        .row(row)
        .iter()
        .enumerate()
        .filter(|(_, chosen)| **chosen)
        .map(|(at, _)| at as u32)
        .collect()
}
