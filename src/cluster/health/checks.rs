//! Active checks: how many in a row make a verdict, and when the verdict is outvoted.
//!
//! ```text
//! passing --fall failures in a row--> failing --rise successes in a row--> passing
//! ```
//! The very first check decides alone: of a node that nobody has met there is nothing else to go by.

use std::time::{Duration, Instant};

use crate::config::Active;

/// An answer outvotes failing checks for at least this long; what is in flight is looked at less often
/// than checks may be made.
const WINDOW_MIN: Duration = Duration::from_secs(2);

/// What the checks of a backend have said.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// One has been made.
    known: bool,
    failing: bool,
    /// Checks in a row that contradict the verdict.
    against: u32,
    /// When the first one failed of those that fail now.
    since: Option<Instant>,
    /// How long an answer outvotes them.
    window: Duration,
}

impl Checks {
    /// Notes a check. Whether the verdict has changed.
    pub(super) fn note(&mut self, passed: bool, now: Instant, active: &Active) -> bool {
        self.window = active.every.saturating_mul(active.fall).max(WINDOW_MIN);
        let first = !std::mem::replace(&mut self.known, true);
        if passed && !self.failing {
            self.since = None;
        } else if !passed {
            self.since.get_or_insert(now);
        }
        if passed != self.failing {
            self.against = 0;
            return false;
        }
        self.against += 1;
        let needed = if self.failing { active.rise } else { active.fall };
        if self.against < needed && !first {
            return false;
        }
        self.against = 0;
        self.failing = !passed;
        if passed {
            self.since = None;
        }
        true
    }

    /// Whether there are some, and they say that the backend is well.
    pub(super) fn passing(&self) -> bool {
        self.known && !self.failing
    }

    /// Whether they say that the backend is down.
    pub(super) fn failing(&self) -> bool {
        self.failing
    }

    /// Whether the backend has sent data since its checks began to fail, and not long ago: whoever generates
    /// is not dead.
    pub(super) fn outvoted(&self, progress: Option<Instant>, now: Instant) -> bool {
        progress.zip(self.since).is_some_and(|(data, since)| data > since && now <= data + self.window)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn active() -> Active {
        Active {
            path: "/health".into(),
            every: Duration::from_secs(2),
            timeout: Duration::from_secs(1),
            fall: 3,
            rise: 2,
        }
    }

    fn verdicts(checks: &[bool]) -> Vec<bool> {
        let (now, mut state) = (Instant::now(), Checks::default());
        checks
            .iter()
            .map(|passed| {
                state.note(*passed, now, &active());
                state.failing()
            })
            .collect()
    }

    #[test]
    fn fall_and_rise_are_counted_in_a_row() {
        assert_eq!(verdicts(&[true, false, false, true, false, false, false]), {
            [false, false, false, false, false, false, true]
        });
        assert_eq!(
            verdicts(&[true, false, false, false, true, false, true, true]),
            [false, false, false, true, true, true, true, false]
        );
    }

    #[test]
    fn the_first_check_decides_alone() {
        assert_eq!(verdicts(&[false, true, true]), [true, true, false]);
    }

    #[test]
    fn an_answer_outvotes_for_a_while_and_only_if_it_came_after_the_checks_began_to_fail() {
        let (start, mut checks) = (Instant::now(), Checks::default());
        let at = |seconds| start + Duration::from_secs(seconds);
        checks.note(true, start, &active());
        for second in [2, 4, 6] {
            checks.note(false, at(second), &active());
        }
        assert!(checks.failing());
        assert!(!checks.outvoted(None, at(6)));
        assert!(!checks.outvoted(Some(at(2)), at(6)), "before they failed");
        assert!(checks.outvoted(Some(at(5)), at(11)));
        assert!(!checks.outvoted(Some(at(5)), at(12)), "too long ago");
    }
}
