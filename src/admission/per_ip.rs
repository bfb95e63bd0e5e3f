//! A rate for each client address.
//!
//! An address of IPv6 stands for its /64. The map is bounded; an address that is forgotten begins anew, so one that has
//! more than [`ADDRESSES_MAX`] networks at hand gets around it, as it gets around any limit by address.

use std::net::IpAddr;
use std::time::Instant;

use parking_lot::Mutex;

use super::bucket::Bucket;
use super::denial::{Denial, Limit, Standing};
use crate::config::units::Rate;
use crate::keys::neighbourhood;
use crate::recent::Recent;
use crate::told::Told;

/// Most addresses that are remembered: some 8 MiB.
pub const ADDRESSES_MAX: usize = 65_536;

/// What each client address has used.
#[derive(Debug)]
pub struct PerIp {
    state: Mutex<State>,
    /// For the line of the log that says that an address was limited.
    pub told: Told,
}

#[derive(Debug)]
struct State {
    buckets: Recent<IpAddr, Bucket>,
    /// The rate that was last asked for, and since when: a bucket that nobody has asked since fills at it from then on.
    rate: Option<(Rate, Instant)>,
}

impl Default for PerIp {
    fn default() -> Self {
        let state = State { buckets: Recent::new(ADDRESSES_MAX), rate: None };
        Self { state: Mutex::new(state), told: Told::default() }
    }
}

impl PerIp {
    /// Lets a request of an address in.
    ///
    /// # Errors
    /// It has had as many as it may.
    pub fn take(&self, address: IpAddr, rate: Rate, now: Instant) -> Result<(), Denial> {
        let mut state = self.state.lock();
        let State { buckets, rate: last } = &mut *state;
        let since = match *last {
            Some((same, since)) if same == rate => since,
            _ => {
                *last = Some((rate, now));
                now
            }
        };
        let bucket = buckets.of(neighbourhood(address), || Bucket::full(rate, now));
        bucket.follow(rate, since);
        let taken = bucket.take(1, now);
        let deny = |wait| Denial { limit: Limit::PerIp, wait, standing: Standing::default() };
        taken.map(|_| ()).map_err(deny)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_address_has_its_own_and_a_network_of_ipv6_shares_one() {
        let (per_ip, now) = (PerIp::default(), Instant::now());
        let rate = Rate { count: 2, per: Duration::from_secs(1) };
        let take = |address: &str| per_ip.take(address.parse().unwrap(), rate, now).is_ok();
        assert_eq!([take("10.0.0.1"), take("10.0.0.1"), take("10.0.0.1")], [true, true, false]);
        assert!(take("10.0.0.2"));
        assert!(!take("::ffff:10.0.0.1"), "the same client on a socket for both");
        assert_eq!([take("2001:db8::1"), take("2001:db8::2"), take("2001:db8::3")], [true, true, false]);
        assert!(take("2001:db8:0:1::1"));
    }

    #[test]
    fn another_rate_fills_every_bucket_from_when_it_was_first_asked_for() {
        let (per_ip, now) = (PerIp::default(), Instant::now());
        let rate = |count| Rate { count, per: Duration::from_secs(100) };
        let take = |address: &str, count, seconds| {
            let at = now + Duration::from_secs(seconds);
            per_ip.take(address.parse().unwrap(), rate(count), at).is_ok()
        };
        assert_eq!([take("10.0.0.1", 1, 0), take("10.0.0.1", 1, 0)], [true, false]);
        assert!(take("10.0.0.2", 100, 10), "the reload is noticed");
        // One a second since.
        assert_eq!([(); 3].map(|()| take("10.0.0.1", 100, 12)), [true, true, false]);
    }

    #[test]
    fn the_map_is_bounded_however_many_come() {
        let (per_ip, now) = (PerIp::default(), Instant::now());
        let rate = Rate { count: 2, per: Duration::from_secs(1) };
        for n in 0..300_000_u32 {
            per_ip.take(IpAddr::V4(n.into()), rate, now).unwrap();
        }
        assert!(per_ip.state.lock().buckets.len() <= ADDRESSES_MAX);
    }
}
