//! Facts of one attempt that its session and the proxy's filters tell each other.
//!
//! Both run in one task, one after the other; the atomics only make the sharing legal. Times are
//! microseconds since the exchange began, with 0 for "not yet".

use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;

use crate::cluster::{Progress, Seen};
use crate::failure::Failure;
use crate::outcome::Phase;

/// Shared facts of one attempt.
#[derive(Debug)]
pub struct Link {
    epoch: Instant,
    phase: AtomicU8,
    sent: AtomicU64,
    last_data: AtomicU64,
    last_out: AtomicU64,
    last_bytes: AtomicU64,
    paused: AtomicBool,
    closed: AtomicU64,
    resent: AtomicU8,
    body_follows: AtomicBool,
    open_ended: AtomicBool,
    may_end: AtomicBool,
    asker: AtomicWaker,
    failure: OnceLock<Failure>,
    cause: OnceLock<String>,
}

impl Link {
    /// A link for an attempt of the exchange that began at `epoch`.
    pub fn new(epoch: Instant) -> Self {
        Self {
            epoch,
            phase: AtomicU8::new(Phase::Connect as u8),
            sent: AtomicU64::new(0),
            last_data: AtomicU64::new(0),
            last_out: AtomicU64::new(0),
            last_bytes: AtomicU64::new(0),
            paused: AtomicBool::new(false),
            closed: AtomicU64::new(0),
            resent: AtomicU8::new(0),
            body_follows: AtomicBool::new(false),
            open_ended: AtomicBool::new(false),
            may_end: AtomicBool::new(false),
            asker: AtomicWaker::new(),
            failure: OnceLock::new(),
            cause: OnceLock::new(),
        }
    }

    /// Where the attempt is.
    pub fn phase(&self) -> Phase {
        let phase = self.phase.load(Ordering::Relaxed);
        Phase::ALL.into_iter().find(|known| *known as u8 == phase).unwrap_or(Phase::Connect)
    }

    pub(super) fn enter(&self, phase: Phase) {
        self.phase.store(phase as u8, Ordering::Relaxed);
    }

    /// When the request began to be sent.
    pub fn sent(&self) -> Option<Instant> {
        self.read(&self.sent)
    }

    /// The first time stands: a resent request has no new budget.
    pub(super) fn mark_sent(&self, now: Instant) {
        if self.sent.load(Ordering::Relaxed) == 0 {
            self.write(&self.sent, now);
        }
    }

    /// When the last data event went by. Set by the filter that reads events.
    pub fn last_data(&self) -> Option<Instant> {
        self.read(&self.last_data)
    }

    /// When the client was last given something. Set by the filter, which may hold a chunk back.
    pub fn last_out(&self) -> Option<Instant> {
        self.read(&self.last_out)
    }

    /// Notes a chunk that went through the filter: whether it held a data event, and whether the client
    /// is given something for it.
    pub fn mark_chunk(&self, now: Instant, data: bool, out: bool) {
        let now = self.since_epoch(now);
        if data {
            if self.last_data.load(Ordering::Relaxed) == 0 {
                self.enter(Phase::Stream);
            }
            self.last_data.store(now, Ordering::Relaxed);
        }
        if out {
            self.last_out.store(now, Ordering::Relaxed);
        }
    }

    /// Notes bytes of an answer that is no event stream.
    pub fn mark_bytes(&self, now: Instant) {
        self.write(&self.last_bytes, now);
    }

    /// When the backend last sent something of an answer, events or other bytes.
    pub fn progress(&self) -> Option<Instant> {
        self.last_data().max(self.read(&self.last_bytes))
    }

    /// Nobody reads, because the client takes its time; or somebody does again.
    pub(super) fn pause(&self, paused: bool) {
        self.paused.store(paused, Ordering::Relaxed);
    }

    /// When the session let go of its connection.
    pub fn closed(&self) -> Option<Instant> {
        self.read(&self.closed)
    }

    /// The first time stands.
    pub(super) fn mark_closed(&self, now: Instant) {
        if self.closed.load(Ordering::Relaxed) == 0 {
            self.write(&self.closed, now);
        }
    }

    /// Whether a pooled connection turned out dead and the request went out on a fresh one.
    pub fn was_resent(&self) -> bool {
        self.resent.load(Ordering::Relaxed) > 0
    }

    pub(super) fn mark_resent(&self) {
        self.resent.fetch_add(1, Ordering::Relaxed);
    }

    /// Whether the head that is given out has its first event right behind it.
    pub fn body_follows(&self) -> bool {
        self.body_follows.load(Ordering::Relaxed)
    }

    pub(super) fn mark_body_follows(&self) {
        self.body_follows.store(true, Ordering::Relaxed);
    }

    /// Whether the answer has no end but that of its connection, which a cut has as well.
    pub fn is_open_ended(&self) -> bool {
        self.open_ended.load(Ordering::Relaxed)
    }

    pub(super) fn mark_open_ended(&self) {
        self.open_ended.store(true, Ordering::Relaxed);
    }

    /// The word of those who have read the answer, where its end is in doubt (`ENDED`): it may end there, or this is how
    /// it failed.
    pub fn give_word(&self, word: Result<(), Failure>) {
        match word {
            Ok(()) => self.may_end.store(true, Ordering::Relaxed),
            Err(failure) => self.fail(failure),
        }
        self.asker.wake();
    }

    /// Ready with that word once it has been given.
    pub(super) fn poll_word(&self, cx: &Context<'_>) -> Poll<Result<(), Failure>> {
        self.asker.register(cx.waker());
        match self.failure() {
            Some(failure) => Poll::Ready(Err(failure)),
            None if self.may_end.load(Ordering::Relaxed) => Poll::Ready(Ok(())),
            None => Poll::Pending,
        }
    }

    /// How the attempt failed, once it has.
    pub fn failure(&self) -> Option<Failure> {
        self.failure.get().copied()
    }

    /// Notes how the attempt failed. The first failure stands.
    pub fn fail(&self, failure: Failure) {
        self.failure.get_or_init(|| failure);
    }

    /// What the system or the TLS library says of the failure, for the log; `None` where the failure says it all.
    pub fn cause(&self) -> Option<&str> {
        self.cause.get().map(String::as_str)
    }

    /// Notes what is behind the failure. The first cause stands.
    pub(super) fn explain(&self, cause: impl Into<String>) {
        self.cause.get_or_init(|| cause.into());
    }

    fn read(&self, cell: &AtomicU64) -> Option<Instant> {
        match cell.load(Ordering::Relaxed) {
            0 => None,
            micros => Some(self.epoch + Duration::from_micros(micros)),
        }
    }

    fn write(&self, cell: &AtomicU64, now: Instant) {
        cell.store(self.since_epoch(now), Ordering::Relaxed);
    }

    fn since_epoch(&self, now: Instant) -> u64 {
        let micros = now.saturating_duration_since(self.epoch).as_micros();
        u64::try_from(micros).unwrap_or(u64::MAX).max(1)
    }
}

impl Progress for Link {
    fn seen(&self) -> Seen {
        let over = self.closed().is_some() || self.failure().is_some();
        Seen {
            sent: self.sent(),
            last_data: self.progress(),
            reading: !over && !self.paused.load(Ordering::Relaxed),
        }
    }
}
