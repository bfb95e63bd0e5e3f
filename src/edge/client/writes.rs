//! Writes that wait for their client: since when, for how long in all, and why one was given up.

use std::sync::atomic::Ordering;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use super::Client;

/// Why a blocked write was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// No byte was acknowledged for `write_stall`.
    Stalled,
    /// The exchange's total deadline passed.
    Total,
    /// What it has us hold is wanted for others.
    Memory,
}

impl Client {
    /// Why a write to it was given up, if one was.
    pub fn cut(&self) -> Option<Cut> {
        match self.cut.load(Ordering::Relaxed) {
            1 => Some(Cut::Stalled),
            2 => Some(Cut::Total),
            3 => Some(Cut::Memory),
            _ => self.connection()?.cut(),
        }
    }

    /// Takes the time that writes have been blocked on the client since the last call.
    pub fn take_blocked(&self) -> Duration {
        Duration::from_micros(self.blocked_micros.swap(0, Ordering::Relaxed))
    }

    pub(in crate::edge) fn set_cut(&self, cut: Cut) {
        let number = match cut {
            Cut::Stalled => 1,
            Cut::Total => 2,
            Cut::Memory => 3,
        };
        self.cut.store(number, Ordering::Relaxed);
    }

    /// Since when a write waits for it, if one does.
    pub fn blocked_since(&self) -> Option<Instant> {
        *self.blocked_since.lock()
    }

    pub(in crate::edge) fn set_blocked(&self, since: Option<Instant>) {
        *self.blocked_since.lock() = since;
    }

    /// Gives up the write that waits for it, or the next one of this exchange that does.
    pub fn cut_off(&self) {
        self.cut_off.store(true, Ordering::Release);
        self.writer.wake();
    }

    /// Whether it has been cut off.
    pub fn is_cut_off(&self) -> bool {
        self.cut_off.load(Ordering::Relaxed)
    }

    /// Ready when the write that waits is to be given up.
    pub(in crate::edge) fn poll_cut_off(&self, cx: &Context<'_>) -> Poll<()> {
        self.writer.register(cx.waker());
        if self.cut_off.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
    }

    /// Adds time that a write was blocked.
    pub(in crate::edge) fn add_blocked(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.blocked_micros.fetch_add(micros, Ordering::Relaxed);
    }
}
