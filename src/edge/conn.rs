//! One client connection: knows whether its client takes what we write.
//!
//! The hard idea: a write that has not finished is no proof of a stalled client. The kernel reports a
//! socket writable only when a third of its buffer is free, so a reader of 1 KB/s blocks one write for
//! a minute and is healthy all the while. Progress is what the client's side has *acknowledged*
//! (`tcpi_bytes_acked` of `TCP_INFO`, tcp(7)); while a write is blocked it is looked at a few times per
//! `write_stall`, and only a span with no acknowledged byte cuts the client.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Instant;

use async_trait::async_trait;
use bytes::BytesMut;
use pingora::protocols::l4::ext::set_snd_buf;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::tls::SslDigest;
use pingora::protocols::{
    GetProxyDigest, GetSocketDigest, GetTimingDigest, Peek, Shutdown, SocketDigest, Ssl, Stream,
    TimingDigest, UniqueID, UniqueIDType,
};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::Sleep;

use super::client::{Client, Cut};

/// Looks per `write_stall`: a client is cut after it, and at most a twentieth later.
const LOOKS: u32 = 20;

/// A client connection that Pingora reads and writes through.
pub(super) struct Conn {
    inner: Stream,
    client: Arc<Client>,
    digest: Arc<ProxyDigest>,
    socket: Option<Arc<SocketDigest>>,
    blocked: Option<Blocked>,
    /// Bytes the socket's send buffer was last sized for.
    window: Option<usize>,
    /// Something was written since the last flush.
    unflushed: bool,
    /// Bytes that were read to look at them, and are to be read again.
    unread: BytesMut,
}

/// A write or flush that waits for the client.
struct Blocked {
    /// A write waits, so a flush that has nothing to do says nothing: HTTP/2 asks for both in turn.
    is_write: bool,
    since: Instant,
    acked: Option<u64>,
    progress: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Conn {
    pub(super) fn new(inner: Stream) -> Self {
        let client = Arc::new(Client::new());
        let (digest, socket) = (client.digest(), inner.get_socket_digest());
        let unread = BytesMut::new();
        Self { inner, client, digest, socket, blocked: None, window: None, unflushed: false, unread }
    }

    /// What its exchanges and it tell each other.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
    }

    /// Gives `bytes` to the next reads, before anything that comes from the client.
    pub(super) fn unread(&mut self, bytes: BytesMut) {
        self.unread = bytes;
    }

    /// Sizes the socket's buffer by the window of the exchange, when it has changed.
    fn fit(&mut self) {
        let wanted = self.client.limits().window;
        if wanted.is_some() && wanted != self.window {
            self.window = wanted;
            if let Some(Err(error)) = wanted.map(|window| set_snd_buf(self.inner.id(), window)) {
                log::debug!("the send buffer could not be sized: {error}");
            }
        }
    }

    fn acked(&self) -> Option<u64> {
        self.socket.as_ref()?.tcp_info().map(|info| info.tcpi_bytes_acked)
    }

    /// Passes a write's result through, and ends one that the client has let stall.
    fn watch<T>(
        &mut self,
        is_write: bool,
        poll: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        match poll {
            Poll::Ready(result) => {
                if let Some(blocked) = self.blocked.take_if(|blocked| is_write || !blocked.is_write) {
                    self.client.add_blocked(blocked.since.elapsed());
                }
                if result.is_err() {
                    self.client.mark_gone(Instant::now());
                }
                Poll::Ready(result)
            }
            Poll::Pending => match self.poll_stall(is_write, cx) {
                Poll::Pending => Poll::Pending,
                Poll::Ready(cut) => {
                    if let Some(blocked) = self.blocked.take() {
                        self.client.add_blocked(blocked.since.elapsed());
                    }
                    self.client.set_cut(cut);
                    Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
                }
            },
        }
    }

    fn poll_stall(&mut self, is_write: bool, cx: &mut Context<'_>) -> Poll<Cut> {
        let limits = self.client.limits();
        let now = Instant::now();
        let acked = self.acked();
        let blocked = self.blocked.get_or_insert_with(|| Blocked {
            is_write,
            since: now,
            acked,
            progress: now,
            timer: Box::pin(tokio::time::sleep_until(now.into())),
        });
        blocked.is_write |= is_write;
        if acked > blocked.acked {
            blocked.acked = acked;
            blocked.progress = now;
        }
        loop {
            let now = Instant::now();
            if limits.total_at.is_some_and(|at| now >= at) {
                return Poll::Ready(Cut::Total);
            }
            let stalled_at = blocked.progress + limits.stall;
            if now >= stalled_at {
                return Poll::Ready(Cut::Stalled);
            }
            let look = (now + limits.stall / LOOKS).min(stalled_at);
            let next = limits.total_at.map_or(look, |at| look.min(at));
            blocked.timer.as_mut().reset(next.into());
            if blocked.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}

impl AsyncRead for Conn {
    /// Pingora reads the client while it waits for the engine, and it does not flush a body of known
    /// length before its end: what has been written so far goes out now.
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.unread.is_empty() {
            let count = self.unread.len().min(buf.remaining());
            buf.put_slice(&self.unread.split_to(count));
            return Poll::Ready(Ok(()));
        }
        if self.unflushed
            && let Poll::Ready(Err(error)) = self.as_mut().poll_flush(cx)
        {
            return Poll::Ready(Err(error));
        }
        let before = buf.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(cx, buf);
        let ended = match &read {
            Poll::Ready(Ok(())) => buf.filled().len() == before && buf.remaining() > 0,
            Poll::Ready(Err(_)) => true,
            Poll::Pending => false,
        };
        if ended {
            self.client.mark_gone(Instant::now());
        }
        read
    }
}

impl AsyncWrite for Conn {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.fit();
        let write = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.unflushed = true;
        self.watch(true, write, cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.fit();
        let write = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.unflushed = true;
        self.watch(true, write, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flush = Pin::new(&mut self.inner).poll_flush(cx);
        self.unflushed = !matches!(flush, Poll::Ready(Ok(())));
        self.watch(false, flush, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

impl std::fmt::Debug for Conn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Conn").field("client", &self.client).finish_non_exhaustive()
    }
}

#[async_trait]
impl Shutdown for Conn {
    async fn shutdown(&mut self) {
        self.inner.shutdown().await;
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
