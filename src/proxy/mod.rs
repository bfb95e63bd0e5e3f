//! The life of a request: the only `ProxyHttp`.
//!
//! Each phase is a few lines that say what happens; the work lies in the modules below, the decisions
//! in the core. The request body is read here whole, before a backend is picked; the upstream session
//! (see `upstream`) owns time and bytes from then on; `response_body_filter` lets whole events out.

mod admit;
mod again;
mod answer;
mod arrival;
mod body;
mod cors;
mod count;
mod edit;
mod ending;
mod exchange;
mod failure;
mod head;
mod holders;
mod hooked;
mod http10;
mod intake;
mod judge;
mod key;
mod models;
mod peer;
mod redirect;
mod respond;
mod session;
mod settle;
mod shared;
mod shelter;
mod slot;
mod stream;
mod tell;
mod weigh;

use std::sync::Arc;
use std::time::{Instant, SystemTime};

use async_trait::async_trait;
use bytes::Bytes;
use pingora::modules::http::HttpModules;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};

use again::may_retry;
use answer::Mode;
pub use exchange::Exchange;
use failure::{Stop, classify};
use hooked::Withheld;
use http10::Http10;
use intake::Intake;
pub use shared::Shared;
pub use shelter::Sheltered;
use stream::{Broken, Stream};
use tell::Next;

use crate::failure::Failure;
use crate::metrics::Streaming;
use crate::openai::{Dialect, Unary};
use crate::outcome::Outcome;
use crate::rejection::Rejection;
use crate::upstream;

/// The gateway as Pingora sees it.
pub struct Phases {
    shared: Arc<Shared>,
    http10: Http10,
}

impl Phases {
    /// A gateway over what all exchanges share.
    pub fn new(shared: Arc<Shared>) -> Self {
        Self { shared, http10: Http10::new() }
    }
}

#[async_trait]
impl ProxyHttp for Phases {
    /// On the heap: it would stand three times in Pingora's future of a request, once for each that hands it on.
    type CTX = Box<Exchange>;

    fn new_ctx(&self) -> Box<Exchange> {
        Box::new(Exchange::begin(&self.shared, Instant::now(), SystemTime::now()))
    }

    /// No modules: the one that Pingora brings compresses, and an event stream must never wait for that.
    /// The one of ours is not for every client, see `http10`.
    fn init_downstream_modules(&self, _modules: &mut HttpModules) {}

