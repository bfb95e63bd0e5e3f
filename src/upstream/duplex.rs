//! A stream that sends the request while the response is read.
//!
//! Pingora's HTTP/1 client session writes, then reads. An engine that refuses a large body answers
//! before it has read it (413, 401) and may stop reading altogether: writing first would hang. So the
//! session writes nothing; head and body lie here and every read pushes them along first.
//!
//! A connection that ends with part of its request unsent is reset: an engine that reads nothing would leave it
//! in the kernel, see `reset`.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use async_trait::async_trait;
use bytes::{Buf, Bytes};
use pingora::protocols::http::v1::client::HttpSession;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, ReadBuf, Take};

use super::drive::BATCH;
use super::plan::Body;
use crate::ledger::Reservation;
use crate::reset;

/// Most bytes of one read: a batch in its chunked framing, 6 to 9 bytes an event. Pingora's body buffer has
/// room for 64 KiB; what is not read into it is not touched, so this is what a stalled stream costs there,
/// and the most that one chunk can be.
const READ_MAX: u64 = BATCH as u64 + 2048;

/// A connection to a backend with what is left to send on it.
pub(super) struct Duplex {
    /// Before the connection, so that it is dropped before.
    end: End,
    inner: Take<Stream>,
    request: Option<Request>,
    /// Bytes of the answer so far.
    received: u64,
}

/// How the connection ends when it is dropped.
struct End {
    socket: UniqueIDType,
    /// All of the request has been given to the kernel.
    given: bool,
    /// It serves again.
    is_idle: bool,
}

impl Drop for End {
    fn drop(&mut self) {
        if !self.is_idle && (!self.given || reset::has_unsent(self.socket)) {
            reset::on_close(self.socket);
        }
    }
}

/// A request that is being sent.
struct Request {
    head: Bytes,
    body: Bytes,
    /// Gives the count of the body's bytes back when they are sent.
    _held: Option<Arc<Reservation>>,
}

impl Duplex {
    /// A connection on which `head`, as it goes over the wire, and `body` are to be sent.
    pub(super) fn new(inner: Stream, head: Bytes, body: Option<Body>) -> Self {
        let (body, held) = body.map_or_else(Default::default, |body| (body.bytes, Some(body.held)));
        let request = Some(Request { head, body, _held: held });
        let end = End { socket: inner.id(), given: false, is_idle: false };
        Self { end, inner: inner.take(READ_MAX), request, received: 0 }
    }

    /// Bytes of the answer that have been read below `session`, its head and framing included.
    pub(super) fn received(session: &HttpSession) -> u64 {
        session.stream().as_any().downcast_ref::<Self>().map_or(0, |duplex| duplex.received)
    }

    /// The connection below, if the whole request has been sent on it.
    pub(super) fn into_idle(mut self) -> Option<Stream> {
        self.end.is_idle = self.end.given;
        self.end.given.then(|| self.inner.into_inner())
    }

    /// Sends as much as the socket takes, head and body in one go where they fit. A failed write ends
    /// the sending and is not an error: the engine's answer, if there is one, is read all the same, and
    /// the read tells if there is none.
    fn push(&mut self, cx: &mut Context<'_>) {
        let Some(request) = &mut self.request else { return };
        let mut stream = Pin::new(self.inner.get_mut());
        while request.head.has_remaining() || request.body.has_remaining() {
            let parts = [io::IoSlice::new(&request.head), io::IoSlice::new(&request.body)];
            let Poll::Ready(Ok(sent)) = stream.as_mut().poll_write_vectored(cx, &parts) else { return };
            if sent == 0 {
                return;
            }
            let of_head = sent.min(request.head.len());
            request.head.advance(of_head);
            request.body.advance(sent - of_head);
        }
        if stream.poll_flush(cx).is_ready() {
            self.request = None;
            self.end.given = true;
        }
    }
}

impl AsyncRead for Duplex {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.push(cx);
        let before = buf.filled().len();
        self.inner.set_limit(READ_MAX);
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.received += (buf.filled().len() - before) as u64;
        read
    }
}

/// Pingora's client session never writes: the request goes out through reads.
impl AsyncWrite for Duplex {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(self.inner.get_mut()).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner.get_mut()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.inner.get_mut()).poll_shutdown(cx)
    }
}

impl std::fmt::Debug for Duplex {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Duplex")
            .field("sent", &self.request.is_none())
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
