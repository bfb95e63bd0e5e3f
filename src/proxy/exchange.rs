//! One client request and its answer: everything the phases pass to each other.
//!
//! All that is counted is held by guards in here, so it goes back with the exchange, however that
//! ends: completed, cancelled, or with a panic that Pingora swallowed. It is *settled* once, in the
//! `logging` phase or else when it is dropped: one access line, one count.

use std::mem::{replace, take};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use super::answer::Answer;
use super::shared::Shared;
use super::tell::{self, Next};
use crate::access_log::Line;
use crate::cluster::{Backend, Cluster, InFlight};
use crate::config::Route;
use crate::drain::Working;
use crate::edge::Client;
use crate::openai::{About, profiles};
use crate::outcome::{Outcome, Phase};
use crate::rejection::Rejection;
use crate::session_map::Session;
use crate::snapshot::Snapshot;
use crate::upstream::{Body, Link, Plan};

/// One try of the exchange on one backend.
pub(super) struct Attempt {
    /// Counts it on its backend.
    pub(super) in_flight: InFlight,
    /// What its session tells us.
    pub(super) link: Arc<Link>,
}

/// The request as far as we read it.
#[derive(Default)]
pub(super) struct Request {
    /// Where the client is.
    pub(super) client: Option<IpAddr>,
    /// It came over TLS.
    pub(super) is_tls: bool,
    /// As it was sent.
    pub(super) method: String,
    /// The raw path, without the query.
    pub(super) path: String,
    /// The client's model name.
    pub(super) model: Option<String>,
    /// It asks for a stream.
    pub(super) streaming: bool,
    /// Usage was asked for by us: the client does not expect its frame.
    pub(super) usage_is_ours: bool,
    /// Its session.
    pub(super) session: Session,
    /// The whole body, until no attempt can need it.
    pub(super) body: Option<Body>,
}

impl Request {
    /// What an error may have to name of the exchange.
    pub(super) fn about<'a>(&'a self, id: &'a str, arrived_at: SystemTime) -> About<'a> {
        let began = arrived_at.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |since| since.as_secs());
        About { request_id: id, model: self.model.as_deref(), began }
    }
}

/// How the exchange ended, as far as it has been said.
pub(super) struct Ending {
    /// What it counts as.
    pub(super) outcome: Outcome,
    /// `error.code` of what the client was told.
    pub(super) code: Option<&'static str>,
    /// Where it was when it ended early.
    pub(super) phase: Phase,
    /// The status the client saw; 0 for none.
    pub(super) status: u16,
}

/// One client request and its answer.
pub struct Exchange {
    shared: Arc<Shared>,
    _working: Working,
    /// When it began.
    pub(super) arrived: Instant,
    /// The same on the calendar.
    pub(super) arrived_at: SystemTime,
    /// Its request id.
    pub(super) id: String,
    /// The configuration it lives by.
    pub(super) snapshot: Arc<Snapshot>,
    /// The client's connection.
    pub(super) client: Option<Arc<Client>>,
    /// What the client asked.
    pub(super) request: Request,
    /// The route it takes, once known.
    pub(super) route: Option<Arc<Route>>,
    /// The cluster it goes to, once known.
    pub(super) cluster: Option<Arc<Cluster>>,
    /// When its request was complete.
    pub(super) ready_at: Instant,
    /// A dead pooled connection has been replaced, which happens once.
    pub(super) resent: bool,
    /// Backends it was tried on.
    pub(super) tried: Vec<Arc<Backend>>,
    /// The current attempt.
    pub(super) attempt: Option<Attempt>,
    /// What the current attempt's session is to do; taken by it.
    pub(super) plan: Option<Arc<Plan>>,
    /// What the client is to be told when the phases fail.
    pub(super) rejection: Option<Rejection>,
    /// The answer on its way.
    pub(super) answer: Answer,
    /// How it ended.
    pub(super) ending: Ending,
    settled: bool,
}

