//! Checksums of files: SHA-256, or the id git gives the content.

use sha1::Sha1;
use sha2::{Digest, Sha256};

use crate::hexadecimal;

/// What the content of a file is known by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Checksum {
    /// The SHA-256, in hexadecimal digits.
    Sha256(&'static str),
    /// The id of git's blob, in hexadecimal digits: the SHA-1 of `blob`, a space, the size, a zero byte and
    /// the content.
    GitBlob(&'static str),
}

impl Checksum {
    /// Reads the digits of a SHA-256, or `git:` and those of a blob id.
    pub(super) fn parse(text: &'static str) -> Self {
        text.strip_prefix("git:").map_or(Self::Sha256(text), Self::GitBlob)
    }

    /// Whether `content` has this checksum.
    pub(crate) fn fits(self, content: &[u8]) -> bool {
        match self {
            Self::Sha256(digits) => hexadecimal(&Sha256::digest(content)) == digits,
            Self::GitBlob(digits) => {
                let mut hash = Sha1::new();
                hash.update(format!("blob {}\0", content.len()));
                hash.update(content);
                hexadecimal(&hash.finalize()) == digits
            }
        }
    }
}

impl std::fmt::Display for Checksum {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Sha256(digits) => write!(f, "SHA-256 {digits}"),
            Self::GitBlob(digits) => write!(f, "git blob id {digits}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn content_is_known_by_either_checksum_and_by_no_other() {
        // sha256sum and git hash-object of "hello\n".
        let sha = "5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03";
        let git = "git:ce013625030ba8dba906f756967f9e9ca394464a";
        for text in [sha, git] {
            let checksum = Checksum::parse(text);
            assert!(checksum.fits(b"hello\n") && !checksum.fits(b"hello"), "{checksum}");
        }
        assert_eq!(Checksum::parse(git).to_string(), "git blob id ce013625030ba8dba906f756967f9e9ca394464a");
        assert!(Checksum::parse(sha).to_string().starts_with("SHA-256 5891"));
    }
}
