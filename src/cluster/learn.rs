//! What a cluster learns of its backends, and the bound on how many it ejects.
//!
//! An ejection is the cluster's decision: the number that are out decides with it. It is taken under a lock
//! of the cluster, so that two backends that fall together cannot both be the last one allowed.

use std::sync::Arc;
use std::time::Instant;

use super::health::{Change, Reason, most};
use super::{Backend, Cluster, InFlight, Report};

impl Cluster {
    /// Learns from the end of an attempt; `draw` is a random number.
    pub fn learn(&self, attempt: &InFlight, report: &Report, draw: u64) -> Option<Change> {
        let backend = attempt.backend();
        let trial = attempt.trial();
        let (reason, change) = backend.state.health.learn(report, trial, &self.config.health.passive);
        match reason {
            Some(reason) => self.eject(backend, reason, report.now, draw).or(change),
            None => change,
        }
    }

    /// Looks at what is under way on a backend. To be called about once a second.
    pub fn look(&self, backend: &Arc<Backend>, now: Instant, draw: u64) -> Option<Change> {
        let (wedged, change) = backend.state.health.look(&self.config, now);
        if wedged { self.eject(backend, Reason::Wedged, now, draw).or(change) } else { change }
    }

    /// Takes a backend out; where as many as may be are out already, it is put last. One that is out stays out for
    /// longer.
    fn eject(&self, backend: &Arc<Backend>, reason: Reason, now: Instant, draw: u64) -> Option<Change> {
        let passive = &self.config.health.passive;
        let _one_at_a_time = self.state.ejecting.lock();
        let others = self.backends.iter().filter(|other| !other.is(backend));
        let out = others.filter(|other| other.state.health.is_ejected()).count();
        let kept = out >= most(self.backends.len(), passive) && !backend.state.health.is_ejected();
        backend.state.health.eject(reason, kept, now, draw, passive)
    }
}