impl Exchange {
    /// An exchange that has just begun.
    pub(super) fn begin(shared: &Arc<Shared>, now: Instant, wall: SystemTime) -> Self {
        Self {
            shared: Arc::clone(shared),
            _working: shared.drain.begin(),
            arrived: now,
            arrived_at: wall,
            id: String::new(),
            snapshot: shared.snapshot.load_full(),
            client: None,
            request: Request::default(),
            route: None,
            cluster: None,
            ready_at: now,
            resent: false,
            tried: Vec::new(),
            attempt: None,
            plan: None,
            rejection: None,
            answer: Answer::default(),
            ending: Ending { outcome: Outcome::Abandoned, code: None, phase: Phase::Upload, status: 0 },
            settled: false,
        }
    }

    /// What an error may have to name of it.
    pub(super) fn about(&self) -> About<'_> {
        self.request.about(&self.id, self.arrived_at)
    }

    /// Where it is now.
    pub(super) fn phase(&self) -> Phase {
        self.attempt.as_ref().map_or(Phase::Upload, |attempt| attempt.link.phase())
    }

    /// Says how it ended.
    pub(super) fn end(&mut self, outcome: Outcome, code: Option<&'static str>) {
        self.ending.outcome = outcome;
        self.ending.code = code;
        self.ending.phase = self.phase();
    }

    /// Whether the process is on its way out.
    pub(super) fn is_leaving(&self) -> bool {
        self.shared.drain.is_leaving()
    }

    /// Whether it must end now.
    pub(super) fn is_cut(&self) -> bool {
        self.shared.drain.is_cut()
    }

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

    /// The client was told `rejection`, as a status or as an error event.
    pub(super) fn end_with(&mut self, outcome: Outcome, rejection: &Rejection) {
        self.end(outcome, Some(rejection.code()));
    }

    /// Counts and logs it. Only the first call does.
    pub(super) fn settle(&mut self, now: Instant) {
        if replace(&mut self.settled, true) {
            return;
        }
        if self.ending.outcome == Outcome::Abandoned && self.shared.drain.is_cut() {
            self.end(Outcome::Shutdown, Some(Rejection::ShuttingDown.code()));
        }
        let failure = self.attempt.as_ref().and_then(|attempt| attempt.link.failure());
        if let Some(failure) = failure {
            tell::failed(self, failure, Next::End, now);
        }
        let line = self.line(now);
        self.shared.metrics.settle(&line);
        self.shared.access.write(line);
    }

    /// The facts of the exchange. Its texts are moved out: it has ended.
    fn line(&mut self, now: Instant) -> Line {
        let arrived = self.arrived;
        let since = |at: Instant| at.saturating_duration_since(arrived);
        let backend = self.tried.last();
        Line {
            time: self.arrived_at,
            request_id: take(&mut self.id),
            client: self.request.client,
            method: take(&mut self.request.method),
            path: take(&mut self.request.path),
            route: self.route.as_ref().map(|route| Arc::clone(&route.name)),
            cluster: self.cluster.as_ref().map(|cluster| Arc::clone(&cluster.config.name)),
            backend: backend.map(|backend| Arc::clone(&backend.name)),
            attempts: self.tried.len(),
            status: self.ending.status,
            outcome: self.ending.outcome,
            phase: self.ending.phase,
            error: self.ending.code,
            streaming: self.answer.is_stream(),
            model: self.request.model.take(),
            session: self.request.session.source(&self.snapshot.session).map(|place| Arc::clone(&place.text)),
            first_event: self.answer.first_event().map(since),
            first_token: self.answer.first_token().map(since),
            total: since(now),
            events: self.answer.events(),
            bytes: self.answer.bytes,
            usage: self.answer.usage(),
            cancel: self.cancel_latency(),
            upstream_id: self.answer.upstream_id.take(),
            generation: self.snapshot.generation,
            stalled: self.client.as_ref().map_or(std::time::Duration::ZERO, |client| client.take_blocked()),
            resent: self.resent || self.attempt.as_ref().is_some_and(|attempt| attempt.link.was_resent()),
            heartbeats: self.answer.heartbeats(),
        }
    }

    /// From the moment the client was seen to be gone to the moment the engine's connection was closed.
    fn cancel_latency(&self) -> Option<std::time::Duration> {
        if self.ending.outcome != Outcome::ClientClosed {
            return None;
        }
        let gone = self.client.as_ref()?.gone()?;
        let closed = self.attempt.as_ref()?.link.closed()?;
        Some(closed.saturating_duration_since(gone))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        self.settle(Instant::now());
    }
}
