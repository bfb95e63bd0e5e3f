//! What a client connection and the exchanges on it tell each other.
//!
//! On HTTP/1.1 the connection and its exchange share one [`Client`]. On HTTP/2 each stream has one of
//! its own, *carried* by that of the connection: what ends the connection ends every stream, and the
//! connection is as patient with its socket as the most patient stream on it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use futures::task::AtomicWaker;
use parking_lot::Mutex;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora_http::ResponseHeader;

use super::door::Entry;
use crate::admission::{Account, Connected, Denial};

/// `write_stall` of answers that belong to no route (errors of the head, for instance).
const DEFAULT_STALL: Duration = Duration::from_secs(30);

/// Keys that one connection counts for at a time. A client has one; a proxy in front of many clients should not
/// be bound by the connections of each.
const KEYS_MAX: usize = 16;

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

    /// Sets the limits of the writes of one exchange: how long the client may acknowledge nothing, when
    /// the exchange must be over, and how many bytes the socket may hold.
    pub fn limit(&self, stall: Duration, total_at: Instant, window: usize) {
        *self.limits.lock() = Limits { stall, total_at: Some(total_at), window: Some(window) };
        if let Some((connection, counts)) = &self.carrier {
            connection.carry(stall, !counts.swap(true, Ordering::Relaxed));
        }
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

    fn carry(&self, stall: Duration, is_new: bool) {
        let mut carried = self.carried.lock();
        carried.0 += usize::from(is_new);
        carried.1 = carried.1.max(stall);
        self.limits.lock().stall = carried.1;
    }

    /// The last stream leaves its patience behind until another comes: if it was cut because the socket takes
    /// nothing, the socket must not have longer for it.
    fn release(&self) {
        let mut carried = self.carried.lock();
        carried.0 -= 1;
        if carried.0 == 0 {
            carried.1 = Duration::ZERO;
        }
    }

    fn connection(&self) -> Option<&Arc<Self>> {
        self.carrier.as_ref().map(|(connection, _)| connection)
    }

    /// A key is used on its connection, which counts as one of the key's from now on, as long as it lasts or
    /// until 16 others have been used on it.
    ///
    /// # Errors
    /// It is one more than the key may have.
    pub fn used_by(&self, account: &Arc<Account>, now: Instant) -> Result<(), Denial> {
        if let Some(connection) = self.connection() {
            return connection.used_by(account, now);
        }
        let mut keys = self.keys.lock();
        if !keys.iter().any(|key| key.is_of(account)) {
            let connected = account.connect(now)?;
            if keys.len() == KEYS_MAX {
                keys.remove(0);
            }
            keys.push(connected);
        }
        Ok(())
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
            3 => Some(Cut::Memory),
            _ => self.connection()?.cut(),
        }
    }

    /// Takes the time that writes have been blocked on the client since the last call.
    pub fn take_blocked(&self) -> Duration {
        Duration::from_micros(self.blocked_micros.swap(0, Ordering::Relaxed))
    }

    pub(super) fn is_cut_short(&self) -> bool {
        self.open_ended.load(Ordering::Relaxed)
    }

    pub(super) fn may_half_close(&self) -> bool {
        self.half_closes.load(Ordering::Relaxed)
    }

    pub(super) fn set_cut(&self, cut: Cut) {
        let number = match cut {
            Cut::Stalled => 1,
            Cut::Total => 2,
            Cut::Memory => 3,
        };
        self.cut.store(number, Ordering::Relaxed);
    }

    /// The first time stands; of a stream that goes with its connection, the connection's.
    pub(super) fn mark_gone(&self, now: Instant) {
        self.gone.get_or_init(|| self.connection().and_then(|connection| connection.gone()).unwrap_or(now));
    }

    /// Since when a write waits for it, if one does.
    pub fn blocked_since(&self) -> Option<Instant> {
        *self.blocked_since.lock()
    }

    pub(super) fn set_blocked(&self, since: Option<Instant>) {
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
    pub(super) fn poll_cut_off(&self, cx: &Context<'_>) -> Poll<()> {
        self.writer.register(cx.waker());
        if self.cut_off.load(Ordering::Acquire) { Poll::Ready(()) } else { Poll::Pending }
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

impl Drop for Client {
    fn drop(&mut self) {
        if let Some((connection, counts)) = &self.carrier
            && counts.load(Ordering::Relaxed)
        {
            connection.release();
        }
    }
}

#[cfg(test)]
mod tests;
