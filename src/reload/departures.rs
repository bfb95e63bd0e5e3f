//! Backends that have left the configuration, and until when their streams may go on.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::cluster::{Backend, Leave};
use crate::snapshot::Snapshot;

/// Those that may still have something open.
#[derive(Debug, Default)]
pub(super) struct Departures(Vec<(Instant, Arc<Backend>)>);

impl Departures {
    /// Notes who has left with this snapshot, and who has come back. To be called once it is in force.
    pub(super) fn note(&mut self, snapshot: &Snapshot, now: Instant, drain: Duration) {
        for backend in snapshot.backends() {
            let leaving = &backend.state.leaving;
            leaving.set(Leave::Removed, false);
            leaving.cut(false);
        }
        self.0.retain(|(_, backend)| backend.state.leaving.is(Leave::Removed));
        for backend in &snapshot.leaving {
            if !backend.state.leaving.is(Leave::Removed) {
                backend.state.leaving.set(Leave::Removed, true);
                self.0.push((now + drain, Arc::clone(backend)));
            }
        }
    }

    /// When the next one's time is over.
    pub(super) fn next(&self) -> Option<Instant> {
        self.0.iter().map(|(until, _)| *until).min()
    }

    /// Takes out those whose time is over, and marks what they have open to be cut. Gives those that had
    /// something.
    pub(super) fn cut(&mut self, now: Instant) -> Vec<Arc<Backend>> {
        let (over, rest) = std::mem::take(&mut self.0).into_iter().partition(|(until, _)| *until <= now);
        self.0 = rest;
        let over: Vec<(Instant, Arc<Backend>)> = over;
        over.iter().for_each(|(_, backend)| backend.state.leaving.cut(true));
        let at_work = over.into_iter().map(|(_, backend)| backend);
        at_work.filter(|backend| backend.state.in_flight() > 0).collect()
    }
}
