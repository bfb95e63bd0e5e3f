//! The connection below TLS.
//!
//! A TLS stream ends with a farewell (close_notify). Without one the end may be anybody's who can cut a
//! connection, and a body that ends with its connection would seem whole (RFC 9112, 9.8). The TLS library
//! takes a bare end of the connection for a farewell; so here it is an error.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, SocketDigest, Stream, TimingDigest, UniqueID,
    UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

/// A connection whose end is an error.
#[derive(Debug)]
pub(super) struct Below(pub(super) Stream);

impl AsyncRead for Below {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.0).poll_read(cx, buf);
        if matches!(read, Poll::Ready(Ok(()))) && buf.filled().len() == before && buf.remaining() > 0 {
            return Poll::Ready(Err(io::Error::new(
                io::ErrorKind::UnexpectedEof,
                "the backend closed the connection without a farewell",
            )));
        }
        read
    }
}

impl AsyncWrite for Below {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

impl UniqueID for Below {
    fn id(&self) -> UniqueIDType {
        self.0.id()
    }
}

impl GetTimingDigest for Below {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        self.0.get_timing_digest()
    }
}

impl GetProxyDigest for Below {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        self.0.get_proxy_digest()
    }
}

impl GetSocketDigest for Below {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        self.0.get_socket_digest()
    }
}
