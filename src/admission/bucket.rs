//! A rate as a bucket: it holds a whole period's amount, fills up evenly, and may go into debt.
//!
//! The one hard idea is the unit, in which nothing is ever rounded: a token is as many units as its period
//! has nanoseconds, and so each nanosecond brings as many units as the period has tokens. The same bucket
//! as GCRA's, seen from the other side; ours because what a request costs is known only when it is over,
//! so that a charge must be possible that finds the bucket empty (the crate `governor` has none).

use std::time::{Duration, Instant};

use crate::config::units::Rate;

/// A bucket that fills up at a rate. Invariant: `left` is at most a whole period's amount.
#[derive(Debug, Clone)]
pub struct Bucket {
    rate: Rate,
    /// What is left at `at`, in units; less than 0 is a debt.
    left: i128,
    at: Instant,
}

/// What a bucket holds, for those who want to pace themselves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Level {
    /// The amount of a whole period.
    pub limit: u64,
    /// Whole tokens that are left.
    pub remaining: u64,
    /// Time until it is full again, if nothing more is taken.
    pub reset: Duration,
}

impl Bucket {
    /// A full one.
    pub fn full(rate: Rate, now: Instant) -> Self {
        Self { rate, left: whole(rate), at: now }
    }

    /// Takes so much, or says how long that much will be missing. Of more than a whole period's amount only
    /// that can be asked for: a full bucket has no more. Gives what was taken.
    ///
    /// # Errors
    /// There is not enough, for so long; nothing is taken.
    pub fn take(&mut self, amount: u64, now: Instant) -> Result<u64, Duration> {
        self.fill(now);
        let amount = amount.min(self.rate.count);
        let left = self.left - units(self.rate, amount);
        if left < 0 {
            return Err(self.time_for(-left));
        }
        self.left = left;
        Ok(amount)
    }

    /// Takes so much, whether it is there or not.
    pub fn charge(&mut self, amount: u64, now: Instant) {
        self.fill(now);
        self.left = self.left.saturating_sub(units(self.rate, amount));
    }

    /// Puts so much back.
    pub fn give_back(&mut self, amount: u64, now: Instant) {
        self.fill(now);
        self.left = self.left.saturating_add(units(self.rate, amount)).min(whole(self.rate));
    }

    /// Fills up at another rate from now on. What is left stays, and so does a debt, within a whole
    /// period's amount of the new rate: a reload is no refill.
    pub fn follow(&mut self, rate: Rate, now: Instant) {
        if rate == self.rate {
            return;
        }
        self.fill(now);
        let tokens = self.left.div_euclid(unit(self.rate));
        let most = i128::from(rate.count);
        *self = Self { rate, left: tokens.clamp(-most, most) * unit(rate), at: self.at };
    }

    /// Takes over what somebody else knows to be left, in thousandths of a token.
    pub fn set_left(&mut self, thousandths: i64, now: Instant) {
        self.fill(now);
        let left = i128::from(thousandths) * unit(self.rate) / 1000;
        self.left = left.min(whole(self.rate));
    }

    /// What is left, in thousandths of a token.
    pub fn left(&mut self, now: Instant) -> i64 {
        self.fill(now);
        let thousandths = (self.left * 1000).div_euclid(unit(self.rate));
        i64::try_from(thousandths).unwrap_or(if thousandths < 0 { i64::MIN } else { i64::MAX })
    }

    /// What it holds.
    pub fn level(&mut self, now: Instant) -> Level {
        self.fill(now);
        let remaining = u64::try_from(self.left / unit(self.rate)).unwrap_or(0);
        let reset = self.time_for(whole(self.rate) - self.left);
        Level { limit: self.rate.count, remaining, reset }
    }

    /// The rate it fills up at.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// An earlier `now` than the last, as threads bring them, fills nothing.
    fn fill(&mut self, now: Instant) {
        let nanos = now.saturating_duration_since(self.at).as_nanos();
        let nanos = i128::try_from(nanos).unwrap_or(i128::MAX);
        let gain = nanos.saturating_mul(i128::from(self.rate.count));
        self.left = self.left.saturating_add(gain).min(whole(self.rate));
        self.at = self.at.max(now);
    }

