//! The channels of a graph made ready: linear maps of the features (or of what takes their place).

use std::ops::Range;

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef};
use rayon::prelude::*;

use super::channel::ROWS_UP_TO;
use super::{Channel, Diagonals, FilterBank, On, View, statistics};
use crate::chebyshev::{Operator, Series};
use crate::kernel::Spectra;
use crate::spectrum::rank_windows;
use crate::{Eigensolver, Error, Features, Filter, Graph, Resources, Spectrum, Transition, Watch, nearest};

/// How many eigenvectors take the place of the adjacency's rows on large graphs.
const EIGENVECTORS: usize = 512;
/// What a series may be wrong by on [-1, 1]; single precision has no more to give.
const TOLERANCE: f64 = 1e-6;

/// What a map acts on.
#[derive(Clone, Debug)]
pub enum Source {
    /// The features of the vertices.
    Features,
    /// A matrix of the channel's own.
    Own(Features),
}

/// The linear map of a channel.
#[derive(Clone, Debug)]
pub enum Map {
    /// None.
    Identity,
    /// sum_k c_k T_k(L), with L the transition matrix of this number.
    Series {
        /// Which of [`Channels::transitions`].
        transition: usize,
        /// c_0, c_1 and so on.
        coefficients: Vec<f64>,
    },
    /// The projection on the eigenvectors at these positions of [`Channels::spectrum`].
    Window(Range<usize>),
}

/// A channel ready to use: map(source), and how large that is.
#[derive(Clone, Debug)]
pub struct Made {
    /// What it acts on.
    pub source: Source,
    /// The map.
    pub map: Map,
    /// The root mean square of the rows' norms.
    pub size: f64,
}

/// The channels of a graph with its features.
#[derive(Clone, Debug)]
pub struct Channels {
    features: Features,
    transitions: Vec<Transition>,
    spectrum: Option<Spectrum>,
    made: Vec<Made>,
}

impl Channels {
    /// Makes `channels` for a graph: its nearest neighbours, series and eigenpairs, each once and only where
    /// needed.
    ///
    /// Hard windows need every eigenpair: those that `resources` has, or computed within its memory and
    /// stored there.
    ///
    /// # Errors
    /// If the numbers of vertices differ, a filter is too sharp for a series, a window by rank is asked for
    /// on a nearest-neighbour graph or beyond the number of windows, the eigenpairs given are another
    /// graph's, computing them takes more memory than there is, or the watch asks to stop.
    pub fn new(
        channels: &[Channel],
        graph: &Graph,
        features: Features,
        resources: &Resources,
        watch: &Watch,
    ) -> Result<Self, Error> {
        let nodes = graph.nodes();
        if features.rows() != nodes {
            let what = "rows of features, one for each vertex";
            return Err(Error::LengthMismatch { what, expected: nodes, found: features.rows() });
        }
        let mut graphs = vec![(On::Graph, graph.clone())];
        for channel in channels {
            if let (On::Nearest(k), false) = (channel.on, graphs.iter().any(|(on, _)| *on == channel.on)) {
                graphs.push((channel.on, nearest::cosine_graph(&features, k, watch)?));
            }
        }
        let transitions: Vec<Transition> = graphs.iter().map(|(_, graph)| Transition::new(graph)).collect();
        let needed = channels.iter().any(|channel| channel.needs_spectrum(nodes));
        let spectrum = if needed { Some(complete(&transitions[0], resources, watch)?) } else { None };
        let mut result = Self { features, transitions, spectrum, made: Vec::new() };
        for channel in channels {
            let number = graphs.iter().position(|(on, _)| *on == channel.on).expect("made above");
            let (source, map) = result.make(channel, &graphs[number].1, number, watch)?;
            result.made.push(Made { source, map, size: 0.0 });
        }
        result.measure(watch)?;
        Ok(result)
    }

