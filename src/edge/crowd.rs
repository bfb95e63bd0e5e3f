//! How many connections each client address has open.
//!
//! An address is in the table only while it has one, so the table is never larger than the number of open
//! connections. It is looked at when a connection comes and when it goes, never in between.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::forwarded::subscriber;

/// The open connections by address.
#[derive(Debug)]
pub(super) struct Crowd {
    /// Most of one address.
    pub(super) max: usize,
    open: Mutex<HashMap<IpAddr, usize>>,
}

/// A place among those of one address, held as long as this lives.
#[derive(Debug)]
pub(super) struct AddressPlace {
    crowd: Arc<Crowd>,
    of: IpAddr,
}

impl Crowd {
    pub(super) fn bounded(max: usize) -> Arc<Self> {
        Arc::new(Self { max, open: Mutex::default() })
    }

    /// A place for one more connection from `address`, if there is one.
    pub(super) fn place(self: &Arc<Self>, address: IpAddr) -> Option<AddressPlace> {
        let of = subscriber(address);
        let mut open = self.open.lock();
        let count = open.entry(of).or_default();
        if *count >= self.max {
            return None;
        }
        *count += 1;
        Some(AddressPlace { crowd: Arc::clone(self), of })
    }
}

impl Drop for AddressPlace {
    fn drop(&mut self) {
        let mut open = self.crowd.open.lock();
        if let Some(count) = open.get_mut(&self.of) {
            *count -= 1;
            if *count == 0 {
                open.remove(&self.of);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_places_and_none_are_remembered() {
        let crowd = Crowd::bounded(2);
        let place = |text: &str| crowd.place(text.parse().unwrap());
        let (one, _two) = (place("192.0.2.7").unwrap(), place("::ffff:192.0.2.7").unwrap());
        assert!(place("192.0.2.7").is_none());
        let network = (place("2001:db8::1").unwrap(), place("2001:db8::2").unwrap());
        assert!(place("2001:db8::3").is_none(), "a /64 counts as one");
        let next_door = place("2001:db8:0:1::1").unwrap();
        drop(one);
        assert!(place("192.0.2.7").is_some());
        drop((network, next_door));
        assert_eq!(crowd.open.lock().len(), 1, "only 192.0.2.7 has one");
    }
}
