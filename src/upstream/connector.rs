//! Pingora's connection pool behind our session.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::connectors::ConnectorOptions;
use pingora::connectors::http::custom::{self, Connection};
use pingora::protocols::ALPN;
use pingora::protocols::tls::CustomALPN;
use pingora::upstreams::peer::{HttpPeer, Peer};

use super::asker::Asker;
use super::dial::Dialer;
use super::session::Session;
use crate::config::Tls;

/// Hands out sessions that connect when they are read from, and takes finished connections back
/// into Pingora's pool. Clones share the pool.
#[derive(Clone)]
pub struct Connector {
    dialer: Arc<Dialer>,
}

impl Connector {
    /// A connector with a pool as `options` say.
    pub fn new(options: ConnectorOptions) -> Self {
        Self { dialer: Arc::new(Dialer::new(options)) }
    }

    /// Builds what connections with these settings need, so that the first of them does not wait for it.
    /// The system's authorities are read only if one of them trusts those.
    ///
    /// # Errors
    /// What OpenSSL says of the first that cannot be set up.
    pub fn prepare<'a>(&self, backends: impl Iterator<Item = &'a Tls>) -> Result<(), String> {
        let mut prepared = HashSet::new();
        let mut fresh = backends.filter(|tls| prepared.insert(tls.trust_key));
        fresh.try_for_each(|tls| self.dialer.prepare(tls))
    }

    /// Forgets what was prepared for other settings than these. Who still needs it has it built anew.
    pub fn keep_only<'a>(&self, backends: impl Iterator<Item = &'a Tls>) {
        self.dialer.keep_only(&backends.map(|tls| tls.trust_key).collect());
    }

    /// Asks backends what is not a client's request, with the TLS of those that are.
    pub fn asker(&self) -> Asker {
        Asker::new(Arc::clone(&self.dialer))
    }

    /// The peer to return from `upstream_peer` so that Pingora comes to this connector.
    pub fn ours(peer: &HttpPeer) -> Box<HttpPeer> {
        let mut peer = peer.clone();
        peer.options.alpn = ALPN::Custom(CustomALPN::new(b"streamgate".to_vec()));
        Box::new(peer)
    }
}

#[async_trait]
impl custom::Connector for Connector {
    type Session = Session;

    async fn get_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        _peer: &P,
    ) -> pingora::Result<(Connection<Session>, bool)> {
        Ok((Connection::Session(Session::new(Arc::clone(&self.dialer))), false))
    }

    async fn reused_http_session<P: Peer + Send + Sync + 'static>(&self, _peer: &P) -> Option<Session> {
        None
    }

    async fn release_http_session<P: Peer + Send + Sync + 'static>(
        &self,
        session: Session,
        peer: &P,
        idle_timeout: Option<Duration>,
    ) {
        if let Some(stream) = session.into_idle().await {
            self.dialer.release(stream, peer, idle_timeout);
        }
    }
}
