//! What the log says of an attempt that failed: which backend, how, and the cause behind it.
//!
//! At most one line a second, backend and kind of failure, so that an outage does not cost a line a request; the line
//! tells how many it stands for. At level `debug` each has its own.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::describe;
use super::exchange::Exchange;
use crate::access_log::Line;
use crate::cluster::{Cluster, NoBackend};
use crate::config::Timeouts;
use crate::failure::Failure;
use crate::rejection::Rejection;

/// What follows the failure.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Next {
    /// Another node is tried.
    Retry,
    /// The exchange ends with it.
    End,
}

/// Tells the failure of the exchange's current attempt.
pub(super) fn failed(exchange: &Exchange, failure: Failure, next: Next, now: Instant) {
    let Some(backend) = exchange.tried.last() else { return };
    // The end of this process, or of its place in the configuration, is no failing of the backend.
    if matches!(failure, Failure::ShuttingDown | Failure::BackendRemoved) {
        return;
    }
    match backend.state.failures.note(failure, now) {
        Some(count) => log::warn!("{}{}", line(exchange, failure, next), others(count - 1)),
        None => log::debug!("{}", line(exchange, failure, next)),
    }
}

fn line(exchange: &Exchange, failure: Failure, next: Next) -> String {
    let addr = exchange.tried.last().map(|backend| format!(" ({})", backend.addr)).unwrap_or_default();
    let mut line = format!("{}{addr}: {}", describe(exchange), why(exchange, failure));
    if next == Next::Retry {
        line.push_str("; trying another node");
    }
    line
}

/// A failure of the current attempt with what is behind it: the word of the system, or the setting.
pub(super) fn why(exchange: &Exchange, failure: Failure) -> String {
    let link = exchange.attempt.as_ref().map(|attempt| &attempt.link);
    let limit = exchange.timeouts().and_then(|timeouts| limit(failure, timeouts));
    match link.and_then(|link| link.cause().map(str::to_owned)).or(limit) {
        Some(cause) => format!("{failure}: {cause}"),
        None => failure.to_string(),
    }
}

/// The setting that ended it.
fn limit(failure: Failure, timeouts: &Timeouts) -> Option<String> {
    let (name, limit) = match failure {
        Failure::FirstEventTimeout => ("first_event", timeouts.first_event),
        Failure::UnaryTimeout => ("unary", timeouts.unary),
        Failure::IdleTimeout => ("idle", timeouts.idle),
        Failure::TotalTimeout => ("total", timeouts.total),
        _ => return None,
    };
    Some(format!("timeouts.{name} is {limit:?}"))
}

/// Failures of the backend that have had no line.
pub(super) fn others(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => " (and 1 failure more of this kind on this backend since its last line)".into(),
        _ => format!(" (and {count} failures more of this kind on this backend since its last line)"),
    }
}

/// Tells that a cluster has no backend to offer; what is done about it is told elsewhere.
pub(super) fn nothing_in(cluster: &Cluster, none: NoBackend, now: Instant) {
    // What became of each has been told as it failed.
    if none == NoBackend::AllTried {
        return;
    }
    if let Some(count) = cluster.state.shortages.note(now) {
        log::warn!("cluster {}: {none}{}", cluster.config.name, more(count - 1));
    }
}

/// Tells that the exchange found no slot.
pub(super) fn refused(exchange: &Exchange, why: &Rejection, now: Instant) {
    let Some(cluster) = &exchange.cluster else { return };
    // That there is no backend has been told of the cluster.
    if *why == Rejection::NoBackend {
        return;
    }
    if let Some(count) = cluster.state.shortages.note(now) {
        log::warn!(
            "cluster {}: {}: {}{}",
            cluster.config.name,
            describe(exchange),
            why.message(),
            more(count - 1)
        );
    }
}

/// Tells that the retry budget of the cluster let no second attempt follow.
pub(super) fn exhausted(exchange: &Exchange, cluster: &Cluster, failure: Failure, now: Instant) {
    if let Some(count) = cluster.state.exhausted.note(now) {
        let about = describe(exchange);
        log::warn!(
            "cluster {}: {about}: {failure}; the retry budget is used up{}",
            cluster.config.name,
            more(count - 1)
        );
    }
}

/// Tells of a stream whose first token took longer than `log.slow`, or had not come by then.
pub(super) fn slow(exchange: &Exchange, line: &Line, now: Instant) {
    let Some(limit) = exchange.snapshot.log.slow else { return };
    let late = line.first_token.unwrap_or(line.total);
    // What never was at an engine is slow for another reason, and told of as that.
    if !exchange.request.streaming || line.attempts == 0 || late <= limit {
        return;
    }
    if let Some(count) = exchange.shared.slow.note(now) {
        log::warn!("{}{}", late_line(line, limit), more(count - 1));
    }
}

fn late_line(line: &Line, limit: Duration) -> String {
    let name = |name: &Option<Arc<str>>| name.as_deref().unwrap_or("-").to_owned();
    let came = match line.first_token {
        Some(after) => format!("its first token came after {after:.1?}"),
        None => {
            format!("no token had come when it ended after {:.1?} ({})", line.total, line.outcome.as_str())
        }
    };
    let queued = line.queued.map(|queued| format!(", {queued:.1?} of it in the queue")).unwrap_or_default();
    let place = format!("{}/{}", name(&line.cluster), name(&line.backend));
    format!("slow: request {} on {place}: {came}{queued} (log.slow is {limit:?})", line.request_id)
}

/// Says that the bodies of all requests together have what they may have, which each of those refused sees as 503 only.
pub(super) fn crowded(exchange: &Exchange, line: &Line, now: Instant) {
    if line.limit != Rejection::Overloaded.limit() {
        return;
    }
    let ledger = &exchange.shared.ledger;
    if let Some(count) = exchange.shared.crowded.note(now) {
        log::warn!(
            "no room for the body of request {}: those under way hold {} of {} bytes (server.request.buffered_bytes), each up \
             to twice what has come of it{}",
            line.request_id,
            ledger.used(),
            ledger.limit(),
            more(count - 1)
        );
    }
}

/// Times that have had no line.
fn more(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" (and {count} times more since the last line)") }
}
