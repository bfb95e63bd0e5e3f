//! What the end of an attempt says of its backend.
//!
//! The rule that everything here serves: what a client can cause never counts. So statuses below 500 are
//! answers like any other, a 500 says nothing, and neither does an attempt that its client left. What the gateway itself
//! lacks does not count either: it would find all backends ill at once, and none of them is.

use crate::cluster::Report;
use crate::failure::Failure;

/// What an attempt says of its backend.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// It answered.
    Good,
    /// It failed.
    Bad(Failure),
    /// It was silent for too long: bad, unless it was busy with others.
    Silent(Failure),
    /// Nothing.
    Nothing,
}

/// Judges a report.
pub(super) fn of(report: &Report) -> Verdict {
    match (report.failure, report.status) {
        (Some(failure), _) => of_failure(failure),
        (None, Some(status @ 502..=504)) => Verdict::Bad(Failure::Status(status)),
        // It rests; that is no illness and no health.
        (None, Some(429)) => Verdict::Nothing,
        (None, Some(200..=499)) if report.whole || report.last_data.is_some() => Verdict::Good,
        (None, _) => Verdict::Nothing,
    }
}

fn of_failure(failure: Failure) -> Verdict {
    match failure {
        Failure::Connect
        | Failure::ConnectTimeout
        | Failure::Unanswered
        | Failure::Disconnected
        | Failure::Unfinished
        | Failure::Empty
        | Failure::NotHttp
        | Failure::Status(502..=504) => Verdict::Bad(failure),
        Failure::FirstEventTimeout | Failure::UnaryTimeout | Failure::IdleTimeout => Verdict::Silent(failure),
        // A client can ask for a stream where there is none.
        Failure::NoStream
        // The whole exchange had its time, and part of it was the client's or another node's.
        | Failure::TotalTimeout
        | Failure::Starved
        | Failure::NoPort
        | Failure::Status(_)
        | Failure::ShuttingDown
        | Failure::BackendRemoved => Verdict::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn report(failure: Option<Failure>, status: Option<u16>, whole: bool) -> Report {
        Report { failure, status, whole, ..Report::of(Instant::now()) }
    }

    #[test]
    fn what_a_client_can_cause_never_counts() {
        for status in (200..=501).chain(505..600) {
            for whole in [true, false] {
                let verdict = of(&report(None, Some(status), whole));
                assert!(matches!(verdict, Verdict::Good | Verdict::Nothing), "{status}: {verdict:?}");
            }
        }
        assert_eq!(of(&report(None, None, false)), Verdict::Nothing, "it left before an answer");
        assert_eq!(of(&report(None, Some(200), false)), Verdict::Nothing, "it left before an event");
        assert_eq!(of(&report(Some(Failure::TotalTimeout), None, false)), Verdict::Nothing);
        assert_eq!(
            of(&report(Some(Failure::NoStream), Some(200), false)),
            Verdict::Nothing,
            "it has no stream"
        );
    }

    #[test]
    fn what_the_gateway_lacks_never_counts() {
        for failure in [Failure::Starved, Failure::NoPort] {
            assert!(failure.is_own_want());
            assert_eq!(of(&report(Some(failure), None, false)), Verdict::Nothing);
        }
    }

    #[test]
    fn what_counts_is_a_closed_list() {
        for failure in [
            Failure::Connect,
            Failure::ConnectTimeout,
            Failure::Unanswered,
            Failure::Disconnected,
            Failure::Unfinished,
            Failure::Empty,
            Failure::NotHttp,
            Failure::Status(503),
        ] {
            assert_eq!(of(&report(Some(failure), None, false)), Verdict::Bad(failure));
        }
        for status in 502..=504 {
            assert_eq!(of(&report(None, Some(status), true)), Verdict::Bad(Failure::Status(status)));
        }
        for failure in [Failure::FirstEventTimeout, Failure::UnaryTimeout, Failure::IdleTimeout] {
            assert_eq!(of(&report(Some(failure), Some(200), false)), Verdict::Silent(failure));
        }
        assert_eq!(of(&report(Some(Failure::Status(429)), None, false)), Verdict::Nothing);
    }
}
