//! Connections to backends: from the pool or fresh, plain or over TLS.
//!
//! The pool and the sockets are Pingora's; it sees each of them as plain, and TLS is put on top here
//! (see `tls`). So what tells connections apart that must not be shared is the peer's group key: the
//! same only for the same trust and the same name.

use std::time::Duration;

use pingora::ErrorType;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::Stream;
use pingora::upstreams::peer::Peer;

use super::opening::cause;
use super::plan::Plan;
use super::tls::{Contexts, TlsFailure};
use crate::config::Tls;
use crate::failure::Failure;
use crate::outcome::Phase;

/// Makes connections and keeps idle ones.
pub(super) struct Dialer {
    transport: TransportConnector,
    contexts: Contexts,
}

impl Dialer {
    /// A dialer with a pool as `options` say.
    pub(super) fn new(options: ConnectorOptions) -> Self {
        Self { transport: TransportConnector::new(Some(options)), contexts: Contexts::default() }
    }

    /// Builds what connections with these settings need, so that the first of them does not wait for it.
    pub(super) fn prepare(&self, tls: &Tls) {
        if let Err(error) = self.contexts.of(tls) {
            log::error!("TLS with {} cannot be set up: {error}", tls.name);
        }
    }

    /// An idle connection to the plan's backend.
    pub(super) async fn pooled(&self, plan: &Plan) -> Option<Stream> {
        self.transport.reused_stream(&plan.peer).await
    }

    /// Takes an idle connection back.
    pub(super) fn release(&self, stream: Stream, peer: &impl Peer, idle_timeout: Option<Duration>) {
        self.transport.release_stream(stream, peer.reuse_hash(), idle_timeout);
    }

    /// A fresh connection, ready to be written to.
    pub(super) async fn connect(&self, plan: &Plan) -> Result<Stream, Failure> {
        plan.link.enter(Phase::Connect);
        let patience = plan.route.timeouts.connect;
        let connected = tokio::time::timeout(patience, self.open(plan)).await;
        let failure = match connected {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(failure)) => failure,
            Err(_) => Failure::ConnectTimeout,
        };
        if failure == Failure::ConnectTimeout {
            let what = if plan.tls.is_some() { "TLS connection" } else { "connection" };
            plan.link.explain(format!("no {what} in {patience:?}"));
        }
        Err(failure)
    }

    async fn open(&self, plan: &Plan) -> Result<Stream, Failure> {
        let stream = self.transport.new_stream(&plan.peer).await.map_err(|error| {
            if *error.etype() == ErrorType::ConnectTimedout {
                return Failure::ConnectTimeout;
            }
            if let Some(cause) = cause(&error) {
                plan.link.explain(cause);
            }
            Failure::Connect
        })?;
        let Some(tls) = &plan.tls else { return Ok(stream) };
        self.contexts.handshake(stream, tls).await.map_err(|error: TlsFailure| {
            plan.link.explain(error.to_string());
            Failure::Connect
        })
    }
}