    fn make(
        &self,
        channel: &Channel,
        graph: &Graph,
        transition: usize,
        watch: &Watch,
    ) -> Result<(Source, Map), Error> {
        let spectrum = if transition == 0 { self.spectrum.as_ref() } else { None };
        Ok(match &channel.view {
            View::Features => (Source::Features, Map::Identity),
            View::Step => (Source::Features, Map::Series { transition, coefficients: vec![0.0, 1.0] }),
            View::Filter(filter) => {
                let coefficients = Series::of(filter, TOLERANCE)?.coefficients().to_vec();
                (Source::Features, Map::Series { transition, coefficients })
            }
            View::Rank { window, of } => {
                let windows = spectrum.map(|spectrum| rank_windows(spectrum.eigenvalues(), (*of).max(1)));
                let found = windows.and_then(|windows| windows.get(*window).cloned());
                let range = found.ok_or(Error::Parameter {
                    name: "window",
                    value: *window as f64,
                    requirement: "below the number of windows, on the graph itself",
                })?;
                (Source::Features, Map::Window(range))
            }
            View::Rows => {
                let rows = match spectrum {
                    Some(spectrum) if graph.nodes() > ROWS_UP_TO => strongest(spectrum),
                    _ => Features::Sparse(graph.adjacency().map(|weight| weight as f32)),
                };
                (Source::Own(rows), Map::Identity)
            }
            View::Statistics => {
                let diagonals = spectrum.map_or(Diagonals::Estimated, Diagonals::Exact);
                (Source::Own(statistics(graph, diagonals, watch)?), Map::Identity)
            }
        })
    }

    /// Fills in the sizes: filters of the same L together, in one pass.
    fn measure(&mut self, watch: &Watch) -> Result<(), Error> {
        for number in 0..self.transitions.len() {
            let places = self.series_of(number);
            if places.is_empty() {
                continue;
            }
            let filters = places.iter().map(|&at| polynomial(&self.made[at].map)).collect();
            let operator = Operator::new(&self.transitions[number]);
            let sizes = FilterBank::new(filters).row_norms(&operator, &self.features, TOLERANCE, watch)?;
            places.iter().zip(sizes).for_each(|(&at, size)| self.made[at].size = size);
        }
        for at in 0..self.made.len() {
            let size = match (&self.made[at].map, &self.made[at].source) {
                (Map::Series { .. }, _) => continue,
                (Map::Identity, Source::Features) => root_mean_square(&self.features),
                (Map::Identity, Source::Own(own)) => root_mean_square(own),
                (Map::Window(range), _) => {
                    // The eigenvectors are orthonormal: |Phi Phi^T X| = |Phi^T X|.
                    let parts = self.coordinates(range.clone());
                    (parts.iter().map(|value| value * value).sum::<f64>() / self.nodes() as f64).sqrt()
                }
            };
            self.made[at].size = size;
        }
        Ok(())
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.features.rows()
    }

    /// The features X.
    pub fn features(&self) -> &Features {
        &self.features
    }

