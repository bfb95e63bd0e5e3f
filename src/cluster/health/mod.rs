//! Whether a backend is well: what its attempts, its checks and its silence say of it.
//!
//! The hard idea is who may overrule whom. Data that flows outvotes failing checks; passing checks never
//! end an ejection, since an engine can be wedged and say that it is well; and what a client can cause
//! counts for nothing. All decisions are in [`state`], which is pure; here are the locks around it.

mod checks;
mod condition;
mod ejection;
mod flights;
mod half_open;
mod state;
mod trial;
mod verdict;
mod wedge;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

pub use condition::{Change, Condition, Reason};
pub(super) use ejection::most;
use flights::Flights;
pub use flights::{Progress, Seen};
use state::State;
pub use trial::{Probed, Trial, Watched};
use verdict::Verdict;
use wedge::Watch;

use super::{Reading, Report};
use crate::config::{self, Active, Passive};
use crate::told::Told;

/// What a pick needs to know, in one relaxed load: `WELL`, or a look behind the lock is due.
const WELL: u8 = 0;
const STARTING: u8 = 1;
const OUT: u8 = 2;

/// What is known of a backend's health.
#[derive(Debug, Default)]
pub struct Health {
    /// Its changes, as far as the log tells them.
    pub told: Told,
    /// The line of the last one, if it is still to be told.
    pub untold: Mutex<Option<String>>,
    state: Mutex<State>,
    code: AtomicU8,
    fails_checks: AtomicBool,
    flights: Flights,
    checked: AtomicBool,
    model: Mutex<Option<Arc<str>>>,
}

/// Whether a backend may be picked, as far as its health goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fitness {
    /// It may.
    Fit,
    /// By one request, to see whether it is well again.
    HalfOpen,
    /// Its checks fail, and nothing else speaks against it: it may where all others are out.
    Doubted,
    /// It fails, and its cluster may eject no more: the same.
    Kept,
    /// It may not.
    Out,
}

impl Health {
    /// Changes the state, and says what that amounts to.
    fn change<T>(&self, now: Instant, act: impl FnOnce(&mut State) -> T) -> (T, Option<Change>) {
        let mut state = self.state.lock();
        let done = act(&mut state);
        let change = state.settle(now);
        let code = match (state.condition.is_in(), state.is_starting()) {
            (true, false) => WELL,
            (true, true) => STARTING,
            (false, _) => OUT,
        };
        self.code.store(code, Ordering::Relaxed);
        self.fails_checks.store(state.checks.failing(), Ordering::Relaxed);
        (done, change)
    }

    /// Whether it gets its share of the work.
    pub fn is_in(&self) -> bool {
        self.code.load(Ordering::Relaxed) != OUT
    }

    /// What it amounted to at the last look.
    pub fn condition(&self) -> Condition {
        self.state.lock().condition
    }

    /// The share of its weight that it gets now: less than 1 for `slow_start` after it came back.
    pub fn share(&self, now: Instant) -> f64 {
        match self.code.load(Ordering::Relaxed) {
            STARTING => self.state.lock().share(now),
            _ => 1.0,
        }
    }

    pub(super) fn fitness(&self, now: Instant) -> Fitness {
        if self.is_in() {
            return Fitness::Fit;
        }
        let state = self.state.lock();
        if state.wants_trial(now) {
            Fitness::HalfOpen
        } else if state.is_kept() {
            Fitness::Kept
        } else if state.is_doubted() {
            Fitness::Doubted
        } else {
            Fitness::Out
        }
    }

    /// Whether its checks fail, whatever else is known of it.
    pub(super) fn fails_checks(&self) -> bool {
        self.fails_checks.load(Ordering::Relaxed)
    }

    /// Whether its last attempt failed.
    pub(super) fn is_failing(&self) -> bool {
        self.state.lock().row > 0
    }

    /// Whether no attempt has failed on it since then.
    pub(super) fn is_sound_since(&self, since: Instant) -> bool {
        self.state.lock().failed_at.is_none_or(|failed| failed < since)
    }

    /// When a request may try it that is out, if that is still to come.
    pub(super) fn half_open_at(&self, now: Instant) -> Option<Instant> {
        if self.is_in() {
            return None;
        }
        let ejection = self.state.lock().ejection?;
        Some(ejection.until).filter(|until| now < *until)
    }

    pub(super) fn is_ejected(&self) -> bool {
        !self.is_in() && self.state.lock().is_ejected()
    }

    /// Whether its first check has been made.
    pub fn is_checked(&self) -> bool {
        self.checked.load(Ordering::Relaxed)
    }

    /// Notes an active check.
    pub fn check(&self, passed: bool, now: Instant, active: &Active) -> Option<Change> {
        let ((), change) = self.change(now, |state| state.checked(passed, now, active));
        self.checked.store(true, Ordering::Relaxed);
        change
    }

    /// Forgets the checks: the configuration makes none any more.
    pub fn uncheck(&self, now: Instant) -> Option<Change> {
        self.change(now, State::unchecked).1
    }

    /// Notes a reading of its metrics.
    pub(super) fn read(&self, reading: &Reading) {
        self.state.lock().read(reading);
    }

    /// The model that a probe is to ask for: the one it last served, or else was first asked for.
    pub fn model(&self) -> Option<Arc<str>> {
        self.model.lock().clone()
    }

    /// Notes the model of a request as the backend is asked for it; `served`: it gave an answer.
    pub fn note_model(&self, model: &str, served: bool) {
        let mut known = self.model.lock();
        let is_new = known.as_deref().is_none_or(|known| served && known != model);
        if is_new {
            *known = Some(model.into());
        }
    }

    /// Learns from the end of an attempt. Gives why it is to be ejected, if it is.
    pub(super) fn learn(
        &self,
        report: &Report,
        trial: Option<u64>,
        passive: &Passive,
    ) -> (Option<Reason>, Option<Change>) {
        let verdict = verdict::of(report);
        if verdict == Verdict::Nothing {
            return (None, None);
        }
        let flights = if matches!(verdict, Verdict::Silent(_)) { self.flights.look() } else { Vec::new() };
        self.change(report.now, |state| {
            let trial = trial.filter(|number| state.is_trial(*number));
            let failure = match verdict {
                Verdict::Bad(failure) => failure,
                Verdict::Silent(failure) if !state.was_busy(&flights, report.quiet_since) => failure,
                Verdict::Good => {
                    state.succeeded(trial.is_some(), report.last_data, report.now);
                    return None;
                }
                Verdict::Silent(_) | Verdict::Nothing => return None,
            };
            state.failed_at = Some(report.now);
            let ejects = match trial {
                Some(_) => state.is_half_open(report.now),
                None => state.failed(passive),
            };
            ejects.then_some(Reason::Failure(failure))
        })
    }

    pub(super) fn eject(
        &self,
        reason: Reason,
        kept: bool,
        now: Instant,
        draw: u64,
        passive: &Passive,
    ) -> Option<Change> {
        self.change(now, |state| state.eject(reason, kept, now, draw, passive)).1
    }

    /// Looks at what is under way, and at what time has changed. Whether it is wedged.
    pub(super) fn look(&self, config: &config::Cluster, now: Instant) -> (bool, Option<Change>) {
        let watch = Watch {
            after: config.health.wedged_after,
            every: config.scrape.as_ref().map(|scrape| scrape.every),
        };
        let flights = self.flights.look();
        self.change(now, |state| state.look(&flights, &watch, config.health.slow_start, now))
    }
}

#[cfg(test)]
mod tests;
