//! Pingora's connection pool behind our session.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use pingora::connectors::http::custom::{self, Connection};
use pingora::connectors::{ConnectorOptions, TransportConnector};
use pingora::protocols::ALPN;
use pingora::protocols::tls::CustomALPN;
use pingora::upstreams::peer::{HttpPeer, Peer};

use super::session::Session;

/// Hands out sessions that connect when they are read from, and takes finished connections back
/// into Pingora's pool. Clones share the pool.
#[derive(Clone)]
pub struct Connector {
    transport: Arc<TransportConnector>,
}

impl Connector {
    /// A connector whose pool keeps at most `max_idle` connections.
    pub fn new(max_idle: usize) -> Self {
        let transport = TransportConnector::new(Some(ConnectorOptions::new(max_idle)));
        Self { transport: Arc::new(transport) }
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
        Ok((Connection::Session(Session::new(Arc::clone(&self.transport))), false))
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
            self.transport.release_stream(stream, peer.reuse_hash(), idle_timeout);
        }
    }
}
