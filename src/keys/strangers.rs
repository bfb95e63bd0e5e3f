//! Addresses that wrong keys come from: who sends too many is told to come back later.
//!
//! A bucket for each address, kept as the instant at which it will be empty again (the generic cell rate
//! algorithm). It never stands in the way of a key that is known: clients behind one address share nothing but the
//! address. So it is no bound on guesses, which the length of keys is; it tells a client with a wrong key to leave
//! off, and operators that somebody tries keys.

use std::net::IpAddr;
use std::num::NonZeroUsize;
use std::time::{Duration, Instant};

use lru::LruCache;
use parking_lot::Mutex;

use crate::told::Told;

/// Wrong keys that an address may send at once: a client that was set up wrongly and tries again finds out why.
const BURST: u32 = 20;
/// After so long one more is forgiven.
const EVERY: Duration = Duration::from_secs(3);
/// Addresses that are kept; beyond it the one that has been silent longest is forgotten, and may begin again. An
/// entry takes about 100 bytes.
const ADDRESSES_MAX: NonZeroUsize = NonZeroUsize::new(16_384).expect("not zero");

/// Addresses that wrong keys came from.
#[derive(Debug)]
pub struct Strangers {
    empty_at: Mutex<LruCache<Option<IpAddr>, Instant>>,
    /// For the log, which tells of a flood once a second.
    pub told: Told,
}

impl Default for Strangers {
    fn default() -> Self {
        // What makes room for all of them at once would take it also where there never is one.
        Self { empty_at: Mutex::new(LruCache::unbounded()), told: Told::default() }
    }
}

impl Strangers {
    /// Notes a wrong key. `None` is a client without an address, behind a unix socket.
    ///
    /// # Errors
    /// There were too many: the next one may come after this long.
    pub fn note(&self, from: Option<IpAddr>, now: Instant) -> Result<(), Duration> {
        let mut empty_at = self.empty_at.lock();
        let from = from.map(neighbourhood);
        let next = empty_at.get(&from).map_or(now, |&at| at.max(now)) + EVERY;
        let full_at = now + EVERY * BURST;
        if next > full_at {
            return Err(next - full_at);
        }
        empty_at.put(from, next);
        if empty_at.len() > ADDRESSES_MAX.get() {
            empty_at.pop_lru();
        }
        Ok(())
    }
}

/// What one client has of addresses: of IPv6 a network of 64 bits (RFC 6177 gives homes that at least), and an
/// IPv4 address in IPv6's clothes is itself.
pub fn neighbourhood(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6((u128::from(address) & !u128::from(u64::MAX)).into()),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Option<IpAddr> {
        Some(text.parse().unwrap())
    }

    /// Sends wrong keys until one is too many; gives how many were taken, and the wait.
    fn flood(strangers: &Strangers, from: Option<IpAddr>, now: Instant) -> (u32, Duration) {
        (0..=BURST).find_map(|taken| Some((taken, strangers.note(from, now).err()?))).expect("a bound")
    }

    #[test]
    fn an_address_may_be_wrong_for_a_while_and_is_forgiven_slowly() {
        let (strangers, start) = (Strangers::default(), Instant::now());
        let from = address("192.0.2.1");
        assert_eq!(flood(&strangers, from, start), (BURST, EVERY));
        let later = start + EVERY / 2;
        assert_eq!(flood(&strangers, from, later), (0, EVERY / 2), "asking again makes it no longer");
        assert_eq!(flood(&strangers, from, start + EVERY), (1, EVERY));
        assert_eq!(
            flood(&strangers, from, start + 1000 * EVERY),
            (BURST, EVERY),
            "no more than a burst is saved"
        );
    }

    #[test]
    fn others_do_not_feel_it() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        flood(&strangers, address("192.0.2.1"), now);
        for other in [address("192.0.2.2"), address("2001:db8::1"), None] {
            assert_eq!(flood(&strangers, other, now).0, BURST, "{other:?}");
        }
    }

    #[test]
    fn a_network_of_ipv6_is_one_client() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        flood(&strangers, address("2001:db8:0:1::1"), now);
        assert_eq!(flood(&strangers, address("2001:db8:0:1:ffff::2"), now).0, 0);
        assert_eq!(flood(&strangers, address("2001:db8:0:2::1"), now).0, BURST);
        flood(&strangers, address("::ffff:192.0.2.1"), now);
        assert_eq!(flood(&strangers, address("192.0.2.1"), now).0, 0);
        assert_eq!(flood(&strangers, address("::ffff:192.0.2.2"), now).0, BURST);
    }

    #[test]
    fn the_number_of_addresses_is_bounded_and_the_busiest_are_kept() {
        let (strangers, now) = (Strangers::default(), Instant::now());
        let busy = address("192.0.2.1");
        flood(&strangers, busy, now);
        for n in 0..3 * ADDRESSES_MAX.get() as u32 {
            assert!(strangers.note(Some(IpAddr::from(n.to_be_bytes())), now).is_ok());
            if n % 1000 == 0 {
                assert!(strangers.note(busy, now).is_err(), "{n}");
            }
        }
        assert_eq!(strangers.empty_at.lock().len(), ADDRESSES_MAX.get());
    }
}
