//! Random splits into training, validation and test.

use std::str::FromStr;

use qdc_core::{Split, UNLABELLED};

use crate::random::Random;

/// How many splits the published protocol averages over.
pub const SPLITS: usize = 10;

/// The shares of training, validation and test, written `48/32/20`.
///
/// ```
/// let shares: qdc_data::Shares = "48/32/20".parse().unwrap();
/// assert_eq!(shares, qdc_data::Shares::default());
/// assert!("50/50/50".parse::<qdc_data::Shares>().is_err());
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shares {
    train: f64,
    validation: f64,
    test: f64,
}

impl Default for Shares {
    /// The shares of the published splits.
    fn default() -> Self {
        Self { train: 48.0, validation: 32.0, test: 20.0 }
    }
}

/// Written as it is read: `48/32/20`.
impl std::fmt::Display for Shares {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}/{}", self.train, self.validation, self.test)
    }
}

impl FromStr for Shares {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let shares: Option<Vec<f64>> = text.split('/').map(|share| share.trim().parse().ok()).collect();
        match shares.as_deref() {
            Some(&[train, validation, test])
                if train > 0.0 && validation >= 0.0 && test >= 0.0 && train + validation + test <= 100.0 =>
            {
                Ok(Self { train, validation, test })
            }
            _ => Err(format!(
                "'{text}' is no split; write the percentages of training, validation and test, such as 48/32/20"
            )),
        }
    }
}

/// Ten random splits, each class divided by the same shares (as the published splits are). Vertices without a
/// label are in none.
///
/// The result depends on the labels, the shares and the seed alone.
pub fn random_splits(labels: &[u32], shares: Shares, seed: u64) -> Vec<Split> {
    let mut members: Vec<u32> =
        (0..labels.len() as u32).filter(|&vertex| labels[vertex as usize] != UNLABELLED).collect();
    members.sort_by_key(|&vertex| labels[vertex as usize]); // stable: ascending within a class
    (0..SPLITS as u64)
        .map(|split| {
            let mut random = Random::new(seed, split);
            let (mut train, mut validation, mut test) = (Vec::new(), Vec::new(), Vec::new());
            for class in members.chunk_by(|&a, &b| labels[a as usize] == labels[b as usize]) {
                let mut class = class.to_vec();
                random.shuffle(&mut class);
                let cut = |percent: f64| (class.len() as f64 * percent / 100.0).round() as usize;
                let first = cut(shares.train);
                let second = cut(shares.train + shares.validation).max(first);
                let third = cut(shares.train + shares.validation + shares.test).max(second);
                train.extend(&class[..first]);
                validation.extend(&class[first..second]);
                test.extend(&class[second..third]);
            }
            Split::new(labels.len(), train, validation, test)
                .expect("the parts do not overlap by construction")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn every_vertex_is_in_one_part_and_the_shares_hold(
            labels in proptest::collection::vec(0u32..4, 1..200),
            seed in any::<u64>(),
        ) {
            let splits = random_splits(&labels, Shares::default(), seed);
            prop_assert_eq!(splits.len(), 10);
            for split in &splits {
                let sizes = [split.train().len(), split.validation().len(), split.test().len()];
                prop_assert_eq!(sizes.iter().sum::<usize>(), labels.len());
                prop_assert!((sizes[0] as f64 - 0.48 * labels.len() as f64).abs() <= 2.0, "{:?}", sizes);
            }
            prop_assert_eq!(splits, random_splits(&labels, Shares::default(), seed));
        }
    }

    #[test]
    fn vertices_without_a_label_are_in_no_split() {
        let labels: Vec<u32> = (0..60).map(|v| if v % 4 == 3 { UNLABELLED } else { v % 3 }).collect();
        for split in random_splits(&labels, Shares::default(), 0) {
            let sets = [split.train(), split.validation(), split.test()];
            assert_eq!(sets.map(<[u32]>::len).iter().sum::<usize>(), 45);
            assert!(sets.concat().iter().all(|vertex| vertex % 4 != 3));
        }
    }

    #[test]
    fn another_seed_gives_another_split() {
        let labels = vec![0; 50];
        let [zero, one] = [0, 1].map(|seed| random_splits(&labels, Shares::default(), seed));
        assert_ne!(zero[0], one[0]);
        assert_ne!(zero[0], zero[1]);
    }
}
