//! Which L a spectrum belongs to.

use serde::{Deserialize, Serialize};

use crate::hash::ContentHash;
use crate::{Error, Transition};

/// The transition matrix that eigenpairs belong to: its size, its self-loop weight and a hash of its entries.
///
/// Two spectra with the same origin are of the same L. [`Origin::check`] refuses eigenpairs of another one.
///
/// ```
/// use qdc_core::spectrum::{Eigensolver, Origin};
/// use qdc_core::{EdgeRule, Error, Graph, Transition, Watch};
///
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)], EdgeRule::Undirected)?;
/// let spectrum = Eigensolver::new().solve(&Transition::new(&path), &Watch::silent())?;
/// assert_eq!(spectrum.origin(), &Origin::of(&Transition::new(&path)));
/// let heavier = Transition::with_self_loop(&path, 2.0)?;
/// assert!(matches!(spectrum.origin().check(&heavier), Err(Error::ForeignSpectrum { .. })));
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Origin {
    /// Number of vertices.
    pub nodes: usize,
    /// Weight of the self-loops in L.
    pub self_loop: f64,
    /// A hash of L's pattern and values.
    pub hash: ContentHash,
}

impl Origin {
    /// The origin of spectra of this matrix. Cost: one pass over its entries.
    pub fn of(transition: &Transition) -> Self {
        Self { nodes: transition.nodes(), self_loop: transition.self_loop(), hash: transition.hash() }
    }

    /// Refuses a matrix other than the one the spectrum was computed from.
    ///
    /// # Errors
    /// [`Error::ForeignSpectrum`], which names what differs: the number of vertices, the self-loop weight, or
    /// the edges and their weights.
    pub fn check(&self, transition: &Transition) -> Result<(), Error> {
        let ours = Self::of(transition);
        let (what, theirs, expected) = if self.nodes != ours.nodes {
            ("number of vertices", self.nodes.to_string(), ours.nodes.to_string())
        } else if self.self_loop != ours.self_loop {
            ("self-loop weight", self.self_loop.to_string(), ours.self_loop.to_string())
        } else if self.hash != ours.hash {
            ("hash of edges and weights", self.hash.to_string(), ours.hash.to_string())
        } else {
            return Ok(());
        };
        Err(Error::ForeignSpectrum { what, theirs, expected })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Graph};

    fn transition(edges: &[(u64, u64, f64)], nodes: usize, self_loop: f64) -> Transition {
        let graph = Graph::from_weighted_edges(nodes, edges.to_vec(), EdgeRule::Undirected).unwrap();
        Transition::with_self_loop(&graph, self_loop).unwrap()
    }

    #[test]
    fn whatever_changes_the_matrix_makes_it_another_origin() {
        let ours = transition(&[(0, 1, 1.0), (1, 2, 2.0)], 4, 1.0);
        let origin = Origin::of(&ours);
        assert!(origin.check(&ours).is_ok());
        for (other, expected) in [
            (transition(&[(0, 1, 1.0), (1, 2, 2.0)], 5, 1.0), "number of vertices"),
            (transition(&[(0, 1, 1.0), (1, 2, 2.0)], 4, 0.5), "self-loop weight"),
            (transition(&[(0, 1, 1.0), (1, 3, 2.0)], 4, 1.0), "hash of edges and weights"),
            (transition(&[(0, 1, 1.0), (1, 2, 2.5)], 4, 1.0), "hash of edges and weights"),
            (transition(&[(0, 1, 1.0), (1, 2, 2.0), (2, 3, 1.0)], 4, 1.0), "hash of edges and weights"),
        ] {
            match origin.check(&other) {
                Err(Error::ForeignSpectrum { what, .. }) => assert_eq!(what, expected),
                outcome => panic!("{outcome:?} where {expected} differs"),
            }
        }
    }
}
