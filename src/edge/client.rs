//! What a client connection and the exchanges on it tell each other.
//!
//! On HTTP/1.1 the connection and its exchange share one [`Client`]. On HTTP/2 each stream has one of
//! its own, *carried* by that of the connection: what ends the connection ends every stream, and the
//! connection is as patient with its socket as the most patient stream on it.

mod carrier;
mod writes;

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora_http::ResponseHeader;

pub use writes::Cut;

use super::door::Entry;
use crate::admission::Connected;

/// `write_stall` of answers that belong to no route (errors of the head, for instance).
const DEFAULT_STALL: Duration = Duration::from_secs(30);

/// What a connection and the exchanges on it tell each other.
#[derive(Debug)]
pub struct Client {
    entry: Entry,
    limits: Mutex<Limits>,
    gone: OnceLock<Instant>,
    cut: AtomicU8,
    blocked_micros: AtomicU64,
    /// Since when a write waits for it.
    blocked_since: Mutex<Option<Instant>>,
    /// The next write that waits for it is given up, and who is woken for that.
    cut_off: AtomicBool,
    writer: AtomicWaker,
    /// The answer under way is not whole, and only the end of the connection will tell its end.
    open_ended: AtomicBool,
    /// The client may close its sending side and be answered all the same.
    half_closes: AtomicBool,
    /// A head is about to be written with its first event right behind it.
    body_follows: AtomicBool,
    /// Of a stream: it has been answered.
    answered: AtomicBool,
    /// Of a stream: the connection that carries it, and whether it counts there yet.
    carrier: Option<(Arc<Self>, AtomicBool)>,
    /// Of a connection: how many streams count, and the longest `write_stall` among them.
    carried: Mutex<(usize, Duration)>,
    /// Of a connection: it counts as one of these keys', the last one used behind the others.
    keys: Mutex<Vec<Connected>>,
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
    pub(super) fn new(entry: Entry) -> Self {
        Self::carried_by(entry, None)
    }

    fn carried_by(entry: Entry, carrier: Option<(Arc<Self>, AtomicBool)>) -> Self {
        Self {
            entry,
            limits: Mutex::new(IDLE),
            gone: OnceLock::new(),
            cut: AtomicU8::new(0),
            blocked_micros: AtomicU64::new(0),
            blocked_since: Mutex::default(),
            cut_off: AtomicBool::new(false),
            writer: AtomicWaker::new(),
            open_ended: AtomicBool::new(false),
            half_closes: AtomicBool::new(false),
            body_follows: AtomicBool::new(false),
            answered: AtomicBool::new(false),
            carrier,
            carried: Mutex::default(),
            keys: Mutex::default(),
        }
    }

    /// The client of one stream on `connection`.
    pub(super) fn stream_of(connection: &Arc<Self>) -> Self {
        Self::carried_by(connection.entry, Some((Arc::clone(connection), AtomicBool::new(false))))
    }

    /// How its connection came in.
    pub fn entry(&self) -> Entry {
        self.entry
    }

    /// The form in which Pingora hands a client through to the exchange.
    pub(super) fn digest(self: &Arc<Self>) -> Arc<ProxyDigest> {
        let head = ResponseHeader::build(200, Some(0)).expect("200 is a status");
        Arc::new(ProxyDigest::new(Box::new(head), Some(Box::new(Arc::clone(self)))))
    }

    /// The client of a Pingora digest, if its connection is one of ours.
    pub fn of(digest: Option<&ProxyDigest>) -> Option<&Arc<Self>> {
        digest?.user_data.as_ref()?.downcast_ref()
    }

    /// Back to the limits of a connection without an exchange.
    pub fn unlimit(&self) {
        *self.limits.lock() = IDLE;
        self.cut_off.store(false, Ordering::Relaxed);
        self.half_closes.store(false, Ordering::Relaxed);
        self.body_follows.store(false, Ordering::Relaxed);
    }

    /// Until `unlimit`, the client's end is not its departure: requests that came before it have their turn.
    pub fn let_half_close(&self) {
        self.half_closes.store(true, Ordering::Relaxed);
    }

    /// A head is about to be written, and the first event is there: they go out together, not in two writes.
    pub fn body_follows(&self) {
        self.body_follows.store(true, Ordering::Relaxed);
    }

    /// Whether the flush that is asked for may wait for what follows: so it is once.
    pub(super) fn may_wait(&self) -> bool {
        self.body_follows.load(Ordering::Relaxed) && self.body_follows.swap(false, Ordering::Relaxed)
    }

    /// Its stream has been answered: a status, at least.
    pub(super) fn mark_answered(&self) {
        self.answered.store(true, Ordering::Relaxed);
    }

    pub(super) fn is_answered(&self) -> bool {
        self.answered.load(Ordering::Relaxed)
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

    /// How many bytes the socket may hold, whatever its streams want.
    pub(super) fn size(&self, window: usize) {
        self.limits.lock().window = Some(window);
    }

    fn connection(&self) -> Option<&Arc<Self>> {
        self.carrier.as_ref().map(|(connection, _)| connection)
    }

    /// When its end or reset was seen.
    pub fn gone(&self) -> Option<Instant> {
        self.gone.get().copied()
    }

    pub(super) fn is_cut_short(&self) -> bool {
        self.open_ended.load(Ordering::Relaxed)
    }

    pub(super) fn may_half_close(&self) -> bool {
        self.half_closes.load(Ordering::Relaxed)
    }

    /// The first time stands; of a stream that goes with its connection, the connection's.
    pub(super) fn mark_gone(&self, now: Instant) {
        self.gone.get_or_init(|| self.connection().and_then(|connection| connection.gone()).unwrap_or(now));
    }

    pub(super) fn limits(&self) -> Limits {
        *self.limits.lock()
    }
}

#[cfg(test)]
mod tests;
