//! One HTTP/2 stream: its request, and the answer as far as the client lets it go.
//!
//! ```text
//! Open --head--> Answering --end--> Ended
//!   |                |
//!   +-- reset by us, by the client, or by being dropped unended --> Ended
//! ```
//!
//! A write waits for two things at once: that the client opens the stream's window, and that the socket
//! takes what waits before it. Either way the h2 crate hands out *capacity*, so any of it is progress, and
//! `write_stall` without any ends the stream. The end of an answer is given only when all of it has left
//! the buffer of the stream (see `marker`): an exchange that has ended is really out.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::header::{CONNECTION, DATE, TRANSFER_ENCODING, UPGRADE};
use http::{Request, Response};
use pingora::protocols::Digest;
use pingora::protocols::http::date::get_cached_date;
use pingora::{Error, ErrorType, Result};
use pingora_http::{RequestHeader, ResponseHeader};
use tokio::time::Sleep;

use super::super::client::{Client, Cut};
use super::marker::{Passed, marker};

/// Most bytes of one write: what a stalled stream holds beside its window, and what a sibling waits for.
pub(super) const PIECE: usize = 8 * 1024;

/// How long the last of an answer may take to leave the buffer when its time is over already.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// One stream.
pub(super) struct Session {
    pub(super) request: RequestHeader,
    body: RecvStream,
    /// The request body has been read to its end, trailers or not.
    body_over: bool,
    respond: SendResponse<Bytes>,
    send: Option<SendStream<Bytes>>,
    pub(super) written: Option<Box<ResponseHeader>>,
    ended: bool,
    pub(super) read: usize,
    pub(super) sent: usize,
    pub(super) digest: Digest,
    client: Arc<Client>,
    blocked: Option<Blocked>,
}

/// A write that waits.
struct Blocked {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Session {
    pub(super) fn new(
        request: Request<RecvStream>,
        respond: SendResponse<Bytes>,
        client: Arc<Client>,
        connection: &Digest,
    ) -> Self {
        let (head, body) = request.into_parts();
        let digest = Digest { proxy_digest: Some(client.digest()), ..connection.clone() };
        Self {
            request: head.into(),
            body,
            body_over: false,
            respond,
            send: None,
            written: None,
            ended: false,
            read: 0,
            sent: 0,
            digest,
            client,
            blocked: None,
        }
    }

    pub(super) fn is_body_over(&self) -> bool {
        self.body_over || self.body.is_end_stream()
    }

    /// The next piece of the request body; `None` at its end.
    pub(super) async fn read_body(&mut self) -> Result<Option<Bytes>> {
        match self.body.data().await {
            None => {
                self.body_over = true;
                Ok(None)
            }
            Some(Ok(data)) => {
                self.read += data.len();
                let released = self.body.flow_control().release_capacity(data.len());
                released.map_err(|error| self.lost(ErrorType::ReadError, &error))?;
                Ok(Some(data))
            }
            Some(Err(error)) => Err(self.lost(ErrorType::ReadError, &error)),
        }
    }

    /// Returns when the client gives the stream up.
    pub(super) async fn left(&mut self) -> Box<Error> {
        match poll_fn(|cx| self.poll_reset(cx)).await {
            Ok(reason) => self.lost(ErrorType::H2Error, &reason),
            Err(error) => self.lost(ErrorType::H2Error, &error),
        }
    }

    fn poll_reset(&mut self, cx: &mut Context<'_>) -> Poll<Result<Reason, h2::Error>> {
        match &mut self.send {
            Some(send) => send.poll_reset(cx),
            None => self.respond.poll_reset(cx),
        }
    }

    fn lost(&self, kind: ErrorType, why: &dyn std::fmt::Display) -> Box<Error> {
        self.client.mark_gone(Instant::now());
        let mut error = Error::explain(kind, format!("the client left its stream: {why}"));
        error.as_down();
        error
    }

    /// Sends a head. Interim ones go out at once and count for nothing.
    pub(super) fn write_head(&mut self, mut head: Box<ResponseHeader>) -> Result<()> {
        if head.status.is_informational() {
            let mut interim = Response::new(());
            *interim.status_mut() = head.status;
            let sent = self.respond.send_informational(interim);
            return sent.map_err(|error| self.lost(ErrorType::WriteError, &error));
        }
        if self.written.is_some() || self.ended {
            return Ok(());
        }
        head.insert_header(DATE, get_cached_date())?;
        // Of HTTP/1.1 connections only; Pingora's loop adds the first (RFC 9113, 8.2.2).
        for name in [TRANSFER_ENCODING, CONNECTION, UPGRADE] {
            head.remove_header(&name);
        }
        head.remove_header("keep-alive");
        let answer = Response::from_parts(head.as_owned_parts(), ());
        match self.respond.send_response(answer, false) {
            Ok(send) => self.send = Some(send),
            Err(error) => return Err(self.lost(ErrorType::WriteError, &error)),
        }
        self.written = Some(head);
        Ok(())
    }

