//! Homophily by eigenvalue: does the graph that one part of the spectrum draws join like with like?
//!
//! For each distinct eigenvalue the adjacency is P = (1/m) sum over its m eigenvectors of phi phi^T, its
//! diagonal and entries below 1e-7 left out; the mean over the degenerate space makes P independent of the
//! basis. Homophily is the mean over vertices of the share of a vertex's entries that lead to its own label.

use rayon::prelude::*;

use crate::spectrum::{Spectrum, groups};
use crate::{Error, UNLABELLED, Watch};

/// Entries below this are dropped.
pub const SPECTRAL_CUTOFF: f64 = 1e-7;

/// One reading of the homophily of a matrix.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct Reading {
    /// Each kept entry counts 1.
    pub unweighted: f64,
    /// Each kept entry counts its magnitude.
    pub weighted: f64,
    /// `unweighted`, over the vertices with a kept entry only.
    pub unweighted_with_neighbours: f64,
    /// `weighted`, over the vertices with a kept entry only.
    pub weighted_with_neighbours: f64,
    /// Vertices with a kept entry.
    pub vertices: usize,
}

/// Homophily at one distinct eigenvalue.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize)]
pub struct SpectralPoint {
    /// The eigenvalue, the mean of its group.
    pub eigenvalue: f64,
    /// How many eigenvectors share it.
    pub multiplicity: usize,
    /// Entries P_ij >= 1e-7; `signed.unweighted` is the main reading.
    pub signed: Reading,
    /// Entries |P_ij| >= 1e-7.
    pub absolute: Reading,
}

impl SpectralPoint {
    /// The main reading: positive entries, each counting 1.
    pub fn homophily(&self) -> f64 {
        self.signed.unweighted
    }
}

/// Homophily at every distinct eigenvalue of a spectrum, eigenvalues ascending. Vertices without a label are
/// left out.
///
/// A single eigenvector costs N log N: row i keeps the vertices beyond 1e-7 / phi_i, and sorted values with
/// their sums tell how many those are and what they weigh. A degenerate space of m vectors costs m times the
/// square of the number of vertices it reaches, which is small: such spaces live on twins and dangling ends.
///
/// # Errors
/// If there is not one label for each vertex, or the watch asks to stop.
pub fn spectral_homophily(
    spectrum: &Spectrum,
    labels: &[u32],
    watch: &Watch,
) -> Result<Vec<SpectralPoint>, Error> {
    if labels.len() != spectrum.nodes() {
        return Err(Error::LengthMismatch {
            what: "labels, one for each vertex",
            expected: spectrum.nodes(),
            found: labels.len(),
        });
    }
    let labelled: Vec<usize> = (0..labels.len()).filter(|&vertex| labels[vertex] != UNLABELLED).collect();
    let labels: Vec<u32> = labelled.iter().map(|&vertex| labels[vertex]).collect();
    let groups: Vec<_> = groups(spectrum.eigenvalues()).collect();
    let phase = watch.phase("homophily by eigenvalue", groups.len() as u64);
    groups
        .into_par_iter()
        .map(|group| {
            let multiplicity = group.len();
            let eigenvalue = spectrum.eigenvalues()[group.clone()].iter().sum::<f64>() / multiplicity as f64;
            let of_labelled = |pair| labelled.iter().map(|&vertex| spectrum.vector(pair)[vertex]).collect();
            let vectors: Vec<Vec<f64>> = group.map(of_labelled).collect();
            let rows = match &vectors[..] {
                [vector] => rows_of_one(vector, &labels),
                _ => rows_of_several(&vectors, &labels),
            };
            phase.advance(1)?;
            let [signed, absolute] =
                [0, 1].map(|kind| mean(labels.len(), rows.iter().map(|shares| shares[kind])));
            Ok(SpectralPoint { eigenvalue, multiplicity, signed, absolute })
        })
        .collect()
}

/// Values in ascending order, and the sums of the first and of the last few.
#[derive(Default)]
struct Ladder {
    values: Vec<f64>,
    lowest: Vec<f64>,
    highest: Vec<f64>,
}

