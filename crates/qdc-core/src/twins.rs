//! Vertices that L cannot tell apart, and the smaller matrix that is left when each class of them becomes
//! one.
//!
//! Two vertices u, v are twins if L_uu = L_vv and L_uc = L_vc for every other vertex c. Then e_u - e_v is an
//! eigenvector with eigenvalue l = L_uu - L_uv. A class c of t twins gives t - 1 of them; what is left of it
//! is the vector 1_c, and on the span of those class vectors L acts as a matrix with one row for each class.
//! So for any function
//!
//! f(L) e_u = f(L) 1_c / t + f(l) (e_u - 1_c / t),
//!
//! the first part constant on classes. A third of Pubmed and half of Chameleon goes this way.

use crate::Csr;
use crate::splitmix::scramble;

/// The classes of twins of a symmetric matrix, single vertices included.
#[derive(Clone, Debug)]
pub(crate) struct Classes {
    members: Vec<Vec<u32>>,
    of_vertex: Vec<u32>,
}

impl Classes {
    /// Finds twins by comparing rows bit by bit. Time and space proportional to the entries.
    pub(crate) fn of(matrix: &Csr<f64>) -> Self {
        let mut single: Vec<u32> = (0..matrix.rows() as u32).collect();
        let mut members: Vec<Vec<u32>> = Vec::new();
        // Twins that are not adjacent share their columns without the diagonal, adjacent ones with it. A
        // vertex cannot have twins of both kinds: an adjacent twin of u would be a neighbour of u's other
        // twin too, and conversely.
        for adjacent in [false, true] {
            let mut keyed: Vec<(u64, u32)> =
                single.iter().map(|&vertex| (key(matrix, vertex, adjacent), vertex)).collect();
            keyed.sort_unstable();
            single.clear();
            for alike in keyed.chunk_by(|a, b| a.0 == b.0) {
                let mut found: Vec<Vec<u32>> = Vec::new();
                for &(_, vertex) in alike {
                    match found.iter_mut().find(|class| are_twins(matrix, class[0], vertex)) {
                        Some(class) => class.push(vertex),
                        None => found.push(vec![vertex]),
                    }
                }
                for class in found {
                    // Who found no twin may still have an adjacent one.
                    if class.len() > 1 || adjacent { members.push(class) } else { single.push(class[0]) }
                }
            }
        }
        members.sort_unstable_by_key(|class| class[0]);
        let mut of_vertex = vec![0; matrix.rows()];
        for (class, members) in members.iter().enumerate() {
            members.iter().for_each(|&vertex| of_vertex[vertex as usize] = class as u32);
        }
        Self { members, of_vertex }
    }

    /// Number of classes.
    pub(crate) fn count(&self) -> usize {
        self.members.len()
    }

    /// The vertices of a class, ascending; classes stand in the order of their first.
    pub(crate) fn members(&self, class: usize) -> &[u32] {
        &self.members[class]
    }

    /// The number of vertices of a class.
    pub(crate) fn size(&self, class: usize) -> usize {
        self.members[class].len()
    }

    /// The class of each vertex.
    pub(crate) fn of_vertex(&self) -> &[u32] {
        &self.of_vertex
    }

    /// The number of entries of the matrix of classes.
    pub(crate) fn entries(&self, matrix: &Csr<f64>) -> usize {
        let first = |column: u32| self.members[self.of_vertex[column as usize] as usize][0] == column;
        self.members
            .iter()
            .map(|class| matrix.row(class[0] as usize).0.iter().filter(|&&c| first(c)).count())
            .sum()
    }

    /// The eigenvalue of the t - 1 eigenvectors of a class of t > 1.
    pub(crate) fn eigenvalue(&self, matrix: &Csr<f64>, class: usize) -> Option<f64> {
        let [u, v, ..] = self.members[class][..] else { return None };
        Some(matrix.get(u as usize, u).unwrap_or(0.0) - matrix.get(u as usize, v).unwrap_or(0.0))
    }

    /// The matrix of classes with L_uv `scale`(t_c, t_d) between u in c and v in d, and (L_uu + (t - 1)
    /// L_uu') `scale`(t, t) / t on the diagonal.
    ///
    /// With `scale` t_d it is L on vectors that are constant on classes; with t_c t_d the sums 1_c^T L 1_d;
    /// with sqrt(t_c t_d) L in the orthonormal basis of the 1_c / sqrt(t_c).
    pub(crate) fn reduce(&self, matrix: &Csr<f64>, scale: impl Fn(f64, f64) -> f64) -> Csr<f64> {
        let size = |class: usize| self.members[class].len() as f64;
        let rows = self.members.iter().enumerate().map(|(own, members)| {
            let (columns, values) = matrix.row(members[0] as usize);
            let mut row: Vec<(u32, f64)> = Vec::with_capacity(columns.len());
            let mut diagonal = None;
            for (&column, &value) in columns.iter().zip(values) {
                let class = self.of_vertex[column as usize] as usize;
                // One member speaks for its class; the class's own row adds the diagonal and its t - 1
                // neighbours.
                if class == own {
                    diagonal = Some(diagonal.unwrap_or(0.0) + value);
                } else if self.members[class][0] == column {
                    row.push((class as u32, value * scale(size(own), size(class))));
                }
            }
            if let Some(sum) = diagonal {
                row.push((own as u32, sum * (scale(size(own), size(own)) / size(own))));
            }
            row.sort_unstable_by_key(|entry| entry.0);
            row.into_iter().unzip()
        });
        Csr::from_rows(self.count(), rows).expect("rows are sorted, merged and in range")
    }
}

/// A number equal for twins. Neighbours enter with their weights, as a star of many weights would else be one
/// heap; adjacent twins see each other at different columns, so there only the columns enter, and a heap is a
/// clique.
fn key(matrix: &Csr<f64>, vertex: u32, adjacent: bool) -> u64 {
    let mix = |column: u32, bits: u64| scramble(u64::from(column) ^ bits.rotate_left(32));
    let (columns, values) = matrix.row(vertex as usize);
    let others = columns.iter().zip(values).filter(|&(&column, _)| column != vertex);
    // A sum, so that the order of the columns plays no part.
    if adjacent {
        others.fold(mix(vertex, 0), |sum, (&column, _)| sum.wrapping_add(mix(column, 0)))
    } else {
        others.fold(0, |sum, (&column, value)| sum.wrapping_add(mix(column, value.to_bits())))
    }
}

/// Whether L_uu = L_vv and the rows agree everywhere else, to the last bit.
fn are_twins(matrix: &Csr<f64>, u: u32, v: u32) -> bool {
    let others = |row: u32| {
        let (columns, values) = matrix.row(row as usize);
        columns.iter().zip(values).filter(move |&(&column, _)| column != u && column != v)
    };
    matrix.get(u as usize, u) == matrix.get(v as usize, v) && others(u).eq(others(v))
}
