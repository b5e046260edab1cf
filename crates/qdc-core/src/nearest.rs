//! The nearest neighbours of the vertices in feature space, as a graph.
//!
//! Vertices with similar features are joined, whether the given graph joins them or not. Similarity is the
//! cosine of two rows of features; every pair is looked at, so the result is exact.

use faer::linalg::matmul::matmul;
use faer::{Accum, MatMut, MatRef, Par};
use rayon::prelude::*;

use crate::{Csr, EdgeRule, Error, Features, Graph, Watch};

/// Cosines closer than this count as equal, and a cosine not above it as 0: equal rows tie in theory and
/// differ in the last bit.
const TIE: f64 = 1e-9;
/// Rows of dense features that are multiplied with all others at a time.
const BLOCK: usize = 64;

/// The graph that joins every vertex to the `k` vertices of largest cosine, and to those that chose it;
/// weights are 1.
///
/// With v the k-th largest cosine of a row, the vertices above v + 1e-9 are taken, then those within 1e-9 of
/// v, lower numbers first. A cosine that is not positive joins nothing: a vertex without features stays
/// alone.
///
/// Cost: sparse features take the sum over the columns of the squared number of their entries (Pubmed, 20,000
/// vertices: seconds), dense ones n^2 F. Memory: one row of cosines for each thread, 64 rows where features
/// are dense.
///
/// ```
/// use qdc_core::{Features, Watch, nearest};
///
/// // Three vertices point one way, more or less, and one the other.
/// let features = Features::from_dense(2, vec![1.0, 0.1, 2.0, 0.3, 1.0, 0.0, -1.0, 0.2]);
/// let graph = nearest::cosine_graph(&features, 1, &Watch::silent())?;
/// let edges: Vec<_> = graph.edge_list().map(|(i, j, _)| (i, j)).collect();
/// assert_eq!(edges, [(0, 1), (0, 2)]);
/// # Ok::<(), qdc_core::Error>(())
/// ```
///
/// # Errors
/// If `k` is 0, there are no vertices, or the watch asks to stop.
pub fn cosine_graph(features: &Features, k: usize, watch: &Watch) -> Result<Graph, Error> {
    if k == 0 {
        return Err(Error::Parameter { name: "neighbours", value: 0.0, requirement: "at least 1" });
    }
    let nodes = features.rows();
    let phase = watch.phase("nearest neighbours", nodes as u64);
    let chosen: Vec<Vec<u32>> = match features {
        Features::Sparse(matrix) => {
            let rows = unit_rows(matrix);
            let columns = rows.transpose();
            (0..nodes)
                .into_par_iter()
                .map_init(
                    || (vec![0.0; nodes], Vec::new()),
                    |(cosines, candidates), vertex| {
                        cosines.fill(0.0);
                        let (indices, values) = rows.row(vertex);
                        for (&column, &value) in indices.iter().zip(values) {
                            let (others, weights) = columns.row(column as usize);
                            for (&other, &weight) in others.iter().zip(weights) {
                                cosines[other as usize] += value * weight;
                            }
                        }
                        phase.advance(1)?;
                        Ok(choose(vertex, cosines, k, candidates))
                    },
                )
                .collect::<Result<_, Error>>()?
        }
        Features::Dense { columns, values } => {
            let rows = unit_dense(values, *columns);
            let all = MatRef::from_row_major_slice(&rows, nodes, *columns);
            let blocks: Vec<usize> = (0..nodes).step_by(BLOCK).collect();
            let chosen: Vec<Vec<Vec<u32>>> = blocks
                .into_par_iter()
                .map(|first| {
                    let count = BLOCK.min(nodes - first);
                    let mut cosines = vec![0.0; count * nodes];
                    let out = MatMut::from_row_major_slice_mut(&mut cosines, count, nodes);
                    let block = all.subrows(first, count);
                    matmul(out, Accum::Replace, block, all.transpose(), 1.0, Par::Seq);
                    let mut candidates = Vec::new();
                    phase.advance(count as u64)?;
                    let row = |(at, cosines)| choose(first + at, cosines, k, &mut candidates);
                    Ok(cosines.chunks_exact(nodes).enumerate().map(row).collect())
                })
                .collect::<Result<_, Error>>()?;
            chosen.into_iter().flatten().collect()
        }
    };
    let edges = chosen
        .iter()
        .enumerate()
        .flat_map(|(vertex, others)| others.iter().map(move |&other| (vertex as u64, u64::from(other))));
    Graph::from_edges(nodes, edges, EdgeRule::Undirected)
}

