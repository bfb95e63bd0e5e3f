//! One client connection, as Pingora reads and writes it: knows whether its client takes what we write
//! (see `blocked`), where its requests end (see `inbound`), and how it must be closed.

mod pingora_impl;

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Instant;

use pingora::protocols::l4::ext::set_snd_buf;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora::protocols::{SocketDigest, Stream};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::blocked::Blocked;
use super::chunks::Malformed;
use super::client::{Client, Cut};
use super::door::Entry;
use super::inbound::Inbound;
use super::quiet::Quiet;
use super::scratch;
use crate::reset;

/// A client connection that Pingora reads and writes through.
pub(super) struct Conn {
    inner: Stream,
    client: Arc<Client>,
    digest: Arc<ProxyDigest>,
    socket: Option<Arc<SocketDigest>>,
    /// Its bytes, request by request.
    pub(super) inbound: Inbound,
    /// Whether its end need be asked for. `None` over TLS, where a write may take over the waker of a read.
    quiet: Option<Quiet>,
    blocked: Option<Blocked>,
    /// Bytes the socket's send buffer was last sized for.
    window: Option<usize>,
    /// Something was written since the last flush.
    unflushed: bool,
}

impl Conn {
    pub(super) fn new(inner: Stream, entry: Entry) -> Self {
        let client = Arc::new(Client::new(entry));
        let (digest, socket) = (client.digest(), inner.get_socket_digest());
        let quiet = inner.get_ssl_digest().is_none().then(Quiet::default);
        Self {
            inner,
            client,
            digest,
            socket,
            inbound: Inbound::new(),
            quiet,
            blocked: None,
            window: None,
            unflushed: false,
        }
    }

    /// What its exchanges and it tell each other.
    pub(super) fn client(&self) -> &Arc<Client> {
        &self.client
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

    /// Passes a write's result through, and ends one that the client has let stall. A flush with nothing to
    /// do says nothing of a write that waits: HTTP/2 asks for both in turn.
    fn watch<T>(
        &mut self,
        is_write: bool,
        poll: Poll<io::Result<T>>,
        cx: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if poll.is_pending() {
            let acked = self.acked();
            let blocked = self.blocked.get_or_insert_with(|| {
                let blocked = Blocked::new(acked);
                self.client.set_blocked(Some(blocked.since));
                blocked
            });
            blocked.is_write |= is_write;
            let cut_off = self.client.poll_cut_off(cx).map(|()| Cut::Memory);
            let cut =
                if cut_off.is_ready() { cut_off } else { blocked.poll(acked, self.client.limits(), cx) };
            let Poll::Ready(cut) = cut else { return Poll::Pending };
            self.unblock(true);
            self.client.set_cut(cut);
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        self.unblock(is_write);
        if matches!(poll, Poll::Ready(Err(_))) {
            self.client.mark_gone(Instant::now());
        }
        poll
    }

    /// Whether its end is a reset.
    fn is_reset(&self) -> bool {
        self.client.is_cut_short() || self.client.cut().is_some()
    }

    fn unblock(&mut self, is_write: bool) {
        if let Some(blocked) = self.blocked.take_if(|blocked| is_write || !blocked.is_write) {
            self.client.add_blocked(blocked.since.elapsed());
            self.client.set_blocked(None);
        }
    }

    /// Reads while the request is answered: what comes is kept for later, and only its end is told. An end
    /// that may be no departure waits behind the requests that came before it: Pingora would close the
    /// connection behind the answer that runs.
    fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        // While the engine is waited for: its first event need not wait for a call of the kernel.
        if self.window.is_none() {
            self.fit();
        }
        let Self { inner, client, inbound, quiet, .. } = self;
        let mut read_on = |cx: &mut Context<'_>| {
            scratch::with(|bytes| {
                loop {
                    let mut read = ReadBuf::new(bytes);
                    ready!(Pin::new(&mut *inner).poll_read(cx, &mut read))?;
                    if read.filled().is_empty() {
                        let waits = client.may_half_close() && inbound.has_ahead();
                        return if waits { Poll::Pending } else { Poll::Ready(Ok(())) };
                    }
                    inbound.keep(read.filled());
                }
            })
        };
        match quiet {
            Some(quiet) => quiet.poll(cx, read_on),
            None => read_on(cx),
        }
    }

    /// Reads for the current request and for nothing behind it.
    fn poll_request(&mut self, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        if self.inbound.has_ahead() {
            buf.put_slice(&self.inbound.take_ahead(buf.remaining()).map_err(malformed)?);
            return Poll::Ready(Ok(()));
        }
        if let Some(quiet) = &mut self.quiet {
            quiet.disturb();
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut self.inner).poll_read(cx, buf))?;
        let used = self.inbound.split(&buf.filled()[before..]).map_err(malformed)?;
        buf.set_filled(before + used);
        Poll::Ready(Ok(()))
    }
}

fn malformed(_: Malformed) -> io::Error {
    io::ErrorKind::InvalidData.into()
}

impl Drop for Conn {
    /// Where only the end of the connection tells the end of an answer, one that broke off must not end
    /// like one that is whole: the client gets a reset. So does one that was given up since it takes nothing: the
    /// kernel would go on holding what was written to it. What is left of a whole answer it may offer for as long
    /// as a write may wait.
    fn drop(&mut self) {
        if self.is_reset() {
            reset::on_close(self.inner.id());
        } else {
            reset::soon(self.inner.id(), self.client.limits().stall);
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
        if self.unflushed
            && let Poll::Ready(Err(error)) = self.as_mut().poll_flush(cx)
        {
            return Poll::Ready(Err(error));
        }
        let before = buf.filled().len();
        let read = if self.inbound.is_over() { self.poll_end(cx) } else { self.poll_request(cx, buf) };
        let ended = match &read {
            Poll::Ready(Ok(())) => buf.filled().len() == before && buf.remaining() > 0,
            Poll::Ready(Err(error)) => error.kind() != io::ErrorKind::InvalidData,
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

    /// Pingora flushes a head by itself. Where its body follows at once, that is one write too many; should
    /// none follow after all, the next read flushes.
    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.unflushed && self.client.may_wait() {
            return Poll::Ready(Ok(()));
        }
        let flush = Pin::new(&mut self.inner).poll_flush(cx);
        self.unflushed = !matches!(flush, Poll::Ready(Ok(())));
        self.watch(false, flush, cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
