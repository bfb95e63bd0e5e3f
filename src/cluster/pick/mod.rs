//! The choice of one backend among those that may be used: pure functions over a slice.
//!
//! Each takes the candidates as they are now and a draw or a key, and gives a place in the slice. What is
//! costly to know of a candidate is asked only of those that are compared. `tests/properties/pick.rs` holds
//! each against a naive twin.

mod hash;
mod load;
mod random;
mod turns;

use smallvec::SmallVec;

pub use hash::{name_id, rendezvous};
pub use load::{LATENCY_SWAY, Score, least_load};
pub use random::{mix, random};
pub use turns::{next_turn, take_turn};

/// A backend that may be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// Its place in the cluster.
    pub at: usize,
    /// Its share of the work in thousandths, so that one that warms up may weigh less than 1: at least 1.
    pub weight: u64,
}

/// What a weight of 1 in the file is as [`Candidate::weight`].
pub const WEIGHT: u64 = 1_000;

/// Candidates of one choice; up to 64 of them take no allocation.
pub type Candidates = SmallVec<[Candidate; 64]>;

fn total(candidates: &[Candidate]) -> u64 {
    candidates.iter().map(|candidate| candidate.weight).sum()
}
