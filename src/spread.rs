//! A histogram that many write and somebody reads now and then: how long something takes, in buckets.
//!
//! The one hard idea: whoever has many values to add counts them in an array of its own ([`place`]) and adds that
//! from time to time, so that a value costs no write to memory that is shared. What is read are counts since the
//! process began; the difference of two readings is a histogram of the time between them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Upper bounds of waits on an engine, in seconds: from an answer out of a cache to a long prefill behind a queue.
pub const WAITS: [f64; 16] =
    [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 320.0];

/// Upper bounds of the gaps between tokens, in seconds. Engines generate 10 to 200 tokens a second for each reader,
/// so the buckets are fine from 5 to 100 ms; above are the stalls that a reader notices.
pub const GAPS: [f64; 18] = [
    0.001, 0.002_5, 0.005, 0.01, 0.015, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 10.0,
    30.0,
];

/// The bucket that a time belongs to; as many as there are bounds for what is above all of them.
pub fn place(bounds: &[f64], time: Duration) -> usize {
    let seconds = time.as_secs_f64();
    bounds.partition_point(|bound| *bound < seconds)
}

/// A histogram.
#[derive(Debug)]
pub struct Spread {
    bounds: &'static [f64],
    /// One more than there are bounds.
    counts: Box<[AtomicU64]>,
    micros: AtomicU64,
}

impl Spread {
    /// An empty one with these upper bounds, in seconds and ascending.
    pub fn new(bounds: &'static [f64]) -> Self {
        let counts = (0..=bounds.len()).map(|_| AtomicU64::new(0)).collect();
        Self { bounds, counts, micros: AtomicU64::new(0) }
    }

    /// Adds one value.
    pub fn add(&self, time: Duration) {
        self.counts[place(self.bounds, time)].fetch_add(1, Ordering::Relaxed);
        self.micros.fetch_add(micros(time), Ordering::Relaxed);
    }

    /// Adds the values of an array in which somebody has counted by [`place`], and their sum.
    pub fn add_all(&self, counts: &[u32], sum: Duration) {
        for (shared, count) in self.counts.iter().zip(counts).filter(|(_, count)| **count > 0) {
            shared.fetch_add(u64::from(*count), Ordering::Relaxed);
        }
        self.micros.fetch_add(micros(sum), Ordering::Relaxed);
    }

    /// What it holds now.
    pub fn read(&self) -> Counts {
        let counts = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        Counts { bounds: self.bounds, counts }
    }

    /// The sum of its values.
    pub fn sum(&self) -> Duration {
        Duration::from_micros(self.micros.load(Ordering::Relaxed))
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// What a [`Spread`] held at one moment, or what came to it between two.
#[derive(Debug, Clone, PartialEq)]
pub struct Counts {
    bounds: &'static [f64],
    counts: Vec<u64>,
}

impl Counts {
    /// Nothing.
    pub fn none(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1] }
    }

    /// What came since an earlier reading. One that was higher, of a process that is gone, counts as none.
    pub fn since(&self, earlier: &Self) -> Self {
        let counts = self.counts.iter().zip(&earlier.counts);
        Self {
            bounds: self.bounds,
            counts: counts.map(|(now, before)| now.saturating_sub(*before)).collect(),
        }
    }

    /// Adds what another holds, with the same bounds.
    pub fn merge(&mut self, other: &Self) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Each upper bound in seconds with the number of values up to it; what is above all of them is only in
    /// [`Counts::count`].
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> {
        self.bounds.iter().zip(&self.counts).scan(0, |sum, (bound, count)| {
            *sum += count;
            Some((*bound, *sum))
        })
    }

    /// The value below which a share `q` of all lies, in seconds, as Prometheus' `histogram_quantile` has it: linear
    /// within a bucket, the first of which begins at 0; the highest bound for what lies above it. `None` without
    /// values.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = q * count as f64;
        let (mut lower, mut below) = (0.0, 0);
        for (bound, upto) in self.cumulative() {
            if upto as f64 >= rank && upto > below {
                return Some(lower + (bound - lower) * (rank - below as f64) / (upto - below) as f64);
            }
            (lower, below) = (bound, upto);
        }
        self.bounds.last().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [f64; 3] = [0.1, 0.2, 0.4];

    fn of(millis: &[u64]) -> Counts {
        let spread = Spread::new(&BOUNDS);
        millis.iter().for_each(|millis| spread.add(Duration::from_millis(*millis)));
        spread.read()
    }

    #[test]
    fn a_bound_belongs_to_its_bucket() {
        assert_eq!(
            [0, 100, 101, 400, 401].map(|ms| place(&BOUNDS, Duration::from_millis(ms))),
            [0, 0, 1, 2, 3]
        );
    }

    #[test]
    fn quantiles_are_those_of_prometheus() {
        assert_eq!(Counts::none(&BOUNDS).quantile(0.5), None);
        // histogram_quantile(0.5, {0.1: 2, 0.2: 4, 0.4: 8, +Inf: 8}) = 0.2, and 0.9 lies 3.2 of 4 into the third.
        let some = of(&[50, 50, 150, 150, 300, 300, 300, 300]);
        let close = |q: f64, want: f64| {
            let got = some.quantile(q).unwrap();
            assert!((got - want).abs() < 1e-9, "{q}: {got}");
        };
        close(0.5, 0.2);
        close(0.9, 0.36);
        close(0.125, 0.05);
        close(0.0, 0.0);
        close(1.0, 0.4);
        assert_eq!(of(&[50, 900]).quantile(0.99), Some(0.4), "above all bounds: the highest");
        let between = of(&[150]).quantile(0.5).unwrap();
        assert!((between - 0.15).abs() < 1e-9, "empty buckets have no part in it: {between}");
    }

    #[test]
    fn an_array_of_ones_own_adds_up_to_the_same() {
        let (one, other) = (Spread::new(&GAPS), Spread::new(&GAPS));
        let (mut counts, mut sum) = ([0; GAPS.len() + 1], Duration::ZERO);
        for millis in [0, 3, 40, 40, 700, 99_000] {
            let time = Duration::from_millis(millis);
            one.add(time);
            counts[place(&GAPS, time)] += 1;
            sum += time;
        }
        other.add_all(&counts, sum);
        assert_eq!((one.read(), one.sum()), (other.read(), other.sum()));
        assert_eq!((one.read().count(), one.sum()), (6, Duration::from_millis(99_783)));
    }

    #[test]
    fn a_window_is_the_difference_of_two_readings() {
        let (early, late) = (of(&[50, 300]), of(&[50, 150, 300, 300]));
        assert_eq!(late.since(&early), of(&[150, 300]));
        assert_eq!(early.since(&late).count(), 0);
        let mut sum = of(&[50]);
        sum.merge(&of(&[150]));
        assert_eq!(sum, of(&[50, 150]));
    }
}
