//! The life of a request: the only `ProxyHttp`.
//!
//! Each phase is a few lines that say what happens; the work lies in the modules below, the decisions
//! in the core. The request body is read here whole, before a backend is picked; the upstream session
//! (see `upstream`) owns time and bytes from then on; `response_body_filter` lets whole events out.

mod answer;
mod body;
mod exchange;
mod failure;
mod head;
mod http10;
mod intake;
mod models;
mod peer;
mod respond;
mod session;
mod shared;
mod stream;
mod tell;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use pingora::modules::http::HttpModules;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};

use answer::Mode;
pub use exchange::Exchange;
use failure::{Stop, classify};
use http10::Http10;
use intake::Intake;
pub use shared::Shared;
use stream::Stream;
use tell::Next;

use crate::failure::Failure;
use crate::openai::{Dialect, Unary};
use crate::outcome::Outcome;
use crate::rejection::Rejection;
use crate::retry::{self, Decision, Facts};
use crate::upstream;

/// The gateway as Pingora sees it.
pub struct Gateway {
    shared: Arc<Shared>,
    http10: Http10,
}

impl Gateway {
    /// A gateway over what all exchanges share.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, http10: Http10::new() }
    }

    fn may_retry(&self, failure: Failure, session: &Session, exchange: &Exchange) -> bool {
        let Some(cluster) = &exchange.cluster else { return false };
        let facts = Facts {
            failure,
            committed: session.response_written().is_some(),
            body_held: exchange.request.body.is_some(),
            attempts: u32::try_from(exchange.tried.len()).unwrap_or(u32::MAX),
            attempts_max: cluster.config.attempts,
            untried: cluster.has_untried(&exchange.tried),
        };
        retry::decide(facts) == Decision::Retry
    }
}

#[async_trait]
impl ProxyHttp for Gateway {
    type CTX = Exchange;

    fn new_ctx(&self) -> Exchange {
        Exchange::begin(&self.shared, Instant::now(), SystemTime::now())
    }