/// The `k` vertices of largest cosine to `vertex`, which is not one of them.
fn choose(vertex: usize, cosines: &[f64], k: usize, candidates: &mut Vec<(f64, u32)>) -> Vec<u32> {
    candidates.clear();
    let others = cosines.iter().enumerate().filter(|&(other, &cosine)| other != vertex && cosine > TIE);
    candidates.extend(others.map(|(other, &cosine)| (cosine, other as u32)));
    if candidates.len() <= k {
        return candidates.iter().map(|candidate| candidate.1).collect();
    }
    let kth = candidates.select_nth_unstable_by(k - 1, |a, b| b.0.total_cmp(&a.0)).1.0;
    let mut chosen: Vec<u32> =
        candidates.iter().filter(|candidate| candidate.0 > kth + TIE).map(|candidate| candidate.1).collect();
    let mut ties: Vec<u32> = candidates
        .iter()
        .filter(|candidate| (candidate.0 - kth).abs() <= TIE)
        .map(|candidate| candidate.1)
        .collect();
    ties.sort_unstable();
    chosen.extend(ties.iter().take(k - chosen.len()));
    chosen
}

/// Rows of length 1; a row of zeros stays.
fn unit_rows(matrix: &Csr<f32>) -> Csr<f64> {
    let mut rows = matrix.map(f64::from);
    let lengths: Vec<f64> =
        (0..rows.rows()).map(|row| rows.row(row).1.iter().map(|v| v * v).sum::<f64>().sqrt()).collect();
    rows.scale(|row, _| if lengths[row] > 0.0 { 1.0 / lengths[row] } else { 0.0 });
    rows
}

/// Rows of length 1; a row of zeros stays.
fn unit_dense(values: &[f32], columns: usize) -> Vec<f64> {
    let mut rows: Vec<f64> = values.iter().copied().map(f64::from).collect();
    for row in rows.chunks_exact_mut(columns) {
        let length = row.iter().map(|v| v * v).sum::<f64>().sqrt();
        if length > 0.0 {
            row.iter_mut().for_each(|value| *value /= length);
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn edges(graph: &Graph) -> Vec<(u32, u32)> {
        graph.edge_list().map(|(i, j, _)| (i, j)).collect()
    }

    proptest! {
        #[test]
        fn sparse_and_dense_features_give_the_graph_of_the_definition(
            values in proptest::collection::vec(0u8..3, 9 * 4..100 * 4), k in 1usize..5
        ) {
            let values: Vec<f32> = values.chunks_exact(4).flatten().map(|&v| f32::from(v)).collect();
            let nodes = values.len() / 4;
            let row = |i: usize| &values[4 * i..4 * i + 4];
            let dot = |a: &[f32], b: &[f32]| -> f64 {
                a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
            };
            let cosine = |i: usize, j: usize| {
                let lengths = (dot(row(i), row(i)) * dot(row(j), row(j))).sqrt();
                if lengths > 0.0 { dot(row(i), row(j)) / lengths } else { 0.0 }
            };
            let mut expected = std::collections::BTreeSet::new();
            for i in 0..nodes {
                let mut others: Vec<usize> = (0..nodes).filter(|&j| j != i && cosine(i, j) > 1e-9).collect();
                // Cosines of small whole numbers differ by far more than 1e-9, or are equal.
                others.sort_by_key(|&j| (std::cmp::Reverse((cosine(i, j) * 1e7).round() as i64), j));
                for &j in others.iter().take(k) {
                    expected.insert((i.min(j) as u32, i.max(j) as u32));
                }
            }
            let expected: Vec<(u32, u32)> = expected.into_iter().collect();
            let dense = Features::Dense { columns: 4, values: values.clone() };
            let rows = values.chunks_exact(4).map(|row| {
                row.iter().enumerate().filter(|(_, v)| **v != 0.0).map(|(j, &v)| (j as u32, v)).unzip()
            });
            let sparse = Features::Sparse(Csr::from_rows(4, rows).unwrap());
            for features in [dense, sparse] {
                let graph = cosine_graph(&features, k, &Watch::silent()).unwrap();
                prop_assert_eq!(edges(&graph), expected.clone());
            }
        }
    }

    #[test]
    fn of_equal_cosines_the_lower_numbers_are_taken_and_nothing_joins_a_vertex_without_features() {
        let features = Features::from_dense(2, vec![0.3, 0.0, 0.7, 0.0, 0.1, 0.0, 0.9, 0.0, 0.0, 0.0]);
        let graph = cosine_graph(&features, 2, &Watch::silent()).unwrap();
        assert_eq!(edges(&graph), [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3)]);
        assert!(matches!(cosine_graph(&features, 0, &Watch::silent()), Err(Error::Parameter { .. })));
    }
}
