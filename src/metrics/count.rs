//! What is counted, where it happens.

use std::time::Duration;

use super::{Metrics, NONE};
use crate::access_log::Line;
use crate::cluster::affinity::Kept;
use crate::cluster::{Backend, Reason};
use crate::failure::Failure;
use crate::live::Failed;
use crate::memory;
use crate::outcome::{Outcome, Phase};

// What a client ran into that took nothing: `stream.write_stall`, or the last step of the memory ladder.
const WRITE_STALL: &str = "write_stall";
const MEMORY: &str = "memory";

impl Metrics {
    /// Sets what is known before anything is counted.
    pub(super) fn begin(&self) {
        // What the gateway began with was sound; and a series that is there from the start has a rate.
        self.reload_ok.set(1);
        self.upgrades.with_label_values(&["failed"]).inc_by(0);
        for reason in [WRITE_STALL, MEMORY] {
            self.stalls_cut.with_label_values(&[reason]).inc_by(0);
        }
        for phase in Phase::ALL {
            self.cancels.with_label_values(&[phase.as_str()]).inc_by(0);
        }
        for kind in memory::Kind::ALL {
            self.memory_cuts.with_label_values(&[kind.label()]).inc_by(0);
        }
        for result in ["applied", "unchanged", "failed"] {
            self.reloads.with_label_values(&[result]).inc_by(0);
        }
    }

    /// Counts an exchange that has ended.
    pub fn settle(&self, line: &Line) {
        let route = line.route.as_deref().unwrap_or(NONE);
        let cluster = line.cluster.as_deref().unwrap_or(NONE);
        self.requests.with_label_values(&[route, cluster, line.outcome.as_str()]).inc();
        if line.outcome == Outcome::ClientClosed {
            self.cancels.with_label_values(&[line.phase.as_str()]).inc();
        }
        if let Some(cancel) = line.cancel {
            self.cancel_seconds.observe(cancel.as_secs_f64());
        }
        if line.resent {
            self.resends.with_label_values(&[cluster]).inc();
        }
        if line.heartbeats > 0 {
            self.heartbeats.with_label_values(&[route]).inc_by(line.heartbeats);
        }
        if !line.stalled.is_zero() {
            self.stall_seconds.observe(line.stalled.as_secs_f64());
        }
        if line.outcome == Outcome::ClientStalled {
            // Only one that is cut for memory has a code for its client.
            let reason = if line.error.is_some() { MEMORY } else { WRITE_STALL };
            self.stalls_cut.with_label_values(&[reason]).inc();
        }
        if let Some((usage, source)) = line.usage {
            self.output.count_tokens(cluster, &usage, source);
        }
    }

    /// Keeps an exchange that failed, and why, for those who watch.
    pub fn failed(&self, line: &Line, why: Option<String>) {
        if matches!(line.outcome, Outcome::Completed | Outcome::ClientClosed) {
            return;
        }
        self.failures.note(Failed {
            at: line.time + line.total,
            route: line.route.clone(),
            cluster: line.cluster.clone(),
            backend: line.backend.clone(),
            status: line.status,
            outcome: line.outcome,
            code: line.error,
            why,
            request_id: line.request_id.clone(),
        });
    }

    /// Counts one that was cut because memory ran out.
    pub fn cut_for_memory(&self, kind: memory::Kind) {
        self.memory_cuts.with_label_values(&[kind.label()]).inc();
    }

    /// Counts an attempt that is followed by another.
    pub fn retried(&self, cluster: &str, failure: Failure) {
        self.retries.with_label_values(&[cluster, failure.reason()]).inc();
    }

    /// Counts an attempt that sticks by something.
    pub fn kept(&self, cluster: &str, kept: Kept) {
        self.affinity.with_label_values(&[cluster, kept.as_str()]).inc();
    }

    /// Counts a failed attempt that the retry budget of its cluster let nothing follow.
    pub fn budget_exhausted(&self, cluster: &str) {
        self.exhausted.with_label_values(&[cluster]).inc();
    }

    /// Counts a wait for a free slot that has ended.
    pub fn queued(&self, cluster: &str, time: Duration) {
        self.queue_seconds.with_label_values(&[cluster]).observe(time.as_secs_f64());
    }

    /// Counts an ejection.
    pub fn ejected(&self, backend: &Backend, reason: Reason) {
        self.ejections.with_label_values(&[&*backend.cluster, &*backend.name, reason.label()]).inc();
    }

    /// Counts what a backend was asked beside its work.
    pub fn asked(&self, backend: &Backend, kind: &str, passed: bool) {
        let result = if passed { "ok" } else { "failed" };
        self.checks.with_label_values(&[&*backend.cluster, &*backend.name, kind, result]).inc();
    }

    /// Counts a successor that did not take over. One that did counts for itself, from zero.
    pub fn upgrade_failed(&self) {
        self.upgrades.with_label_values(&["failed"]).inc();
    }

    /// Counts a configuration file that was read again.
    pub fn reloaded(&self, result: &str, is_sound: bool) {
        self.reloads.with_label_values(&[result]).inc();
        self.reload_ok.set(i64::from(is_sound));
    }
}
