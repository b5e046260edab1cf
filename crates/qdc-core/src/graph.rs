//! The graph: undirected, weighted, without self-loops; a value of the type cannot be otherwise.

use crate::csr::MAX_COLUMNS;
use crate::hash::{ContentHash, Digest};
use crate::{Csr, Error};

/// How a directed graph becomes an undirected one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Symmetrize {
    /// An edge stands where either orientation does; where both do, their weights must agree.
    Or,
    /// The larger of the two weights, an absent one counting 0.
    Max,
    /// The mean of the two weights, an absent one counting 0.
    Mean,
}

impl Symmetrize {
    /// The weight of the undirected edge, from the weights of both orientations (`None`: absent).
    fn join(self, forward: Option<f64>, backward: Option<f64>) -> Option<f64> {
        match (self, forward, backward) {
            (Self::Or, Some(a), Some(b)) => (a == b).then_some(a),
            (Self::Or, a, b) => a.or(b),
            (Self::Max, a, b) => Some(a.unwrap_or(0.0).max(b.unwrap_or(0.0))),
            (Self::Mean, a, b) => Some(0.5 * (a.unwrap_or(0.0) + b.unwrap_or(0.0))),
        }
    }
}

/// How to read a list of edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EdgeRule {
    /// Each pair is an undirected edge; copies, in either orientation, must agree in weight.
    Undirected,
    /// Each pair is an arc; the two orientations are joined by the rule.
    Directed(Symmetrize),
}

/// An undirected graph with weights >= 0 and no self-loops.
///
/// The adjacency A is symmetric and stored whole, so each edge stands twice. Self-loops of the input were
/// dropped and counted; edges of weight 0 are absent.
///
/// ```
/// use qdc_core::{EdgeRule, Graph};
///
/// let triangle = Graph::from_edges(3, [(0, 1), (1, 2), (2, 0), (1, 0), (2, 2)], EdgeRule::Undirected)?;
/// assert_eq!(triangle.nodes(), 3);
/// assert_eq!(triangle.edges(), 3); // (1, 0) repeats (0, 1)
/// assert_eq!(triangle.self_loops(), 1); // dropped
/// assert_eq!(triangle.degree(0), 2.0);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Graph {
    adjacency: Csr<f64>,
    self_loops: usize,
}

