//! What is known of a backend and of a cluster for as long as the configuration names them.
//!
//! A snapshot is built anew with each reload; what was learned must not be lost with the old one, and a
//! guard must count down the very number it counted up. So all that is learned lives here, behind an
//! `Arc` that the next snapshot takes over by key: a cluster's by its name, a backend's by both names.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicUsize, Ordering};
use std::time::Instant;

use parking_lot::Mutex;

use super::affinity::Homes;
use super::budget::Budget;
use super::health::Health;
use super::load::Load;
use super::rest::Rest;
use super::{Backend, Failures, Leaving, Output, Queue, Reading, Report};
use crate::told::Told;

/// What is known of a backend.
#[derive(Debug, Default)]
pub struct BackendState {
    /// Its failures, as far as the log tells them.
    pub failures: Failures,
    /// Whether it is well.
    pub health: Health,
    /// What it is busy with, and how it has been doing.
    pub load: Load,
    /// What has come out of it.
    pub output: Output,
    /// What it has saved up toward its turn ([`super::pick::take_turn`]); written under the cluster's `round`.
    pub(super) savings: AtomicI64,
    pub(super) rest: Rest,
    /// Whether it gets new work.
    pub leaving: Leaving,
    /// Attempts that it takes at once, as the configuration in force has it.
    limit: Limit,
    reading: Mutex<Option<Reading>>,
}

impl BackendState {
    /// Attempts that are open on it.
    pub fn in_flight(&self) -> usize {
        self.load.in_flight()
    }

    /// What the engine last said of its load.
    pub fn reading(&self) -> Option<Reading> {
        *self.reading.lock()
    }

    /// Notes what the engine says of its load.
    pub fn read(&self, reading: Reading) {
        self.load.read(&reading);
        self.health.read(&reading);
        *self.reading.lock() = Some(reading);
    }

    /// Attempts that it takes at once; `None` for no limit.
    pub fn limit(&self) -> Option<usize> {
        Some(self.limit.0.load(Ordering::Relaxed)).filter(|limit| *limit != usize::MAX)
    }

    /// Takes over the limit of the configuration that comes into force. It stands here, since exchanges that live
    /// by an older one must not exceed a limit that has been lowered since, nor wait below one that was raised.
    pub fn limit_to(&self, limit: Option<usize>) {
        self.limit.0.store(limit.unwrap_or(usize::MAX), Ordering::Relaxed);
    }

    /// When its rest ends, if it rests after a 429 or a 503.
    pub fn rest_ends(&self, now: Instant) -> Option<Instant> {
        self.rest.ends(now)
    }

    /// Learns from the end of an attempt.
    pub fn learn(&self, report: &Report) {
        self.load.learn(report);
        self.rest.learn(report);
    }
}

/// A limit; none to begin with.
#[derive(Debug)]
struct Limit(AtomicUsize);

impl Default for Limit {
    fn default() -> Self {
        Self(AtomicUsize::new(usize::MAX))
    }
}

/// Who the backends of a cluster are, and where.
type Set = Vec<(Arc<str>, SocketAddr)>;

/// What is known of a cluster as a whole.
#[derive(Debug, Default)]
pub struct ClusterState {
    /// Where its sessions and prompts are at home.
    pub homes: Homes,
    /// Held while a turn of the round is taken.
    pub(super) round: Mutex<()>,
    /// Held while one of its backends is ejected.
    pub(super) ejecting: Mutex<()>,
    /// Those who wait for a free slot.
    pub queue: Queue,
    /// Times that nothing was to be had, as far as the log tells them.
    pub shortages: Told,
    /// Retries that the budget did not allow, as far as the log tells them.
    pub exhausted: Told,
    pub(super) budget: Budget,
    /// What has come out of its backends, those that are gone included.
    pub output: Output,
    /// The number of its set of backends, and who they are.
    set: Mutex<(u64, Set)>,
    /// Attempts open on its backends.
    pub(super) live: AtomicUsize,
}

impl ClusterState {
    /// The number of a set of backends: another one where it is another set, or they are elsewhere.
    pub(super) fn number_of(&self, backends: &[Arc<Backend>]) -> u64 {
        let set: Set = backends.iter().map(|backend| (Arc::clone(&backend.name), backend.addr)).collect();
        let mut known = self.set.lock();
        if known.1 != set {
            *known = (known.0 + 1, set);
        }
        known.0
    }

    /// Attempts open on its backends, those of earlier configurations included.
    pub fn live(&self) -> usize {
        self.live.load(Ordering::Relaxed)
    }
}
