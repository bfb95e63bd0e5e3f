//! Whether a failed attempt may be followed by another: the one function that decides.
//!
//! An exchange may be tried once more, on a node not yet tried, as long as nothing has reached the
//! client and the failed attempt surely does no more work. A request that was sent and timed out is
//! never sent again: the first node may still be at work on it. Where the gateway lacks what any connection takes
//! another node would be asked in vain; ports it has for each node, so another may still be reached.

use crate::failure::Failure;

/// What is known when an attempt has failed.
#[derive(Debug, Clone, Copy)]
pub struct Facts {
    /// What went wrong.
    pub failure: Failure,
    /// Status and headers have gone to the client.
    pub committed: bool,
    /// The whole request body is still held.
    pub body_held: bool,
    /// Attempts so far, at least 1.
    pub attempts: u32,
    /// Attempts allowed in all.
    pub attempts_max: u32,
    /// A node that may be used has not been tried.
    pub untried: bool,
    /// The cluster may have one more second attempt.
    pub budget_left: bool,
}

/// What to do after a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Try a node not yet tried.
    Retry,
    /// Tell the client.
    GiveUp,
}

/// Decides. Pure: the same facts give the same answer.
pub fn decide(facts: Facts) -> Decision {
    let allowed = !facts.committed
        && facts.body_held
        && facts.untried
        && facts.budget_left
        && facts.attempts < facts.attempts_max
        && surely_over(facts.failure);
    if allowed { Decision::Retry } else { Decision::GiveUp }
}

/// The failed node does no more work for this request, the failure is not of the client's making, and another node may
/// do better.
pub fn surely_over(failure: Failure) -> bool {
    match failure {
        Failure::Connect
        | Failure::NoPort
        | Failure::ConnectTimeout
        | Failure::Unanswered
        | Failure::Disconnected
        | Failure::Unfinished
        | Failure::Empty => true,
        Failure::Status(status) => matches!(status, 429 | 502 | 503 | 504),
        Failure::FirstEventTimeout
        | Failure::UnaryTimeout
        | Failure::IdleTimeout
        | Failure::TotalTimeout
        | Failure::NotHttp
        | Failure::NoStream
        | Failure::ShuttingDown
        | Failure::Starved
        | Failure::BackendRemoved => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FIRST: Facts = Facts {
        failure: Failure::Connect,
        committed: false,
        body_held: true,
        attempts: 1,
        attempts_max: 2,
        untried: true,
        budget_left: true,
    };

    #[test]
    fn a_refused_connect_goes_to_another_node() {
        assert_eq!(decide(FIRST), Decision::Retry);
    }

    #[test]
    fn nothing_is_retried_after_commitment() {
        assert_eq!(decide(Facts { committed: true, ..FIRST }), Decision::GiveUp);
    }

    #[test]
    fn a_body_that_is_gone_is_never_resent() {
        assert_eq!(decide(Facts { body_held: false, ..FIRST }), Decision::GiveUp);
    }

    #[test]
    fn no_node_is_tried_twice_and_attempts_are_bounded() {
        assert_eq!(decide(Facts { untried: false, ..FIRST }), Decision::GiveUp);
        assert_eq!(decide(Facts { attempts: 2, ..FIRST }), Decision::GiveUp);
    }

    #[test]
    fn nothing_is_retried_beyond_the_budget() {
        assert_eq!(decide(Facts { budget_left: false, ..FIRST }), Decision::GiveUp);
    }

    #[test]
    fn only_what_surely_ended_is_retried() {
        use Failure::*;
        let yes = [
            Connect,
            NoPort,
            ConnectTimeout,
            Unanswered,
            Disconnected,
            Unfinished,
            Empty,
            Status(429),
            Status(502),
            Status(503),
            Status(504),
        ];
        let no = [
            FirstEventTimeout,
            UnaryTimeout,
            IdleTimeout,
            TotalTimeout,
            NotHttp,
            NoStream,
            Starved,
            ShuttingDown,
            BackendRemoved,
            Status(500),
            Status(400),
        ];
        assert!(yes.into_iter().all(|failure| decide(Facts { failure, ..FIRST }) == Decision::Retry));
        assert!(no.into_iter().all(|failure| decide(Facts { failure, ..FIRST }) == Decision::GiveUp));
    }
}