impl Graph {
    /// The graph of an unweighted edge list; every edge weighs 1.
    ///
    /// # Errors
    /// As [`Graph::from_weighted_edges`].
    pub fn from_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u64, u64)>,
        rule: EdgeRule,
    ) -> Result<Self, Error> {
        Self::from_weighted_edges(nodes, edges.into_iter().map(|(from, to)| (from, to, 1.0)), rule)
    }

    /// The graph of a weighted edge list.
    ///
    /// Copies of one edge in the same orientation must agree in weight, unless `rule` is `max` or `mean`,
    /// which then settles them too.
    ///
    /// # Errors
    /// If there is no vertex, an edge names one that does not exist, a weight is negative or not finite, or
    /// copies of an edge disagree.
    pub fn from_weighted_edges(
        nodes: usize,
        edges: impl IntoIterator<Item = (u64, u64, f64)>,
        rule: EdgeRule,
    ) -> Result<Self, Error> {
        check_nodes(nodes)?;
        let mut self_loops = Vec::new();
        // Each edge is filed under its ends in ascending order; the flag remembers the orientation it came
        // in.
        let mut arcs: Vec<(u32, u32, bool, f64)> = Vec::new();
        for (from, to, weight) in edges {
            if from >= nodes as u64 || to >= nodes as u64 {
                return Err(Error::VertexOutOfRange { from, to, nodes });
            }
            if !weight.is_finite() || weight < 0.0 {
                return Err(Error::BadWeight { from, to, weight });
            }
            if from == to {
                self_loops.push(from);
            } else {
                let reversed = from > to;
                let (low, high) = if reversed { (to, from) } else { (from, to) };
                arcs.push((low as u32, high as u32, reversed, weight));
            }
        }
        self_loops.sort_unstable();
        self_loops.dedup();

        arcs.sort_unstable_by(|a, b| (a.0, a.1, a.2).cmp(&(b.0, b.1, b.2)).then(a.3.total_cmp(&b.3)));
        let undirected = arcs
            .chunk_by(|a, b| (a.0, a.1) == (b.0, b.1))
            .map(|copies| Ok((copies[0].0, copies[0].1, merge(copies, rule)?)))
            .collect::<Result<Vec<_>, Error>>()?;
        let graph = Self { adjacency: symmetric(nodes, &undirected), self_loops: self_loops.len() };
        match (0..nodes).find(|&vertex| !graph.degree(vertex).is_finite()) {
            Some(vertex) => Err(Error::InfiniteDegree { vertex: vertex as u64 }),
            None => Ok(graph),
        }
    }

    /// The graph of an adjacency matrix.
    ///
    /// Without a rule the matrix must be symmetric to the last bit; the diagonal is dropped and counted.
    ///
    /// # Errors
    /// If the matrix is not square, not symmetric (without a rule), or a weight is negative or not finite.
    pub fn from_adjacency(matrix: &Csr<f64>, rule: Option<Symmetrize>) -> Result<Self, Error> {
        if matrix.rows() != matrix.columns() {
            return Err(Error::LengthMismatch {
                what: "columns of a square adjacency matrix",
                expected: matrix.rows(),
                found: matrix.columns(),
            });
        }
        if rule.is_none() {
            for (from, to, forward) in matrix.iter() {
                let backward = matrix.get(to as usize, from as u32).unwrap_or(0.0);
                if forward != backward && forward.is_finite() {
                    let (from, to) = (from as u64, u64::from(to));
                    return Err(Error::Asymmetric { from, to, forward, backward });
                }
            }
        }
        let arcs = matrix.iter().map(|(from, to, weight)| (from as u64, u64::from(to), weight));
        Self::from_weighted_edges(matrix.rows(), arcs, rule.map_or(EdgeRule::Undirected, EdgeRule::Directed))
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.adjacency.rows()
    }

    /// Number of edges, self-loops not counted.
    pub fn edges(&self) -> usize {
        self.adjacency.entries() / 2
    }

    /// Number of vertices that had a self-loop in the input.
    pub fn self_loops(&self) -> usize {
        self.self_loops
    }

    /// Bytes of the graph and of its transition matrix, which has the diagonal besides: a column and a value for each
    /// entry, a pointer for each row.
    pub fn memory(&self) -> u64 {
        const ENTRY: u64 = 4 + 8;
        let (nodes, entries) = (self.nodes() as u64, self.adjacency.entries() as u64);
        ENTRY * (2 * entries + nodes) + 2 * 8 * nodes
    }

    /// A: symmetric, zero diagonal.
    pub fn adjacency(&self) -> &Csr<f64> {
        &self.adjacency
    }

    /// The neighbours of a vertex, ascending.
    pub fn neighbours(&self, vertex: usize) -> &[u32] {
        self.adjacency.row(vertex).0
    }

    /// The sum of the weights at a vertex, right to two units of rounding however many neighbours there are
    /// (Neumaier's summation).
    pub fn degree(&self, vertex: usize) -> f64 {
        let (mut sum, mut correction) = (0.0, 0.0);
        for &weight in self.adjacency.row(vertex).1 {
            let total: f64 = sum + weight;
            correction += if sum >= weight { (sum - total) + weight } else { (weight - total) + sum };
            sum = total;
        }
        sum + correction
    }

    /// Each edge once, as (smaller end, larger end, weight), ascending.
    pub fn edge_list(&self) -> impl Iterator<Item = (u32, u32, f64)> + '_ {
        self.adjacency.iter().filter(|&(i, j, _)| (i as u32) < j).map(|(i, j, weight)| (i as u32, j, weight))
    }

    /// Whether every edge weighs 1.
    pub fn is_unweighted(&self) -> bool {
        self.adjacency.values().iter().all(|&weight| weight == 1.0)
    }

    /// The hash of vertices, edges and weights: equal graphs have equal ones.
    pub fn hash(&self) -> ContentHash {
        let adjacency = &self.adjacency;
        Digest::new("graph")
            .sizes(adjacency.pointers())
            .indices(adjacency.indices())
            .floats(adjacency.values())
            .finish()
    }

    /// The graph with its vertices renamed: `order[new] = old`.
    ///
    /// # Panics
    /// If `order` is not a permutation of the vertices.
    pub fn relabel(&self, order: &[u32]) -> Self {
        Self { adjacency: self.adjacency.relabel(order), self_loops: self.self_loops }
    }
}

