//! What Pingora wants of a connection beside its bytes.

use std::sync::Arc;

use async_trait::async_trait;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, TimingDigest,
    UniqueID, UniqueIDType,
};

use super::Conn;

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn").field("client", &self.client).finish_non_exhaustive()
    }
}

#[async_trait]
impl Shutdown for Conn {
    /// Before a reset there is no farewell: over TLS it would wait for a client that takes nothing.
    async fn shutdown(&mut self) {
        if !self.is_reset() {
            self.inner.shutdown().await;
        }
    }
}

impl UniqueID for Conn {
    fn id(&self) -> UniqueIDType {
        self.inner.id()
    }
}

impl Ssl for Conn {
    fn get_ssl_digest(&self) -> Option<Arc<SslDigest>> {
        self.inner.get_ssl_digest()
    }
}

impl Peek for Conn {}

impl GetTimingDigest for Conn {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.inner.get_timing_digest()
    }
}

impl GetProxyDigest for Conn {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        Some(Arc::clone(&self.digest))
    }
}

impl GetSocketDigest for Conn {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.socket.clone()
    }
}
