//! What an attempt that has ended says of its backend: to the log, and to those that learn from it.

use std::time::Instant;

use super::attempt::Attempt;
use super::exchange::Exchange;
use super::tell::{self, Next};
use crate::cluster::{Backend, Report};
use crate::failure::Failure;
use crate::outcome::Outcome;

impl Exchange {
    /// Tells the log, and those that watch the backend, how the current attempt ended.
    pub(super) fn judge(&mut self, next: Next, now: Instant) {
        let Some(attempt) = &self.attempt else { return };
        if let Some(trace) = &mut self.trace {
            trace.attempt_ended(attempt.link.failure().map(Failure::reason), now);
        }
        let failure = attempt.link.failure();
        if let Some(failure) = failure {
            tell::failed(self, failure, next, now);
        }
        let first_event = self.answer.first_event().zip(attempt.link.sent());
        let last_data = attempt.link.progress();
        // A status behind a head that was sent early is told as the failure that it is.
        let status = match failure {
            Some(Failure::Status(status)) => Some(status),
            _ => attempt.status,
        };
        let report = Report {
            now,
            failure,
            status,
            retry_after: attempt.retry_after,
            first_event: first_event.map(|(first, sent)| first.saturating_duration_since(sent)),
            whole: matches!(self.ending.outcome, Outcome::Completed | Outcome::Truncated),
            quiet_since: last_data.or_else(|| attempt.link.sent()),
            last_data,
        };
        attempt.in_flight.backend().state.learn(&report);
        self.tell_health(attempt, &report);
    }

    /// Lets the cluster learn what the attempt says of its backend's health.
    fn tell_health(&self, attempt: &Attempt, report: &Report) {
        let (Some(cluster), backend) = (&self.cluster, attempt.in_flight.backend()) else { return };
        if report.whole && report.status.is_some_and(|status| status < 300) {
            self.note_model(backend, true);
        }
        if let Some(change) = cluster.learn(&attempt.in_flight, report, fastrand::u64(..)) {
            self.shared.health_changed(backend, &change, None, report.now);
        }
    }

    /// Notes what the backend is asked for, where a probe can ask for the same.
    pub(super) fn note_model(&self, backend: &Backend, served: bool) {
        let request = &self.request;
        let (Some(route), Some(model)) = (&self.route, &request.model) else { return };
        if request.streaming || request.path.ends_with("/chat/completions") {
            backend.state.health.note_model(route.aliases.get(model).unwrap_or(model), served);
        }
    }
}
