//! Keys: what a request has in common with others, as numbers.
//!
//! All of them begin with the cluster, the model and whose request it is, so that nothing is shared that shares no
//! cache, and nobody learns from where a request goes what another has asked. They
//! are the same in every gateway: several in front of one fleet agree where `consistent_hash` sends a key.

use smallvec::SmallVec;
use twox_hash::xxhash3_64::Hasher;

use std::hash::Hasher as _;

/// Most keys of a prompt: with `BLOCK` and `GROWTH` they reach about half a MiB of text, as much as a
/// context of 128k tokens holds.
pub const BLOCKS_MAX: usize = 32;
/// Bytes of the first blocks: some 64 tokens, four of vLLM's own.
const BLOCK: usize = 256;
/// A block is also at least this part of what stands before it: a conversation is told from its siblings
/// early, and a long one does not need a thousand keys.
const GROWTH: usize = 4;

/// Keys of one request, from the most common to its own.
pub type Keys = SmallVec<[u64; 1]>;

/// The key of a session; `owner` is the name of the client's API key.
pub fn session_key(cluster: &str, model: Option<&str>, owner: Option<&str>, id: &str) -> Keys {
    let mut hasher = begin(cluster, model, owner, "session");
    hasher.write(id.as_bytes());
    SmallVec::from_buf([hasher.finish()])
}

/// The keys of a prompt: text goes in in pieces, and after each whole block one key of all so far comes out.
/// What is behind the last whole block has none, so that a growing conversation keeps those that it had.
pub struct Chain {
    hasher: Hasher,
    keys: Keys,
    length: usize,
    next: usize,
}

impl std::fmt::Debug for Chain {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Chain")
            .field("keys", &self.keys)
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

impl Chain {
    /// A chain with no text yet; `owner` is the name of the client's API key.
    pub fn new(cluster: &str, model: Option<&str>, owner: Option<&str>) -> Self {
        let hasher = begin(cluster, model, owner, "prefix");
        Self { hasher, keys: Keys::new(), length: 0, next: BLOCK }
    }

    /// Takes in what follows.
    pub fn push(&mut self, mut text: &[u8]) {
        while self.keys.len() < BLOCKS_MAX && !text.is_empty() {
            let (now, later) = text.split_at(text.len().min(self.next - self.length));
            self.hasher.write(now);
            self.length += now.len();
            text = later;
            if self.length == self.next {
                self.keys.push(self.hasher.finish());
                self.next += BLOCK.max(self.length / GROWTH);
            }
        }
    }

    /// The keys.
    pub fn keys(self) -> Keys {
        self.keys
    }
}

/// Names are ended by a byte that stands in none of them.
fn begin(cluster: &str, model: Option<&str>, owner: Option<&str>, kind: &str) -> Hasher {
    let mut hasher = Hasher::new();
    for name in [cluster, model.unwrap_or_default(), kind] {
        hasher.write(name.as_bytes());
        hasher.write(&[0xff]);
    }
    if let Some(owner) = owner {
        hasher.write(owner.as_bytes());
        hasher.write(&[0xfe]);
    }
    hasher
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(text: &str) -> Keys {
        let mut chain = Chain::new("c", Some("m"), None);
        chain.push(text.as_bytes());
        chain.keys()
    }

    #[test]
    fn a_text_that_grows_keeps_its_keys() {
        let long: String = (0..100_000).map(|n| char::from(b'a' + (n % 23) as u8)).collect();
        let all = keys(&long);
        for length in (0..long.len()).step_by(997) {
            let some = keys(&long[..length]);
            assert_eq!(some[..], all[..some.len()], "{length}");
        }
        assert_eq!(
            (keys(&long[..255]).len(), keys(&long[..256]).len(), keys(&long[..2_000]).len()),
            (0, 1, 7)
        );
    }

    #[test]
    fn pieces_make_no_difference() {
        let long = "0123456789".repeat(1_000);
        let mut chain = Chain::new("c", Some("m"), None);
        long.as_bytes().chunks(7).for_each(|piece| chain.push(piece));
        assert_eq!(chain.keys(), keys(&long));
    }

    #[test]
    fn texts_that_differ_late_share_their_first_keys() {
        let shared = "s".repeat(1_000);
        let (one, two) =
            (keys(&format!("{shared}{}", "1".repeat(600))), keys(&format!("{shared}{}", "2".repeat(600))));
        assert_eq!(one[..3], two[..3]);
        assert_ne!(one[3], two[3]);
    }

    #[test]
    fn the_number_of_keys_is_bounded() {
        assert_eq!(keys(&"x".repeat(4 << 20)).len(), BLOCKS_MAX);
        assert_eq!(keys(&"x".repeat(560_000)).len(), BLOCKS_MAX);
    }

    #[test]
    fn nothing_is_shared_across_models_clusters_owners_and_kinds() {
        let mut seen = vec![session_key("c", Some("m"), None, "s"), session_key("c", Some("n"), None, "s")];
        seen.extend([session_key("d", Some("m"), None, "s"), session_key("c", None, None, "s")]);
        seen.extend([session_key("cm", Some(""), None, "s"), session_key("c", Some("m"), None, "t")]);
        seen.push(session_key("c", Some("m"), Some("a"), "s"));
        seen.push(session_key("c", Some("m"), Some("b"), "s"));
        seen.push(session_key("c", Some("m"), Some(""), "s"));
        seen.sort();
        seen.dedup();
        assert_eq!(seen.len(), 9);
    }

    /// Gateways of two releases stand side by side during an upgrade.
    #[test]
    fn keys_are_the_same_in_every_release() {
        assert_eq!(session_key("c", Some("m"), None, "s")[..], [KNOWN]);
    }

    const KNOWN: u64 = 13_795_959_956_746_813_348;
}
