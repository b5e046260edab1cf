//! Homophily: how often neighbours share a label, in the graph and in each part of its spectrum.

mod spectral;
mod window;

use crate::{Csr, Error, Graph, UNLABELLED};

pub use spectral::{Reading, SPECTRAL_CUTOFF, SpectralPoint, spectral_homophily};
pub use window::{
    PROBES, Suggestion, WindowEstimate, sliding_windows, suggest, window_homophily, window_homophily_exact,
};

/// The share of same-label neighbours, read in two ways.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct Homophily {
    /// Mean over all vertices of the share of neighbours with the vertex's label; a vertex without neighbours
    /// counts 0. This is H of the paper.
    pub node: f64,
    /// The same mean over the vertices that have neighbours.
    pub node_with_neighbours: f64,
    /// The share of edges whose ends have the same label.
    pub edge: f64,
    /// Vertices without neighbours.
    pub isolated: usize,
}

/// Node and edge homophily of a labelled graph. Vertices without a label ([`UNLABELLED`]) are left out, as if
/// they were not there.
///
/// ```
/// use qdc_core::{EdgeRule, Graph, homophily};
///
/// let path = Graph::from_edges(3, [(0, 1), (1, 2)], EdgeRule::Undirected)?;
/// let homophily = homophily(&path, &[0, 0, 1])?;
/// assert_eq!(homophily.node, (1.0 + 0.5 + 0.0) / 3.0);
/// assert_eq!(homophily.edge, 0.5);
/// # Ok::<(), qdc_core::Error>(())
/// ```
///
/// # Errors
/// If there is not one label for each vertex.
pub fn homophily(graph: &Graph, labels: &[u32]) -> Result<Homophily, Error> {
    homophily_of(graph.adjacency(), labels)
}

/// Homophily of the off-diagonal pattern of any square matrix, such as a kernel.
///
/// # Errors
/// If there is not one label for each row.
pub fn homophily_of<T: Copy + Send + Sync>(matrix: &Csr<T>, labels: &[u32]) -> Result<Homophily, Error> {
    if labels.len() != matrix.rows() {
        return Err(Error::LengthMismatch {
            what: "labels, one for each vertex",
            expected: matrix.rows(),
            found: labels.len(),
        });
    }
    let (mut share_sum, mut isolated) = (0.0, 0);
    let (mut same_edges, mut edges) = (0usize, 0usize);
    let labelled = |vertex: usize| labels[vertex] != UNLABELLED;
    let vertices = labels.iter().filter(|&&label| label != UNLABELLED).count();
    for row in (0..matrix.rows()).filter(|&row| labelled(row)) {
        let others = || {
            let columns = matrix.row(row).0.iter();
            columns.filter(|&&column| column as usize != row && labelled(column as usize))
        };
        let degree = others().count();
        let same = others().filter(|&&column| labels[column as usize] == labels[row]).count();
        if degree == 0 {
            isolated += 1;
        } else {
            share_sum += same as f64 / degree as f64;
        }
        edges += degree;
        same_edges += same;
    }
    let mean_over = |count: usize| if count == 0 { 0.0 } else { share_sum / count as f64 };
    Ok(Homophily {
        node: mean_over(vertices),
        node_with_neighbours: mean_over(vertices - isolated),
        edge: if edges == 0 { 0.0 } else { same_edges as f64 / edges as f64 },
        isolated,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EdgeRule;

    #[test]
    fn an_isolated_vertex_counts_zero() {
        let graph = Graph::from_edges(3, [(0, 1)], EdgeRule::Undirected).unwrap();
        let homophily = homophily(&graph, &[0, 0, 0]).unwrap();
        assert_eq!(homophily.node, 2.0 / 3.0);
        assert_eq!((homophily.node_with_neighbours, homophily.edge, homophily.isolated), (1.0, 1.0, 1));
    }

    #[test]
    fn vertices_without_a_label_are_left_out() {
        let edges = [(0, 1), (1, 2), (2, 3), (3, 4), (0, 4)];
        let graph = Graph::from_edges(6, edges, EdgeRule::Undirected).unwrap();
        let found = homophily(&graph, &[0, 0, 1, UNLABELLED, UNLABELLED, UNLABELLED]).unwrap();
        let path = Graph::from_edges(3, [(0, 1), (1, 2)], EdgeRule::Undirected).unwrap();
        assert_eq!(found, homophily(&path, &[0, 0, 1]).unwrap());
    }

    #[test]
    fn labels_must_cover_every_vertex() {
        let graph = Graph::from_edges(3, [(0, 1)], EdgeRule::Undirected).unwrap();
        assert!(matches!(homophily(&graph, &[0]), Err(Error::LengthMismatch { found: 1, .. })));
    }
}
