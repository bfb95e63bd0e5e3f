//! The end of an exchange: what it counts as, and its one access line.
//!
//! It is *settled* once, in the `logging` phase or else when it is dropped: one line, one count.

use std::mem::{replace, take};
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::admit;
use super::exchange::Exchange;
use super::tell::{self, Next};
use crate::access_log::Line;
use crate::failure::Failure;
use crate::openai::{Dialect, profiles};
use crate::outcome::Outcome;
use crate::rejection::Rejection;
use crate::trace::Facts;
use crate::usage::{Source, Usage};

impl Exchange {
    /// What an answer counts as that was relayed to its HTTP end.
    pub(super) fn completed(&self) -> (Outcome, Option<&'static str>) {
        let failure = self.attempt.as_ref().and_then(|attempt| attempt.link.failure());
        if let Some(failure) = failure {
            return (failure.outcome(), Some(failure.rejection().code()));
        }
        let seen = self.answer.seen();
        let stopped_short =
            seen.and_then(|seen| seen.finish_reason.as_deref()).is_some_and(profiles::stopped_short);
        let is_error = seen.is_some_and(|seen| seen.error.is_some());
        match self.ending.status {
            500.. => (Outcome::UpstreamError, None),
            200..=299 if is_error => (Outcome::UpstreamError, None),
            200..=299 if stopped_short => (Outcome::Truncated, None),
            _ => (Outcome::Completed, None),
        }
    }

    /// Counts and logs it. Only the first call does.
    pub(super) fn settle(&mut self, now: Instant) {
        if replace(&mut self.settled, true) {
            return;
        }
        if self.ending.outcome == Outcome::Abandoned && self.shared.drain.is_cut() {
            self.end(Outcome::Shutdown, Some(Rejection::ShuttingDown.code()));
        }
        self.judge(Next::End, now);
        let used = admit::used(self);
        admit::settle(self, used.as_ref().map(|(usage, _)| usage), now);
        let pace = self.count_output();
        let why = self.why();
        let line = Arc::new(self.line(used, now));
        self.count_operation(&line, pace);
        self.shared.metrics.settle(&line);
        self.shared.metrics.failed(&line, why);
        self.shared.usage.write(&line);
        self.send_trace(&line, now);
        tell::slow(self, &line, now);
        tell::crowded(self, &line, now);
        self.shared.access.write(&line, self.snapshot.log.access_sample, fastrand::f64());
    }

    fn send_trace(&mut self, line: &Line, now: Instant) {
        let (Some(trace), Some(collector)) = (self.trace.take(), &self.shared.traces) else { return };
        let facts = Facts {
            line,
            arrived: self.arrived,
            ready: self.ready_at,
            ended: now,
            operation: Dialect::of(&line.path).operation(&line.path),
            provider: self.cluster.as_ref().map(|cluster| profiles::of(cluster.config.profile).name),
            finish_reason: self.answer.seen().and_then(|seen| seen.finish_reason.as_deref()),
        };
        collector.send(trace.spans(&facts, || fastrand::u64(..)));
    }

    /// Why it failed: the failure of its backend with what is behind it, or what the client was told.
    fn why(&mut self) -> Option<String> {
        if matches!(self.ending.outcome, Outcome::Completed | Outcome::ClientClosed) {
            return None;
        }
        let failure = self.attempt.as_ref().and_then(|attempt| attempt.link.failure());
        if let Some(failure) = failure {
            return Some(tell::why(self, failure));
        }
        let error = self.answer.seen().and_then(|seen| seen.error.as_ref());
        let stopped = self.answer.seen().and_then(|seen| seen.finish_reason.as_deref());
        match (self.ending.outcome, self.ending.status) {
            (Outcome::UpstreamError, status @ 500..) => Some(Failure::Status(status).to_string()),
            (Outcome::UpstreamError, _) => {
                let word = error.and_then(|error| error.code.as_deref().or(error.kind.as_deref()));
                Some(format!("the backend sent an error in its answer: {}", word.unwrap_or("no code")))
            }
            (Outcome::Truncated, _) => {
                Some(format!("the backend stopped short: {}", stopped.unwrap_or("no reason")))
            }
            (Outcome::ClientStalled, _) => Some("the client took nothing for stream.write_stall".to_owned()),
            (Outcome::Timeout, _) if self.ending.code.is_none() => {
                Some("the client took too long for its answer: timeouts.total".to_owned())
            }
            _ => self.ending.why.take(),
        }
    }

    /// The facts of the exchange. Its texts are moved out: it has ended.
    fn line(&mut self, usage: Option<(Usage, Source)>, now: Instant) -> Line {
        let arrived = self.arrived;
        let since = |at: Instant| at.saturating_duration_since(arrived);
        let backend = self.tried.last();
        Line {
            time: self.arrived_at,
            request_id: take(&mut self.id),
            client: self.request.client,
            key: self.key.as_ref().map(|key| Arc::clone(&key.name)),
            method: take(&mut self.request.method),
            path: take(&mut self.request.path),
            route: self
                .route
                .as_ref()
                .map(|route| Arc::clone(&route.name))
                .or_else(|| self.likely_route.take()),
            cluster: self.cluster.as_ref().map(|cluster| Arc::clone(&cluster.config.name)),
            backend: backend.map(|backend| Arc::clone(&backend.name)),
            attempts: self.tried.len(),
            status: self.ending.status,
            outcome: self.ending.outcome,
            phase: self.ending.phase,
            error: self.ending.code,
            limit: self.ending.limit.take(),
            key_error: self.ending.key_error,
            streaming: self.answer.is_stream(),
            model: self.request.model.take(),
            session: self.request.session.source(&self.snapshot.session).map(|place| Arc::clone(&place.text)),
            queued: self.queued,
            first_event: self.answer.first_event().map(since),
            first_token: self.answer.first_token().map(since),
            total: since(now),
            events: self.answer.events(),
            bytes: self.answer.bytes,
            usage,
            cancel: self.cancel_latency(),
            upstream_id: self.answer.upstream_id.take(),
            generation: self.snapshot.generation,
            stalled: self.client.as_ref().map_or(Duration::ZERO, |client| client.take_blocked()),
            resent: self.resent || self.attempt.as_ref().is_some_and(|attempt| attempt.link.was_resent()),
            heartbeats: self.answer.heartbeats(),
        }
    }

    /// From the moment the client was seen to be gone to the moment the engine's connection was closed.
    fn cancel_latency(&self) -> Option<Duration> {
        if self.ending.outcome != Outcome::ClientClosed {
            return None;
        }
        let gone = self.client.as_ref()?.gone()?;
        let closed = self.attempt.as_ref()?.link.closed()?;
        Some(closed.saturating_duration_since(gone))
    }
}