    /// No modules: the one that Pingora brings compresses, and an event stream must never wait for that.
    /// The one of ours is not for every client, see `http10`.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(&self, session: &mut Session, exchange: &mut Exchange) -> Result<bool> {
        self.http10.adapt(session);
        match intake::take(&self.shared, session, exchange).await? {
            Intake::Proxy => {
                if let Some(route) = exchange.route.clone() {
                    intake::bind_connection(session, exchange, &route);
                }
                exchange.ready_at = Instant::now();
                Ok(false)
            }
            Intake::Reply(reply) => respond::complete(session, exchange, reply).await.map(|()| true),
            Intake::Reject(rejection) => respond::reject(session, exchange, &rejection).await.map(|()| true),
        }
    }

    async fn upstream_peer(&self, _session: &mut Session, exchange: &mut Exchange) -> Result<Box<HttpPeer>> {
        peer::start(&self.shared, exchange)
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream: &mut RequestHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let (Some(plan), Some(attempt)) = (exchange.plan.take(), &exchange.attempt) else {
            return Err(Error::new(ErrorType::InternalError));
        };
        let length = exchange.request.body.as_ref().map_or(0, |body| body.bytes.len());
        *upstream = head::request(session.req_header(), exchange, attempt.in_flight.backend(), length)?;
        upstream.extensions_mut().insert(plan);
        Ok(())
    }

    /// A status that another node may do better with ends the attempt; any other answer passes.
    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let failure = Failure::Status(head.status.as_u16());
        if self.may_retry(failure, session, exchange) {
            if let Some(attempt) = &exchange.attempt {
                attempt.link.fail(failure);
            }
            return Err(Error::new(ErrorType::HTTPStatus(head.status.as_u16())).into_up());
        }
        // Committed from here on: no attempt can need the body any more.
        exchange.request.body = None;
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        exchange: &mut Exchange,
    ) -> Result<()> {
        let is_stream = upstream::is_event_stream(head);
        exchange.ending.status = head.status.as_u16();
        exchange.answer.mention = session::may_complain(head);
        exchange.answer.upstream_id = head::response(head, &exchange.id, is_stream)?;
        http10::note_open_end(session, head, exchange);
        exchange.answer.mode = match (&exchange.route, &exchange.attempt) {
            (Some(route), Some(attempt)) if is_stream => {
                let active = self.shared.metrics.stream(&route.name);
                let dialect = Dialect::of(&exchange.request.path);
                Mode::Reframe(Box::new(Stream::new(
                    route.stream.event_hold,
                    dialect,
                    Arc::clone(&attempt.link),
                    exchange.request.usage_is_ours,
                    active,
                )))
            }
            _ if is_json(head) => Mode::Observe(Unary::default()),
            _ => Mode::Pass,
        };
        if self.shared.drain.is_leaving() {
            session.set_keepalive(None);
        }
        Ok(())
    }

    fn response_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut Exchange,
    ) -> Result<Option<std::time::Duration>> {
        // Only a failure has to name the exchange.
        let about = || exchange.request.about(&exchange.id, exchange.arrived_at);
        match &mut exchange.answer.mode {
            Mode::Reframe(stream) => {
                let out = stream.filter(body.take(), end, Instant::now(), about);
                *body = out.map_err(|_| Error::new(ErrorType::InternalError).into_up())?;
            }
            _ => exchange.answer.note(body.as_ref(), end),
        }
        exchange.answer.bytes += body.as_ref().map_or(0, |chunk| chunk.len() as u64);
        session::listen(session.req_header(), body.as_ref(), exchange);
        Ok(None)
    }

    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        session: &mut Session,
        mut error: Box<Error>,
        exchange: &mut Exchange,
        _reused: bool,
    ) -> Box<Error> {
        let retry = match classify(&error, exchange) {
            Stop::Failed(failure) if self.may_retry(failure, session, exchange) => Some(failure),
            _ => None,
        };
        error.set_retry(retry.is_some());
        if let (Some(failure), Some(cluster)) = (retry, &exchange.cluster) {
            self.shared.metrics.retried(&cluster.config.name, failure);
            tell::failed(exchange, failure, Next::Retry, Instant::now());
            exchange.resent |= exchange.attempt.take().is_some_and(|attempt| attempt.link.was_resent());
        }
        error
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Exchange,
    ) -> FailToProxy {
        let (outcome, rejection) = match classify(error, exchange) {
            Stop::Failed(failure) => (failure.outcome(), Some(failure.rejection())),
            Stop::Refused(rejection) => (rejection.outcome(), Some(rejection)),
            Stop::ClientGone => (Outcome::ClientClosed, None),
            Stop::ClientStalled => (Outcome::ClientStalled, None),
            Stop::ClientTooSlow => (Outcome::Timeout, None),
            Stop::Internal => (Outcome::Abandoned, Some(Rejection::Internal)),
        };
        if outcome == Outcome::Abandoned {
            log::warn!("{}: {error}", describe(exchange));
        }
        exchange.end(outcome, rejection.as_ref().map(Rejection::code));
        let answered = session.response_written().is_some();
        let Some(rejection) = rejection.filter(|_| !answered) else {
            // A stream of HTTP/2 is broken by a reset, behind what has been written of it.
            if let Some(stream) = session.downstream_session.as_custom_mut() {
                stream.abandon("").await;
            }
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        };
        let reply = respond::Reply::rejection(&rejection, exchange);
        let sent = respond::send(session, exchange, reply).await;
        FailToProxy { error_code: rejection.status(), can_reuse_downstream: sent.is_ok() }
    }

    async fn logging(&self, _session: &mut Session, error: Option<&Error>, exchange: &mut Exchange) {
        if error.is_none() {
            exchange.client.iter().for_each(|client| client.whole());
            if exchange.ending.outcome == Outcome::Abandoned {
                let (outcome, code) = exchange.completed();
                exchange.end(outcome, code);
            }
        }
        exchange.settle(Instant::now());
    }

    fn request_summary(&self, _session: &Session, exchange: &Exchange) -> String {
        describe(exchange)
    }

    fn suppress_error_log(&self, _session: &Session, _exchange: &Exchange, _error: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _session: &Session,
        _exchange: &Exchange,
        _error: &Error,
        _context: ProxyWarnLogContext,
    ) -> bool {
        true
    }
}

/// The exchange in a log line: nothing a client wrote but its path and id.
fn describe(exchange: &Exchange) -> String {
    let backend = exchange.tried.last().map_or("-", |backend| &backend.name);
    format!("request {} {} on {backend}", exchange.id, exchange.request.path)
}

fn is_json(head: &ResponseHeader) -> bool {
    head.headers
        .get(http::header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"))
}
