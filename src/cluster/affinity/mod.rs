//! What keeps together that shares a cache: keys of a request, and the backend where each key is at home.
//!
//! A request has a chain of keys, from what it shares with many to what is its own: the leading text of its
//! prompt up to one block, to two, ...; or its session alone. The longest key that is known says where its
//! cache is. It goes there unless that backend is too far above the mean load: then the *overflow* spills to
//! another one, and the home stays, or a burst would drag every conversation around the fleet.
//!
//! A home moves only when its backend is gone for good or for long: drained, out, no longer configured.
//! Where it is merely full, resting or was just tried in vain, the request goes elsewhere and the home stays.

mod homes;
mod key;

pub use homes::{ENTRIES_MAX, Homes};
pub use key::{BLOCKS_MAX, Chain, Keys, session_key};

/// What became of a request that has keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// None of its keys had a home; now they have.
    New,
    /// It went home.
    Hit,
    /// Its home stays, and it went elsewhere.
    Spill,
    /// Its home was gone: it has a new one.
    Moved,
}

impl Kept {
    /// All of them.
    pub const ALL: [Self; 4] = [Self::New, Self::Hit, Self::Spill, Self::Moved];

    /// Its word in metrics.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::New => "new",
            Self::Hit => "hit",
            Self::Spill => "spill",
            Self::Moved => "moved",
        }
    }
}

/// Work on a backend, for each weight of 1, below which it is never called too full: about four requests of
/// usual size, which any engine takes at once. Without it the second request of an idle fleet would be
/// overflow, since half of the fleet's work is far above the mean.
pub const ALWAYS_TAKEN: u64 = 2_048;

/// Whether a backend with so much `load` is too far above the mean, which is what all `usable` backends
/// have (themselves included), by weight. Weights are in thousandths. It costs a look at each of them, and is asked
/// for only where it matters.
pub fn is_over(bound: f64, mine: Share, all: impl FnOnce() -> Share) -> bool {
    let always = u128::from(mine.load) * u128::from(super::pick::WEIGHT)
        <= u128::from(ALWAYS_TAKEN) * u128::from(mine.weight);
    if always {
        return false;
    }
    let all = all();
    mine.load as f64 * all.weight as f64 > bound * all.load as f64 * mine.weight as f64
}

/// Load and weight of one backend, or of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Share {
    /// Open work in tokens to generate.
    pub load: u64,
    /// Weight in thousandths.
    pub weight: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(load: u64, weight: u64) -> Share {
        Share { load, weight: weight * super::super::pick::WEIGHT }
    }

    #[test]
    fn the_bound_is_a_multiple_of_the_mean_by_weight() {
        assert!(!is_over(1.25, share(12_500, 1), || share(40_000, 4)));
        assert!(is_over(1.25, share(12_501, 1), || share(40_000, 4)));
        assert!(!is_over(1.25, share(25_000, 2), || share(40_000, 4)));
        assert!(is_over(1.25, share(25_001, 2), || share(40_000, 4)));
    }

    #[test]
    fn a_backend_that_does_little_is_never_over() {
        assert!(!is_over(1.0, share(ALWAYS_TAKEN, 1), || share(ALWAYS_TAKEN, 100)));
        assert!(is_over(1.0, share(ALWAYS_TAKEN + 1, 1), || share(ALWAYS_TAKEN + 1, 100)));
        assert!(!is_over(1.0, share(2 * ALWAYS_TAKEN, 2), || share(2 * ALWAYS_TAKEN, 100)));
    }

    #[test]
    fn a_backend_alone_is_never_over() {
        assert!(!is_over(1.0, share(1 << 60, 1), || share(1 << 60, 1)));
    }
}
