//! A fault of our own stays with the request that met it.
//!
//! Pingora lets a panic end the task of the connection: the client sees that closed without a word, and nobody
//! learns which request it was. [`Sheltered`] is the [`Phases`] with a shelter around each phase: a panic becomes an
//! internal error, so that the client is told (500, or a body that is broken off where one has begun), the exchange
//! settles and the log names it. What was counted goes back by its guards; where the panic was says the hook that
//! `cli` sets.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::FutureExt;
use pingora::modules::http::HttpModules;
use pingora::upstreams::peer::HttpPeer;
use pingora::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use pingora_proxy::{FailToProxy, ProxyHttp, ProxyWarnLogContext, Session};

use super::{Exchange, Phases, describe};

/// The gateway, whose panics are errors of their requests.
pub struct Sheltered(pub Phases);

/// A phase of the gateway's that can fail: a panic in it is a failure.
macro_rules! sheltered {
    ($self:ident.$phase:ident($session:ident $(, $head:ident)?; $exchange:ident)) => {{
        let phase = stringify!($phase);
        let work = async {
            let done = $self.0.$phase($session $(, $head)?, $exchange).await;
            trip(phase, $session);
            done
        };
        caught(work).await.unwrap_or_else(|| Err(panicked(phase, $exchange)))
    }};
}

#[async_trait]
impl ProxyHttp for Sheltered {
    type CTX = Box<Exchange>;

    fn new_ctx(&self) -> Self::CTX {
        self.0.new_ctx()
    }

    fn init_downstream_modules(&self, modules: &mut HttpModules) {
        self.0.init_downstream_modules(modules);
    }

    async fn request_filter(&self, session: &mut Session, exchange: &mut Self::CTX) -> Result<bool> {
        sheltered!(self.request_filter(session; exchange))
    }

    async fn upstream_peer(&self, session: &mut Session, exchange: &mut Self::CTX) -> Result<Box<HttpPeer>> {
        sheltered!(self.upstream_peer(session; exchange))
    }

    async fn upstream_request_filter(
        &self,
        session: &mut Session,
        head: &mut RequestHeader,
        exchange: &mut Self::CTX,
    ) -> Result<()> {
        sheltered!(self.upstream_request_filter(session, head; exchange))
    }

    async fn upstream_response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        exchange: &mut Self::CTX,
    ) -> Result<()> {
        sheltered!(self.upstream_response_filter(session, head; exchange))
    }

    async fn response_filter(
        &self,
        session: &mut Session,
        head: &mut ResponseHeader,
        exchange: &mut Self::CTX,
    ) -> Result<()> {
        sheltered!(self.response_filter(session, head; exchange))
    }

    fn response_body_filter(
        &self,
        session: &mut Session,
        body: &mut Option<Bytes>,
        end: bool,
        exchange: &mut Self::CTX,
    ) -> Result<Option<Duration>> {
        let work = AssertUnwindSafe(|| {
            // A test wants to see what becomes of a body that has begun.
            if exchange.answer.bytes > 0 {
                trip("response_body_filter", session);
            }
            self.0.response_body_filter(session, body, end, exchange)
        });
        catch_unwind(work).unwrap_or_else(|_| Err(panicked("response_body_filter", exchange)))
    }

    fn error_while_proxy(
        &self,
        peer: &HttpPeer,
        session: &mut Session,
        error: Box<Error>,
        exchange: &mut Self::CTX,
        reused: bool,
    ) -> Box<Error> {
        let work = AssertUnwindSafe(|| {
            trip("error_while_proxy", session);
            self.0.error_while_proxy(peer, session, error, exchange, reused)
        });
        catch_unwind(work).unwrap_or_else(|_| {
            let mut error = panicked("error_while_proxy", exchange);
            error.set_retry(false);
            error
        })
    }

    async fn fail_to_proxy(
        &self,
        session: &mut Session,
        error: &Error,
        exchange: &mut Self::CTX,
    ) -> FailToProxy {
        let work = async {
            trip("fail_to_proxy", session);
            self.0.fail_to_proxy(session, error, exchange).await
        };
        if let Some(failed) = caught(work).await {
            return failed;
        }
        // Nobody is left to tell the client.
        drop(panicked("fail_to_proxy", exchange));
        FailToProxy { error_code: 0, can_reuse_downstream: false }
    }

    async fn logging(&self, session: &mut Session, error: Option<&Error>, exchange: &mut Self::CTX) {
        let work = async {
            trip("logging", session);
            self.0.logging(session, error, exchange).await;
        };
        if caught(work).await.is_none() {
            drop(panicked("logging", exchange));
        }
    }

    fn request_summary(&self, session: &Session, exchange: &Self::CTX) -> String {
        self.0.request_summary(session, exchange)
    }

    fn suppress_error_log(&self, session: &Session, exchange: &Self::CTX, error: &Error) -> bool {
        self.0.suppress_error_log(session, exchange, error)
    }

    fn suppress_proxy_warn_log(
        &self,
        session: &Session,
        exchange: &Self::CTX,
        error: &Error,
        context: ProxyWarnLogContext,
    ) -> bool {
        self.0.suppress_proxy_warn_log(session, exchange, error, context)
    }
}

/// `None` where it panicked. What it was about is not used again, but to be dropped and to be told of.
async fn caught<T>(work: impl Future<Output = T>) -> Option<T> {
    AssertUnwindSafe(work).catch_unwind().await.ok()
}

/// Names the request in the log, and gives the error that ends it.
fn panicked(phase: &str, exchange: &Exchange) -> Box<Error> {
    log::error!("{}: it panicked in {phase}", describe(exchange));
    Error::new(ErrorType::InternalError)
}

/// Panics in the phase that `STREAMGATE_PANIC_IN` names, for a request whose query is `panic`: the tests' own fault.
/// No release can.
#[cfg(debug_assertions)]
fn trip(phase: &str, session: &Session) {
    static PHASE: std::sync::LazyLock<Option<String>> =
        std::sync::LazyLock::new(|| std::env::var("STREAMGATE_PANIC_IN").ok());
    let is_asked = PHASE.as_deref() == Some(phase) && session.req_header().uri.query() == Some("panic");
    assert!(!is_asked, "a test asks to panic in {phase}");
}

#[cfg(not(debug_assertions))]
fn trip(_phase: &str, _session: &Session) {}

#[cfg(test)]
mod tests {
    /// The phases that this text implements.
    fn phases(text: &str) -> Vec<&str> {
        let (_, block) = text.split_once("impl ProxyHttp for").expect("an implementation");
        let (block, _) = block.split_once("\n}").expect("its end");
        let names = block.lines().filter_map(|line| line.strip_prefix("    ")?.split_once("fn "));
        names
            .filter(|(before, _)| ["", "async "].contains(before))
            .map(|(_, name)| before_bracket(name))
            .collect()
    }

    fn before_bracket(name: &str) -> &str {
        name.split(['(', '<']).next().unwrap_or(name)
    }

    #[test]
    fn no_phase_is_left_outside() {
        let [gateway, sheltered] = [include_str!("mod.rs"), include_str!("shelter.rs")].map(phases);
        assert!(gateway.len() > 10, "{gateway:?}");
        assert_eq!(gateway, sheltered);
    }
}
