//! The same for the same key: weighted rendezvous hashing.
//!
//! Each candidate draws its own number from the key; the highest wins (Thaler and Ravishankar, 1998), after
//! each was bent by its weight (Schindelhauer and Schomaker, 2005: -weight / ln(number)). It beats a ring for
//! us: it needs no table that each reload, drain and ejection would have to rebuild, its shares are exact
//! where 160 points a backend are off by a tenth, a backend that goes moves its own keys only, and the order
//! of all others for a key is known as well, which is where its overflow goes.

use twox_hash::XxHash3_64;

use super::Candidate;
use super::random::mix;

/// What a backend is hashed by: its name, which outlives addresses and reloads.
pub fn name_id(name: &str) -> u64 {
    XxHash3_64::oneshot(name.as_bytes())
}

/// The place that `key` belongs to among those that `may` take it, where `id` names a candidate; `None`
/// of none. Names must be spread over all 64 bits, as those of [`name_id`] are: they are mixed with the key once.
pub fn rendezvous(
    candidates: &[Candidate],
    key: u64,
    id: impl Fn(&Candidate) -> u64,
    may: impl Fn(&Candidate) -> bool,
) -> Option<usize> {
    let mut best: Option<(usize, Drawn)> = None;
    for (place, candidate) in candidates.iter().enumerate() {
        let mut drawn = Drawn { number: mix(key ^ id(candidate)), weight: candidate.weight, bent: None };
        let wins = best.as_mut().is_none_or(|(_, best)| drawn.beats(best));
        if wins && may(candidate) {
            best = Some((place, drawn));
        }
    }
    best.map(|(place, _)| place)
}

/// What a candidate has drawn from a key.
struct Drawn {
    number: u64,
    weight: u64,
    /// The number as its weight bends it, once that was needed.
    bent: Option<f64>,
}

impl Drawn {
    /// Whether it is higher. Between equal weights the numbers say so, and no logarithm is needed.
    fn beats(&mut self, other: &mut Self) -> bool {
        if self.weight == other.weight { self.number > other.number } else { self.bent() > other.bent() }
    }

    fn bent(&mut self) -> f64 {
        *self.bent.get_or_insert_with(|| -(self.weight as f64) / unit(self.number).ln())
    }
}

/// Above 0 and below 1: 52 bits and a half, which a double holds exactly.
fn unit(number: u64) -> f64 {
    ((number >> 12) as f64 + 0.5) / (1u64 << 52) as f64
}
