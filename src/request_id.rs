//! Request ids: the client's if it is well-formed, else one of ours.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// Longest id that is taken over.
const LENGTH_MAX: usize = 128;

/// Whether a client's id may be used as it is: 1 to 128 visible ASCII characters without quotes and
/// backslashes, so that no log line or header can be broken with it.
pub fn is_well_formed(id: &str) -> bool {
    (1..=LENGTH_MAX).contains(&id.len())
        && id.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'\\' | b','))
}

/// Makes ids that are unique in the process and not guessable from one another.
#[derive(Debug, Default)]
pub struct Source {
    keys: (RandomState, RandomState),
    next: AtomicU64,
}

impl Source {
    /// The next id: 32 hexadecimal digits.
    pub fn next(&self) -> String {
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        format!("{:016x}{:016x}", self.keys.0.hash_one(number), self.keys.1.hash_one(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_of_ours_are_well_formed_and_differ() {
        let source = Source::default();
        let (first, second) = (source.next(), source.next());
        assert!(is_well_formed(&first) && first.len() == 32);
        assert_ne!(first, second);
    }

    #[test]
    fn what_could_break_a_line_is_not_well_formed() {
        for id in ["", " ", "a b", "a\"b", "a\\b", "é", "a,b", &"x".repeat(129)] {
            assert!(!is_well_formed(id), "{id:?}");
        }
    }
}
