//! What a bank network runs over: for each channel what it acts on, and the map.

use std::sync::Arc;

use qdc_core::bank::{Channels, Made, Map, Source};
use qdc_core::chebyshev::Operator;
use qdc_core::{Csr, Features, Graph, Transition, Watch};

use super::window::LearnedWindow;
use crate::batch::DENSE_ADVANTAGE;
use crate::{Error, Matrix, Real, Width};

/// How a channel P(L) X W is computed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Way {
    /// Whichever is cheaper for each channel, on a machine where a dense product does so many multiplications
    /// in the time a sparse one does one.
    Auto(f64),
    /// P(L) (X W): X stays sparse, and the map acts on hidden columns. Input dropout acts on X.
    Mapped,
    /// (P(L) X) W: the channel is kept as a dense matrix. Input dropout acts on it.
    Kept,
}

impl Default for Way {
    /// What is cheaper on the CPU.
    fn default() -> Self {
        Self::Auto(DENSE_ADVANTAGE)
    }
}

/// What a bank network runs over; shared by all splits and cheap to clone.
#[derive(Clone, Debug)]
pub struct BankInputs<T> {
    pub(super) nodes: usize,
    pub(super) channels: Vec<ChannelInput<T>>,
}

#[derive(Clone, Debug)]
pub(super) struct ChannelInput<T> {
    pub(super) source: ChannelSource<T>,
    pub(super) map: ChannelMap<T>,
    /// The root mean square of the rows' norms.
    pub(super) size: f64,
}

/// What a channel acts on.
#[derive(Clone, Debug)]
pub enum ChannelSource<T> {
    /// A sparse matrix.
    Sparse(Arc<Csr<T>>),
    /// A dense one.
    Dense(Arc<Matrix<T>>),
}

/// The map of a channel.
#[derive(Clone, Debug)]
pub enum ChannelMap<T> {
    /// None.
    Identity,
    /// sum_k c_k T_k(L).
    Series {
        /// L.
        operator: Arc<Operator<T>>,
        /// c_0, c_1 and so on.
        coefficients: Arc<[f64]>,
    },
    /// The projection on the columns of a matrix.
    Projection(Arc<Matrix<T>>),
    /// A Gaussian of L that is learned.
    Learned {
        /// L.
        operator: Arc<Operator<T>>,
        /// Where it starts.
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
                (source(&channels.matrix(at, watch)?), ChannelMap::Identity)
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
        let map = ChannelMap::Learned { operator, start };
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

    /// Where the learned windows start, in the order of the channels.
    pub(super) fn starts(&self) -> impl Iterator<Item = LearnedWindow> {
        self.channels.iter().filter_map(|channel| match channel.map {
            ChannelMap::Learned { start, .. } => Some(start),
            _ => None,
        })
    }

    /// Number of channels kept as dense matrices of the features' size, and the bytes they take.
    pub fn kept(&self) -> (usize, usize) {
        let bytes = |channel: &ChannelInput<T>| match (&channel.source, &channel.map) {
            (ChannelSource::Dense(matrix), ChannelMap::Identity) => Some(size_of_val(matrix.values())),
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
        (Way::Auto(advantage), map) => kept_is_cheaper(channels, map, advantage),
        (way, _) => way == Way::Kept,
    }
}

/// Whether a dense matrix of the features' size is multiplied faster than the map is applied, for one hidden
/// column.
fn kept_is_cheaper(channels: &Channels, map: &Map, dense_advantage: f64) -> bool {
    let features = channels.features();
    let nodes = channels.nodes() as f64;
    let stored = match features {
        Features::Sparse(matrix) => matrix.entries() as f64,
        Features::Dense { columns, .. } => nodes * *columns as f64 / dense_advantage,
    };
    let mapped = match map {
        Map::Identity => 0.0,
        Map::Series { transition, coefficients } => {
            let entries = channels.transitions()[*transition].matrix().entries() as f64;
            (entries + 2.0 * nodes) * (coefficients.len() - 1) as f64
        }
        Map::Window(range) => 2.0 * nodes * range.len() as f64 / dense_advantage,
    };
    nodes * features.columns() as f64 / dense_advantage < stored + mapped
}

fn source<T: Real>(features: &Features) -> ChannelSource<T> {
    let real = |value: f32| T::from_f64(f64::from(value));
    match features {
        Features::Sparse(matrix) => ChannelSource::Sparse(Arc::new(matrix.map(real))),
        Features::Dense { columns, values } => {
            let values: Vec<T> = values.iter().copied().map(real).collect();
            let matrix = Matrix::from_dense(values.len() / columns, Width::single(*columns), &values);
            ChannelSource::Dense(Arc::new(matrix))
        }
    }
}

fn map<T: Real>(channels: &Channels, map: &Map, operators: &[Arc<Operator<T>>]) -> ChannelMap<T> {
    match map {
        Map::Identity => ChannelMap::Identity,
        Map::Series { transition, coefficients } => ChannelMap::Series {
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
            ChannelMap::Projection(Arc::new(Matrix::from_dense(nodes, Width::single(pairs.max(1)), &{
                if pairs == 0 { vec![T::ZERO; nodes] } else { values }
            })))
        }
    }
}
