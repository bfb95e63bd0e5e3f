//! How many request bytes are held, all exchanges together.
//!
//! Bodies are held whole until no attempt can need them, so their sum is what a burst of long
//! prompts costs. It is bounded here; who finds no room is told to come back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A count of bytes with a bound.
#[derive(Debug)]
pub struct Ledger {
    limit: u64,
    used: AtomicU64,
}

impl Ledger {
    /// An empty ledger with room for `limit` bytes.
    pub fn new(limit: u64) -> Arc<Self> {
        Arc::new(Self { limit, used: AtomicU64::new(0) })
    }

    /// Bytes reserved.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }

    /// Most bytes that may be.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// A reservation of nothing yet.
    pub fn open(self: &Arc<Self>) -> Reservation {
        Reservation { ledger: Arc::clone(self), bytes: 0 }
    }

    fn take(&self, bytes: u64) -> bool {
        let fits = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit);
        self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok()
    }
}

/// Bytes reserved for one body; given back when dropped.
#[derive(Debug)]
pub struct Reservation {
    ledger: Arc<Ledger>,
    bytes: u64,
}

impl Reservation {
    /// Reserves `bytes` more. `false` when there is no room; what was reserved stays so.
    #[must_use]
    pub fn grow(&mut self, bytes: u64) -> bool {
        let fits = self.ledger.take(bytes);
        if fits {
            self.bytes += bytes;
        }
        fits
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.ledger.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_and_what_is_dropped_comes_back() {
        let ledger = Ledger::new(10);
        let mut first = ledger.open();
        let mut second = ledger.open();
        assert!(first.grow(6));
        assert!(!second.grow(5));
        assert!(second.grow(4));
        drop(first);
        assert_eq!(ledger.used(), 4);
        assert!(second.grow(6));
        drop(second);
        assert_eq!(ledger.used(), 0);
    }
}
