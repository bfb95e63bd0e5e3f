//! The life of a request: the only `ProxyHttp`.
//!
//! Each phase is a few lines that say what happens; the work lies in the modules below, the decisions
//! in the core. The request body is read here whole, before a backend is picked; the upstream session
//! (see `upstream`) owns time and bytes from then on; `response_body_filter` lets whole events out.

mod admit;
mod again;
mod answer;
mod arrival;
mod attempt;
mod body;
mod by_head;
mod commit;
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
mod peek;
mod peer;
mod redirect;
mod request;
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
use http10::Http10;
use intake::Intake;
pub use shared::Shared;
pub use shelter::Sheltered;
use stream::Broken;
use tell::Next;

use crate::failure::Failure;
use crate::outcome::Outcome;
use crate::rejection::Rejection;

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
        commit::answer(&self.shared, session, head, exchange)
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
            _ => answer::pass(body, end, exchange)?,
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
        let (outcome, rejection) = classify(error, exchange).end();
        if outcome == Outcome::Abandoned {
            log::warn!("{}: {error}", describe(exchange));
        }
        match &rejection {
            Some(rejection) => exchange.end_with(outcome, rejection),
            None => exchange.end(outcome, None),
        }
        respond::failed(session, exchange, rejection).await
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