    async fn request_filter(&self, session: &mut Session, exchange: &mut Self::CTX) -> Result<bool> {
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

    async fn upstream_peer(&self, session: &mut Session, exchange: &mut Self::CTX) -> Result<Box<HttpPeer>> {
        peer::start(&self.shared, session, exchange).await
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        upstream: &mut RequestHeader,
        exchange: &mut Self::CTX,
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
        exchange: &mut Self::CTX,
    ) -> Result<()> {
        let failure = Failure::Status(head.status.as_u16());
        if let Some(attempt) = &mut exchange.attempt {
            attempt.status = Some(head.status.as_u16());
            attempt.retry_after = head::retry_after(head);
        }
        if may_retry(&self.shared, failure, session, exchange) {
            if let Some(attempt) = &exchange.attempt {
                attempt.link.fail(failure);
            }
            return Err(Error::new(ErrorType::HTTPStatus(head.status.as_u16())).into_up());
        }
        // Committed from here on: no attempt can need the body any more.
        exchange.request.body = None;
        exchange.draft = None;
        Ok(())
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        exchange: &mut Self::CTX,
    ) -> Result<()> {
        let is_stream = upstream::is_event_stream(head);
        exchange.ending.status = head.status.as_u16();
        exchange.answer.mention = session::may_complain(head);
        exchange.answer.upstream_id = head::response(head, &exchange.id, is_stream)?;
        let mut observer = hooked::begin(&self.shared, exchange);
        if let Some(observer) = observer.take_if(|_| !is_stream) {
            let whole = hooked::whole(observer, head, exchange);
            exchange.answer.whole = whole.map_err(|Withheld| peer::refuse(exchange, Rejection::Withheld))?;
        }
        cors::strip(head);
        cors::write(head, exchange)?;
        admit::tell(head, exchange)?;
        http10::note_open_end(session, head, exchange);
        exchange.answer.mode = match (&exchange.route, &exchange.attempt) {
            (Some(route), Some(attempt)) if is_stream => {
                if let Some(client) = exchange.client.as_ref().filter(|_| attempt.link.body_follows()) {
                    client.body_follows();
                }
                let active = self.shared.metrics.stream(Streaming {
                    route: &route.name,
                    cluster: exchange.cluster.as_ref().map(|cluster| Arc::clone(&cluster.state)),
                    backend: Arc::clone(&attempt.in_flight.backend().state),
                    arrived: exchange.arrived,
                    sent: attempt.link.sent(),
                });
                let dialect = Dialect::of(&exchange.request.path);
                Mode::Reframe(Box::new(Stream::new(
                    route.stream.event_hold,
                    (dialect, exchange.request.streaming),
                    Arc::clone(&attempt.link),
                    exchange.request.unasked,
                    active,
                    observer.take(),
                )))
            }
            _ if upstream::is_json(head) => Mode::Observe(Unary::default()),
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
        exchange: &mut Self::CTX,
    ) -> Result<Option<std::time::Duration>> {
        // Only a failure has to name the exchange.
        let about = || exchange.request.about(&exchange.id, exchange.arrived_at);
        match &mut exchange.answer.mode {
            Mode::Reframe(stream) => {
                let out = stream.filter(body.take(), end, Instant::now(), about);
                *body = out.map_err(|broken| match broken {
                    Broken::Failed => Error::new(ErrorType::InternalError).into_up(),
                    Broken::Withheld => peer::refuse(exchange, Rejection::Withheld),
                })?;
            }
            _ => {
                let has_data = body.as_ref().is_some_and(|body| !body.trim_ascii_start().is_empty());
                if let Some(attempt) = exchange.attempt.as_ref().filter(|_| has_data) {
                    attempt.link.mark_bytes(Instant::now());
                }
                exchange.answer.note(body.as_ref(), end);
                if let Some(whole) = &mut exchange.answer.whole {
                    let out = whole.take(body.take(), end);
                    *body = out.map_err(|Withheld| peer::refuse(exchange, Rejection::Withheld))?;
                }
            }
        }
        exchange.answer.bytes += body.as_ref().map_or(0, |chunk| chunk.len() as u64);
        if end {
            admit::leave(exchange);
        }
        session::listen(session.req_header(), body.as_ref(), exchange);
        Ok(None)
    }

    fn error_while_proxy(
        &self,
        _peer: &HttpPeer,
        session: &mut Session,
        mut error: Box<Error>,
        exchange: &mut Self::CTX,
        _reused: bool,
    ) -> Box<Error> {
        let retry = match classify(&error, exchange) {
            Stop::Failed(failure) if may_retry(&self.shared, failure, session, exchange) => Some(failure),
            _ => None,
        };
        error.set_retry(retry.is_some());
        if let (Some(failure), Some(cluster)) = (retry, &exchange.cluster) {
            self.shared.metrics.retried(&cluster.config.name, failure);
            exchange.judge(Next::Retry, Instant::now());
            exchange.resent |= exchange.attempt.take().is_some_and(|attempt| attempt.link.was_resent());
        }
        error
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Self::CTX,
    ) -> FailToProxy {
        let (outcome, rejection) = match classify(error, exchange) {
            Stop::Failed(failure) => (failure.outcome(), Some(failure.rejection())),
            Stop::Refused(rejection) => (rejection.outcome(), Some(rejection)),
            Stop::ClientGone => (Outcome::ClientClosed, None),
            Stop::ClientStalled => (Outcome::ClientStalled, None),
            Stop::ClientCut => (Outcome::ClientStalled, Some(Rejection::Overloaded)),
            Stop::ClientTooSlow => (Outcome::Timeout, None),
            Stop::Internal => (Outcome::Abandoned, Some(Rejection::Internal)),
        };
        if outcome == Outcome::Abandoned {
            log::warn!("{}: {error}", describe(exchange));
        }
        match &rejection {
            Some(rejection) => exchange.end_with(outcome, rejection),
            None => exchange.end(outcome, None),
        }
        let answered = session.response_written().is_some();
        let Some(rejection) = rejection.filter(|_| !answered) else {
            // A stream of HTTP/2 is broken by a reset, behind what has been written of it.
            if let Some(stream) = session.downstream_session.as_custom_mut() {
                stream.abandon("").await;
            }
            return FailToProxy { error_code: 0, can_reuse_downstream: false };
        };
        // Pingora keeps no HTTP/1.1 connection on which proxying failed, and its client must not be told that it does.
        session.set_keepalive(None);
        let reply = respond::Reply::rejection(&rejection, exchange);
        let sent = respond::send(session, exchange, reply).await;
        FailToProxy { error_code: rejection.status(), can_reuse_downstream: sent.is_ok() }
    }

    async fn logging(&self, _session: &mut Session, error: Option<&Error>, exchange: &mut Self::CTX) {
        if error.is_none() {
            exchange.client.iter().for_each(|client| client.whole());
            if exchange.ending.outcome == Outcome::Abandoned {
                let (outcome, code) = exchange.completed();
                exchange.end(outcome, code);
            }
        }
        exchange.settle(Instant::now());
    }

    fn request_summary(&self, _session: &Session, exchange: &Self::CTX) -> String {
        describe(exchange)
    }

    fn suppress_error_log(&self, _session: &Session, _exchange: &Self::CTX, _error: &Error) -> bool {
        true
    }

    fn suppress_proxy_warn_log(
        &self,
        _session: &Session,
        _exchange: &Self::CTX,
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
