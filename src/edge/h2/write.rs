//! Writing an answer, as far as the client lets it go.
//!
//! A write waits for two things at once: that the client opens the stream's window, and that the socket
//! takes what waits before it. Either way the h2 crate hands out *capacity*, so any of it is progress, and
//! `write_stall` without any ends the stream. The end of an answer is given only when all of it has left
//! the buffer of the stream (see `marker`): an exchange that has ended is really out.

use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::Bytes;
use h2::Reason;
use pingora::{Error, ErrorType, Result};
use tokio::time::Sleep;

use super::super::client::Cut;
use super::marker::{Passed, marker};
use super::stream::Session;

/// Most bytes of one write: what a stalled stream holds beside its window, and what a sibling waits for.
pub(super) const PIECE: usize = 8 * 1024;

/// How long the last of an answer may take to leave the buffer when its time is over already.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// A write that waits.
pub(super) struct Blocked {
    since: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Session {
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
    pub(super) fn reset(&mut self, reason: Reason) {
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
        let is_out = passed.poll(cx).is_ready();
        // A client that was still sending may well reset a stream whose whole answer it has (RFC 9113, 8.1). Behind
        // a request that is over, a reset is seen only where it came before the end was out.
        let is_had = is_out && !self.is_body_over();
        if let (false, Poll::Ready(reset)) = (is_had, self.poll_reset(cx)) {
            return Poll::Ready(Err(match reset {
                Ok(reason) => self.lost(ErrorType::WriteError, &reason),
                Err(error) => self.lost(ErrorType::WriteError, &error),
            }));
        }
        if is_out {
            // The hop to the connection's task is not the client's time.
            self.blocked = None;
            self.client.set_blocked(None);
            return Poll::Ready(Ok(()));
        }
        self.poll_patience(cx).map(Err)
    }

    /// Ready when the client has had its time.
    fn poll_patience(&mut self, cx: &mut Context<'_>) -> Poll<Box<Error>> {
        let limits = self.client.limits();
        let now = Instant::now();
        let blocked = self.blocked.get_or_insert_with(|| {
            self.client.set_blocked(Some(now));
            Blocked { since: now, timer: Box::pin(tokio::time::sleep_until((now + limits.stall).into())) }
        });
        if self.client.poll_cut_off(cx).is_ready() {
            return Poll::Ready(self.cut(Cut::Memory));
        }
        let stalled_at = blocked.since + limits.stall;
        // The error event that tells of the total deadline is itself written after it.
        let total_at = limits.total_at.map(|total| total.max(blocked.since + LAST_WORDS));
        let at = total_at.map_or(stalled_at, |total| total.min(stalled_at));
        blocked.timer.as_mut().reset(at.into());
        ready!(blocked.timer.as_mut().poll(cx));
        let is_total = total_at.is_some_and(|total| total < stalled_at);
        Poll::Ready(self.cut(if is_total { Cut::Total } else { Cut::Stalled }))
    }

    fn cut(&mut self, cut: Cut) -> Box<Error> {
        self.unblock();
        self.client.set_cut(cut);
        self.reset(Reason::CANCEL);
        let mut error = Error::explain(ErrorType::WriteTimedout, "the client takes nothing");
        error.as_down();
        error
    }

    pub(super) fn unblock(&mut self) {
        if let Some(blocked) = self.blocked.take() {
            self.client.add_blocked(blocked.since.elapsed());
            self.client.set_blocked(None);
        }
    }
}