    /// How long it takes to gain so many units, rounded up.
    fn time_for(&self, units: i128) -> Duration {
        let nanos = u128::try_from(units).unwrap_or(0).div_ceil(u128::from(self.rate.count.max(1)));
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// A token in units. At most an hour in nanoseconds, 3.6e12; with a count of a `u64` far from the end of an `i128`.
fn unit(rate: Rate) -> i128 {
    i128::try_from(rate.per.as_nanos().max(1)).unwrap_or(i128::MAX)
}

fn units(rate: Rate, tokens: u64) -> i128 {
    i128::from(tokens).saturating_mul(unit(rate))
}

fn whole(rate: Rate) -> i128 {
    units(rate, rate.count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PER_SECOND: Rate = Rate { count: 10, per: Duration::from_secs(1) };
    const PER_MINUTE: Rate = Rate { count: 600, per: Duration::from_secs(60) };

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn a_whole_period_may_come_at_once_and_then_evenly() {
        let now = Instant::now();
        let mut bucket = Bucket::full(PER_SECOND, now);
        assert_eq!(bucket.take(10, now), Ok(10));
        assert_eq!(bucket.take(1, now), Err(ms(100)));
        assert_eq!(bucket.take(1, now + ms(99)), Err(ms(1)));
        assert_eq!(bucket.take(1, now + ms(100)), Ok(1));
        assert_eq!(bucket.take(10, now + ms(150)), Err(ms(950)));
        assert_eq!(bucket.level(now + ms(150)), Level { limit: 10, remaining: 0, reset: ms(950) });
    }

    #[test]
    fn a_debt_delays_what_comes_next_and_what_is_given_back_is_there_at_once() {
        let now = Instant::now();
        let mut bucket = Bucket::full(PER_SECOND, now);
        bucket.charge(25, now);
        assert_eq!(bucket.take(1, now), Err(ms(1_600)));
        assert_eq!((bucket.left(now), bucket.level(now).remaining), (-15_000, 0));
        bucket.give_back(16, now);
        assert_eq!(bucket.take(1, now), Ok(1));
        bucket.give_back(1_000, now);
        assert_eq!(bucket.left(now), 10_000);
    }

    #[test]
    fn more_than_there_ever_is_takes_all_there_ever_is() {
        let now = Instant::now();
        let mut bucket = Bucket::full(PER_SECOND, now);
        assert_eq!(bucket.take(1, now), Ok(1));
        assert_eq!(bucket.take(u64::MAX, now), Err(ms(100)));
        assert_eq!(bucket.take(u64::MAX, now + ms(100)), Ok(10));
    }

    #[test]
    fn another_rate_is_no_refill_and_no_lockout() {
        let now = Instant::now();
        let mut bucket = Bucket::full(PER_MINUTE, now);
        bucket.charge(595, now);
        bucket.follow(PER_SECOND, now);
        assert_eq!(bucket.left(now), 5_000);
        bucket.follow(PER_MINUTE, now);
        assert_eq!(bucket.left(now), 5_000);
        bucket.charge(505, now);
        bucket.follow(PER_SECOND, now);
        assert_eq!(bucket.left(now), -10_000, "a debt of one period at most");
    }

    #[test]
    fn a_clock_of_another_thread_that_is_behind_fills_nothing() {
        let now = Instant::now() + ms(1_000);
        let mut bucket = Bucket::full(PER_SECOND, now);
        assert_eq!(bucket.take(10, now), Ok(10));
        assert!(bucket.take(1, now - ms(500)).is_err());
        assert_eq!(bucket.take(1, now + ms(99)), Err(ms(1)));
    }

    #[test]
    fn the_largest_figures_do_not_overflow() {
        let now = Instant::now();
        let rate = Rate { count: u64::MAX, per: Duration::from_secs(3600) };
        let mut bucket = Bucket::full(rate, now);
        assert_eq!(bucket.take(u64::MAX, now), Ok(u64::MAX));
        (0..4).for_each(|_| bucket.charge(u64::MAX, now));
        assert!(bucket.take(1, now).is_err());
        bucket.follow(PER_SECOND, now + Duration::from_secs(1));
        assert_eq!(bucket.left(now), -10_000);
        assert_eq!(bucket.take(10, now + Duration::from_secs(400 * 24 * 3600)), Ok(10));
    }
}
