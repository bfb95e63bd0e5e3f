//! A backend that is to get no new work, and why.
//!
//! It is kept beside what is known of the backend and not in a snapshot: an exchange that still lives by
//! an older snapshot, and fails over, must not be sent to a backend that has left since.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

/// Who says that a backend gets no new work.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Leave {
    /// The configuration names it no more, or its name has no such address any more.
    Removed = 1,
    /// The file says `drain: true`.
    File = 2,
    /// An operator said so through the admin listener.
    Operator = 4,
}

/// Whether a backend gets new work, and whether what it has must end.
#[derive(Debug, Default)]
pub struct Leaving {
    reasons: AtomicU8,
    cut: AtomicBool,
}

impl Leaving {
    /// Gives it no new work for this reason, or takes the reason back.
    pub fn set(&self, reason: Leave, holds: bool) {
        if holds {
            self.reasons.fetch_or(reason as u8, Ordering::AcqRel);
        } else {
            self.reasons.fetch_and(!(reason as u8), Ordering::AcqRel);
        }
    }

    /// Whether this is a reason.
    pub fn is(&self, reason: Leave) -> bool {
        self.reasons.load(Ordering::Acquire) & reason as u8 != 0
    }

    /// Whether it gets no new work, for whatever reason.
    pub fn takes_nothing(&self) -> bool {
        self.reasons.load(Ordering::Acquire) != 0
    }

    /// Says whether the attempts that are open on it must end; those that wait are to be woken besides.
    pub fn cut(&self, holds: bool) {
        self.cut.store(holds, Ordering::Release);
    }

    /// Whether the attempts that are open on it must end.
    pub fn is_cut(&self) -> bool {
        self.cut.load(Ordering::Acquire)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_taken_back_by_itself() {
        let leaving = Leaving::default();
        assert!(!leaving.takes_nothing());
        leaving.set(Leave::File, true);
        leaving.set(Leave::Operator, true);
        leaving.set(Leave::File, false);
        assert!(leaving.takes_nothing() && leaving.is(Leave::Operator) && !leaving.is(Leave::File));
        leaving.set(Leave::Operator, false);
        assert!(!leaving.takes_nothing());
    }
}