fn check_nodes(nodes: usize) -> Result<(), Error> {
    if nodes == 0 {
        return Err(Error::EmptyGraph);
    }
    if nodes > MAX_COLUMNS {
        return Err(Error::TooManyVertices { nodes, limit: MAX_COLUMNS });
    }
    Ok(())
}

/// One weight from all copies of one edge, which come sorted by orientation.
fn merge(copies: &[(u32, u32, bool, f64)], rule: EdgeRule) -> Result<f64, Error> {
    let (low, high) = (u64::from(copies[0].0), u64::from(copies[0].1));
    let split = copies.partition_point(|copy| !copy.2);
    let one_way = |copies: &[(u32, u32, bool, f64)]| match (copies.first(), copies.last(), rule) {
        (None, _, _) => Ok(None),
        (Some(first), Some(last), _) if first.3 == last.3 => Ok(Some(first.3)),
        (_, Some(last), EdgeRule::Directed(Symmetrize::Max)) => Ok(Some(last.3)), // sorted: the largest
        (_, _, EdgeRule::Directed(Symmetrize::Mean)) => {
            Ok(Some(copies.iter().map(|copy| copy.3).sum::<f64>() / copies.len() as f64))
        }
        (Some(first), last, _) => Err(Error::ConflictingWeights {
            from: low,
            to: high,
            first: first.3,
            second: last.unwrap_or(first).3,
        }),
    };
    let (forward, backward) = (one_way(&copies[..split])?, one_way(&copies[split..])?);
    let joined = match rule {
        EdgeRule::Undirected => Symmetrize::Or.join(forward, backward),
        EdgeRule::Directed(rule) => rule.join(forward, backward),
    };
    joined.ok_or(Error::Asymmetric {
        from: low,
        to: high,
        forward: forward.unwrap_or(0.0),
        backward: backward.unwrap_or(0.0),
    })
}

