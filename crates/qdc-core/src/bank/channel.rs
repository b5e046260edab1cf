//! What a channel is: a view of the features, or of what takes their place, along a graph.

use crate::Filter;

/// Above this many vertices the rows of the adjacency are replaced by eigenvectors.
pub(super) const ROWS_UP_TO: usize = 12_000;

/// The graph a channel looks along.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum On {
    /// The given one.
    Graph,
    /// The graph of this many nearest neighbours in feature space.
    Nearest(usize),
}

/// What a channel sees.
#[derive(Clone, Debug)]
pub enum View {
    /// X: the features as they are.
    Features,
    /// L X.
    Step,
    /// P(L) X.
    Filter(Filter),
    /// The part of X in one of `of` windows of equal count over the spectrum.
    Rank {
        /// The window, counting from the lowest eigenvalues.
        window: usize,
        /// Number of windows.
        of: usize,
    },
    /// The rows of the adjacency; above 12,000 vertices the 512 eigenvectors of largest |lambda|, times lambda.
    Rows,
    /// `statistics` of the vertices.
    Statistics,
}

/// One view along one graph.
///
/// ```
/// use qdc_core::Filter;
/// use qdc_core::bank::{Channel, On, View};
///
/// let smooth = Channel::new(View::Filter(Filter::gaussian(1.0, 0.25)?));
/// assert_eq!(smooth.to_string(), "gaussian(mu 1, sigma 0.25)");
/// let near = Channel { on: On::Nearest(10), view: View::Step };
/// assert_eq!(near.to_string(), "L X on 10 nearest");
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct Channel {
    /// The graph.
    pub on: On,
    /// The view.
    pub view: View,
}

impl Channel {
    /// A view along the given graph.
    pub fn new(view: View) -> Self {
        Self { on: On::Graph, view }
    }

    /// Whether it means something only for the vertices it was made for, so that a network that learnt from
    /// it says nothing about another graph.
    pub fn names_vertices(&self) -> bool {
        matches!(self.view, View::Rows)
    }

    /// Whether it is made of eigenpairs on a graph of this size.
    pub(super) fn needs_spectrum(&self, nodes: usize) -> bool {
        match self.view {
            View::Rank { .. } => true,
            View::Rows => nodes > ROWS_UP_TO,
            _ => false,
        }
    }
}

impl std::fmt::Display for Channel {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.view {
            View::Features => write!(f, "X")?,
            View::Step => write!(f, "L X")?,
            View::Filter(filter) => write!(f, "{filter}")?,
            View::Rank { window, of } => write!(f, "rank window {} of {of}", window + 1)?,
            View::Rows => write!(f, "adjacency rows")?,
            View::Statistics => write!(f, "statistics")?,
        }
        match self.on {
            On::Graph => Ok(()),
            On::Nearest(k) => write!(f, " on {k} nearest"),
        }
    }
}
