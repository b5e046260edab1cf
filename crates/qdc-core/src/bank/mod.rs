//! Banks: several views of the same features, one beside the other.
//!
//! A [`FilterBank`] is a list of filters of one L, applied to the same signals with one Chebyshev pass. A
//! [`Channel`] is the wider notion a network learns from: the features as they are, a filter of L, a hard
//! window by rank, the rows of the adjacency, statistics of the vertices; on the graph, or on the nearest
//! neighbours in feature space ([`crate::nearest`]). [`Channels`] makes them for a graph.

mod channel;
mod channels;
mod filters;
mod statistics;

pub use channel::{Channel, On, View};
pub use channels::{Channels, Made, Map, Source};
pub use filters::FilterBank;
pub use statistics::{Diagonals, statistics};
