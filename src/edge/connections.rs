//! How many client connections are open, and the bound on them.
//!
//! Beyond the bound a client is told 503 at once, before it has sent anything, and existing connections
//! never feel it. Telling takes a moment and a descriptor too, so it is bounded itself: in a flood the
//! rest are closed without a word. All are counted; the log says so once a second.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use crate::told::Told;

/// Connections that are being told 503 at a time.
const REFUSING_MAX: usize = 256;

/// The open client connections.
#[derive(Debug)]
pub struct Connections {
    open: Arc<Count>,
    refusing: Arc<Count>,
    told: Told,
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
    /// None are open; at most `max` will be, `None` = any number.
    pub fn new(max: Option<usize>) -> Self {
        Self {
            open: Count::bounded(max.unwrap_or(usize::MAX)),
            refusing: Count::bounded(REFUSING_MAX),
            told: Told::default(),
        }
    }

    /// How many are open.
    pub fn open(&self) -> usize {
        self.open.now.load(Ordering::Relaxed)
    }

    /// A place for a new one, if there is one.
    pub(super) fn admit(&self) -> Option<Place> {
        self.open.place()
    }

    /// One is refused. Gives a place to tell it so, if there is one.
    pub(super) fn refuse(&self, now: Instant) -> Option<Place> {
        if let Some(count) = self.told.note(now) {
            log::warn!("{count} connections refused: server.connections.max = {} are open", self.open.max);
        }
        self.refusing.place()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_again_when_it_is_dropped() {
        let connections = Connections::new(Some(2));
        let (one, _two) = (connections.admit().unwrap(), connections.admit().unwrap());
        assert!(connections.admit().is_none());
        assert_eq!(connections.open(), 2);
        drop(one);
        assert!(connections.admit().is_some());
    }
}
