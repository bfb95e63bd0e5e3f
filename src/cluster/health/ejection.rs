//! How long a backend is out of the rotation, and how many may be.

use std::time::{Duration, Instant};

use super::condition::Reason;
use crate::config::Passive;

/// Doublings beyond which every ejection has long reached its cap.
const DOUBLINGS_MAX: u32 = 20;

/// Ejections are up to this share shorter than computed, so that nodes that fell together do not come
/// back together.
const JITTER: f64 = 0.1;

/// A time out of the rotation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ejection {
    /// When it began.
    pub(super) at: Instant,
    /// From when on it is half-open.
    pub(super) until: Instant,
    /// Why.
    pub(super) reason: Reason,
    /// As many as may be are out already: it is asked where no other can be.
    pub(super) kept: bool,
    /// A client's request may be the trial that ends it. One that is wedged is asked by a probe of ours.
    pub(super) takes_requests: bool,
}

/// How often a backend was ejected lately.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Ejections in a row.
    pub(super) times: u32,
    /// The length of the last one.
    pub(super) length: Duration,
    /// When the last one ended.
    pub(super) over_at: Option<Instant>,
}

impl Record {
    /// Notes one more ejection and gives its length. Each span as long as the last ejection that was
    /// spent in the rotation makes up for one of them.
    pub(super) fn again(&mut self, now: Instant, draw: u64, passive: &Passive) -> Duration {
        let good = self.over_at.take().map_or(Duration::ZERO, |over| now.saturating_duration_since(over));
        let forgiven = good.as_millis() / self.length.as_millis().max(1);
        let forgiven = u32::try_from(forgiven).unwrap_or(u32::MAX);
        self.times = self.times.saturating_sub(forgiven).saturating_add(1);
        self.length = length(self.times, draw, passive);
        self.length
    }
}

/// The base length, doubled for each ejection before, at most the cap, a little shorter by chance.
pub(super) fn length(times: u32, draw: u64, passive: &Passive) -> Duration {
    let doubled = passive.ejection.saturating_mul(1 << times.saturating_sub(1).min(DOUBLINGS_MAX));
    doubled.min(passive.ejection_max).mul_f64(1.0 - JITTER * fraction(draw))
}

/// The most backends of so many that may be ejected at once: always one.
pub(in crate::cluster) fn most(backends: usize, passive: &Passive) -> usize {
    // The share came from a percentage: 29 % of 100 must not be 28.
    ((backends as f64 * passive.max_ejected + 1e-9) as usize).max(1)
}

/// A random number as one from 0 to 1, without 1.
fn fraction(draw: u64) -> f64 {
    (draw >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const PASSIVE: Passive = Passive {
        consecutive: 3,
        ejection: Duration::from_secs(10),
        ejection_max: Duration::from_secs(300),
        max_ejected: 0.5,
    };

    #[test]
    fn each_ejection_is_twice_as_long_until_the_cap() {
        let lengths: Vec<u64> = (1..=7).map(|times| length(times, 0, &PASSIVE).as_secs()).collect();
        assert_eq!(lengths, [10, 20, 40, 80, 160, 300, 300]);
        assert_eq!(length(u32::MAX, 0, &PASSIVE), PASSIVE.ejection_max);
    }

    #[test]
    fn chance_shortens_by_a_tenth_at_most() {
        let shortest = length(1, u64::MAX, &PASSIVE);
        assert!(
            shortest >= Duration::from_secs(9) && shortest < Duration::from_millis(9_001),
            "{shortest:?}"
        );
    }

    #[test]
    fn one_may_always_be_ejected_and_never_more_than_the_share() {
        let most: Vec<usize> = [1, 2, 3, 4, 100].map(|backends| most(backends, &PASSIVE)).into();
        assert_eq!(most, [1, 1, 1, 2, 50]);
        let share = |max_ejected| super::most(100, &Passive { max_ejected, ..PASSIVE });
        assert_eq!((share(0.0), share(0.29), share(1.0)), (1, 29, 100));
    }

    #[test]
    fn good_time_makes_up_for_ejections() {
        let start = Instant::now();
        let mut record = Record::default();
        let mut now = start;
        for _ in 0..3 {
            let length = record.again(now, 0, &PASSIVE);
            now += length;
            record.over_at = Some(now);
        }
        assert_eq!((record.times, record.length), (3, Duration::from_secs(40)));
        assert_eq!(record.again(now + Duration::from_secs(81), 0, &PASSIVE), Duration::from_secs(20));
    }
}