impl Ladder {
    fn new(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let sums = |values: &mut dyn Iterator<Item = &f64>| {
            let mut sum = 0.0;
            std::iter::once(0.0)
                .chain(values.map(|value| {
                    sum += value;
                    sum
                }))
                .collect()
        };
        let (lowest, highest) = (sums(&mut values.iter()), sums(&mut values.iter().rev()));
        Self { values, lowest, highest }
    }

    /// How many values give `factor` value >= the cutoff, and the sum of those products. They all have the
    /// sign of `factor`, so that nothing cancels.
    fn beyond(&self, factor: f64) -> (usize, f64) {
        let bound = SPECTRAL_CUTOFF / factor;
        if factor > 0.0 {
            let count = self.values.len() - self.values.partition_point(|&value| value < bound);
            (count, factor * self.highest[count])
        } else if factor < 0.0 {
            let count = self.values.partition_point(|&value| value <= bound);
            (count, factor * self.lowest[count])
        } else {
            (0, 0.0)
        }
    }
}

/// The rows of phi phi^T.
fn rows_of_one(vector: &[f64], labels: &[u32]) -> Vec<[Shares; 2]> {
    let classes = labels.iter().max().map_or(0, |&largest| largest as usize + 1);
    let everywhere = Ladder::new(vector.to_vec());
    let mut members = vec![Vec::new(); classes];
    labels.iter().zip(vector).for_each(|(&label, &value)| members[label as usize].push(value));
    let members: Vec<Ladder> = members.into_iter().map(Ladder::new).collect();
    let count = |ladder: &Ladder, own: f64, factor: f64| {
        let (count, weight) = ladder.beyond(factor);
        let itself = factor * own;
        if itself >= SPECTRAL_CUTOFF { (count - 1, weight - itself) } else { (count, weight) }
    };
    let row = |(&label, &own): (&u32, &f64)| {
        let [positive, negative] = [own, -own].map(|factor| {
            let (count_all, weight) = count(&everywhere, own, factor);
            let (same, same_weight) = count(&members[label as usize], own, factor);
            Shares { same, count: count_all, same_weight, weight }
        });
        [positive, positive.and(negative)]
    };
    labels.iter().zip(vector).map(row).collect()
}

/// The rows of the mean of phi phi^T over a degenerate space; vertices that it does not reach are left out.
fn rows_of_several(vectors: &[Vec<f64>], labels: &[u32]) -> Vec<[Shares; 2]> {
    let scale = 1.0 / vectors.len() as f64;
    let peaks: Vec<f64> = vectors
        .iter()
        .map(|vector| vector.iter().fold(0.0, |peak: f64, value| peak.max(value.abs())))
        .collect();
    // |P_ij| is at most this for every j: below the cutoff row and column hold nothing.
    let bound = |vertex: usize| {
        scale * vectors.iter().zip(&peaks).map(|(vector, peak)| vector[vertex].abs() * peak).sum::<f64>()
    };
    let reached: Vec<usize> = (0..labels.len()).filter(|&vertex| bound(vertex) >= SPECTRAL_CUTOFF).collect();
    let labels: Vec<u32> = reached.iter().map(|&vertex| labels[vertex]).collect();
    let compact: Vec<Vec<f64>> =
        vectors.iter().map(|vector| reached.iter().map(|&vertex| vector[vertex]).collect()).collect();
    let row = |row: &mut Vec<f64>, vertex: usize| {
        row.fill(0.0);
        for vector in &compact {
            let factor = scale * vector[vertex];
            row.iter_mut().zip(vector).for_each(|(sum, value)| *sum += factor * value);
        }
        shares(row, vertex, &labels)
    };
    (0..reached.len()).into_par_iter().with_min_len(64).map_init(|| vec![0.0; reached.len()], row).collect()
}

/// Same-label and total entries of one row: counted, and weighed.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    same: usize,
    count: usize,
    same_weight: f64,
    weight: f64,
}

impl Shares {
    fn add(&mut self, weight: f64, same: bool) {
        self.count += 1;
        self.weight += weight;
        if same {
            self.same += 1;
            self.same_weight += weight;
        }
    }

