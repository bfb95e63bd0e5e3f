//! A stream that sends the request body while the response is read.
//!
//! Pingora's HTTP/1 client session writes, then reads. An engine that refuses a large body answers
//! before it has read it (413, 401) and may stop reading altogether: writing first would hang. So the
//! session writes only the head; the body lies here and every read pushes it along first.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use async_trait::async_trait;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};

use super::drive::BATCH;
use super::plan::Body;

/// Most bytes of one read. Pingora's body buffer has room for 64 KiB; what is not read into it is not
/// touched, so this is what a stalled stream costs there, and the most that one chunk can be.
const READ_MAX: u64 = BATCH as u64;

/// A connection to a backend with what is left to send on it.
pub(super) struct Duplex {
    inner: Take<Stream>,
    body: Option<Body>,
    sent: usize,
    received: bool,
}

impl Duplex {
    pub(super) fn new(inner: Stream, body: Option<Body>) -> Self {
        let body = body.filter(|body| !body.bytes.is_empty());
        Self { inner: inner.take(READ_MAX), body, sent: 0, received: false }
    }

    /// A byte of an answer has come.
    pub(super) fn has_received(&self) -> bool {
        self.received
    }

    /// The connection below, if the whole request has been sent on it.
    pub(super) fn into_idle(self) -> Option<Stream> {
        self.body.is_none().then(|| self.inner.into_inner())
    }

    /// Sends as much as the socket takes. A failed write ends the sending and is not an error: the
    /// engine's answer, if there is one, is read all the same, and the read tells if there is none.
    fn push(&mut self, cx: &mut Context<'_>) {
        while let Some(body) = &self.body {
            let rest = &body.bytes[self.sent..];
            if rest.is_empty() {
                if Pin::new(self.inner.get_mut()).poll_flush(cx).is_pending() {
                    return;
                }
                self.body = None;
                return;
            }
            match Pin::new(self.inner.get_mut()).poll_write(cx, rest) {
                Poll::Ready(Ok(written)) if written > 0 => self.sent += written,
                Poll::Pending => return,
                Poll::Ready(_) => {
                    // Not sent whole: `sent` never reaches the end, so `into_idle` refuses.
                    return;
                }
            }
        }
    }
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.body.is_some() {
            self.push(cx);
        }
        let before = buf.filled().len();
        self.inner.set_limit(READ_MAX);
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.received |= buf.filled().len() > before;
        read
    }
}

impl AsyncWrite for Duplex {
    /// Only the head is written through here; as much of the body as one packet train takes goes along.
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let Some(body) = self.body.as_ref().filter(|_| self.sent == 0) else {
            return Pin::new(self.inner.get_mut()).poll_write(cx, buf);
        };
        let body = body.bytes.slice(..body.bytes.len().min(BATCH));
        let both = [io::IoSlice::new(buf), io::IoSlice::new(&body)];
        let written = ready!(Pin::new(self.inner.get_mut()).poll_write_vectored(cx, &both))?;
        self.sent = written.saturating_sub(buf.len());
        Poll::Ready(Ok(written.min(buf.len())))
    }

    /// With a body to follow the head is not flushed: both leave in one packet where they fit.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.body.is_some() { Poll::Ready(Ok(())) } else { Pin::new(self.inner.get_mut()).poll_flush(cx) }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner.get_mut()).poll_shutdown(cx)
    }
}

impl std::fmt::Debug for Duplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duplex")
            .field("sent", &self.sent)
            .field("received", &self.received)
            .finish_non_exhaustive()
    }
}

#[async_trait]
impl Shutdown for Duplex {
    async fn shutdown(&mut self) {
        self.inner.get_mut().shutdown().await;
    }
}

impl UniqueID for Duplex {
    fn id(&self) -> UniqueIDType {
        self.inner.get_ref().id()
    }
}

impl Ssl for Duplex {}

impl Peek for Duplex {}

impl GetTimingDigest for Duplex {
    fn get_timing_digest(&self) -> Vec<Option<TimingDigest>> {
        Vec::new()
    }
}

impl GetProxyDigest for Duplex {
    fn get_proxy_digest(&self) -> Option<Arc<ProxyDigest>> {
        None
    }
}

impl GetSocketDigest for Duplex {
    fn get_socket_digest(&self) -> Option<Arc<SocketDigest>> {
        None
    }
}
