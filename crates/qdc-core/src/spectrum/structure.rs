//! What can be said about the spectrum by looking: twins and components.
//!
//! A class of t twins (`twins.rs`) gives t - 1 pairs of equal eigenvalue (the rows of a Helmert matrix); what
//! is left of it is the vector 1 / sqrt(t) on the class. In the basis of those class vectors L becomes the
//! smaller matrix
//!
//! B_cd = sqrt(t_c t_d) L_uv  (u in c, v in d, c != d),   B_cc = L_uu + (t_c - 1) L_uu',
//!
//! and the spectrum of L is that of B together with the twins'. A third of Pubmed and half of Chameleon goes
//! this way, with the multiplicities in the thousands that undo iterative solvers. B is then split into
//! components.

use crate::twins::Classes;
use crate::{Csr, Transition};

/// L taken apart: twin classes, and the connected blocks of what remains.
#[derive(Clone, Debug)]
pub struct Structure {
    nodes: usize,
    classes: Classes,
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
    /// Finds twins, then components. Time and space proportional to the entries of L.
    pub fn new(transition: &Transition) -> Self {
        let matrix = transition.matrix();
        let classes = Classes::of(matrix);
        let twins = (0..classes.count())
            .filter_map(|class| {
                let eigenvalue = classes.eigenvalue(matrix, class)?;
                Some(Twins { members: classes.members(class).to_vec(), eigenvalue })
            })
            .collect();
        let reduced = classes.reduce(matrix, |t, other| (t * other).sqrt());
        Self { nodes: matrix.rows(), twins, blocks: components(&reduced), classes }
    }

    /// Number of vertices.
    pub fn nodes(&self) -> usize {
        self.nodes
    }

    /// Number of rows of B.
    pub fn reduced_nodes(&self) -> usize {
        self.classes.count()
    }

    /// The classes of two and more.
    pub fn twins(&self) -> &[Twins] {
        &self.twins
    }

    /// Number of eigenpairs the twins give.
    pub fn twin_pairs(&self) -> usize {
        self.nodes - self.classes.count()
    }

    /// The blocks of B, the largest first.
    pub fn blocks(&self) -> &[Block] {
        &self.blocks
    }

    /// Writes an eigenvector of a block as one of L.
    pub fn lift(&self, block: &Block, reduced: &[f64], out: &mut [f64]) {
        out.fill(0.0);
        for (&class, &value) in block.classes.iter().zip(reduced) {
            let members = self.classes.members(class as usize);
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
