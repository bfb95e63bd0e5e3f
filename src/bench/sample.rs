//! Percentiles of many values in bounded memory. Pure.
//!
//! The one hard idea: up to [`KEPT`] values all are kept and every percentile is exact; from there on the kept ones
//! are a fair draw of all (reservoir sampling: the n-th value takes a place with the probability `KEPT / n`). The
//! number of values and the largest stay exact.

use serde::Serialize;

/// Values that are kept, of four bytes each.
const KEPT: usize = 100_000;

/// Times in microseconds.
#[derive(Debug)]
pub(super) struct Sample {
    kept: Vec<u32>,
    count: u64,
    max: u32,
    /// Always the same draws: two runs differ by what they measure.
    draws: fastrand::Rng,
}

/// What is told of a [`Sample`]; all times in microseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(super) struct Spread {
    /// How many values there were.
    pub(super) count: u64,
    pub(super) p50: u32,
    pub(super) p90: u32,
    pub(super) p99: u32,
    pub(super) max: u32,
}

impl Default for Sample {
    fn default() -> Self {
        Self { kept: Vec::new(), count: 0, max: 0, draws: fastrand::Rng::with_seed(0) }
    }
}

impl Sample {
    /// Adds a value.
    pub(super) fn add(&mut self, micros: u32) {
        self.count += 1;
        self.max = self.max.max(micros);
        if self.kept.len() < KEPT {
            self.kept.push(micros);
            return;
        }
        let place = self.draws.u64(..self.count);
        if let Some(kept) = usize::try_from(place).ok().and_then(|place| self.kept.get_mut(place)) {
            *kept = micros;
        }
    }

    /// Adds many.
    pub(super) fn extend(&mut self, micros: impl IntoIterator<Item = u32>) {
        micros.into_iter().for_each(|micros| self.add(micros));
    }

    /// Its percentiles: each the smallest value that so many of a hundred do not exceed. `None` without values.
    pub(super) fn spread(&self) -> Option<Spread> {
        let mut sorted = self.kept.clone();
        sorted.sort_unstable();
        let at = |percent: usize| {
            let rank = (sorted.len() * percent).div_ceil(100);
            sorted.get(rank.saturating_sub(1)).copied()
        };
        Some(Spread { count: self.count, p50: at(50)?, p90: at(90)?, p99: at(99)?, max: self.max })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spread(values: impl IntoIterator<Item = u32>) -> Option<Spread> {
        let mut sample = Sample::default();
        sample.extend(values);
        sample.spread()
    }

    #[test]
    fn percentiles_are_values_that_came() {
        assert_eq!(spread([]), None);
        assert_eq!(spread([7]), Some(Spread { count: 1, p50: 7, p90: 7, p99: 7, max: 7 }));
        let hundred = Spread { count: 100, p50: 50, p90: 90, p99: 99, max: 100 };
        assert_eq!(spread((1..=100).rev()), Some(hundred));
        assert_eq!(spread([1, 2, 3]), Some(Spread { count: 3, p50: 2, p90: 3, p99: 3, max: 3 }));
    }

    #[test]
    fn a_million_values_take_no_more_room_and_stay_near() {
        let mut sample = Sample::default();
        sample.extend(0..1_000_000);
        assert_eq!((sample.kept.len(), sample.count, sample.max), (KEPT, 1_000_000, 999_999));
        let spread = sample.spread().unwrap();
        for (got, due) in [(spread.p50, 500_000), (spread.p90, 900_000), (spread.p99, 990_000)] {
            assert!(got.abs_diff(due) < 10_000, "{got} for {due}");
        }
    }
}
