//! What a network runs over: the features of the vertices, and a matrix for each tower.

use std::sync::Arc;

use qdc_core::{Csr, Features, order};

use crate::architecture::{Architecture, Kind, Tower};
use crate::parallel::BLOCK;
use crate::{Error, Matrix, Propagation, Real, Width};

/// From this many vertices on rows are stored in an order that keeps neighbours close: 64 columns of `f32` no
/// longer fit the second-level cache then (bench/train/RESULTS.md).
pub(crate) const REORDER_FROM: usize = 8192;

/// What a network runs over; shared by all splits and cheap to clone.
#[derive(Clone, Debug)]
pub struct Inputs<T> {
    pub(crate) features: InputFeatures<T>,
    pub(crate) matrices: Vec<Arc<Propagation<T>>>,
    nodes: usize,
    /// M X of each tower whose first layer is a propagation that was done once for all; see
    /// [`Inputs::precompute`].
    propagated: Vec<Option<Arc<Matrix<T>>>>,
    /// The vertex each row belongs to, where rows are stored in another order than theirs.
    pub(crate) order: Option<Arc<[u32]>>,
}

#[derive(Clone, Debug)]
pub(crate) enum InputFeatures<T> {
    Sparse(Arc<Csr<T>>),
    Dense(Arc<Matrix<T>>),
}

/// Features that are known to be finite, in the network's precision; cheap to clone.
#[derive(Clone, Debug)]
pub struct CheckedFeatures<T>(InputFeatures<T>);

impl<T: Real> CheckedFeatures<T> {
    /// Checks and copies the features: reads each number once.
    ///
    /// # Errors
    /// If one is not finite.
    pub fn new(features: &Features) -> Result<Self, Error> {
        let not_finite = match features {
            Features::Sparse(matrix) => {
                matrix.iter().find(|entry| !entry.2.is_finite()).map(|(i, j, v)| (i, j as usize, v))
            }
            Features::Dense { columns, values } => {
                values.iter().position(|v| !v.is_finite()).map(|at| (at / columns, at % columns, values[at]))
            }
        };
        if let Some((vertex, feature, value)) = not_finite {
            return Err(Error::FeatureNotFinite { vertex, feature, value });
        }
        let real = |value: f32| T::from_f64(f64::from(value));
        Ok(Self(match features {
            Features::Sparse(matrix) => InputFeatures::Sparse(Arc::new(matrix.map(real))),
            Features::Dense { columns, values } => {
                let values: Vec<T> = values.iter().copied().map(real).collect();
                let rows = features.rows();
                InputFeatures::Dense(Arc::new(Matrix::from_dense(rows, Width::single(*columns), &values)))
            }
        }))
    }

    fn rows(&self) -> usize {
        match &self.0 {
            InputFeatures::Sparse(matrix) => matrix.rows(),
            InputFeatures::Dense(matrix) => matrix.rows(),
        }
    }
}

/// Whether M X of a tower over dense or sparse features is made once for all steps. On small graphs only in
/// batches: there it saves little, and other sums would change the last digits of results.
pub(crate) fn is_precomputed(tower: &Tower, dense: bool, nodes: usize, in_batches: bool) -> bool {
    tower.kind == Kind::Gcn && dense && (in_batches || (tower.dropout == 0.0 && nodes > BLOCK))
}

/// The number of vertices that features and matrices agree on.
fn check_sizes<T: Real>(
    features: &CheckedFeatures<T>,
    matrices: &[Arc<Propagation<T>>],
) -> Result<usize, Error> {
    let nodes = features.rows();
    match matrices.iter().find(|matrix| matrix.nodes() != nodes) {
        Some(matrix) => Err(Error::MatrixSize { matrix: matrix.nodes(), features: nodes }),
        None => Ok(nodes),
    }
}

impl<T: Real> Inputs<T> {
    /// Features, and a matrix for each tower (none for an MLP).
    ///
    /// # Errors
    /// If a feature is not finite, or the numbers of vertices differ.
    pub fn new(features: &Features, matrices: Vec<Arc<Propagation<T>>>) -> Result<Self, Error> {
        Self::over(CheckedFeatures::new(features)?, matrices)
    }

    /// The same with features that are checked already, and shared.
    ///
    /// # Errors
    /// If the numbers of vertices differ.
    pub fn over(features: CheckedFeatures<T>, matrices: Vec<Arc<Propagation<T>>>) -> Result<Self, Error> {
        let nodes = check_sizes(&features, &matrices)?;
        let inputs = Self { features: features.0, matrices, nodes, propagated: Vec::new(), order: None };
        Ok(if nodes < REORDER_FROM { inputs } else { inputs.clustered() })
    }

