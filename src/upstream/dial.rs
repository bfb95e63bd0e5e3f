//! Connections to backends: from the pool or fresh, plain or over TLS.
//!
//! The pool and the sockets are Pingora's; it sees each of them as plain, and TLS is put on top here
//! (see `tls`). So what tells connections apart that must not be shared is the peer's group key: the
//! same only for the same trust and the same name.

use std::collections::HashSet;
use std::time::Duration;

use pingora::ErrorType;
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::Stream;
use pingora::upstreams::peer::{HttpPeer, Peer};

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
    pub(super) fn prepare(&self, tls: &Tls) -> Result<(), String> {
        let built = self.contexts.of(tls);
        built.map(drop).map_err(|error| format!("TLS with {} cannot be set up: {error}", tls.name))
    }

    /// Forgets contexts for other trust than this.
    pub(super) fn keep_only(&self, trust_keys: &HashSet<u64>) {
        self.contexts.keep_only(trust_keys);
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
        let patience = plan.timeouts.connect;
        let connected = tokio::time::timeout(patience, self.open(&plan.peer, plan.tls.as_deref())).await;
        let failure = match connected {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err((failure, cause))) => {
                cause.into_iter().for_each(|cause| plan.link.explain(cause));
                failure
            }
            Err(_) => Failure::ConnectTimeout,
        };
        if failure == Failure::ConnectTimeout {
            let what = if plan.tls.is_some() { "TLS connection" } else { "connection" };
            plan.link.explain(format!("no {what} in {patience:?}"));
        }
        Err(failure)
    }

    /// A fresh connection; the failure comes with what the system or the TLS library says of it.
    pub(super) async fn open(
        &self,
        peer: &HttpPeer,
        tls: Option<&Tls>,
    ) -> Result<Stream, (Failure, Option<String>)> {
        let stream = self.transport.new_stream(peer).await.map_err(|error| match error.etype() {
            ErrorType::ConnectTimedout => (Failure::ConnectTimeout, None),
            _ => (Failure::Connect, cause(&error)),
        })?;
        let Some(tls) = tls else { return Ok(stream) };
        let spoken = self.contexts.handshake(stream, tls).await;
        spoken.map_err(|error: TlsFailure| (Failure::Connect, Some(error.to_string())))
    }
}
