//! One content hash for graphs, transition matrices, recipes and the payload of files.
//!
//! XXH3 with 64 bits: equal content has equal hashes, on every machine and in every version; other content
//! almost surely does not. It finds mistakes and damage. It is no protection against somebody who forges
//! files.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

/// The hash of some content; written as sixteen hexadecimal digits.
///
/// ```
/// use qdc_core::hash::{ContentHash, Digest};
///
/// let hash = Digest::new("numbers").floats(&[1.0, 2.0]).finish();
/// assert_eq!(hash.to_string().parse(), Ok(hash));
/// assert_ne!(hash, Digest::new("numbers").floats(&[2.0, 1.0]).finish());
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct ContentHash(u64);

impl fmt::Display for ContentHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:016x}", self.0)
    }
}

impl FromStr for ContentHash {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let bits = u64::from_str_radix(text, 16).ok().filter(|_| digits);
        bits.map(Self).ok_or_else(|| format!("'{text}' is not a hash of sixteen hexadecimal digits"))
    }
}

impl TryFrom<String> for ContentHash {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<ContentHash> for String {
    fn from(hash: ContentHash) -> Self {
        hash.to_string()
    }
}

/// Collects content, piece by piece, into a [`ContentHash`].
///
/// Each piece enters with its length, so that pieces cannot run into each other. Numbers enter in
/// little-endian order whatever the machine.
pub struct Digest(Xxh3);

impl Digest {
    /// Begins; `kind` says what is hashed, so that a graph and a matrix of the same numbers differ.
    pub fn new(kind: &str) -> Self {
        Self(Xxh3::new()).text(kind)
    }

    /// Adds a text.
    pub fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes())
    }

    /// Adds bytes.
    pub fn bytes(mut self, bytes: &[u8]) -> Self {
        self.0.update(&(bytes.len() as u64).to_le_bytes());
        self.0.update(bytes);
        self
    }

    /// Adds one number.
    pub fn number(self, number: f64) -> Self {
        self.floats(&[number])
    }

    /// Adds real numbers; 0 and -0 are the same.
    pub fn floats(self, numbers: &[f64]) -> Self {
        self.words(numbers, |number| (number + 0.0).to_le_bytes())
    }

    /// Adds sizes or pointers.
    pub fn sizes(self, numbers: &[usize]) -> Self {
        self.words(numbers, |number| (*number as u64).to_le_bytes())
    }

    /// Adds indices.
    pub fn indices(self, numbers: &[u32]) -> Self {
        self.words(numbers, |number| number.to_le_bytes())
    }

    /// The hash of all that was added.
    pub fn finish(self) -> ContentHash {
        ContentHash(self.0.digest())
    }

    fn words<T, const B: usize>(mut self, numbers: &[T], bytes: impl Fn(&T) -> [u8; B]) -> Self {
        self.0.update(&(numbers.len() as u64).to_le_bytes());
        let mut buffer = Vec::with_capacity(B * 4096);
        for chunk in numbers.chunks(4096) {
            buffer.clear();
            chunk.iter().for_each(|number| buffer.extend_from_slice(&bytes(number)));
            self.0.update(&buffer);
        }
        self
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Digest")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_the_same_for_ever_and_reads_back() {
        let hash = Digest::new("test").text("abc").floats(&[1.5, -0.0]).sizes(&[7]).indices(&[3, 4]).finish();
        assert_eq!(hash.to_string(), "0508b66b084b4a59");
        let json = serde_json::to_string(&hash).unwrap();
        assert_eq!(serde_json::from_str::<ContentHash>(&json).unwrap(), hash);
        for wrong in ["", "12", "+123456789abcdef", "g123456789abcdef", "0123456789abcdef0"] {
            assert!(wrong.parse::<ContentHash>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn pieces_order_kind_and_length_all_count() {
        let of =
            |pieces: &[&str]| pieces.iter().fold(Digest::new("a"), |digest, text| digest.text(text)).finish();
        assert_ne!(of(&["ab", "c"]), of(&["a", "bc"]));
        assert_ne!(of(&["a", "b"]), of(&["b", "a"]));
        assert_ne!(of(&[]), of(&[""]));
        assert_ne!(Digest::new("a").finish(), Digest::new("b").finish());
        assert_eq!(Digest::new("a").number(0.0).finish(), Digest::new("a").number(-0.0).finish());
        let long: Vec<f64> = (0..10_000).map(f64::from).collect();
        let mut other = long.clone();
        other[9_999] += 1.0;
        assert_ne!(Digest::new("a").floats(&long).finish(), Digest::new("a").floats(&other).finish());
    }
}
