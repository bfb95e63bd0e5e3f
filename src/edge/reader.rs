//! Reading a request head: whole, bounded in bytes and in time.
//!
//! Pingora times each read by itself, so a byte now and then holds a connection for ever, and it keeps
//! buffers and a large future while a connection idles. Here one deadline covers the whole head
//! (HAProxy's `timeout http-request`), and an idle connection holds nothing but its socket: bytes are
//! read into a scratch buffer of the thread and kept only once they have come.

use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::task::{Poll, ready};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use pingora::server::ShutdownWatch;
use tokio::io::{AsyncRead, ReadBuf};
use tokio::time::Instant;

use super::head::{self, Framing, Limits};
use super::scratch;
use crate::memory::{Level, Memory};
use crate::rejection::Rejection;

/// How long a connection that was accepted but has said nothing may still bring its request when the
/// gateway stops listening.
pub(super) const LAST_CALL: Duration = Duration::from_secs(1);

/// The same for a connection between two requests: a request that is here already, but not seen yet, is served.
const LAST_LOOK: Duration = Duration::from_millis(100);

/// What came of waiting for a head.
pub(super) enum Head {
    /// A head that may be acted on.
    Whole {
        /// Its bytes, and what came with them.
        bytes: BytesMut,
        /// Where it ends.
        end: usize,
        /// How its body ends.
        framing: Framing,
    },
    /// A head that is refused.
    Bad(Rejection),
    /// The client said nothing more, or it is time to go.
    Closed,
}

/// How long a connection may take.
#[derive(Debug, Clone, Copy)]
pub(super) struct Patience {
    /// For the whole head, from its first byte; for the first one, from the connection's beginning.
    pub(super) head: Duration,
    /// Between two requests.
    pub(super) idle: Duration,
    /// No request has been read on this connection yet.
    pub(super) is_first: bool,
}

/// Waits for a head and reads it.
pub(super) async fn read(
    conn: &mut (impl AsyncRead + Unpin),
    limits: &Limits,
    patience: Patience,
    memory: &Memory,
    shutdown: &mut ShutdownWatch,
) -> Head {
    let mut bytes = BytesMut::new();
    let mut scanned = 0;
    let (mut held, mut level) = (memory.head(), Level::Calm);
    let mut timer = pin!(tokio::time::sleep(if patience.is_first { patience.head } else { patience.idle }));
    // Blank lines before a request are bytes of it: whoever sends one now and then has no longer than others.
    let mut has_begun = patience.is_first;
    let mut leaving = *shutdown.borrow();
    let last = if patience.is_first { LAST_CALL } else { LAST_LOOK };
    if leaving && !patience.is_first {
        timer.as_mut().reset(Instant::now() + last);
    }
    loop {
        let was_empty = bytes.is_empty();
        let read = tokio::select! {
            biased;
            read = more(conn, &mut bytes) => read,
            () = &mut timer => return if was_empty { Head::Closed } else { Head::Bad(Rejection::HeadTimeout) },
            changed = shutdown.changed(), if !leaving => {
                leaving = changed.is_err() || *shutdown.borrow();
                if leaving && was_empty {
                    timer.as_mut().reset(Instant::now() + last);
                }
                continue;
            }
            now = memory.above(level) => {
                level = now;
                if level >= Level::Refuse {
                    return if was_empty { Head::Closed } else { Head::Bad(Rejection::Overloaded) };
                }
                let whole = if has_begun { patience.head } else { patience.idle };
                let hasty = Instant::now() + memory.shortened(whole);
                if hasty < timer.deadline() {
                    timer.as_mut().reset(hasty);
                }
                continue;
            }
        };
        if !read.is_ok_and(|count| count > 0) {
            return Head::Closed;
        }
        if let Some(head) = judge(&mut bytes, &mut scanned, limits) {
            return head;
        }
        // Only for a head in pieces: a timer that is the next one due costs a call of the kernel.
        if !has_begun {
            timer.as_mut().reset(Instant::now() + memory.shortened(patience.head));
        }
        has_begun = true;
        // Whoever sends without a pause is not asked below.
        if !held.fit(bytes.len()) {
            return Head::Bad(Rejection::Overloaded);
        }
    }
}

/// Looks at what has come: a whole head, a bad one, or not enough to tell.
pub(super) fn judge(bytes: &mut BytesMut, scanned: &mut usize, limits: &Limits) -> Option<Head> {
    // A robust server skips empty lines before a request (RFC 9112, 2.2).
    while *scanned == 0 && bytes.starts_with(b"\r\n") {
        bytes.advance(2);
    }
    // A method begins with a letter; TLS and other binary protocols would else be waited for in vain.
    if *scanned == 0
        && bytes.first().is_some_and(|first| !first.is_ascii_alphabetic())
        && bytes[..] != b"\r"[..]
    {
        return Some(Head::Bad(Rejection::invalid("this is no HTTP/1.1 request", None)));
    }
    match head::end(bytes, *scanned) {
        Err(rejection) => Some(Head::Bad(rejection)),
        Ok(Some(end)) if end > limits.header_bytes => Some(Head::Bad(head::too_large(bytes, limits))),
        Ok(Some(end)) => Some(match head::check(&bytes[..end], limits) {
            Ok(framing) => Head::Whole { bytes: std::mem::take(bytes), end, framing },
            Err(rejection) => Head::Bad(rejection),
        }),
        Ok(None) if bytes.len() > limits.header_bytes => Some(Head::Bad(head::too_large(bytes, limits))),
        Ok(None) => {
            // Half an empty line is looked at once more: it may be one of those that are skipped.
            *scanned = if bytes[..] == b"\r"[..] { 0 } else { bytes.len() };
            None
        }
    }
}

/// Reads what there is. Nothing is lost when the future is dropped.
pub(super) async fn more(conn: &mut (impl AsyncRead + Unpin), bytes: &mut BytesMut) -> io::Result<usize> {
    poll_fn(|cx| {
        scratch::with(|buffer| {
            let mut read = ReadBuf::new(buffer);
            ready!(Pin::new(&mut *conn).poll_read(cx, &mut read))?;
            bytes.extend_from_slice(read.filled());
            Poll::Ready(Ok(read.filled().len()))
        })
    })
    .await
}
