//! What is under way on a backend, looked at from outside.
//!
//! A token must not cost a shared write. So an attempt keeps its own clock, and whoever wants to know when
//! the backend last sent something looks at the clocks of all its attempts, about once a second.

use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

/// What an attempt knows of itself.
pub trait Progress: Send + Sync + fmt::Debug {
    /// How it stands.
    fn seen(&self) -> Seen;
}

/// How an attempt stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// When its request was sent; `None` while it connects.
    pub sent: Option<Instant>,
    /// When its last data came.
    pub last_data: Option<Instant>,
    /// It is being read. It is not while its client takes nothing, and then silence says nothing.
    pub reading: bool,
}

/// One attempt under way.
#[derive(Debug, Clone, Copy)]
pub(super) struct Flight {
    /// It asked for a stream.
    pub(super) streaming: bool,
    /// How it stands.
    pub(super) seen: Seen,
}

#[derive(Debug, Default)]
struct Table {
    next: u64,
    flights: HashMap<u64, (bool, Arc<dyn Progress>)>,
}

/// The attempts under way on a backend.
#[derive(Debug, Default)]
pub(super) struct Flights(Mutex<Table>);

impl Flights {
    /// Adds one; gives what takes it off again.
    pub(super) fn add(&self, streaming: bool, progress: Arc<dyn Progress>) -> u64 {
        let mut table = self.0.lock();
        table.next += 1;
        let number = table.next;
        table.flights.insert(number, (streaming, progress));
        number
    }

    pub(super) fn remove(&self, number: u64) {
        self.0.lock().flights.remove(&number);
    }

    /// All of them as they stand now.
    pub(super) fn look(&self) -> Vec<Flight> {
        let table = self.0.lock();
        let flights = table.flights.values();
        flights.map(|(streaming, progress)| Flight { streaming: *streaming, seen: progress.seen() }).collect()
    }
}
