//! The salt that keeps the prefix caches of an engine apart, key by key.
//!
//! An engine that has a prompt in its cache answers sooner, and whoever can ask it learns from that what others
//! have asked (CVE-2025-46570). vLLM hashes `cache_salt` into the first block of a prompt, so that only requests
//! with the same salt share one.

use sha2::{Digest as _, Sha256};

use crate::config::Key;
use crate::keys::hex;

/// The field that vLLM reads.
pub const FIELD: &str = "cache_salt";

/// Bytes of a salt: too many to be guessed, or to meet by chance.
const BYTES: usize = 16;

/// The salt of a key, as 32 hexadecimal digits. A client that has a salt of its `own`, to keep its users apart, gets
/// one for each of them.
///
/// It is the same in each process and after each reload, and tells nothing of the key: what goes in is the key's
/// digest, and what comes out is half of another one. The parts have a line each, and only the last can hold a line
/// end, so no two sets of parts are the same text.
pub fn salt(key: &Key, own: Option<&str>) -> String {
    let mut hash = Sha256::new();
    hash.update(b"streamgate cache_salt 1\n");
    for part in [&key.digest.to_hex(), &*key.name] {
        hash.update(part.as_bytes());
        hash.update(b"\n");
    }
    if let Some(own) = own {
        hash.update(b"own\n");
        hash.update(own.as_bytes());
    }
    hex(&hash.finalize()[..BYTES])
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::config::KeyLimits;
    use crate::keys::Digest;

    fn key(name: &str, key: &str) -> Key {
        let digest = Digest::of(key.as_bytes());
        Key { name: Arc::from(name), digest, models: None, limits: KeyLimits::default() }
    }

    #[test]
    fn each_key_and_each_salt_of_its_own_has_another() {
        let salts = [
            salt(&key("a", "k1"), None),
            salt(&key("a", "k2"), None),
            salt(&key("b", "k1"), None),
            salt(&key("a", "k1"), Some("")),
            salt(&key("a", "k1"), Some("u1")),
            salt(&key("a", "k1"), Some("u2")),
            salt(&key("a", "k2"), Some("u1")),
        ];
        let different: std::collections::HashSet<_> = salts.iter().collect();
        assert_eq!(different.len(), salts.len(), "{salts:?}");
        assert!(salts.iter().all(|salt| salt.len() == 32), "{salts:?}");
    }

    #[test]
    fn a_salt_is_the_same_in_every_release() {
        // printf 'streamgate cache_salt 1\n%s\nteam-a\n' "$(printf sg-1 | sha256sum | cut -c1-64)" | sha256sum | cut -c1-32
        assert_eq!(salt(&key("team-a", "sg-1"), None), "e3ff91c9a3b36968acb865bc95d904ee");
    }
}
