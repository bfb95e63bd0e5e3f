//! The keys in force, by their digests.
//!
//! The one hard idea: what time can tell. A table is asked by the digest of what was presented, and whoever
//! presents something cannot choose its digest, only draw another one. Where the table looks is decided by a
//! hash with a secret of this process; what it finds there is compared whole and in constant time. So the time
//! of a lookup says nothing of how much of a known digest was met, and a digest could not be turned back into
//! a key if it did.

use std::collections::HashMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq;

use crate::config::Key;

/// The SHA-256 digest of a whole key.
#[derive(Clone, Copy)]
pub struct Digest([u8; 32]);

/// Why a text is no digest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BadDigest {
    /// Not the 64 characters of 32 bytes.
    #[error("it has {0} characters, and a SHA-256 digest in hex has 64")]
    Length(usize),
    /// A character that is no hexadecimal digit.
    #[error("it holds characters other than 0 to 9 and a to f")]
    NotHex,
}

impl Digest {
    /// The digest of a key.
    pub fn of(key: &[u8]) -> Self {
        Self(Sha256::digest(key).into())
    }

    /// Reads 64 hexadecimal digits, of either case.
    ///
    /// # Errors
    /// The text is not that. The error does not repeat it: it may be the key itself.
    pub fn from_hex(text: &str) -> Result<Self, BadDigest> {
        let digits = text.as_bytes();
        let mut bytes = [0; 32];
        if digits.len() != 2 * bytes.len() {
            return Err(BadDigest::Length(text.chars().count()));
        }
        for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
            let digit = |at: usize| char::from(pair[at]).to_digit(16).ok_or(BadDigest::NotHex);
            *byte = u8::try_from(16 * digit(0)? + digit(1)?).map_err(|_| BadDigest::NotHex)?;
        }
        Ok(Self(bytes))
    }

    /// As 64 hexadecimal digits in lower case, which is how a configuration has it.
    pub fn to_hex(self) -> String {
        hex(&self.0)
    }
}

/// Bytes as hexadecimal digits in lower case.
pub fn hex(bytes: &[u8]) -> String {
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.filter_map(|digit| char::from_digit(digit.into(), 16)).collect()
}

impl PartialEq for Digest {
    /// All bytes are looked at, whatever the first ones say.
    fn eq(&self, other: &Self) -> bool {
        self.0.ct_eq(&other.0).into()
    }
}

impl Eq for Digest {}

impl Hash for Digest {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.hash(state);
    }
}

impl fmt::Debug for Digest {
    /// Not shown: of a key that can be guessed it would be the key.
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.write_str("Digest")
    }
}

/// The keys in force. Empty: everyone who reaches the gateway may use it.
#[derive(Debug, Default)]
pub struct Ring(HashMap<Digest, Arc<Key>>);

impl Ring {
    /// A ring of these keys.
    pub fn new(keys: impl IntoIterator<Item = Arc<Key>>) -> Self {
        Self(keys.into_iter().map(|key| (key.digest, key)).collect())
    }

    /// Whether nobody needs a key.
    pub fn is_open(&self) -> bool {
        self.0.is_empty()
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// The same as [`Ring::is_open`].
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The key that was presented, if it is one of them.
    pub fn find(&self, presented: &[u8]) -> Option<&Arc<Key>> {
        self.0.get(&Digest::of(presented))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// FIPS 180-2, appendix B.1.
    const OF_ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_digest_is_that_of_the_standard_in_both_forms() {
        assert_eq!(Digest::of(b"abc").to_hex(), OF_ABC);
        assert_eq!(Digest::from_hex(OF_ABC), Ok(Digest::of(b"abc")));
        assert_eq!(Digest::from_hex(&OF_ABC.to_uppercase()), Ok(Digest::of(b"abc")));
    }

    #[test]
    fn what_is_no_digest_is_told_without_itself() {
        assert_eq!(Digest::from_hex("9f86"), Err(BadDigest::Length(4)));
        assert_eq!(Digest::from_hex(&format!("{OF_ABC}0")), Err(BadDigest::Length(65)));
        assert_eq!(Digest::from_hex(&OF_ABC.replace('b', "g")), Err(BadDigest::NotHex));
        assert_eq!(Digest::from_hex(&OF_ABC.replacen("ba", "+1", 1)), Err(BadDigest::NotHex));
        // 64 bytes that are not 64 characters.
        assert_eq!(Digest::from_hex(&"\u{e4}".repeat(32)), Err(BadDigest::NotHex));
        assert!(!format!("{:?}", Digest::of(b"abc")).contains("ba78"));
    }

    #[test]
    fn every_bit_of_a_digest_counts() {
        let of_abc = Digest::of(b"abc");
        for bit in 0..256 {
            let mut other = of_abc;
            other.0[bit / 8] ^= 1 << (bit % 8);
            assert!(other != of_abc, "bit {bit}");
        }
    }

    #[test]
    fn a_ring_finds_whole_keys_and_nothing_like_them() {
        let key = |name: &str, text: &str| {
            Arc::new(Key {
                name: name.into(),
                digest: Digest::of(text.as_bytes()),
                models: None,
                limits: Default::default(),
            })
        };
        let ring = Ring::new([key("a", "sg-first"), key("b", "sg-second")]);
        let found = |text: &str| ring.find(text.as_bytes()).map(|key| &*key.name);
        assert_eq!((found("sg-first"), found("sg-second")), (Some("a"), Some("b")));
        for other in [
            "",
            "sg-",
            "sg-firs",
            "sg-first ",
            "SG-FIRST",
            "sg-firstsg-second",
            &Digest::of(b"sg-first").to_hex(),
        ] {
            assert_eq!(found(other), None, "{other}");
        }
        assert!(Ring::default().is_open() && !ring.is_open());
    }
}
