//! The last step: a sparse kernel becomes a transition matrix, D^-1/2 Q D^-1/2 with D the row sums of what
//! was kept.

use std::str::FromStr;

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::{Csr, Sign};

/// How a kernel is normalised. D are the row sums of what was kept, of magnitudes under [`Sign::Absolute`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// D^-1/2 Q D^-1/2.
    #[default]
    Sym,
    /// D^-1 Q: rows sum to 1.
    Row,
    /// Q D^-1: columns sum to 1.
    Col,
    /// Q as it is.
    None,
}

impl FromStr for Normalize {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "sym" => Ok(Self::Sym),
            "row" => Ok(Self::Row),
            "col" => Ok(Self::Col),
            "none" => Ok(Self::None),
            _ => Err(format!("'{text}' is none of sym, row, col and none")),
        }
    }
}

impl Normalize {
    /// Normalises a symmetric matrix in place and returns how many rows have entries but no positive degree.
    ///
    /// Those rows have no D^-1/2; their entries become 0. It cannot happen where negative entries went, or
    /// under [`Sign::Absolute`]. An empty row stays empty.
    pub fn apply(self, matrix: &mut Csr<f64>, sign: Sign) -> usize {
        if self == Self::None {
            return 0;
        }
        let rows = matrix.rows();
        let degree = |row: usize| matrix.row(row).1.iter().map(|&value| sign.size(value)).sum();
        let scales = self.scales((0..rows).into_par_iter().map(degree).collect());
        let improper =
            (0..rows).filter(|&row| scales.is_improper(row) && !matrix.row(row).0.is_empty()).count();
        matrix.scale(|row, column| scales.of(row, column));
        improper
    }

    /// What entries are multiplied by, from the degrees D of all rows.
    pub(crate) fn scales(self, degrees: Vec<f64>) -> Scales {
        let inverse = |degree: f64| if self == Self::Sym { 1.0 / degree.sqrt() } else { 1.0 / degree };
        let scale = |degree: f64| if degree > 0.0 { inverse(degree) } else { 0.0 };
        Scales { normalize: self, scales: degrees.into_iter().map(scale).collect() }
    }
}

/// What entries are multiplied by.
#[derive(Debug)]
pub(crate) struct Scales {
    normalize: Normalize,
    /// D^-1/2 or D^-1 of each row; 0 where its degree is not positive.
    scales: Vec<f64>,
}

impl Scales {
    /// The factor of an entry.
    #[inline(always)]
    pub(crate) fn of(&self, row: usize, column: usize) -> f64 {
        match self.normalize {
            Normalize::Sym => self.scales[row] * self.scales[column], // commutes: exactly symmetric
            Normalize::Row => self.scales[row],
            Normalize::Col => self.scales[column],
            Normalize::None => 1.0,
        }
    }

    /// The factors of the rows and those of the columns, whose product is the factor of an entry.
    pub(crate) fn sides(&self) -> (Vec<f64>, Vec<f64>) {
        let (own, one) = (|| self.scales.clone(), || vec![1.0; self.scales.len()]);
        match self.normalize {
            Normalize::Sym => (own(), own()),
            Normalize::Row => (own(), one()),
            Normalize::Col => (one(), own()),
            Normalize::None => (one(), one()),
        }
    }

    /// Whether a row has no positive degree although one is needed.
    pub(crate) fn is_improper(&self, row: usize) -> bool {
        self.normalize != Normalize::None && self.scales[row] == 0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn symmetric(cells: &[Option<f64>]) -> Csr<f64> {
        let at = |i: usize, j: usize| cells[i.min(j) * 5 + i.max(j)];
        let rows = (0..5).map(|i| {
            (0..5).filter_map(|j| at(i, j).map(|value| (j as u32, value))).unzip::<u32, f64, Vec<_>, Vec<_>>()
        });
        Csr::from_rows(5, rows).unwrap()
    }

    proptest! {
        #[test]
        fn rows_columns_and_symmetry_come_out_as_named(
            cells in proptest::collection::vec(proptest::option::of(0.01f64..1.0), 25)
        ) {
            let kernel = symmetric(&cells);
            let normalised = |how: Normalize| {
                let mut matrix = kernel.clone();
                assert_eq!(how.apply(&mut matrix, Sign::Positive), 0);
                matrix
            };
            for (row, sum) in normalised(Normalize::Row).row_sums().into_iter().enumerate() {
                prop_assert!(kernel.row(row).0.is_empty() || (sum - 1.0).abs() < 1e-14);
            }
            prop_assert_eq!(normalised(Normalize::Col), normalised(Normalize::Row).transpose());
            let sym = normalised(Normalize::Sym);
            prop_assert_eq!(&sym, &sym.transpose());
            // D^1/2 1 is kept by the symmetric form.
            let root: Vec<f64> = kernel.row_sums().into_iter().map(f64::sqrt).collect();
            let mut image = vec![0.0; 5];
            sym.apply(&root, &mut image);
            prop_assert!(image.iter().zip(&root).all(|(a, b)| (a - b).abs() < 1e-13));
            prop_assert_eq!(normalised(Normalize::None), kernel);
        }
    }

    #[test]
    fn a_row_whose_degree_is_exactly_0_is_counted_and_becomes_0() {
        let rows = [(vec![0, 1], vec![1.0, -1.0]), (vec![0, 1], vec![-1.0, 5.0])];
        let mut matrix = Csr::from_rows(2, rows).unwrap();
        assert_eq!(Normalize::Sym.apply(&mut matrix, Sign::Positive), 1);
        assert_eq!(matrix.values(), [0.0, 0.0, 0.0, 1.25]);
    }

    #[test]
    fn a_row_whose_degree_is_not_positive_is_counted() {
        let mut matrix = Csr::new(2, 2, vec![0, 2, 4], vec![0, 1, 0, 1], vec![1.0, -2.0, -2.0, 5.0]).unwrap();
        assert_eq!(Normalize::Sym.apply(&mut matrix.clone(), Sign::Positive), 1);
        assert_eq!(Normalize::Sym.apply(&mut matrix, Sign::Absolute), 0);
    }
}
