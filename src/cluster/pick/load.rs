//! The less loaded of two drawn by chance.
//!
//! Two choices are enough: the fullest backend is then hardly fuller than the mean, while gateways that
//! cannot see each other do not all run to the one that was emptiest a moment ago (Mitzenmacher, "The Power
//! of Two Choices in Randomized Load Balancing", 2001). The draw goes by weight, and so does the comparison:
//! a backend of weight 2 is asked twice as often and may hold twice the work.

use super::random::{at, mix, point};
use super::{Candidate, total};

/// How far the time to the first event may sway a choice: as if the slower one had at most this many times
/// its load. Prompts differ a hundredfold in it, so what it says of a backend is not much.
pub const LATENCY_SWAY: u64 = 3;
/// A backend that was in trouble is as if it had this much more work, all of it counted this many times.
const TROUBLE: (u64, u64) = (2_048, 4);

/// What two candidates are compared by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Score {
    /// Open work, this request's included, in tokens to generate.
    pub load: u64,
    /// Its weight.
    pub weight: u64,
    /// Microseconds to its first event.
    pub latency: u64,
    /// How far that may be trusted, 0 to 1,000.
    pub trust: u64,
    /// Whether it failed or was overloaded a moment ago.
    pub troubled: bool,
}

impl Score {
    /// Whether the work is done sooner here than there; equals stay where they are.
    pub fn beats(&self, other: &Self) -> bool {
        let (mine, theirs) = latencies(self, other);
        let (mine, theirs) = (self.work().saturating_mul(mine), other.work().saturating_mul(theirs));
        mine.saturating_mul(u128::from(other.weight)) < theirs.saturating_mul(u128::from(self.weight))
    }

    fn work(&self) -> u128 {
        let (more, times) = if self.troubled { TROUBLE } else { (0, 1) };
        u128::from(self.load.saturating_add(more)) * u128::from(times)
    }
}

/// The latencies of two, at least 1: the less one of them is trusted, the more both are as their mean.
fn latencies(one: &Score, two: &Score) -> (u128, u128) {
    let trust = u128::from(one.trust.min(two.trust));
    let (one, two) = (u128::from(one.latency), u128::from(two.latency));
    let drawn = |latency: u128| latency * trust + (one + two) / 2 * (1_000 - trust);
    let (one, two) = (drawn(one), drawn(two));
    let least = (one.max(two) / u128::from(LATENCY_SWAY)).max(1);
    (one.max(least), two.max(least))
}

/// The better of two places drawn by weight, by what `score` says of them; `None` of none.
pub fn least_load(candidates: &[Candidate], draw: u64, score: impl Fn(&Candidate) -> Score) -> Option<usize> {
    let all = total(candidates);
    let first = at(candidates, point(all, draw), None)?;
    let rest = all - candidates[first].weight;
    let Some(second) = at(candidates, point(rest, mix(draw)), Some(first)) else { return Some(first) };
    let second_is_better = score(&candidates[second]).beats(&score(&candidates[first]));
    Some(if second_is_better { second } else { first })
}