    /// The same for mini-batches of `architecture` ([`crate::MiniBatched`]): rows stay in the order of the
    /// vertices, and what can be made once for all steps is made.
    ///
    /// # Errors
    /// If the numbers of vertices differ.
    pub fn for_batches(
        features: CheckedFeatures<T>,
        matrices: Vec<Arc<Propagation<T>>>,
        architecture: &Architecture,
    ) -> Result<Self, Error> {
        let nodes = check_sizes(&features, &matrices)?;
        let inputs = Self { features: features.0, matrices, nodes, propagated: Vec::new(), order: None };
        Ok(inputs.precompute(architecture, true))
    }

    /// The same with M X made once for the GCN towers of `architecture` that drop nothing, where the graph is
    /// large: M (X W) = (M X) W, and X is a constant. Takes the memory of the features once more for each.
    #[must_use]
    pub fn precomputed_for(self, architecture: &Architecture) -> Self {
        self.precompute(architecture, false)
    }

    fn precompute(mut self, architecture: &Architecture, in_batches: bool) -> Self {
        let InputFeatures::Dense(features) = &self.features else { return self };
        let product = |(tower, matrix): (&Tower, &Arc<Propagation<T>>)| {
            is_precomputed(tower, true, self.nodes, in_batches).then(|| {
                let mut product = Matrix::zeros(self.nodes, features.width());
                matrix.apply(features, &mut product);
                Arc::new(product)
            })
        };
        self.propagated = architecture.towers.iter().zip(&self.matrices).map(product).collect();
        self
    }

    /// M X of a tower, where it was made once for all.
    pub(crate) fn precomputed(&self, tower: usize) -> Option<&Arc<Matrix<T>>> {
        self.propagated.get(tower)?.as_ref()
    }

    /// The rows of some vertices, in that order, with other matrices.
    pub(crate) fn select(&self, vertices: &[u32], matrices: Vec<Arc<Propagation<T>>>) -> Self {
        let of = |matrix: &Arc<Matrix<T>>| Arc::new(matrix.select_rows(vertices));
        let all_precomputed = !self.propagated.is_empty() && self.propagated.iter().all(Option::is_some);
        let features = match &self.features {
            InputFeatures::Sparse(rows) => InputFeatures::Sparse(Arc::new(rows.select_rows(vertices))),
            // No tower looks at them.
            InputFeatures::Dense(rows) if all_precomputed => {
                InputFeatures::Dense(Arc::new(Matrix::zeros(0, rows.width())))
            }
            InputFeatures::Dense(rows) => InputFeatures::Dense(of(rows)),
        };
        let propagated = self.propagated.iter().map(|matrix| matrix.as_ref().map(of)).collect();
        Self { features, matrices, nodes: vertices.len(), propagated, order: None }
    }

    /// The same with dense features in the network's own precision.
    ///
    /// # Panics
    /// If the numbers of vertices differ.
    pub fn dense(features: Matrix<T>, matrices: Vec<Arc<Propagation<T>>>) -> Self {
        let nodes = features.rows();
        assert!(matrices.iter().all(|matrix| matrix.nodes() == nodes), "a matrix of another size");
        let features = InputFeatures::Dense(Arc::new(features));
        Self { features, matrices, nodes, propagated: Vec::new(), order: None }
    }

    /// The same, with rows stored so that neighbours in the sparsest matrix lie close to one another: what is
    /// gathered for one vertex is in the cache for the next. It cannot be seen from outside, but for the last
    /// bits of sums and for other draws of dropout: a network gives its logits in the order of the vertices.
    #[must_use]
    pub fn clustered(mut self) -> Self {
        let sparsest = self.matrices.iter().min_by_key(|matrix| matrix.matrix().entries());
        let (Some(sparsest), None) = (sparsest, &self.order) else {
            return self;
        };
        let order = order::clustered(sparsest.matrix());
        let rename =
            |matrix: &Arc<Propagation<T>>| Arc::new(Propagation::new(matrix.matrix().relabel(&order)));
        self.matrices = self.matrices.iter().map(rename).collect();
        self.features = match self.features {
            InputFeatures::Sparse(rows) => InputFeatures::Sparse(Arc::new(rows.select_rows(&order))),
            InputFeatures::Dense(rows) => InputFeatures::Dense(Arc::new(rows.select_rows(&order))),
        };
        self.order = Some(order.into());
        self
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }
}
