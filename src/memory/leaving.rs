//! Those who have been cut and are not gone yet.
//!
//! Between the cut and the moment when its memory is back a busy machine may need a second, and the memory looks as
//! full as before. Whoever cut by that alone would cut everybody, so what is still to come back counts as back.

use std::sync::Weak;
use std::time::{Duration, Instant};

use super::Holder;

/// How long one is hoped for. Who takes what he is given again after all goes on, and gives nothing back.
const HOPE: Duration = Duration::from_secs(2);

/// Everybody who is hoped for.
#[derive(Default)]
pub(super) struct Leaving(Vec<One>);

struct One {
    holder: Weak<dyn Holder>,
    cost: u64,
    since: Instant,
}

impl Leaving {
    /// One has been cut, from whom so many bytes are hoped for.
    pub(super) fn add(&mut self, holder: Weak<dyn Holder>, cost: u64, now: Instant) {
        self.0.push(One { holder, cost, since: now });
    }

    /// Bytes that are still to come back.
    pub(super) fn pending(&mut self, now: Instant) -> u64 {
        self.0.retain(|one| one.holder.strong_count() > 0 && now < one.since + HOPE);
        self.0.iter().map(|one| one.cost).sum()
    }
}