    /// The transition matrices: of the graph, then of its nearest-neighbour graphs.
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }

    /// The eigenpairs of the graph, where a channel needed them.
    pub fn spectrum(&self) -> Option<&Spectrum> {
        self.spectrum.as_ref()
    }

    /// The channels, in the order they were asked for.
    pub fn made(&self) -> &[Made] {
        &self.made
    }

    /// The channel's matrix itself, a row for each vertex: what a network would be given by other libraries.
    ///
    /// # Errors
    /// If the watch asks to stop.
    pub fn matrix(&self, channel: usize, watch: &Watch) -> Result<Features, Error> {
        let made = &self.made[channel];
        Ok(match (&made.map, &made.source) {
            (Map::Identity, Source::Features) => self.features.clone(),
            (Map::Identity, Source::Own(own)) => own.clone(),
            (Map::Series { transition, .. }, _) => {
                let bank = FilterBank::new(vec![polynomial(&made.map)]);
                let transition = &self.transitions[*transition];
                let mut moved = bank.apply_to_features(transition, &self.features, TOLERANCE, watch)?;
                Features::Dense { columns: self.features.columns(), values: moved.swap_remove(0) }
            }
            (Map::Window(range), _) => self.project(range.clone()),
        })
    }

    /// All channels as [`Channels::matrix`] gives them; filters of the same L share one Chebyshev pass.
    ///
    /// # Errors
    /// If the watch asks to stop.
    pub fn matrices(&self, watch: &Watch) -> Result<Vec<Features>, Error> {
        let mut matrices: Vec<Option<Features>> = vec![None; self.made.len()];
        for (number, transition) in self.transitions.iter().enumerate() {
            let places = self.series_of(number);
            let filters = places.iter().map(|&at| polynomial(&self.made[at].map)).collect();
            let columns = self.features.columns();
            let moved =
                FilterBank::new(filters).apply_to_features(transition, &self.features, TOLERANCE, watch)?;
            for (at, values) in places.into_iter().zip(moved) {
                matrices[at] = Some(Features::Dense { columns, values });
            }
        }
        let rest = |(at, made): (usize, Option<Features>)| made.map_or_else(|| self.matrix(at, watch), Ok);
        matrices.into_iter().enumerate().map(rest).collect()
    }

    /// The channels that are series in the transition matrix of this number.
    fn series_of(&self, number: usize) -> Vec<usize> {
        let of_this =
            |made: &Made| matches!(made.map, Map::Series { transition, .. } if transition == number);
        (0..self.made.len()).filter(|&at| of_this(&self.made[at])).collect()
    }

    /// Phi^T X for the eigenvectors in a range: a row for each.
    fn coordinates(&self, range: Range<usize>) -> Vec<f64> {
        let spectrum = self.spectrum.as_ref().expect("a window has eigenpairs");
        let columns = self.features.columns();
        let row = |pair: usize| {
            let mut sum = vec![0.0; columns];
            let vector = spectrum.vector(pair);
            match &self.features {
                Features::Sparse(matrix) => {
                    for (vertex, column, value) in matrix.iter() {
                        sum[column as usize] += vector[vertex] * f64::from(value);
                    }
                }
                Features::Dense { values, .. } => {
                    for (&factor, row) in vector.iter().zip(values.chunks_exact(columns)) {
                        sum.iter_mut().zip(row).for_each(|(sum, &value)| *sum += factor * f64::from(value));
                    }
                }
            }
            sum
        };
        range.into_par_iter().flat_map_iter(row).collect()
    }

    /// Phi Phi^T X.
    fn project(&self, range: Range<usize>) -> Features {
        let spectrum = self.spectrum.as_ref().expect("a window has eigenpairs");
        let (nodes, columns, pairs) = (self.nodes(), self.features.columns(), range.len());
        let parts = self.coordinates(range.clone());
        let vectors = &spectrum.vectors()[range.start * nodes..range.end * nodes];
        let vectors = MatRef::from_column_major_slice(vectors, nodes, pairs);
        let mut out = vec![0.0; nodes * columns];
        let block = 256;
        out.par_chunks_mut(block * columns).enumerate().for_each(|(number, out)| {
            let rows = out.len() / columns;
            let left = vectors.subrows(number * block, rows);
            let right = MatRef::from_row_major_slice(&parts, pairs, columns);
            let out = MatMut::from_row_major_slice_mut(out, rows, columns);
            matmul(out, Accum::Replace, left, right, 1.0, faer::Par::Seq);
        });
        Features::Dense { columns, values: out.into_iter().map(|value| value as f32).collect() }
    }
}

/// Every eigenpair of a transition matrix: given, stored, or computed and then stored.
fn complete(transition: &Transition, resources: &Resources, watch: &Watch) -> Result<Spectrum, Error> {
    let solver = Eigensolver::new().memory(resources.memory).accelerator(resources.accelerator.clone());
    let solve = || solver.solve(transition, watch);
    match &resources.spectra {
        Spectra::Given(spectrum) => {
            spectrum.origin().check(transition)?;
            if spectrum.is_complete() { Ok(spectrum.clone()) } else { solve() }
        }
        Spectra::Computed => solve(),
        Spectra::Stored(store) => match store.find(transition, watch) {
            Some(spectrum) => Ok(spectrum),
            None => {
                let spectrum = solve()?;
                store.keep(transition, &spectrum, watch);
                Ok(spectrum)
            }
        },
    }
}

