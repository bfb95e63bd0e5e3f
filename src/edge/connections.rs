//! How many client connections are open, and the bounds on them.
//!
//! Beyond a bound a client is told 503 at once, before it has sent anything, and existing connections
//! never feel it. Telling takes a moment and a descriptor too, so it is bounded itself: in a flood the
//! rest are closed without a word. All are counted; the log says so once a second and reason.

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use super::crowd::{AddressPlace, Crowd};
use crate::told::Told;

/// Why a connection is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnedAway {
    /// As many as may be are open.
    Full,
    /// There is no memory for one more.
    Memory,
    /// As many as may be are open from its address.
    FullForAddress,
    /// Its listener wants a PROXY header, and it may not send one.
    NotTrusted,
    /// It should have begun with a PROXY header.
    NoProxyHeader,
    /// Its TLS handshake failed, or took too long.
    Handshake,
    /// It spoke plain HTTP on a listener with TLS.
    PlainHttp,
}

impl TurnedAway {
    /// All there are, in the order of their numbers.
    pub const ALL: [Self; 7] = [
        Self::Full,
        Self::Memory,
        Self::FullForAddress,
        Self::NotTrusted,
        Self::NoProxyHeader,
        Self::Handshake,
        Self::PlainHttp,
    ];

    /// The label in the metrics.
    pub fn label(self) -> &'static str {
        match self {
            Self::Full => "max",
            Self::Memory => "memory",
            Self::FullForAddress => "per_ip",
            Self::NotTrusted => "not_trusted",
            Self::NoProxyHeader => "proxy_header",
            Self::Handshake => "tls",
            Self::PlainHttp => "plain_http",
        }
    }
}

/// The open client connections.
#[derive(Debug)]
pub struct Connections {
    open: Arc<Count>,
    crowd: Option<Arc<Crowd>>,
    refusing: Arc<Count>,
    told: [Told; TurnedAway::ALL.len()],
}

#[derive(Debug)]
struct Count {
    max: usize,
    now: AtomicUsize,
}

/// A place among a bounded number, held as long as this lives.
#[derive(Debug)]
pub(super) struct Place(Arc<Count>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.now.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Count {
    fn bounded(max: usize) -> Arc<Self> {
        Arc::new(Self { max, now: AtomicUsize::new(0) })
    }

    fn place(self: &Arc<Self>) -> Option<Place> {
        let free = |now: usize| (now < self.max).then_some(now + 1);
        self.now.fetch_update(Ordering::Relaxed, Ordering::Relaxed, free).ok()?;
        Some(Place(Arc::clone(self)))
    }
}

impl Connections {
    /// None are open; at most `max` will be, and `per_ip` from one address; `None` = any number. Of those beyond
    /// `refusing` are told so at a time.
    pub fn new(max: Option<usize>, per_ip: Option<usize>, refusing: usize) -> Self {
        Self {
            open: Count::bounded(max.unwrap_or(usize::MAX)),
            crowd: per_ip.map(Crowd::bounded),
            refusing: Count::bounded(refusing),
            told: Default::default(),
        }
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.now.load(Ordering::Relaxed)
    }

    /// How many may be open; `None` = any number.
    pub fn max(&self) -> Option<usize> {
        Some(self.open.max).filter(|max| *max < usize::MAX)
    }

    /// How many may be open from one address; `None` = any number.
    pub fn per_ip(&self) -> Option<usize> {
        self.crowd.as_ref().map(|crowd| crowd.max)
    }

    /// A place for a new one, if there is one.
    pub(super) fn admit(&self) -> Result<Place, TurnedAway> {
        self.open.place().ok_or(TurnedAway::Full)
    }

    /// A place among those of its address, if that is bounded; `address` is `None` for one that is not.
    pub(super) fn admit_from(&self, address: Option<IpAddr>) -> Result<Option<AddressPlace>, TurnedAway> {
        let (Some(crowd), Some(address)) = (&self.crowd, address) else { return Ok(None) };
        crowd.place(address).map(Some).ok_or(TurnedAway::FullForAddress)
    }

    /// A place to tell one that is refused, if there is one.
    pub(super) fn refuse(&self) -> Option<Place> {
        self.refusing.place()
    }

    /// Tells the log of one that is not served.
    pub(super) fn tell(&self, why: TurnedAway, address: Option<IpAddr>, now: Instant) {
        let Some(count) = self.told[why as usize].note(now) else { return };
        let last = address.map_or_else(String::new, |address| format!(" (the last from {address})"));
        let limit = self.crowd.as_ref().map_or(0, |crowd| crowd.max);
        match why {
            TurnedAway::Full => {
                log::warn!(
                    "{count} connections refused: server.connections.max = {} are open",
                    self.open.max
                );
            }
            TurnedAway::Memory => {
                log::warn!("{count} connections refused: the memory is nearly used up{last}")
            }
            TurnedAway::FullForAddress => log::warn!(
                "{count} connections refused: server.connections.per_ip = {limit} are open from one address{last}"
            ),
            TurnedAway::NotTrusted => log::warn!(
                "{count} connections refused: a listener with proxy_protocol takes connections of \
                 server.trusted_proxies only{last}"
            ),
            TurnedAway::NoProxyHeader => {
                log::warn!(
                    "{count} connections refused: no PROXY header, though the listener wants one{last}"
                );
            }
            // The internet is full of them.
            TurnedAway::Handshake => log::debug!("{count} TLS handshakes failed{last}"),
            TurnedAway::PlainHttp => {
                log::info!("{count} connections refused: plain HTTP on a listener with tls{last}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let connections = Connections::new(Some(2), None, 1);
        let (one, _two) = (connections.admit().unwrap(), connections.admit().unwrap());
        assert_eq!(connections.admit().unwrap_err(), TurnedAway::Full);
        assert_eq!(connections.open(), 2);
        drop(one);
        assert!(connections.admit().is_ok());
    }

    #[test]
    fn who_has_no_address_is_not_counted_by_it() {
        let connections = Connections::new(None, Some(1), 1);
        let address = Some([192, 0, 2, 7].into());
        let _one = connections.admit_from(address).unwrap();
        assert_eq!(connections.admit_from(address).unwrap_err(), TurnedAway::FullForAddress);
        let others = [connections.admit_from(None), connections.admit_from(None)];
        assert!(others.iter().all(Result::is_ok));
    }

    #[test]
    fn reasons_are_numbered_in_their_order() {
        for (number, why) in TurnedAway::ALL.into_iter().enumerate() {
            assert_eq!(why as usize, number);
        }
    }
}