/// Both orientations of each edge (low, high, weight), given in ascending order; weight 0 is no edge.
fn symmetric(nodes: usize, edges: &[(u32, u32, f64)]) -> Csr<f64> {
    let present = || edges.iter().filter(|edge| edge.2 > 0.0);
    let mut pointers = vec![0; nodes + 1];
    for &(low, high, _) in present() {
        pointers[low as usize + 1] += 1;
        pointers[high as usize + 1] += 1;
    }
    for vertex in 0..nodes {
        pointers[vertex + 1] += pointers[vertex];
    }
    let mut next = pointers.clone();
    let mut indices = vec![0; pointers[nodes]];
    let mut values = vec![0.0; pointers[nodes]];
    let mut put = |row: u32, column: u32, weight: f64| {
        let at = &mut next[row as usize];
        indices[*at] = column;
        values[*at] = weight;
        *at += 1;
    };
    // A row's smaller neighbours come from edges that precede its own, so two passes leave every row
    // ascending.
    present().for_each(|&(low, high, weight)| put(high, low, weight));
    present().for_each(|&(low, high, weight)| put(low, high, weight));
    Csr::trusted(nodes, pointers, indices, values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn weighted(edges: &[(u64, u64, f64)], rule: EdgeRule) -> Result<Graph, Error> {
        Graph::from_weighted_edges(4, edges.iter().copied(), rule)
    }

    #[test]
    fn copies_that_agree_merge_and_copies_that_disagree_are_an_error() {
        let graph = weighted(&[(0, 1, 2.0), (1, 0, 2.0), (0, 1, 2.0)], EdgeRule::Undirected).unwrap();
        assert_eq!((graph.edges(), graph.degree(0)), (1, 2.0));

        let twice = weighted(&[(0, 1, 2.0), (0, 1, 3.0)], EdgeRule::Undirected).unwrap_err();
        assert!(matches!(twice, Error::ConflictingWeights { first: 2.0, second: 3.0, .. }), "{twice}");

        let both_ways = weighted(&[(0, 1, 2.0), (1, 0, 3.0)], EdgeRule::Undirected).unwrap_err();
        assert!(matches!(both_ways, Error::Asymmetric { forward: 2.0, backward: 3.0, .. }), "{both_ways}");
        assert_eq!(both_ways.remedy(), Some(crate::Remedy::Symmetrize));
    }

    #[test]
    fn symmetrisation_follows_its_rule() {
        let arcs = [(0, 1, 2.0), (1, 0, 4.0), (1, 2, 3.0)];
        let degrees = |rule| {
            let graph = weighted(&arcs, EdgeRule::Directed(rule)).unwrap();
            (graph.degree(0), graph.degree(2))
        };
        assert_eq!(degrees(Symmetrize::Max), (4.0, 3.0));
        assert_eq!(degrees(Symmetrize::Mean), (3.0, 1.5));
        assert!(weighted(&arcs, EdgeRule::Directed(Symmetrize::Or)).is_err(), "2 and 4 disagree");
        let graph = weighted(&arcs[1..], EdgeRule::Directed(Symmetrize::Or)).unwrap();
        assert_eq!((graph.degree(0), graph.degree(2)), (4.0, 3.0));
    }

    #[test]
    fn what_cannot_be_a_graph_is_refused() {
        assert!(matches!(Graph::from_edges(0, [], EdgeRule::Undirected), Err(Error::EmptyGraph)));
        assert!(matches!(
            weighted(&[(0, 4, 1.0)], EdgeRule::Undirected),
            Err(Error::VertexOutOfRange { to: 4, nodes: 4, .. })
        ));
        for weight in [f64::NAN, f64::INFINITY, -1.0] {
            let outcome = weighted(&[(0, 1, weight)], EdgeRule::Undirected);
            assert!(matches!(outcome, Err(Error::BadWeight { .. })));
        }
        if usize::BITS > 32 {
            let outcome = Graph::from_edges(1 << 33, [], EdgeRule::Undirected);
            assert!(matches!(outcome, Err(Error::TooManyVertices { .. })));
        }
    }

    #[test]
    fn an_asymmetric_adjacency_needs_a_rule() {
        let arc = Csr::new(2, 2, vec![0, 1, 1], vec![1], vec![1.0]).unwrap();
        assert!(matches!(Graph::from_adjacency(&arc, None), Err(Error::Asymmetric { .. })));
        assert_eq!(Graph::from_adjacency(&arc, Some(Symmetrize::Or)).unwrap().edges(), 1);
    }

    proptest! {
        #[test]
        fn any_edge_list_gives_a_symmetric_graph_that_reads_back(
            edges in proptest::collection::vec((0u64..9, 0u64..9), 0..40)
        ) {
            let graph = Graph::from_edges(9, edges.iter().copied(), EdgeRule::Undirected).unwrap();
            prop_assert_eq!(graph.adjacency(), &graph.adjacency().transpose());
            let again = graph.edge_list().map(|(i, j, w)| (u64::from(i), u64::from(j), w));
            let again = Graph::from_weighted_edges(9, again, EdgeRule::Undirected).unwrap();
            prop_assert_eq!(again.adjacency(), graph.adjacency());
            prop_assert_eq!(&Graph::from_adjacency(graph.adjacency(), None).unwrap(), &again);
        }
    }
}
