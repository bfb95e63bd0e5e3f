//! What a client connection and the exchanges on it tell each other.
//!
//! On HTTP/1.1 the connection and its exchange share one [`Client`]. On HTTP/2 each stream has one of
//! its own, *carried* by that of the connection: what ends the connection ends every stream, and the
//! connection is as patient with its socket as the most patient stream on it.

use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use pingora::protocols::raw_connect::ProxyDigest;
use pingora_http::ResponseHeader;

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
    /// The client may close its sending side and be answered all the same.
    half_closes: AtomicBool,
    /// Of a stream: the connection that carries it, and whether it counts there yet.
    carrier: Option<(Arc<Self>, AtomicBool)>,
    /// Of a connection: how many streams count, and the longest `write_stall` among them.
    carried: Mutex<(usize, Duration)>,
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
        Self::carried_by(None)
    }

    fn carried_by(carrier: Option<(Arc<Self>, AtomicBool)>) -> Self {
        Self {
            limits: Mutex::new(IDLE),
            gone: OnceLock::new(),
            cut: AtomicU8::new(0),
            blocked_micros: AtomicU64::new(0),
            open_ended: AtomicBool::new(false),
            half_closes: AtomicBool::new(false),
            carrier,
            carried: Mutex::default(),
        }
    }

    /// The client of one stream on `connection`.
    pub(super) fn stream_of(connection: &Arc<Self>) -> Self {
        Self::carried_by(Some((Arc::clone(connection), AtomicBool::new(false))))
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
        self.half_closes.store(false, Ordering::Relaxed);
    }

    /// Until `unlimit`, the client's end is not its departure: requests that came before it have their turn.
    pub fn let_half_close(&self) {
        self.half_closes.store(true, Ordering::Relaxed);
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

    /// When its end or reset was seen.
    pub fn gone(&self) -> Option<Instant> {
        self.gone.get().copied()
    }

    /// Why a write to it was given up, if one was.
    pub fn cut(&self) -> Option<Cut> {
        match self.cut.load(Ordering::Relaxed) {
            1 => Some(Cut::Stalled),
            2 => Some(Cut::Total),
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
        self.cut.store(if cut == Cut::Stalled { 1 } else { 2 }, Ordering::Relaxed);
    }

    /// The first time stands; of a stream that goes with its connection, the connection's.
    pub(super) fn mark_gone(&self, now: Instant) {
        self.gone.get_or_init(|| self.connection().and_then(|connection| connection.gone()).unwrap_or(now));
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
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_as_patient_as_its_most_patient_stream() {
        let connection = Arc::new(Client::new());
        let (short, long) = (Client::stream_of(&connection), Client::stream_of(&connection));
        let at = Instant::now();
        short.limit(Duration::from_secs(1), at, 1);
        assert_eq!(connection.limits().stall, Duration::from_secs(1));
        long.limit(Duration::from_secs(9), at, 1);
        long.limit(Duration::from_secs(9), at, 1);
        drop(short);
        assert_eq!(connection.limits().stall, Duration::from_secs(9));
        drop(long);
        assert_eq!(connection.limits().stall, Duration::from_secs(9), "what is left to write has no longer");
        Client::stream_of(&connection).limit(Duration::from_secs(2), at, 1);
        assert_eq!(connection.limits().stall, Duration::from_secs(2));
    }

    #[test]
    fn what_cuts_the_connection_cuts_its_streams_and_no_stream_cuts_another() {
        let connection = Arc::new(Client::new());
        let (one, other) = (Client::stream_of(&connection), Client::stream_of(&connection));
        one.set_cut(Cut::Total);
        assert_eq!((one.cut(), other.cut(), connection.cut()), (Some(Cut::Total), None, None));
        connection.set_cut(Cut::Stalled);
        assert_eq!((one.cut(), other.cut()), (Some(Cut::Total), Some(Cut::Stalled)));
    }
}
