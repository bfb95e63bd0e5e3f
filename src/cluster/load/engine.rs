//! What an engine says of itself, as far as it adds to what we know anyway.
//!
//! Our own requests are among those that it reports. So only what it has *beyond* them counts: the work of
//! other gateways and of whoever asks it directly. A reading is of a moment; ours are compared as they were
//! then, and it counts for nothing once it is old.
//!
//! The numbers are separate atomics: one that is read between two writes is off by one reading, which a
//! choice can bear; a lock on each candidate of each choice it could not.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::super::Reading;
use super::TYPICAL;

/// Use of the KV cache above which an engine is strained: it soon puts requests off, or throws their cache
/// away. The threshold that llm-d's scheduler uses, too.
const KV_STRAINED: f64 = 0.8;
/// A load that is taken as it is.
const PER_MILLE: u64 = 1_000;

#[derive(Debug, Default)]
pub(super) struct Engine {
    epoch: OnceLock<Instant>,
    /// Microseconds from `epoch` to the reading, and one; 0 = there is none.
    at: AtomicU64,
    /// Work beyond ours.
    beyond: AtomicU64,
    /// How much more everything counts, in thousandths beyond 1,000.
    strain: AtomicU64,
}

impl Engine {
    /// Takes a reading in, beside our own figures of the same moment.
    pub(super) fn note(&self, reading: &Reading, in_flight: usize, work: u64) {
        let ours = u64::try_from(in_flight).unwrap_or(u64::MAX);
        let each = work.checked_div(ours).unwrap_or(TYPICAL);
        let (running, waiting) = (u64::from(reading.running), u64::from(reading.waiting));
        // What waits counts twice: it has all its work before it, and says that there is no room for more.
        let requests = (running + waiting).saturating_sub(ours) + waiting;
        self.beyond.store(requests.saturating_mul(each), Ordering::Relaxed);
        self.strain.store(strain(reading.kv_usage), Ordering::Relaxed);
        let since = reading.at.saturating_duration_since(*self.epoch.get_or_init(|| reading.at));
        self.at.store(micros(since).saturating_add(1), Ordering::Relaxed);
    }

    /// `work` of ours, and what the engine adds to it.
    pub(super) fn refine(&self, work: u64, now: Instant, fresh: Duration) -> u64 {
        let (Some(epoch), at) = (self.epoch.get(), self.at.load(Ordering::Relaxed)) else { return work };
        let age = micros(now.saturating_duration_since(*epoch)).saturating_sub(at.saturating_sub(1));
        if at == 0 || age > micros(fresh) {
            return work;
        }
        let all = work.saturating_add(self.beyond.load(Ordering::Relaxed));
        all.saturating_add(all / PER_MILLE * self.strain.load(Ordering::Relaxed))
    }
}

/// From 0 at [`KV_STRAINED`] to twice the load at a full cache.
fn strain(kv_usage: Option<f64>) -> u64 {
    let over = (kv_usage.unwrap_or(0.0).clamp(0.0, 1.0) - KV_STRAINED).max(0.0) / (1.0 - KV_STRAINED);
    // Not a number where the engine said so; that becomes 0.
    (over * PER_MILLE as f64).round() as u64
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRESH: Duration = Duration::from_secs(6);

    fn reading(at: Instant, running: u32, waiting: u32, kv_usage: Option<f64>) -> Reading {
        Reading { at, running, waiting, kv_usage, steps: None }
    }

    #[test]
    fn only_what_is_beyond_ours_is_added() {
        let (engine, now) = (Engine::default(), Instant::now());
        engine.note(&reading(now, 3, 0, None), 3, 300);
        assert_eq!(engine.refine(300, now, FRESH), 300);
        engine.note(&reading(now, 5, 0, None), 3, 300);
        assert_eq!(engine.refine(300, now, FRESH), 500);
        engine.note(&reading(now, 1, 0, None), 0, 0);
        assert_eq!(engine.refine(0, now, FRESH), TYPICAL);
        // Our own that wait: the engine has no room.
        engine.note(&reading(now, 1, 2, None), 3, 300);
        assert_eq!(engine.refine(300, now, FRESH), 500);
    }

    #[test]
    fn an_old_reading_counts_for_nothing() {
        let (engine, start) = (Engine::default(), Instant::now());
        assert_eq!(engine.refine(7, start, FRESH), 7);
        let at = start + Duration::from_secs(10);
        engine.note(&reading(start, 0, 0, None), 0, 0);
        engine.note(&reading(at, 1, 0, None), 0, 0);
        assert_eq!(engine.refine(7, at + FRESH, FRESH), 7 + TYPICAL);
        assert_eq!(engine.refine(7, at + FRESH + Duration::from_micros(1), FRESH), 7);
        // A clock that went back makes nothing old.
        assert_eq!(engine.refine(7, start - Duration::from_secs(1), FRESH), 7 + TYPICAL);
    }

    #[test]
    fn a_full_cache_doubles_the_load() {
        let (engine, now) = (Engine::default(), Instant::now());
        for (kv, want) in [(0.8, 4_000), (0.9, 6_000), (1.0, 8_000), (7.0, 8_000), (f64::NAN, 4_000)] {
            engine.note(&reading(now, 2, 0, Some(kv)), 2, 4_000);
            assert_eq!(engine.refine(4_000, now, FRESH), want, "{kv}");
        }
    }
}
