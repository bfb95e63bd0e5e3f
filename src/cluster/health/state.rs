//! The health of one backend as a state machine: facts and the time come in, a change may come out.
//!
//! ```text
//! in --failures in a row, or wedged--> ejected --time over--> half-open --one answer--> in, slowly
//!                                         ^                      |
//!                                         +-- the trial failed --+   (for longer)
//! ```
//! Beside it run the active checks, which take a backend out and bring it back on their own, but are
//! outvoted by data that flows, and never end an ejection.

use std::time::{Duration, Instant};

use super::checks::Checks;
use super::condition::{Change, Condition, Reason};
use super::ejection::{Ejection, Record};
use super::flights::Flight;
use super::wedge::{Watch, Wedge};
use crate::cluster::Reading;
use crate::config::{Active, Passive};

/// What is known of one backend's health.
#[derive(Debug, Default)]
pub(super) struct State {
    /// What it amounted to at the last look.
    pub(super) condition: Condition,
    pub(super) checks: Checks,
    wedge: Wedge,
    /// Failures in a row.
    pub(super) row: u32,
    /// When an attempt last failed on it.
    pub(super) failed_at: Option<Instant>,
    pub(super) ejection: Option<Ejection>,
    record: Record,
    /// An ejection that has not been told.
    untold: bool,
    /// When it last sent data.
    pub(super) progress: Option<Instant>,
    /// When it came back, until slow start is over.
    back_at: Option<Instant>,
    slow_start: Duration,
    /// The trial under way, and the number of the last one.
    pub(super) trial: Option<u64>,
    pub(super) trials: u64,
    pub(super) tried_at: Option<Instant>,
}

impl State {
    /// Says what all that is known amounts to now, and what has changed.
    pub(super) fn settle(&mut self, now: Instant) -> Option<Change> {
        let to = self.judge(now);
        let from = std::mem::replace(&mut self.condition, to);
        let anew = std::mem::take(&mut self.untold);
        if to.is_in() && !from.is_in() {
            self.back_at = Some(now);
        } else if !to.is_in() || self.share(now) >= 1.0 {
            self.back_at = None;
        }
        if from == to && !anew {
            return None;
        }
        let (length, times) =
            if anew { (self.record.length, self.record.times) } else { (Duration::ZERO, 0) };
        Some(Change { from, to, length, times })
    }

    fn judge(&self, now: Instant) -> Condition {
        match &self.ejection {
            Some(ejection) if ejection.kept => Condition::Kept(ejection.reason),
            Some(ejection) => Condition::Ejected(ejection.reason),
            None if !self.checks.failing() => Condition::Up,
            None if self.checks.outvoted(self.progress, now) => Condition::Degraded,
            None => Condition::Failing,
        }
    }

    /// The share of its weight that it gets: grows from 0 to 1 after it came back.
    pub(super) fn share(&self, now: Instant) -> f64 {
        let Some(back) = self.back_at else { return 1.0 };
        if self.slow_start.is_zero() {
            return 1.0;
        }
        (now.saturating_duration_since(back).as_secs_f64() / self.slow_start.as_secs_f64()).min(1.0)
    }

    /// Whether it comes back slowly now.
    pub(super) fn is_starting(&self) -> bool {
        self.back_at.is_some()
    }

    pub(super) fn is_ejected(&self) -> bool {
        self.ejection.is_some_and(|ejection| !ejection.kept)
    }

    pub(super) fn is_kept(&self) -> bool {
        self.ejection.is_some_and(|ejection| ejection.kept)
    }

    /// An answer: of the trial, or of any attempt while it is in.
    pub(super) fn succeeded(&mut self, of_trial: bool, data: Option<Instant>, now: Instant) {
        self.progress = self.progress.max(data);
        if of_trial || self.is_kept() {
            self.progress = self.progress.max(Some(now));
            self.readmit(now);
        }
        self.row = 0;
    }

    /// A failure; whether the row is long enough for an ejection. Those that come in while it is ejected
    /// began before, or are the trial's.
    pub(super) fn failed(&mut self, passive: &Passive) -> bool {
        if self.ejection.is_some() {
            return false;
        }
        self.row = self.row.saturating_add(1);
        self.row >= passive.consecutive
    }

    /// Whether it was at work on something else since `quiet`.
    pub(super) fn was_busy(&self, flights: &[Flight], quiet: Option<Instant>) -> bool {
        let seen = flights.iter().filter_map(|flight| flight.seen.last_data).max();
        let worked = self.progress.max(seen).max(self.wedge.moved_at());
        worked.zip(quiet).is_some_and(|(worked, quiet)| worked > quiet)
    }

    /// Whether a trial's failure ends in an ejection: it was one of a half-open backend. Where its checks fail
    /// as well, they are what keeps it out, and its time is not to grow with the length of an outage.
    pub(super) fn is_half_open(&self, now: Instant) -> bool {
        self.ejection.is_some_and(|ejection| now >= ejection.until) && !self.checks.failing()
    }

    /// Takes it out of the rotation, or where it is `kept` in puts it last.
    pub(super) fn eject(&mut self, reason: Reason, kept: bool, now: Instant, draw: u64, passive: &Passive) {
        let length = self.record.again(now, draw, passive);
        let takes_requests = reason != Reason::Wedged;
        self.ejection = Some(Ejection { at: now, until: now + length, reason, kept, takes_requests });
        self.untold = true;
        self.trial = None;
        self.row = 0;
        self.wedge.forget();
    }

    /// The ejection is over.
    fn readmit(&mut self, now: Instant) {
        if self.ejection.take().is_some() {
            self.record.over_at = Some(now);
            self.trial = None;
            self.row = 0;
            self.wedge.forget();
        }
    }

    /// Notes an active check.
    pub(super) fn checked(&mut self, passed: bool, now: Instant, active: &Active) {
        let changed = self.checks.note(passed, now, active);
        if changed && passed {
            self.row = 0;
        }
        let Some(ejection) = &mut self.ejection else { return };
        // It was gone and is there again, so what it was ejected for may be over; but a node that comes and
        // goes serves its time, and a wedged one has been passing its checks all along.
        if changed && passed && self.record.times == 1 && ejection.takes_requests {
            ejection.until = ejection.until.min(now);
        }
    }

    /// There are no checks any more.
    pub(super) fn unchecked(&mut self) {
        self.checks = Checks::default();
    }

    /// Notes a reading of its metrics.
    pub(super) fn read(&mut self, reading: &Reading) {
        self.wedge.read(reading);
    }

    /// Looks at what is under way. Whether it is wedged.
    pub(super) fn look(
        &mut self,
        flights: &[Flight],
        watch: &Watch,
        slow_start: Duration,
        now: Instant,
    ) -> bool {
        self.slow_start = slow_start;
        let data = flights.iter().filter_map(|flight| flight.seen.last_data).max();
        self.progress = self.progress.max(data);
        if let Some(ejection) = self.ejection {
            // Streams that it holds since before prove that it is not wedged; only what began after can
            // prove that it may be connected to.
            let alive = |flight: &Flight| {
                let since = if ejection.reason == Reason::Wedged { None } else { flight.seen.sent };
                flight.seen.last_data.is_some_and(|data| data > ejection.at)
                    && since.is_none_or(|sent| sent > ejection.at)
            };
            if flights.iter().any(alive) {
                self.readmit(now);
            }
            return false;
        }
        self.wedge.look(flights, self.progress, watch, now)
    }
}
