//! The recipe: which kernel, and nothing about how it is computed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::hash::{ContentHash, Digest};
use crate::sparsify::Rule;
use crate::{Error, Filter, Normalize, Pairs, Sign, Sparsify, defaults};

/// The precision of the polynomial route's arithmetic.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// Double.
    #[default]
    F64,
    /// Single: about twice as fast, errors near 1e-7.
    F32,
}

impl FromStr for Precision {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "f64" => Ok(Self::F64),
            "f32" => Ok(Self::F32),
            _ => Err(format!("'{text}' is neither f64 nor f32")),
        }
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::F64 { "f64" } else { "f32" })
    }
}

/// Which kernel: a plain value that can be stored, compared and hashed.
///
/// [`Recipe::prepare`] makes it ready for a graph. Two recipes that are equal give the same kernel of the
/// same graph, up to the error that the report states; how it is computed is a matter of
/// [`super::Resources`].
///
/// ```
/// use qdc_core::{EdgeRule, Filter, Graph, Recipe, Resources, Sparsify, Watch};
///
/// let ring = Graph::from_edges(50, (0..50).map(|i| (i, (i + 1) % 50)), EdgeRule::Undirected)?;
/// let recipe = Recipe::new(Filter::gaussian(0.3, 0.1)?).sparsify(Sparsify::top_k(8)?);
/// let watch = Watch::silent();
/// let kernel = recipe.prepare(&ring, &Resources::default(), &watch)?.build(&watch)?;
/// assert_eq!(kernel.matrix.rows(), 50);
/// # Ok::<(), qdc_core::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// The function of the eigenvalue.
    pub filter: Filter,
    /// The eigenpairs that enter.
    pub pairs: Pairs,
    /// Which entries are kept.
    pub sparsify: Sparsify,
    /// How entries are compared.
    pub sign: Sign,
    /// How the result is normalised.
    pub normalize: Normalize,
    /// The weight of the self-loops in L.
    pub self_loop: f64,
    /// The error of an entry that the polynomial route aims at.
    pub tolerance: f64,
    /// The precision of the polynomial route.
    pub precision: Precision,
    /// The error of an entry that is allowed; where it is given it takes the tolerance's place, and the local
    /// route may be taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub accuracy: Option<f64>,
}

impl Recipe {
    /// The kernel of a filter with the defaults of [`crate::defaults`]: all pairs, epsilon 1e-4, positive,
    /// `sym`.
    pub fn new(filter: Filter) -> Self {
        Self {
            filter,
            pairs: Pairs::All,
            sparsify: Sparsify::Epsilon(defaults::EPSILON),
            sign: Sign::Positive,
            normalize: Normalize::Sym,
            self_loop: defaults::SELF_LOOP,
            tolerance: defaults::TOLERANCE,
            precision: Precision::F64,
            accuracy: None,
        }
    }

    /// Sets the pairs that enter.
    pub fn pairs(mut self, pairs: Pairs) -> Self {
        self.pairs = pairs;
        self
    }

    /// Sets what is kept.
    pub fn sparsify(mut self, sparsify: Sparsify) -> Self {
        self.sparsify = sparsify;
        self
    }

    /// Sets how entries are compared.
    pub fn sign(mut self, sign: Sign) -> Self {
        self.sign = sign;
        self
    }

    /// Sets how the result is normalised.
    pub fn normalize(mut self, normalize: Normalize) -> Self {
        self.normalize = normalize;
        self
    }

    /// Sets the weight of the self-loops in L; checked by [`Recipe::prepare`].
    pub fn self_loop(mut self, weight: f64) -> Self {
        self.self_loop = weight;
        self
    }

    /// Sets the error of an entry that the polynomial route aims at; checked by [`Recipe::prepare`].
    pub fn tolerance(mut self, tolerance: f64) -> Self {
        self.tolerance = tolerance;
        self
    }

    /// Sets the precision of the polynomial route.
    pub fn precision(mut self, precision: Precision) -> Self {
        self.precision = precision;
        self
    }

    /// Allows an error of so much, in the tolerance's place; checked by [`Recipe::prepare`].
    pub fn accuracy(mut self, accuracy: impl Into<Option<f64>>) -> Self {
        self.accuracy = accuracy.into();
        self
    }

    /// The error of an entry that a route may make.
    pub(super) fn allowed(&self) -> f64 {
        self.accuracy.unwrap_or(self.tolerance)
    }

