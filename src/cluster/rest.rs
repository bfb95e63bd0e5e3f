//! The rest of a backend that said it has too much to do.
//!
//! A 429 or a 503 asks to be left alone for a while, and says for how long in `Retry-After`. A backend that
//! rests is passed over while another is usable; it is not bad, so no health verdict comes of it.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::Report;

/// A rest without a word on its length: what this gateway itself tells its clients when it has no room. Long
/// enough that the very next requests go elsewhere, and short enough to cost little where one full engine
/// refused one request.
const DEFAULT: Duration = Duration::from_secs(1);

/// The longest rest, whatever a backend asks for (design: at most 300 s).
const LONGEST: Duration = Duration::from_secs(300);

/// Until when a backend rests. Asked on each pick, so it is one atomic.
#[derive(Debug, Default)]
pub(super) struct Rest {
    /// The `now` of the first rest; times are counted from it.
    epoch: OnceLock<Instant>,
    /// Microseconds from `epoch`; 0 = it never rested.
    until: AtomicU64,
}

impl Rest {
    /// Learns from the end of an attempt whether the backend asked to be left alone. The later end stands.
    pub(super) fn learn(&self, report: &Report) {
        if !matches!(report.status, Some(429 | 503)) {
            return;
        }
        let length = report.retry_after.unwrap_or(DEFAULT).min(LONGEST);
        let epoch = *self.epoch.get_or_init(|| report.now);
        let until = (report.now + length).saturating_duration_since(epoch).as_micros();
        self.until.fetch_max(u64::try_from(until).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// When its rest ends; `None` if it does not rest.
    pub(super) fn ends(&self, now: Instant) -> Option<Instant> {
        let until = match self.until.load(Ordering::Relaxed) {
            0 => return None,
            micros => *self.epoch.get()? + Duration::from_micros(micros),
        };
        Some(until).filter(|until| now < *until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(now: Instant, status: u16, retry_after: Option<u64>) -> Report {
        let retry_after = retry_after.map(Duration::from_secs);
        Report { status: Some(status), retry_after, ..Report::of(now) }
    }

    #[test]
    fn only_429_and_503_ask_for_rest() {
        let now = Instant::now();
        for (status, rests) in
            [(200, false), (429, true), (500, false), (502, false), (503, true), (504, false)]
        {
            let rest = Rest::default();
            rest.learn(&report(now, status, Some(9)));
            assert_eq!(rest.ends(now).is_some(), rests, "{status}");
        }
    }

    #[test]
    fn a_rest_lasts_as_long_as_was_asked_and_at_most_five_minutes() {
        let now = Instant::now();
        for (asked, lasts) in [(None, DEFAULT), (Some(7), Duration::from_secs(7)), (Some(9999), LONGEST)] {
            let rest = Rest::default();
            rest.learn(&report(now, 503, asked));
            assert_eq!(rest.ends(now), Some(now + lasts));
            assert_eq!(rest.ends(now + lasts), None);
        }
        let rest = Rest::default();
        rest.learn(&report(now, 429, Some(0)));
        assert_eq!(rest.ends(now), None, "no time was asked for");
    }

    #[test]
    fn the_later_end_stands() {
        let now = Instant::now();
        let rest = Rest::default();
        rest.learn(&report(now, 503, Some(60)));
        rest.learn(&report(now + Duration::from_secs(1), 503, Some(1)));
        assert_eq!(rest.ends(now + Duration::from_secs(59)), Some(now + Duration::from_secs(60)));
        rest.learn(&report(now + Duration::from_secs(100), 503, Some(5)));
        assert_eq!(rest.ends(now + Duration::from_secs(101)), Some(now + Duration::from_secs(105)));
    }
}