/// The filter a series stands for.
fn polynomial(map: &Map) -> Filter {
    let Map::Series { coefficients, .. } = map else { unreachable!("asked for a series only") };
    let coefficients = coefficients.clone();
    Filter::custom("series", move |energy| Series::sum(&coefficients, energy))
}

/// The eigenvectors of largest |lambda|, times lambda; of equal ones the lower.
fn strongest(spectrum: &Spectrum) -> Features {
    let mut order: Vec<usize> = (0..spectrum.pairs()).collect();
    order.sort_by(|&a, &b| spectrum.eigenvalues()[b].abs().total_cmp(&spectrum.eigenvalues()[a].abs()));
    order.truncate(EIGENVECTORS);
    let columns = order.len();
    let mut values = vec![0.0; spectrum.nodes() * columns];
    for (column, &pair) in order.iter().enumerate() {
        let energy = spectrum.eigenvalues()[pair];
        for (vertex, entry) in spectrum.vector(pair).iter().enumerate() {
            values[vertex * columns + column] = (energy * entry) as f32;
        }
    }
    Features::Dense { columns, values }
}

fn root_mean_square(features: &Features) -> f64 {
    let square = |&value: &f32| f64::from(value) * f64::from(value);
    let sum: f64 = match features {
        Features::Sparse(matrix) => matrix.values().iter().map(square).sum(),
        Features::Dense { values, .. } => values.iter().map(square).sum(),
    };
    (sum / features.rows() as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EdgeRule;

    fn setting() -> (Graph, Features) {
        let edges = (0..30u64).flat_map(|i| [(i, (i + 1) % 30), (i, (i * 7 + 3) % 30)]);
        let graph = Graph::from_edges(30, edges, EdgeRule::Undirected).unwrap();
        let values = (0..30 * 8).map(|at| if (at * 31) % 5 == 0 { (at % 7) as f32 } else { 0.0 }).collect();
        (graph, Features::from_dense(8, values))
    }

    fn channels(list: &[Channel]) -> Channels {
        let (graph, features) = setting();
        Channels::new(list, &graph, features, &Resources::default(), &Watch::silent()).unwrap()
    }

    #[test]
    fn windows_by_rank_sum_to_the_features_and_are_orthogonal() {
        let list: Vec<Channel> = (0..5).map(|window| Channel::new(View::Rank { window, of: 5 })).collect();
        let channels = channels(&list);
        let parts: Vec<Vec<f32>> =
            (0..5).map(|at| channels.matrix(at, &Watch::silent()).unwrap().to_dense()).collect();
        let whole = channels.features().to_dense();
        for at in 0..whole.len() {
            let sum: f32 = parts.iter().map(|part| part[at]).sum();
            assert!((sum - whole[at]).abs() < 1e-4);
        }
        let squares: f64 = channels.made().iter().map(|made| made.size * made.size).sum();
        let expected = root_mean_square(channels.features()).powi(2);
        assert!((squares - expected).abs() < 1e-9 * expected, "{squares} {expected}");
    }

    #[test]
    fn sizes_are_those_of_the_matrices() {
        let list = [
            Channel::new(View::Features),
            Channel::new(View::Step),
            Channel::new(View::Filter(Filter::gaussian(1.0, 0.25).unwrap())),
            Channel::new(View::Rank { window: 2, of: 3 }),
            Channel::new(View::Rows),
            Channel::new(View::Statistics),
            Channel { on: On::Nearest(4), view: View::Step },
        ];
        let channels = channels(&list);
        assert_eq!(channels.transitions().len(), 2);
        let all = channels.matrices(&Watch::silent()).unwrap();
        for (at, made) in channels.made().iter().enumerate() {
            let matrix = channels.matrix(at, &Watch::silent()).unwrap();
            assert!(matrix.to_dense().iter().zip(all[at].to_dense()).all(|(a, b)| (a - b).abs() < 1e-5));
            let expected = root_mean_square(&matrix);
            assert!((made.size - expected).abs() < 1e-5 * expected, "{}: {} {expected}", list[at], made.size);
        }
        // L X is L times X, on either graph.
        let x = channels.features().to_dense();
        for (at, transition) in [(1, 0), (6, 1)] {
            let found = channels.matrix(at, &Watch::silent()).unwrap().to_dense();
            for column in 0..8 {
                let signal: Vec<f64> = (0..30).map(|vertex| f64::from(x[vertex * 8 + column])).collect();
                let mut moved = vec![0.0; 30];
                channels.transitions()[transition].matrix().apply(&signal, &mut moved);
                assert!(
                    (0..30)
                        .all(|vertex| (f64::from(found[vertex * 8 + column]) - moved[vertex]).abs() < 1e-5)
                );
            }
        }
    }

    #[test]
    fn a_filter_that_is_a_sum_is_a_channel_like_any_other() {
        let (one, two) = (Filter::gaussian(1.0, 0.25).unwrap(), Filter::gaussian(-0.8, 0.5).unwrap());
        let sum = Filter::sum([(2.0, one.clone()), (-0.5, two.clone())]).unwrap();
        let channels = channels(&[one, two, sum].map(|filter| Channel::new(View::Filter(filter))));
        let [one, two, sum] = [0, 1, 2].map(|at| channels.matrix(at, &Watch::silent()).unwrap().to_dense());
        for at in 0..sum.len() {
            assert!((sum[at] - (2.0 * one[at] - 0.5 * two[at])).abs() < 1e-4, "{at}");
        }
    }

    #[test]
    fn eigenpairs_are_those_at_hand_of_this_graph_or_computed_within_the_memory() {
        let (graph, features) = setting();
        let transition = Transition::new(&graph);
        let rank = [Channel::new(View::Rank { window: 0, of: 2 })];
        let make = |resources: &Resources| {
            Channels::new(&rank, &graph, features.clone(), resources, &Watch::silent())
        };
        let spectrum = Eigensolver::new().solve(&transition, &Watch::silent()).unwrap();
        let given = make(&Resources::given(spectrum.clone())).unwrap();
        assert_eq!(given.spectrum().unwrap().vectors().as_ptr(), spectrum.vectors().as_ptr());
        let other = Graph::from_edges(30, [(0, 1)], EdgeRule::Undirected).unwrap();
        let foreign = Eigensolver::new().solve(&Transition::new(&other), &Watch::silent()).unwrap();
        assert!(make(&Resources::given(foreign)).is_err());
        let tight = Resources { memory: Some(100), ..Resources::default() };
        assert!(make(&tight).is_err());
        assert!(make(&Resources::default()).is_ok());
    }

    #[test]
    fn what_cannot_be_made_is_refused() {
        let (graph, features) = setting();
        let make = |channel: Channel, features: Features| {
            Channels::new(&[channel], &graph, features, &Resources::default(), &Watch::silent()).map(|_| ())
        };
        let beyond = Channel::new(View::Rank { window: 5, of: 5 });
        assert!(matches!(make(beyond, features.clone()), Err(Error::Parameter { name: "window", .. })));
        let elsewhere = Channel { on: On::Nearest(3), view: View::Rank { window: 0, of: 5 } };
        assert!(matches!(make(elsewhere, features), Err(Error::Parameter { name: "window", .. })));
        let short = Features::from_dense(8, vec![1.0; 8 * 29]);
        let found = make(Channel::new(View::Features), short);
        assert!(matches!(found, Err(Error::LengthMismatch { expected: 30, found: 29, .. })));
    }
}
