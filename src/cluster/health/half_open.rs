//! Who may try a backend that is out: one at a time, and when.
//!
//! A request of a client where a refusal or a reset put it out, since that request can still go to another
//! node; a probe of ours where it was wedged, since nothing takes a request back from a wedged engine.

use std::time::{Duration, Instant};

use super::condition::Condition;
use super::ejection::Ejection;
use super::state::State;

/// Least time between two trials of a backend by requests. A trial may end without a verdict (its client left,
/// the answer was a 500), and a backend that goes on like that must not get each request that comes.
const TRIAL_EVERY: Duration = Duration::from_secs(1);

/// How long a half-open backend waits for a request before a probe of ours tries it: without one a fleet that nobody
/// uses would show a backend as out for ever.
const UNASKED: Duration = Duration::from_secs(5);

impl State {
    /// Whether the next request may be the one that tries it.
    pub(super) fn wants_trial(&self, now: Instant) -> bool {
        let half_open = |ejection: &Ejection| ejection.takes_requests && now >= ejection.until;
        self.ejection.as_ref().is_some_and(half_open) && self.is_rested(now) && !self.checks_say_no(now)
    }

    /// Whether it may be tried where there is no other.
    pub(super) fn bears_trial(&self, now: Instant) -> bool {
        !self.condition.is_in()
            && self.ejection.as_ref().is_none_or(|ejection| ejection.takes_requests)
            && self.is_rested(now)
    }

    /// Whether no trial is under way or has just been.
    fn is_rested(&self, now: Instant) -> bool {
        self.trial.is_none() && self.tried_at.is_none_or(|at| now >= at + TRIAL_EVERY)
    }

    /// Whether it is time for a probe of ours: of one that takes no requests as soon as its time is over, of any
    /// other whose checks pass when no request has come to try it for a while.
    pub(super) fn wants_probe(&self, now: Instant) -> bool {
        let unasked = |ejection: &Ejection| {
            let since = self.tried_at.map_or(ejection.until, |tried| tried.max(ejection.until));
            self.checks.passing() && now >= since + UNASKED
        };
        let due =
            |ejection: &Ejection| now >= ejection.until && (!ejection.takes_requests || unasked(ejection));
        self.ejection.as_ref().is_some_and(due) && self.trial.is_none()
    }

    /// Whether nothing but its checks speaks against it.
    pub(super) fn is_doubted(&self) -> bool {
        self.condition == Condition::Failing && self.row == 0
    }

    fn checks_say_no(&self, now: Instant) -> bool {
        self.checks.failing() && !self.checks.outvoted(self.progress, now)
    }

    /// Begins a trial.
    pub(super) fn try_it(&mut self, now: Instant) -> u64 {
        self.trials += 1;
        self.trial = Some(self.trials);
        self.tried_at = Some(now);
        self.trials
    }

    /// Whether this is the trial under way.
    pub(super) fn is_trial(&self, number: u64) -> bool {
        self.trial == Some(number)
    }

    /// A trial has ended, whatever came of it.
    pub(super) fn end_trial(&mut self, number: u64) {
        if self.is_trial(number) {
            self.trial = None;
        }
    }

    /// The backend refuses our probe, which says nothing: a client's request is to decide.
    pub(super) fn leave_to_requests(&mut self) {
        if let Some(ejection) = &mut self.ejection {
            ejection.takes_requests = true;
        }
    }
}
