//! How a backend has been doing: its time to the first event, and recent trouble.
//!
//! The average is peak-sensitive, as in Finagle's and Linkerd's peak-EWMA: a slow answer counts at once and
//! in full, and faster ones bring it down bit by bit. Theirs fades to zero without answers, so that a slow
//! server is tried again; ours keeps its value and loses its *trust*, since a backend whose answers are
//! merely long ends none for a while, and must not look fast for that. A request that hangs is in the load.

use std::time::{Duration, Instant};

use super::super::Report;
use crate::failure::Failure;

/// In this time what was known fades to 1/e of it.
pub const LATENCY_DECAY: Duration = Duration::from_secs(10);
/// For so long after a failure, a 429 or a 503 a backend is given less.
pub const TROUBLE_LASTS: Duration = Duration::from_secs(10);

/// How a backend has been doing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Pace {
    /// Microseconds, as of `at`.
    latency: f64,
    at: Option<Instant>,
    trouble_at: Option<Instant>,
}

impl Pace {
    /// Learns from the end of an attempt. What a client caused has no failure and says nothing.
    pub fn learn(&mut self, report: &Report) {
        if let Some(first_event) = report.first_event {
            self.sample(first_event, report.now);
        }
        if is_trouble(report) {
            self.trouble_at = Some(report.now);
        }
    }

    fn sample(&mut self, first_event: Duration, now: Instant) {
        let (sample, kept) = (first_event.as_micros() as f64, self.kept(now));
        let average = self.latency * kept + sample * (1.0 - kept);
        self.latency = if sample >= self.latency { sample } else { average };
        self.at = self.at.max(Some(now));
    }

    /// Microseconds to the first event, and how far that may be trusted, 0 to 1,000.
    pub fn latency(&self, now: Instant) -> (u64, u64) {
        (self.latency as u64, (self.kept(now) * 1e3) as u64)
    }

    /// Whether it was in trouble a moment ago.
    pub fn is_troubled(&self, now: Instant) -> bool {
        self.trouble_at.is_some_and(|at| now.saturating_duration_since(at) < TROUBLE_LASTS)
    }

    /// The share of what was known that still counts.
    fn kept(&self, now: Instant) -> f64 {
        let Some(at) = self.at else { return 0.0 };
        (-now.saturating_duration_since(at).as_secs_f64() / LATENCY_DECAY.as_secs_f64()).exp()
    }
}

fn is_trouble(report: &Report) -> bool {
    match report.failure {
        // The time is the client's, and the end is ours.
        Some(Failure::TotalTimeout | Failure::ShuttingDown | Failure::Starved | Failure::NoPort) => false,
        Some(Failure::Status(status)) => is_busy(status),
        Some(_) => true,
        None => report.status.is_some_and(is_busy),
    }
}

fn is_busy(status: u16) -> bool {
    matches!(status, 429 | 502..=504)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(now: Instant, millis: u64) -> Report {
        Report { status: Some(200), first_event: Some(Duration::from_millis(millis)), ..Report::of(now) }
    }

    #[test]
    fn a_peak_counts_at_once_and_its_trust_fades() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        assert_eq!(pace.latency(start), (0, 0));
        pace.learn(&report(start, 100));
        pace.learn(&report(start, 900));
        assert_eq!(pace.latency(start), (900_000, 1_000));
        assert_eq!(pace.latency(start + LATENCY_DECAY), (900_000, 367));
        assert_eq!(pace.latency(start + 20 * LATENCY_DECAY), (900_000, 0));
        pace.learn(&report(start + 20 * LATENCY_DECAY, 50));
        assert_eq!(pace.latency(start + 20 * LATENCY_DECAY), (50_000, 1_000));
    }

    #[test]
    fn fast_answers_bring_it_down_bit_by_bit() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        pace.learn(&report(start, 1_000));
        let mut last = 1_000_000;
        for second in 1..=40 {
            let now = start + Duration::from_secs(second);
            pace.learn(&report(now, 100));
            let (latency, trust) = pace.latency(now);
            assert!(latency < last && latency >= 100_000, "{second}: {latency} after {last}");
            assert_eq!(trust, 1_000);
            last = latency;
        }
        assert!(last < 120_000, "{last}");
    }

    #[test]
    fn trouble_passes_and_a_clients_leaving_is_none() {
        let (mut pace, now) = (Pace::default(), Instant::now());
        pace.learn(&Report { failure: Some(Failure::TotalTimeout), ..report(now, 1) });
        pace.learn(&Report { status: Some(500), ..report(now, 1) });
        assert!(!pace.is_troubled(now));
        for busy in [
            Report { failure: Some(Failure::Connect), status: None, ..report(now, 1) },
            Report { failure: Some(Failure::Status(503)), ..report(now, 1) },
            Report { status: Some(429), ..report(now, 1) },
        ] {
            let mut pace = Pace::default();
            pace.learn(&busy);
            assert!(pace.is_troubled(now) && !pace.is_troubled(now + TROUBLE_LASTS), "{busy:?}");
        }
    }

    #[test]
    fn a_clock_that_goes_back_changes_nothing() {
        let (mut pace, start) = (Pace::default(), Instant::now());
        let later = start + Duration::from_secs(5);
        pace.learn(&report(later, 100));
        pace.learn(&report(start, 50));
        assert_eq!(pace.latency(start), (100_000, 1_000));
        assert_eq!(pace.latency(later), (100_000, 1_000));
    }
}
