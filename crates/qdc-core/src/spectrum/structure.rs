//! What can be said about the spectrum by looking: twins and components.
//!
//! Two vertices u, v are twins if L_uu = L_vv and L_uc = L_vc for every other vertex c. Then e_u - e_v is an
//! eigenvector with eigenvalue L_uu - L_uv. A class of t twins gives t - 1 such pairs (the rows of a Helmert matrix);
//! what is left of it is the vector 1 / sqrt(t) on the class. In the basis of those class vectors L becomes the smaller matrix
//!
//! B_cd = sqrt(t_c t_d) L_uv  (u in c, v in d, c != d),   B_cc = L_uu + (t_c - 1) L_uu',
//!
//! and the spectrum of L is that of B together with the twins'. A third of Pubmed and half of Chameleon goes this
//! way, with the multiplicities in the thousands that undo iterative solvers. B is then split into components.

use std::collections::HashMap;

use crate::{Csr, Transition};

/// L taken apart: twin classes, and the connected blocks of what remains.
#[derive(Clone, Debug)]
pub struct Structure {
    nodes: usize,
    classes: Vec<Vec<u32>>,
    twins: Vec<Twins>,
    blocks: Vec<Block>,
}

/// A class of at least two twins.
#[derive(Clone, Debug)]
pub struct Twins {
    /// The class, ascending.
    pub members: Vec<u32>,
    /// The eigenvalue of its `members.len() - 1` eigenvectors.
    pub eigenvalue: f64,
}

/// A connected block of B.
#[derive(Clone, Debug)]
pub struct Block {
    /// The block.
    pub matrix: Csr<f64>,
    /// For each row the class it stands for, as a position in the list of classes.
    pub classes: Vec<u32>,
}

