//! What a backend is busy with, and how it has been doing.
//!
//! The one hard idea: the load is *work that is open*, in tokens to generate (see [`cost`]), counted by the
//! guard of each attempt for as long as it lives. It is known before a backend is chosen, it is exact, and it
//! goes back by itself. All else only refines it: what the engine says of itself adds the work of others
//! (`engine`), the time to the first event and recent trouble tip the balance ([`Pace`]).

mod cost;
mod engine;
mod pace;

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use cost::{COST_MAX, TYPICAL, Work, cost};
use engine::Engine;
pub use pace::{LATENCY_DECAY, Pace, TROUBLE_LASTS};

use super::{Reading, Report};

/// The load of one backend.
#[derive(Debug, Default)]
pub struct Load {
    in_flight: AtomicUsize,
    work: AtomicU64,
    engine: Engine,
    pace: Mutex<Pace>,
}

impl Load {
    /// Counts an attempt that begins, unless there are as many as `limit` allows. Only the guard of an attempt
    /// may call it.
    pub(super) fn begin(&self, cost: u64, limit: Option<usize>) -> bool {
        let limit = limit.unwrap_or(usize::MAX);
        let fits = |open: usize| (open < limit).then_some(open + 1);
        let begun = self.in_flight.fetch_update(Ordering::Relaxed, Ordering::Relaxed, fits).is_ok();
        if begun {
            self.work.fetch_add(cost, Ordering::Relaxed);
        }
        begun
    }

    /// Counts down what [`Load::begin`] counted.
    pub(super) fn end(&self, cost: u64) {
        let attempts = self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let work = self.work.fetch_sub(cost, Ordering::Relaxed);
        debug_assert!(attempts > 0 && work >= cost, "an attempt was counted down twice");
    }

    /// Attempts of ours that are open.
    pub fn in_flight(&self) -> usize {
        self.in_flight.load(Ordering::Relaxed)
    }

    /// What our open attempts are estimated to cost, in tokens to generate.
    pub fn work(&self) -> u64 {
        self.work.load(Ordering::Relaxed)
    }

    /// Our work and what the engine said beyond it, where it said so within `fresh` before `now`.
    pub fn total(&self, now: Instant, fresh: Duration) -> u64 {
        self.engine.refine(self.work(), now, fresh)
    }

    /// How it has been doing.
    pub fn pace(&self) -> Pace {
        *self.pace.lock()
    }

    pub(super) fn read(&self, reading: &Reading) {
        self.engine.note(reading, self.in_flight(), self.work());
    }

    pub(super) fn learn(&self, report: &Report) {
        self.pace.lock().learn(report);
    }
}
