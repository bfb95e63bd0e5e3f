//! Failures of a backend, as far as the log tells them.
//!
//! In an outage every request fails, and must not be a line. The hard idea: what fails in another way than the one before
//! it is news, though it comes within the same second. So each kind of failure has a line a second of its own, and what
//! had none is told by its number.

use std::mem::discriminant;
use std::time::Instant;

use parking_lot::Mutex;

use crate::failure::Failure;
use crate::told::Told;

/// Failures of one backend: as many kinds as [`Failure`] has.
#[derive(Debug, Default)]
pub struct Failures(Mutex<Vec<(Failure, Told)>>);

impl Failures {
    /// Notes one; gives how many of its kind to tell of, this one among them, if it is time.
    pub fn note(&self, failure: Failure, now: Instant) -> Option<u64> {
        let mut kinds = self.0.lock();
        let known = kinds.iter().position(|(kind, _)| discriminant(kind) == discriminant(&failure));
        let at = known.unwrap_or_else(|| {
            kinds.push((failure, Told::default()));
            kinds.len() - 1
        });
        kinds[at].0 = failure;
        kinds[at].1.note(now)
    }

    /// Gives those that were not told when they happened, if it is time: the last of each kind, and their number.
    pub fn late(&self, now: Instant) -> Vec<(Failure, u64)> {
        let kinds = self.0.lock();
        kinds.iter().filter_map(|(failure, told)| Some((*failure, told.late(now)?))).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn each_kind_is_told_once_a_second_and_none_is_lost() {
        let (failures, now, second) = (Failures::default(), Instant::now(), Duration::from_secs(1));
        assert_eq!(failures.note(Failure::Connect, now), Some(1));
        assert_eq!(failures.note(Failure::Connect, now), None);
        assert_eq!(failures.note(Failure::Unanswered, now), Some(1), "another kind is news");
        assert_eq!(
            failures.note(Failure::Disconnected, now),
            Some(1),
            "it has the same word, and is told in others"
        );
        assert_eq!(failures.note(Failure::Disconnected, now), None);
        assert_eq!(failures.note(Failure::Status(500), now), Some(1));
        assert_eq!(failures.note(Failure::Status(501), now), None);
        assert_eq!(failures.late(now), []);
        let late = [(Failure::Connect, 1), (Failure::Disconnected, 1), (Failure::Status(501), 1)];
        assert_eq!(failures.late(now + second), late);
        assert_eq!(failures.late(now + second * 2), []);
        assert_eq!(failures.note(Failure::Connect, now + second * 2), Some(1));
    }
}