    /// Sends bytes, in pieces, each as soon as the client takes it.
    pub(super) async fn write(&mut self, mut data: Bytes) -> Result<()> {
        if self.ended {
            return Ok(());
        }
        self.sent += data.len();
        while !data.is_empty() {
            let wanted = data.len().min(PIECE);
            let piece = poll_fn(|cx| self.poll_capacity(wanted, cx)).await?;
            self.give(data.split_to(piece.min(wanted)), false)?;
        }
        Ok(())
    }

    /// Ends the answer and waits until it is out.
    pub(super) async fn end(&mut self) -> Result<()> {
        if self.ended || self.send.is_none() {
            return Ok(());
        }
        let (last, passed) = marker();
        self.give(last, true)?;
        poll_fn(|cx| self.poll_passed(&passed, cx)).await?;
        self.ended = true;
        Ok(())
    }

    /// Breaks the answer off, behind what has been written of it.
    pub(super) async fn break_off(&mut self) {
        if self.ended {
            return;
        }
        let (last, passed) = marker();
        if self.send.is_some() && self.client.cut().is_none() && self.give(last, false).is_ok() {
            let out = poll_fn(|cx| self.poll_passed(&passed, cx));
            if !matches!(tokio::time::timeout(LAST_WORDS, out).await, Ok(Ok(()))) {
                log::debug!("the client did not take all of a broken answer");
            }
        }
        self.reset(Reason::INTERNAL_ERROR);
    }

    /// Ends the stream at once; what waits to be sent is dropped.
    fn reset(&mut self, reason: Reason) {
        if !self.ended {
            self.ended = true;
            self.respond.send_reset(reason);
        }
    }

    fn give(&mut self, piece: Bytes, end: bool) -> Result<()> {
        let Some(send) = &mut self.send else {
            return Err(Error::explain(ErrorType::InternalError, "a body before its head"));
        };
        send.send_data(piece, end).map_err(|error| self.lost(ErrorType::WriteError, &error))
    }

    /// Ready with the bytes, at least one, that may be sent now.
    fn poll_capacity(&mut self, wanted: usize, cx: &mut Context<'_>) -> Poll<Result<usize>> {
        let Some(send) = &mut self.send else { return Poll::Ready(Ok(wanted)) };
        send.reserve_capacity(wanted);
        let lost = loop {
            if send.capacity() > 0 {
                let capacity = send.capacity();
                self.unblock();
                return Poll::Ready(Ok(capacity));
            }
            match send.poll_capacity(cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(error))) => break Some(error),
                Poll::Ready(None) => break None,
                Poll::Pending => return self.poll_patience(cx).map(Err),
            }
        };
        self.unblock();
        Poll::Ready(Err(match lost {
            Some(error) => self.lost(ErrorType::WriteError, &error),
            None => self.lost(ErrorType::WriteError, &"it is closed"),
        }))
    }

    /// Ready when the marker is out. What the client takes of the bytes before it cannot be seen from here,
    /// so they have `write_stall` as a whole; they are no more than the buffer of a stream.
    fn poll_passed(&mut self, passed: &Passed, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let Poll::Ready(reset) = self.poll_reset(cx) {
            return Poll::Ready(Err(match reset {
                Ok(reason) => self.lost(ErrorType::WriteError, &reason),
                Err(error) => self.lost(ErrorType::WriteError, &error),
            }));
        }
        if passed.poll(cx).is_ready() {
            // The hop to the connection's task is not the client's time.
            self.blocked = None;
            return Poll::Ready(Ok(()));
        }
        self.poll_patience(cx).map(Err)
    }

    /// Ready when the client has had its time.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Box<Error>> {
        let limits = self.client.limits();
        let now = Instant::now();
        let blocked = self.blocked.get_or_insert_with(|| Blocked {
            since: now,
            timer: Box::pin(tokio::time::sleep_until((now + limits.stall).into())),
        });
        let stalled_at = blocked.since + limits.stall;
        // The error event that tells of the total deadline is itself written after it.
        let total_at = limits.total_at.map(|total| total.max(blocked.since + LAST_WORDS));
        let at = total_at.map_or(stalled_at, |total| total.min(stalled_at));
        blocked.timer.as_mut().reset(at.into());
        ready!(blocked.timer.as_mut().poll(cx));
        self.unblock();
        let is_total = total_at.is_some_and(|total| total < stalled_at);
        self.client.set_cut(if is_total { Cut::Total } else { Cut::Stalled });
        self.reset(Reason::CANCEL);
        let mut error = Error::explain(ErrorType::WriteTimedout, "the client takes nothing");
        error.as_down();
        Poll::Ready(error)
    }

    fn unblock(&mut self) {
        if let Some(blocked) = self.blocked.take() {
            self.client.add_blocked(blocked.since.elapsed());
        }
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        self.unblock();
        self.reset(Reason::INTERNAL_ERROR);
    }
}
