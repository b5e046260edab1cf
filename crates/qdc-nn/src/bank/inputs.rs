//! What a bank network runs over: for each channel what it acts on, and the map.

use std::sync::Arc;

use qdc_core::bank::{Channels, Made, Map, Source};
use qdc_core::chebyshev::Operator;
use qdc_core::{Csr, Features, Graph, Transition, Watch};

use super::window::LearnedWindow;
use crate::{Error, Matrix, Real, Width};

/// How a channel P(L) X W is computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Way {
    /// Whichever is cheaper for each channel.
    #[default]
    Auto,
    /// P(L) (X W): X stays sparse, and the map acts on hidden columns. Input dropout acts on X.
    Mapped,
    /// (P(L) X) W: the channel is kept as a dense matrix. Input dropout acts on it.
    Kept,
}

/// A dense product does about this many multiplications in the time a sparse one does one.
const DENSE_ADVANTAGE: f64 = 4.0;

/// What a bank network runs over; shared by all splits and cheap to clone.
#[derive(Clone, Debug)]
pub struct BankInputs<T> {
    pub(super) nodes: usize,
    pub(super) channels: Vec<ChannelInput<T>>,
}

#[derive(Clone, Debug)]
pub(super) struct ChannelInput<T> {
    pub(super) source: SourceInput<T>,
    pub(super) map: MapInput<T>,
    /// The root mean square of the rows' norms.
    pub(super) size: f64,
}

#[derive(Clone, Debug)]
pub(super) enum SourceInput<T> {
    Sparse(Arc<Csr<T>>),
    Dense(Arc<Matrix<T>>),
}

#[derive(Clone, Debug)]
pub(super) enum MapInput<T> {
    Identity,
    Series {
        operator: Arc<Operator<T>>,
        coefficients: Arc<[f64]>,
    },
    /// The projection on the columns of a matrix.
    Projection(Arc<Matrix<T>>),
    Learned {
        operator: Arc<Operator<T>>,
        start: LearnedWindow,
    },
}

impl<T: Real> BankInputs<T> {
    /// The channels of a graph, computed in the way given.
    ///
    /// # Errors
    /// If the watch asks to stop.
    pub fn new(channels: &Channels, way: Way, watch: &Watch) -> Result<Self, Error> {
        let operators: Vec<Arc<Operator<T>>> =
            channels.transitions().iter().map(|transition| Arc::new(Operator::new(transition))).collect();
        let shared = source(channels.features());
        let make = |(at, made): (usize, &Made)| {
            let (source, map) = if is_kept(channels, &made.map, way) {
                (source(&channels.matrix(at, watch)?), MapInput::Identity)
            } else {
                let own = match &made.source {
                    Source::Features => shared.clone(),
                    Source::Own(own) => source(own),
                };
                (own, map(channels, &made.map, &operators))
            };
            Ok(ChannelInput { source, map, size: made.size })
        };
        let made = channels.made().iter().enumerate().map(make).collect::<Result<_, Error>>()?;
        Ok(Self { nodes: channels.nodes(), channels: made })
    }

    /// One channel with a learned window over a graph.
    ///
    /// # Errors
    /// If the numbers of vertices differ.
    pub fn window(graph: &Graph, features: &Features, start: LearnedWindow) -> Result<Self, Error> {
        if features.rows() != graph.nodes() {
            return Err(Error::MatrixSize { matrix: graph.nodes(), features: features.rows() });
        }
        let operator = Arc::new(Operator::new(&Transition::new(graph)));
        let map = MapInput::Learned { operator, start };
        let rows = features.rows() as f64;
        let square = |value: f32| f64::from(value) * f64::from(value);
        let squares: f64 = match features {
            Features::Sparse(matrix) => matrix.values().iter().copied().map(square).sum(),
            Features::Dense { values, .. } => values.iter().copied().map(square).sum(),
        };
        let channel = ChannelInput { source: source(features), map, size: (squares / rows).sqrt() };
        Ok(Self { nodes: features.rows(), channels: vec![channel] })
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of channels.
    pub fn channels(&self) -> usize {
        self.channels.len()
    }

    /// Number of channels kept as dense matrices of the features' size, and the bytes they take.
    pub fn kept(&self) -> (usize, usize) {
        let bytes = |channel: &ChannelInput<T>| match (&channel.source, &channel.map) {
            (SourceInput::Dense(matrix), MapInput::Identity) => Some(size_of_val(matrix.values())),
            _ => None,
        };
        let kept: Vec<usize> = self.channels.iter().filter_map(bytes).collect();
        (kept.len(), kept.iter().sum())
    }
}

/// Whether a channel is kept as a dense matrix.
pub(super) fn is_kept(channels: &Channels, map: &Map, way: Way) -> bool {
    match (way, map) {
        (_, Map::Identity) => false,
        (Way::Auto, map) => kept_is_cheaper(channels, map),
        (way, _) => way == Way::Kept,
    }
}

/// Whether a dense matrix of the features' size is multiplied faster than the map is applied, for one hidden
/// column.
fn kept_is_cheaper(channels: &Channels, map: &Map) -> bool {
    let features = channels.features();
    let nodes = channels.nodes() as f64;
    let stored = match features {
        Features::Sparse(matrix) => matrix.entries() as f64,
        Features::Dense { columns, .. } => nodes * *columns as f64 / DENSE_ADVANTAGE,
    };
    let mapped = match map {
        Map::Identity => 0.0,
        Map::Series { transition, coefficients } => {
            let entries = channels.transitions()[*transition].matrix().entries() as f64;
            (entries + 2.0 * nodes) * (coefficients.len() - 1) as f64
        }
        Map::Window(range) => 2.0 * nodes * range.len() as f64 / DENSE_ADVANTAGE,
    };
    nodes * features.columns() as f64 / DENSE_ADVANTAGE < stored + mapped
}

fn source<T: Real>(features: &Features) -> SourceInput<T> {
    let real = |value: f32| T::from_f64(f64::from(value));
    match features {
        Features::Sparse(matrix) => SourceInput::Sparse(Arc::new(matrix.map(real))),
        Features::Dense { columns, values } => {
            let values: Vec<T> = values.iter().copied().map(real).collect();
            let matrix = Matrix::from_dense(values.len() / columns, Width::single(*columns), &values);
            SourceInput::Dense(Arc::new(matrix))
        }
    }
}

fn map<T: Real>(channels: &Channels, map: &Map, operators: &[Arc<Operator<T>>]) -> MapInput<T> {
    match map {
        Map::Identity => MapInput::Identity,
        Map::Series { transition, coefficients } => MapInput::Series {
            operator: Arc::clone(&operators[*transition]),
            coefficients: coefficients.as_slice().into(),
        },
        Map::Window(range) => {
            let spectrum = channels.spectrum().expect("a window has eigenpairs");
            let (nodes, pairs) = (channels.nodes(), range.len());
            let mut values = vec![T::ZERO; nodes * pairs];
            for (column, pair) in range.clone().enumerate() {
                for (vertex, &entry) in spectrum.vector(pair).iter().enumerate() {
                    values[vertex * pairs + column] = T::from_f64(entry);
                }
            }
            MapInput::Projection(Arc::new(Matrix::from_dense(nodes, Width::single(pairs.max(1)), &{
                if pairs == 0 { vec![T::ZERO; nodes] } else { values }
            })))
        }
    }
}
