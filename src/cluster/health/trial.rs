//! What an attempt holds of its backend's health: its place among those that are watched, and the right to
//! be the only one that tries a backend that is out. Both go back with it.

use std::sync::Arc;
use std::time::Instant;

use super::Health;
use super::condition::{Change, Reason};
use super::flights::Progress;
use crate::cluster::BackendState;
use crate::config::Passive;

/// Keeps an attempt among those that are looked at, for as long as it lives.
#[derive(Debug)]
pub struct Watched {
    state: Arc<BackendState>,
    number: u64,
}

impl Watched {
    /// Lets an attempt be looked at; `streaming`: it asked for a stream.
    pub fn new(state: Arc<BackendState>, streaming: bool, progress: Arc<dyn Progress>) -> Self {
        let number = state.health.flights.add(streaming, progress);
        Self { state, number }
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        self.state.health.flights.remove(self.number);
    }
}

/// The one trial of a backend that is out.
#[derive(Debug)]
pub struct Trial {
    state: Arc<BackendState>,
    pub(super) number: u64,
}

impl Trial {
    /// Which one of its backend's it is.
    pub(in crate::cluster) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Trial {
    fn drop(&mut self) {
        self.state.health.state.lock().end_trial(self.number);
    }
}

/// What came of a one-token probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Probed {
    /// A token came.
    Token,
    /// None came.
    Silence,
    /// It was refused (a status of 400 to 499), or there is no model to ask for: that says nothing.
    Refused,
}

impl BackendState {
    /// The right to try it by a request, if it waits for one.
    pub(in crate::cluster) fn trial(self: &Arc<Self>, now: Instant) -> Option<Trial> {
        self.claim(now, |state| state.wants_trial(now))
    }

    /// The same where there is no other backend.
    pub(in crate::cluster) fn last_resort(self: &Arc<Self>, now: Instant) -> Option<Trial> {
        self.claim(now, |state| state.bears_trial(now))
    }

    /// The right to try it by a probe of ours, if it waits for one.
    pub fn probe(self: &Arc<Self>, now: Instant) -> Option<Trial> {
        self.claim(now, |state| state.wants_probe(now))
    }

    fn claim(
        self: &Arc<Self>,
        now: Instant,
        may: impl FnOnce(&super::state::State) -> bool,
    ) -> Option<Trial> {
        if self.health.is_in() {
            return None;
        }
        let mut state = self.health.state.lock();
        let number = may(&state).then(|| state.try_it(now))?;
        Some(Trial { state: Arc::clone(self), number })
    }
}

impl Health {
    /// Learns from a probe.
    pub fn probed(
        &self,
        trial: &Trial,
        probed: Probed,
        now: Instant,
        draw: u64,
        passive: &Passive,
    ) -> Option<Change> {
        let ((), change) = self.change(now, |state| {
            if !state.is_trial(trial.number) {
                return;
            }
            match probed {
                Probed::Token => state.succeeded(true, None, now),
                Probed::Silence => state.eject(Reason::Wedged, state.is_kept(), now, draw, passive),
                Probed::Refused => state.leave_to_requests(),
            }
        });
        change
    }
}
