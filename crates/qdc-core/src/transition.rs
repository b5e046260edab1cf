//! The transition matrix L = D^-1/2 (A + w I) D^-1/2 (the paper calls it the Laplacian).

use crate::hash::{ContentHash, Digest};
use crate::{Csr, Error, Graph, order};

/// The normalised adjacency with self-loops: L = D^-1/2 (A + w I) D^-1/2, with D the row sums of A + w I.
///
/// Symmetric, spectrum in (-1, 1] for w > 0; 1 is the smoothest end, with eigenvector D^1/2 1 on each
/// component. A vertex of degree 0 (possible only for w = 0) has an empty row.
///
/// ```
/// use qdc_core::{EdgeRule, Graph, Transition};
///
/// let pair = Graph::from_edges(2, [(0, 1)], EdgeRule::Undirected)?;
/// let transition = Transition::new(&pair);
/// assert_eq!(transition.matrix().to_dense(), [0.5, 0.5, 0.5, 0.5]);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Transition {
    matrix: Csr<f64>,
    self_loop: f64,
}

impl Transition {
    /// The transition matrix with self-loops of weight 1.
    pub fn new(graph: &Graph) -> Self {
        Self::build(graph, 1.0)
    }

    /// The transition matrix with self-loops of weight `self_loop` >= 0.
    ///
    /// # Errors
    /// If the weight is negative or not finite, or the weights at a vertex add up to infinity.
    pub fn with_self_loop(graph: &Graph, self_loop: f64) -> Result<Self, Error> {
        if !self_loop.is_finite() || self_loop < 0.0 {
            return Err(Error::Parameter {
                name: "self_loop",
                value: self_loop,
                requirement: "finite and not negative",
            });
        }
        match (0..graph.nodes()).find(|&vertex| !(graph.degree(vertex) + self_loop).is_finite()) {
            Some(vertex) => Err(Error::InfiniteDegree { vertex: vertex as u64 }),
            None => Ok(Self::build(graph, self_loop)),
        }
    }

    fn build(graph: &Graph, self_loop: f64) -> Self {
        let adjacency = graph.adjacency();
        let nodes = graph.nodes();
        let degrees: Vec<f64> = (0..nodes).map(|vertex| graph.degree(vertex) + self_loop).collect();
        let capacity = adjacency.entries() + nodes;
        let (mut indices, mut values) = (Vec::with_capacity(capacity), Vec::with_capacity(capacity));
        let mut pointers = Vec::with_capacity(nodes + 1);
        pointers.push(0);
        for row in 0..nodes {
            let (columns, weights) = adjacency.row(row);
            let diagonal = columns.partition_point(|&column| (column as usize) < row);
            let mut put = |column: u32, weight: f64| {
                indices.push(column);
                values.push(weight / root(degrees[row], degrees[column as usize]));
            };
            (0..diagonal).for_each(|at| put(columns[at], weights[at]));
            if self_loop > 0.0 {
                put(row as u32, self_loop);
            }
            (diagonal..columns.len()).for_each(|at| put(columns[at], weights[at]));
            pointers.push(indices.len());
        }
        Self { matrix: Csr::trusted(nodes, pointers, indices, values), self_loop }
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.matrix.rows()
    }

    /// L.
    pub fn matrix(&self) -> &Csr<f64> {
        &self.matrix
    }

    /// The hash of L and of its self-loop weight.
    pub fn hash(&self) -> ContentHash {
        let matrix = &self.matrix;
        Digest::new("transition")
            .sizes(matrix.pointers())
            .indices(matrix.indices())
            .floats(matrix.values())
            .number(self.self_loop)
            .finish()
    }

    /// How many eigenvalues are exactly 1: one for each connected component that has an edge or a self-loop.
    ///
    /// Cost: one pass over the entries.
    pub(crate) fn ones(&self) -> usize {
        let empty = (0..self.nodes()).filter(|&row| self.matrix.row(row).0.is_empty()).count();
        order::connected(&self.matrix).count() - empty
    }

    /// The weight of the self-loops.
    pub fn self_loop(&self) -> f64 {
        self.self_loop
    }
}