    fn and(self, other: Self) -> Self {
        Self {
            same: self.same + other.same,
            count: self.count + other.count,
            same_weight: self.same_weight + other.same_weight,
            weight: self.weight + other.weight,
        }
    }
}

fn shares(row: &[f64], vertex: usize, labels: &[u32]) -> [Shares; 2] {
    let mut result = [Shares::default(); 2];
    for (other, &value) in row.iter().enumerate() {
        if other == vertex || value.abs() < SPECTRAL_CUTOFF {
            continue;
        }
        let same = labels[other] == labels[vertex];
        if value > 0.0 {
            result[0].add(value, same);
        }
        result[1].add(value.abs(), same);
    }
    result
}

/// The mean over all vertices; those without a row count 0.
fn mean(nodes: usize, rows: impl Iterator<Item = Shares>) -> Reading {
    let (mut unweighted, mut weighted, mut vertices) = (0.0, 0.0, 0);
    for row in rows.filter(|row| row.count > 0) {
        unweighted += row.same as f64 / row.count as f64;
        weighted += row.same_weight / row.weight;
        vertices += 1;
    }
    let over = |sum: f64, count: usize| if count == 0 { 0.0 } else { sum / count as f64 };
    Reading {
        unweighted: over(unweighted, nodes),
        weighted: over(weighted, nodes),
        unweighted_with_neighbours: over(unweighted, vertices),
        weighted_with_neighbours: over(weighted, vertices),
        vertices,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EdgeRule, Eigensolver, Graph, Transition};

    #[test]
    fn vertices_without_a_label_are_left_out() {
        let graph = Graph::from_edges(4, [(0, 1), (1, 2), (2, 3)], EdgeRule::Undirected).unwrap();
        let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &Watch::silent()).unwrap();
        let found = |labels: &[u32]| spectral_homophily(&spectrum, labels, &Watch::silent()).unwrap();
        // The eigenvector of the largest eigenvalue is positive everywhere: every pair of vertices counts.
        let first = |labels: &[u32]| found(labels).last().unwrap().signed;
        assert_eq!(first(&[0, 0, 1, 0]).vertices, 4);
        let partly = first(&[0, UNLABELLED, 1, 0]);
        assert_eq!((partly.vertices, partly.unweighted), (3, (0.5 + 0.0 + 0.5) / 3.0));
    }

    /// Two triangles of twins on a path, so that there are single eigenvectors and degenerate spaces.
    #[test]
    fn sorting_counts_what_going_through_every_entry_counts() {
        let edges = [(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 5), (4, 6), (5, 6), (3, 7), (3, 8), (3, 9)];
        let graph = Graph::from_edges(10, edges, EdgeRule::Undirected).unwrap();
        let labels = [0, 1, 0, 2, 1, 1, 0, 2, 2, 0];
        let spectrum = Eigensolver::new().solve(&Transition::new(&graph), &Watch::silent()).unwrap();
        let points = spectral_homophily(&spectrum, &labels, &Watch::silent()).unwrap();
        assert!(points.iter().any(|p| p.multiplicity == 1) && points.iter().any(|p| p.multiplicity > 1));
        for (point, group) in points.iter().zip(groups(spectrum.eigenvalues())) {
            let rows = (0..10).map(|i| {
                let entry = |j: usize| {
                    let sum: f64 = group.clone().map(|a| spectrum.vector(a)[i] * spectrum.vector(a)[j]).sum();
                    sum / group.len() as f64
                };
                shares(&(0..10).map(entry).collect::<Vec<f64>>(), i, &labels)
            });
            let rows: Vec<[Shares; 2]> = rows.collect();
            for (kind, found) in [point.signed, point.absolute].into_iter().enumerate() {
                let expected = mean(10, rows.iter().map(|row| row[kind]));
                assert_eq!((found.vertices, found.unweighted), (expected.vertices, expected.unweighted));
                assert!((found.weighted - expected.weighted).abs() < 1e-12, "{found:?} {expected:?}");
            }
        }
    }
}
