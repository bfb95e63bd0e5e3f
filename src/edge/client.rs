//! What a client connection and the exchanges on it tell each other.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pingora::protocols::raw_connect::ProxyDigest;

/// `write_stall` of answers that belong to no route (errors of the head, for instance).
const DEFAULT_STALL: Duration = Duration::from_secs(30);

/// Why a blocked write was given up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cut {
    /// No byte was acknowledged for `write_stall`.
    Stalled,
    /// The exchange's total deadline passed.
    Total,
}

/// What a connection and the exchanges on it tell each other.
#[derive(Debug)]
pub struct Client {
    limits: Mutex<Limits>,
    gone: OnceLock<Instant>,
    cut: AtomicU8,
    blocked_micros: AtomicU64,
    /// The answer under way is not whole, and only the end of the connection will tell its end.
    open_ended: AtomicBool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Limits {
    pub(super) stall: Duration,
    pub(super) total_at: Option<Instant>,
    /// Size asked for the socket's send buffer; `None` = as it is.
    pub(super) window: Option<usize>,
}

const IDLE: Limits = Limits { stall: DEFAULT_STALL, total_at: None, window: None };

impl Client {
    pub(super) fn new() -> Self {
        Self {
            limits: Mutex::new(IDLE),
            gone: OnceLock::new(),
            cut: AtomicU8::new(0),
            blocked_micros: AtomicU64::new(0),
            open_ended: AtomicBool::new(false),
        }
    }

    /// The client of a Pingora digest, if its connection is one of ours.
    pub fn of(digest: Option<&ProxyDigest>) -> Option<&Arc<Self>> {
        digest?.user_data.as_ref()?.downcast_ref()
    }

    /// Sets the limits of the writes of one exchange: how long the client may acknowledge nothing, when
    /// the exchange must be over, and how many bytes the socket may hold.
    pub fn limit(&self, stall: Duration, total_at: Instant, window: usize) {
        *self.limits.lock() = Limits { stall, total_at: Some(total_at), window: Some(window) };
    }

    /// Back to the limits of a connection without an exchange.
    pub fn unlimit(&self) {
        *self.limits.lock() = IDLE;
    }

    /// An answer begins whose end is the end of the connection. Until it is `whole`, closing the
    /// connection resets it.
    pub fn ends_with_connection(&self) {
        self.open_ended.store(true, Ordering::Relaxed);
    }

    /// The answer is whole.
    pub fn whole(&self) {
        self.open_ended.store(false, Ordering::Relaxed);
    }

    /// When its end or reset was seen.
    pub fn gone(&self) -> Option<Instant> {
        self.gone.get().copied()
    }

    /// Why a write to it was given up, if one was.
    pub fn cut(&self) -> Option<Cut> {
        match self.cut.load(Ordering::Relaxed) {
            1 => Some(Cut::Stalled),
            2 => Some(Cut::Total),
            _ => None,
        }
    }

    /// Takes the time that writes have been blocked on the client since the last call.
    pub fn take_blocked(&self) -> Duration {
        Duration::from_micros(self.blocked_micros.swap(0, Ordering::Relaxed))
    }

    pub(super) fn is_cut_short(&self) -> bool {
        self.open_ended.load(Ordering::Relaxed)
    }

    pub(super) fn set_cut(&self, cut: Cut) {
        self.cut.store(if cut == Cut::Stalled { 1 } else { 2 }, Ordering::Relaxed);
    }

    pub(super) fn mark_gone(&self, now: Instant) {
        self.gone.get_or_init(|| now);
    }

    pub(super) fn limits(&self) -> Limits {
        *self.limits.lock()
    }

    /// Adds time that a write was blocked.
    pub(super) fn add_blocked(&self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.blocked_micros.fetch_add(micros, Ordering::Relaxed);
    }
}