/// The root of a product of degrees, also where the product leaves the range of numbers.
fn root(a: f64, b: f64) -> f64 {
    let product = a * b;
    if product.is_finite() && product >= f64::MIN_POSITIVE { product.sqrt() } else { a.sqrt() * b.sqrt() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::EdgeRule;
    use proptest::prelude::*;

    #[test]
    fn a_self_loop_must_be_finite_and_not_negative() {
        let graph = Graph::from_edges(2, [(0, 1)], EdgeRule::Undirected).unwrap();
        for bad in [-1.0, f64::NAN, f64::INFINITY] {
            assert!(matches!(Transition::with_self_loop(&graph, bad), Err(Error::Parameter { .. })));
        }
    }

    #[test]
    fn weights_at_the_ends_of_the_range_give_the_same_matrix_and_infinite_degrees_are_refused() {
        let graph = |weight: f64| {
            let edges = [(0, 1, weight), (1, 2, weight)];
            Graph::from_weighted_edges(3, edges, EdgeRule::Undirected)
        };
        let plain = Transition::with_self_loop(&graph(1.0).unwrap(), 0.0).unwrap();
        for weight in [1e-300, 1e-160, 1e155, 1e200, 8e307] {
            let scaled = Transition::with_self_loop(&graph(weight).unwrap(), 0.0).unwrap();
            for (found, expected) in scaled.matrix().values().iter().zip(plain.matrix().values()) {
                assert!((found - expected).abs() < 1e-15, "{weight:e}: {found} instead of {expected}");
            }
            assert_eq!(scaled.matrix(), &scaled.matrix().transpose());
        }
        assert!(matches!(graph(1e308), Err(Error::InfiniteDegree { vertex: 1 })));
        let refused = Transition::with_self_loop(&graph(8e307).unwrap(), 1e308);
        assert!(matches!(refused, Err(Error::InfiniteDegree { .. })));
    }

    #[test]
    fn every_component_with_an_edge_has_one_eigenvalue_1() {
        let graph = Graph::from_edges(7, [(0, 1), (1, 2), (4, 5)], EdgeRule::Undirected).unwrap();
        assert_eq!(Transition::new(&graph).ones(), 4);
        assert_eq!(Transition::with_self_loop(&graph, 0.0).unwrap().ones(), 2);
    }

    #[test]
    fn the_hash_knows_the_matrix_and_the_self_loop() {
        let graph =
            |edges: &[(u64, u64)]| Graph::from_edges(4, edges.iter().copied(), EdgeRule::Undirected).unwrap();
        let (path, star) = (graph(&[(0, 1), (1, 2), (2, 3)]), graph(&[(0, 1), (0, 2), (0, 3)]));
        assert_eq!(Transition::new(&path).hash(), Transition::new(&path).hash());
        assert_ne!(Transition::new(&path).hash(), Transition::new(&star).hash());
        let heavier = Transition::with_self_loop(&path, 2.0).unwrap();
        assert_eq!(heavier.self_loop(), 2.0);
        assert_ne!(Transition::new(&path).hash(), heavier.hash());
        assert_ne!(path.hash(), star.hash());
    }

    proptest! {
        #[test]
        fn the_square_root_of_the_degrees_is_kept_by_the_transition(
            edges in proptest::collection::vec((0u64..10, 0u64..10, 0.1f64..5.0), 0..30),
            self_loop in 0.1f64..3.0,
        ) {
            // Edges repeat with different weights, so the larger one is taken.
            let rule = EdgeRule::Directed(crate::Symmetrize::Max);
            let graph = Graph::from_weighted_edges(10, edges, rule).unwrap();
            let transition = Transition::with_self_loop(&graph, self_loop).unwrap();
            prop_assert_eq!(transition.matrix(), &transition.matrix().transpose());
            let root: Vec<f64> = (0..10).map(|v| (graph.degree(v) + self_loop).sqrt()).collect();
            let mut image = vec![0.0; 10];
            transition.matrix().apply(&root, &mut image);
            for (a, b) in image.iter().zip(&root) {
                prop_assert!((a - b).abs() < 1e-12 * b.max(1.0));
            }
        }
    }
}
