//! Which of several deadlines comes first: a pure choice, so that no two places can disagree.
//!
//! A *deadline* is an instant, a *timeout* a duration. The upstream session gathers the deadlines
//! that may fall due now, arms one timer for the earliest and asks again when it fires.

use std::time::Instant;

/// What falls due when a deadline passes. Where two pass at the same instant the earlier of this
/// list is reported: the harder limit wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Due {
    /// `timeouts.total`.
    Total,
    /// `timeouts.unary`.
    Unary,
    /// `timeouts.first_event`.
    FirstEvent,
    /// `timeouts.idle`.
    Idle,
    /// `stream.hold_headers` is over: commit.
    Hold,
    /// `stream.early_headers` is over: commit without an upstream answer.
    Early,
    /// `stream.heartbeat` of silence toward the client.
    Heartbeat,
}

/// The deadlines that may fall due, earliest kept.
#[derive(Debug, Clone, Copy)]
pub struct Earliest(Option<(Instant, Due)>);

impl Earliest {
    /// No deadline yet.
    pub fn none() -> Self {
        Self(None)
    }

    /// Takes `at` in if it is earlier than what is known. `None` is never.
    pub fn or(self, due: Due, at: Option<Instant>) -> Self {
        match (self.0, at) {
            (known, None) => Self(known),
            (None, Some(at)) => Self(Some((at, due))),
            (Some(known), Some(at)) => Self(Some(known.min((at, due)))),
        }
    }

    /// The earliest deadline and what falls due then.
    pub fn get(self) -> Option<(Instant, Due)> {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn the_earliest_wins_whatever_the_order() {
        let now = Instant::now();
        let at = |seconds| Some(now + Duration::from_secs(seconds));
        let forward = Earliest::none().or(Due::Total, at(9)).or(Due::Idle, at(2)).or(Due::Heartbeat, at(5));
        let backward = Earliest::none().or(Due::Heartbeat, at(5)).or(Due::Idle, at(2)).or(Due::Total, at(9));
        assert_eq!(forward.get(), at(2).map(|at| (at, Due::Idle)));
        assert_eq!(forward.get(), backward.get());
    }

    #[test]
    fn a_tie_goes_to_the_harder_limit_and_never_is_never() {
        let at = Some(Instant::now());
        let tie = Earliest::none().or(Due::Heartbeat, at).or(Due::Total, at).or(Due::Idle, None);
        assert_eq!(tie.get().map(|(_, due)| due), Some(Due::Total));
        assert_eq!(Earliest::none().or(Due::Idle, None).get(), None);
    }
}