    /// A hash of everything the recipe says. Of a custom filter only the name enters.
    pub fn hash(&self) -> ContentHash {
        let digest = self.filter.digest(Digest::new("recipe"));
        let digest = match self.sparsify {
            Sparsify::Epsilon(epsilon) => digest.text("epsilon").number(epsilon),
            Sparsify::TopK(k) => digest.text("top_k").sizes(&[k]),
            Sparsify::None => digest.text("none"),
        };
        // A recipe without it has the hash it had before there was one.
        let digest =
            self.accuracy.iter().fold(digest, |digest, &accuracy| digest.text("accuracy").number(accuracy));
        digest
            .text(&self.pairs.to_string())
            .text(&format!("{:?} {:?} {}", self.sign, self.normalize, self.precision))
            .floats(&[self.self_loop, self.tolerance])
            .finish()
    }

    /// The value around which the nearest pairs are looked for.
    pub fn centre(&self) -> f64 {
        self.filter.centre().unwrap_or(defaults::MU)
    }

    /// What a row needs to decide which of its entries stay.
    pub(super) fn rule(&self) -> Rule {
        Rule { sparsify: self.sparsify, sign: self.sign, upper: true }
    }

    /// Refuses a tolerance or accuracy that no series can reach; the self-loop is checked where L is made.
    pub(super) fn check(&self) -> Result<(), Error> {
        let given = [("tolerance", Some(self.tolerance)), ("accuracy", self.accuracy)];
        let requirement = "finite and above 0";
        let mut given = given.into_iter().filter_map(|(name, value)| Some((name, value?)));
        match given.find(|&(_, value)| !(value > 0.0 && value.is_finite())) {
            Some((name, value)) => Err(Error::Parameter { name, value, requirement }),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_reads_back_and_any_change_changes_its_hash() {
        let recipe = Recipe::new(Filter::gaussian(0.3, 0.1).unwrap());
        let changed = [
            Recipe::new(Filter::gaussian(0.3, 0.2).unwrap()),
            Recipe::new(Filter::band(0.3, 0.1).unwrap()),
            Recipe::new(Filter::ppr(0.3).unwrap()),
            Recipe::new(Filter::heat(0.3).unwrap()),
            Recipe::new(Filter::sum([(1.0, Filter::heat(0.3).unwrap())]).unwrap()),
            Recipe::new(Filter::sum([(1.5, Filter::heat(0.3).unwrap())]).unwrap()),
            recipe.clone().accuracy(1e-4),
            recipe.clone().accuracy(1e-3),
            Recipe::new(Filter::sum([(1.0, Filter::ppr(0.3).unwrap())]).unwrap()),
            recipe.clone().pairs(Pairs::Nearest(512)),
            recipe.clone().sparsify(Sparsify::Epsilon(1e-3)),
            recipe.clone().sparsify(Sparsify::TopK(64)),
            recipe.clone().sparsify(Sparsify::TopK(65)),
            recipe.clone().sparsify(Sparsify::None),
            recipe.clone().sign(Sign::Absolute),
            recipe.clone().normalize(Normalize::Row),
            recipe.clone().self_loop(2.0),
            recipe.clone().tolerance(2.0),
            recipe.clone().precision(Precision::F32),
        ];
        for (at, other) in changed.iter().enumerate() {
            assert_ne!(other.hash(), recipe.hash(), "{other:?}");
            assert!(changed[..at].iter().all(|one| one.hash() != other.hash() && one != other));
            let json = serde_json::to_string(other).unwrap();
            let back: Recipe = serde_json::from_str(&json).unwrap();
            assert_eq!((&back, back.hash()), (other, other.hash()), "{json}");
        }
    }

    #[test]
    fn a_stored_recipe_is_checked_as_it_is_read() {
        let json = serde_json::to_string(&Recipe::new(Filter::gaussian(0.3, 0.1).unwrap())).unwrap();
        let bad = json.replace("0.1", "-0.1");
        let error = serde_json::from_str::<Recipe>(&bad).unwrap_err().to_string();
        assert!(error.contains("sigma = -0.1"), "{error}");
        let custom = Recipe::new(Filter::custom("square", |x| x * x));
        let error = serde_json::from_str::<Recipe>(&serde_json::to_string(&custom).unwrap()).unwrap_err();
        assert!(error.to_string().contains("square"), "{error}");
    }
}
