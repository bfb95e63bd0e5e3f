//! What those who have just begun will take: they cost little yet, and are let in faster than it shows.
//!
//! On a busy machine a second may pass between the moment when a stream is let in and the moment when it holds what
//! a stream holds. Whoever only looked at what is used would let in a second's worth too many.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use super::choose::STREAM;

/// How long somebody has not shown yet what he will take.
const YOUNG: Duration = Duration::from_secs(1);

/// How many had begun when it was looked at, for the last second.
#[derive(Default)]
pub(super) struct Young(VecDeque<(Instant, u64)>);

impl Young {
    /// Bytes that will be taken yet, when `begun` have begun so far and `now_there` of all are there still.
    pub(super) fn promised(&mut self, begun: u64, now_there: u64, now: Instant) -> u64 {
        self.0.push_back((now, begun));
        // One that is older stays, to count from.
        while self.0.get(1).is_some_and(|(at, _)| *at + YOUNG <= now) {
            self.0.pop_front();
        }
        let before = self.0.front().map_or(begun, |(_, before)| *before);
        (begun - before).min(now_there) * STREAM
    }
}
