//! Which eigenpairs enter.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Which eigenpairs enter: a modelling choice, not a detail of the solver.
///
/// `Nearest(512)` (the published choice) is a sharp window around mu; `All` is the exact kernel. They are
/// different kernels. Written `all` or a number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "PairsText", into = "PairsText")]
pub enum Pairs {
    /// Every eigenpair.
    #[default]
    All,
    /// The k nearest to mu, groups of equal eigenvalues taken whole.
    Nearest(usize),
}

/// `Pairs` in JSON: a number, or `"all"`.
#[derive(Serialize, Deserialize)]
#[serde(untagged)]
enum PairsText {
    Count(usize),
    Word(String),
}

impl Pairs {
    /// How many pairs that asks for of so many, groups of equal eigenvalues aside.
    pub(crate) fn among(self, nodes: usize) -> usize {
        match self {
            Self::All => nodes,
            Self::Nearest(count) => count.min(nodes),
        }
    }
}

impl From<Pairs> for PairsText {
    fn from(pairs: Pairs) -> Self {
        match pairs {
            Pairs::All => Self::Word("all".into()),
            Pairs::Nearest(count) => Self::Count(count),
        }
    }
}

impl TryFrom<PairsText> for Pairs {
    type Error = String;

    fn try_from(text: PairsText) -> Result<Self, String> {
        match text {
            PairsText::Count(count) => count.to_string().parse(),
            PairsText::Word(word) => word.parse(),
        }
    }
}

impl FromStr for Pairs {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim() {
            "all" => Ok(Self::All),
            number => match number.parse() {
                Ok(count) if count > 0 => Ok(Self::Nearest(count)),
                _ => Err(format!("'{text}' is not a number of pairs: write all, or a whole number from 1")),
            },
        }
    }
}

impl fmt::Display for Pairs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Nearest(count) => write!(f, "{count}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        assert_eq!("512".parse(), Ok(Pairs::Nearest(512)));
        assert_eq!("all".parse(), Ok(Pairs::All));
        for wrong in ["0", "-1", "some", ""] {
            assert!(wrong.parse::<Pairs>().is_err(), "{wrong}");
        }
    }
}