impl Structure {
    /// Finds twins by comparing rows bit by bit, then components. Time and space proportional to the entries of L.
    pub fn new(transition: &Transition) -> Self {
        let matrix = transition.matrix();
        let (classes, twins) = twin_classes(matrix);
        let reduced = reduce(matrix, &classes);
        Self { nodes: matrix.rows(), twins, blocks: components(&reduced), classes }
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of rows of B.
    pub fn reduced_nodes(&self) -> usize {
        self.classes.len()
    }

    /// The classes of two and more.
    pub fn twins(&self) -> &[Twins] {
        &self.twins
    }

    /// Number of eigenpairs the twins give.
    pub fn twin_pairs(&self) -> usize {
        self.nodes - self.classes.len()
    }

    /// The blocks of B, the largest first.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Writes an eigenvector of a block as one of L.
    pub fn lift(&self, block: &Block, reduced: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (&class, &value) in block.classes.iter().zip(reduced) {
            let members = &self.classes[class as usize];
            let share = value / (members.len() as f64).sqrt();
            members.iter().for_each(|&vertex| out[vertex as usize] = share);
        }
    }
}

impl Twins {
    /// Writes eigenvector number `index` (from 0) of the class: the Helmert contrast of its first members.
    pub fn vector(&self, index: usize, out: &mut [f64]) {
        out.fill(0.0);
        let count = (index + 1) as f64;
        let scale = 1.0 / (count * (count + 1.0)).sqrt();
        self.members[..=index].iter().for_each(|&vertex| out[vertex as usize] = scale);
        out[self.members[index + 1] as usize] = -count * scale;
    }
}

/// Twin classes (single vertices included, by their first member) and those of two and more.
fn twin_classes(matrix: &Csr<f64>) -> (Vec<Vec<u32>>, Vec<Twins>) {
    let nodes = matrix.rows();
    let mut class_of: Vec<Option<usize>> = vec![None; nodes];
    let mut classes: Vec<Vec<u32>> = Vec::new();
    // Twins that are not adjacent share their columns without the diagonal, adjacent ones with it. A vertex cannot
    // have twins of both kinds: an adjacent twin of u would be a neighbour of u's other twin too, and conversely.
    for adjacent in [false, true] {
        let mut seen: HashMap<Vec<u32>, Vec<usize>> = HashMap::new();
        for vertex in (0..nodes).filter(|&vertex| class_of[vertex].is_none()).collect::<Vec<_>>() {
            let mut columns: Vec<u32> = matrix.row(vertex).0.to_vec();
            columns.retain(|&column| column as usize != vertex);
            if adjacent {
                columns.push(vertex as u32);
                columns.sort_unstable();
            }
            let candidates = seen.entry(columns).or_default();
            let found = candidates
                .iter()
                .copied()
                .find(|&class| are_twins(matrix, classes[class][0] as usize, vertex));
            let class = found.unwrap_or_else(|| {
                classes.push(Vec::new());
                candidates.push(classes.len() - 1);
                classes.len() - 1
            });
            classes[class].push(vertex as u32);
            class_of[vertex] = Some(class);
        }
        if !adjacent {
            // Vertices that found no twin may still have an adjacent one.
            classes.retain(|members| members.len() > 1);
            class_of.fill(None);
            for (class, members) in classes.iter().enumerate() {
                members.iter().for_each(|&vertex| class_of[vertex as usize] = Some(class));
            }
        }
    }
    classes.sort_unstable_by_key(|members| members[0]);
    let twins = classes
        .iter()
        .filter(|members| members.len() > 1)
        .map(|members| {
            let (u, v) = (members[0] as usize, members[1]);
            let eigenvalue = matrix.get(u, u as u32).unwrap_or(0.0) - matrix.get(u, v).unwrap_or(0.0);
            Twins { members: members.clone(), eigenvalue }
        })
        .collect();
    (classes, twins)
}

/// Whether L_uu = L_vv and the rows agree everywhere else, to the last bit.
fn are_twins(matrix: &Csr<f64>, u: usize, v: usize) -> bool {
    let others = |row: usize| {
        let (columns, values) = matrix.row(row);
        columns.iter().zip(values).filter(move |&(&c, _)| c as usize != u && c as usize != v)
    };
    matrix.get(u, u as u32) == matrix.get(v, v as u32) && others(u).eq(others(v))
}

/// B: one row for each class.
fn reduce(matrix: &Csr<f64>, classes: &[Vec<u32>]) -> Csr<f64> {
    let mut class_of = vec![0u32; matrix.rows()];
    for (class, members) in classes.iter().enumerate() {
        members.iter().for_each(|&vertex| class_of[vertex as usize] = class as u32);
    }
    let mut rows = Vec::with_capacity(classes.len());
    for members in classes {
        let (columns, values) = matrix.row(members[0] as usize);
        let own = class_of[members[0] as usize];
        let mut row: Vec<(u32, f64)> = Vec::with_capacity(columns.len());
        for (&column, &value) in columns.iter().zip(values) {
            let class = class_of[column as usize];
            let other = &classes[class as usize];
            // One member speaks for its class; the class's own row adds the diagonal and its t - 1 neighbours.
            if class == own {
                row.push((own, value));
            } else if other[0] == column {
                row.push((class, value * ((members.len() * other.len()) as f64).sqrt()));
            }
        }
        row.sort_unstable_by_key(|entry| entry.0);
        row.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        rows.push(row.into_iter().unzip());
    }
    Csr::from_rows(classes.len(), rows).expect("rows are sorted, merged and in range")
}

/// The connected blocks of a symmetric matrix, the largest first, of equal ones the one with the lowest row.
fn components(matrix: &Csr<f64>) -> Vec<Block> {
    let rows = matrix.rows();
    let mut seen = vec![false; rows];
    let mut members: Vec<Vec<u32>> = Vec::new();
    for start in 0..rows {
        if std::mem::replace(&mut seen[start], true) {
            continue;
        }
        let mut found = vec![start as u32];
        let mut at = 0;
        while at < found.len() {
            for &next in matrix.row(found[at] as usize).0 {
                if !std::mem::replace(&mut seen[next as usize], true) {
                    found.push(next);
                }
            }
            at += 1;
        }
        members.push(found);
    }
    members.sort_by_key(|found| std::cmp::Reverse(found.len())); // stable
    let mut position = vec![0u32; rows];
    members
        .into_iter()
        .map(|classes| {
            // Breadth-first order, as found, keeps a row's columns close together.
            classes.iter().enumerate().for_each(|(at, &class)| position[class as usize] = at as u32);
            let rows = classes.iter().map(|&class| {
                let (columns, values) = matrix.row(class as usize);
                let mut row: Vec<(u32, f64)> = columns
                    .iter()
                    .map(|&column| position[column as usize])
                    .zip(values.iter().copied())
                    .collect();
                row.sort_unstable_by_key(|entry| entry.0);
                row.into_iter().unzip()
            });
            let matrix = Csr::from_rows(classes.len(), rows).expect("a block of a valid matrix");
            Block { matrix, classes }
        })
        .collect()
}

/// matrix - shift I, with every diagonal entry stored.
pub(super) fn shifted(matrix: &Csr<f64>, shift: f64) -> Csr<f64> {
    let rows = (0..matrix.rows()).map(|row| {
        let (columns, values) = matrix.row(row);
        let mut entries: Vec<(u32, f64)> = columns.iter().copied().zip(values.iter().copied()).collect();
        match entries.binary_search_by_key(&(row as u32), |entry| entry.0) {
            Ok(at) => entries[at].1 -= shift,
            Err(at) => entries.insert(at, (row as u32, -shift)),
        }
        entries.into_iter().unzip()
    });
    Csr::from_rows(matrix.columns(), rows).expect("a valid matrix with its diagonal")
}
