//! Whether a failed attempt is followed by another: the facts for [`retry::decide`], and the budget it spends.

use std::time::Instant;

use pingora_proxy::Session;

use super::exchange::Exchange;
use super::shared::Shared;
use super::tell;
use crate::cluster::is_sound;
use crate::failure::Failure;
use crate::retry::{self, Decision, Facts};

/// Decides, and spends the budget of a retry that is decided.
///
/// It is asked twice of the same failure, by the filter that sees a status and by the one that sees the end. What it
/// has decided holds: the answer that the client could have had is gone by then, whatever has become of the backend
/// that was to give another.
pub(super) fn may_retry(
    shared: &Shared,
    failure: Failure,
    session: &Session,
    exchange: &mut Exchange,
) -> bool {
    if exchange.attempt.as_ref().is_some_and(|attempt| attempt.is_followed) {
        return true;
    }
    let decided = decide(shared, failure, session, exchange);
    if let Some(attempt) = &mut exchange.attempt {
        attempt.is_followed = decided;
    }
    decided
}

fn decide(shared: &Shared, failure: Failure, session: &Session, exchange: &mut Exchange) -> bool {
    let Some(cluster) = exchange.cluster.clone() else { return false };
    // What costs something to find out is looked at only where it matters: most answers are no failures.
    let hoped = Facts {
        failure,
        committed: session.response_written().is_some(),
        body_held: exchange.request.body.is_some(),
        attempts: u32::try_from(exchange.tried.len()).unwrap_or(u32::MAX),
        attempts_max: cluster.config.retry.attempts,
        untried: true,
        budget_left: true,
    };
    if retry::decide(hoped) == Decision::GiveUp {
        return false;
    }
    let now = Instant::now();
    let facts = Facts { untried: has_left(failure, exchange, now), ..hoped };
    if retry::decide(facts) == Decision::GiveUp {
        return false;
    }
    let is_free = exchange.clusters().any(|cluster| is_sound(cluster.soundness(&exchange.ask(now))));
    exchange.second = if is_free { None } else { cluster.spend_retry(now) };
    let budget_left = is_free || exchange.second.is_some();
    if !budget_left {
        shared.metrics.budget_exhausted(&cluster.config.name);
        tell::exhausted(exchange, &cluster, failure, now);
    }
    retry::decide(Facts { budget_left, ..facts }) == Decision::Retry
}

/// Whether a cluster of the route has a backend left. One that rests is better than a failed connect; it is no
/// better than the answer of another that has too much to do.
fn has_left(failure: Failure, exchange: &Exchange, now: Instant) -> bool {
    let if_resting = !matches!(failure, Failure::Status(429 | 503));
    let ask = exchange.ask(now);
    exchange.clusters().any(|cluster| cluster.has_left(&ask, if_resting))
}
