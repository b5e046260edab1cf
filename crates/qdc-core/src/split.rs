//! Labels and splits: which vertices have a class, and which of them are trained on, which stop the training,
//! and which are scored.

use crate::Error;

/// The label of a vertex whose class is not known: -1 in files. Such vertices take part in the graph, not in
/// a split.
pub const UNLABELLED: u32 = u32::MAX;

/// Labels with `None` for vertices without one.
pub fn known_labels(labels: &[u32]) -> Vec<Option<u32>> {
    labels.iter().map(|&label| (label != UNLABELLED).then_some(label)).collect()
}

/// Which vertices are trained on, which stop the training, and which are scored. Some may be in none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Split {
    train: Vec<u32>,
    validation: Vec<u32>,
    test: Vec<u32>,
}

impl Split {
    /// Checks that the three lists name vertices below `nodes`, each at most once, and sorts them.
    ///
    /// # Errors
    /// If a vertex does not exist, or stands in two sets or twice in one.
    pub fn new(
        nodes: usize,
        mut train: Vec<u32>,
        mut validation: Vec<u32>,
        mut test: Vec<u32>,
    ) -> Result<Self, Error> {
        let mut part_of = vec![""; nodes];
        for (part, vertices) in
            [("training", &mut train), ("validation", &mut validation), ("test", &mut test)]
        {
            vertices.sort_unstable();
            for &vertex in vertices.iter() {
                let Some(taken) = part_of.get_mut(vertex as usize) else {
                    return Err(Error::SplitVertexOutOfRange { vertex, part, nodes });
                };
                if !taken.is_empty() {
                    return Err(Error::OverlappingSplit { vertex, first: taken, second: part });
                }
                *taken = part;
            }
        }
        Ok(Self { train, validation, test })
    }

    /// Vertices whose labels are trained on, ascending.
    pub fn train(&self) -> &[u32] {
        &self.train
    }

    /// Vertices whose accuracy stops the training, ascending.
    pub fn validation(&self) -> &[u32] {
        &self.validation
    }

    /// Vertices that are scored, ascending.
    pub fn test(&self) -> &[u32] {
        &self.test
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_split_that_overlaps_or_overreaches_is_refused() {
        assert!(Split::new(4, vec![1, 0], vec![2], vec![3]).is_ok());
        let overlap = Split::new(4, vec![0, 1], vec![1], vec![3]).unwrap_err();
        assert_eq!(overlap.to_string(), "vertex 1 is in the training and in the validation set");
        assert!(matches!(
            Split::new(4, vec![0], vec![], vec![4]),
            Err(Error::SplitVertexOutOfRange { vertex: 4, .. })
        ));
    }
}
