//! A write that waits for the client.
//!
//! The hard idea: a write that has not finished is no proof of a stalled client. The kernel reports a
//! socket writable only when a third of its buffer is free, so a reader of 1 KB/s blocks one write for
//! a minute and is healthy all the while. Progress is what the client's side has *acknowledged*
//! (`tcpi_bytes_acked` of `TCP_INFO`, tcp(7)); while a write is blocked it is looked at a few times per
//! `write_stall`, and only a span with no acknowledged byte cuts the client.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Instant;

use tokio::time::Sleep;

use super::client::{Cut, Limits};

/// Looks per `write_stall`: a client is cut after it, and at most a twentieth later.
const LOOKS: u32 = 20;

/// A write or a flush that waits for the client.
pub(super) struct Blocked {
    /// It is a write.
    pub(super) is_write: bool,
    /// When it began to.
    pub(super) since: Instant,
    acked: Option<u64>,
    progress: Instant,
    timer: Pin<Box<Sleep>>,
}

impl Blocked {
    /// A write that has just been blocked, with so many bytes acknowledged.
    pub(super) fn new(acked: Option<u64>) -> Self {
        let now = Instant::now();
        let timer = Box::pin(tokio::time::sleep_until(now.into()));
        Self { is_write: false, since: now, acked, progress: now, timer }
    }

    /// Waits for a reason to give the write up; `acked` is the count of acknowledged bytes now.
    pub(super) fn poll(&mut self, acked: Option<u64>, limits: Limits, cx: &mut Context<'_>) -> Poll<Cut> {
        if acked > self.acked {
            self.acked = acked;
            self.progress = Instant::now();
        }
        loop {
            let now = Instant::now();
            if limits.total_at.is_some_and(|at| now >= at) {
                return Poll::Ready(Cut::Total);
            }
            let stalled_at = self.progress + limits.stall;
            if now >= stalled_at {
                return Poll::Ready(Cut::Stalled);
            }
            let look = (now + limits.stall / LOOKS).min(stalled_at);
            let next = limits.total_at.map_or(look, |at| look.min(at));
            self.timer.as_mut().reset(next.into());
            if self.timer.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
        }
    }
}
