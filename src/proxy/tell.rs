//! What the log says of an attempt that failed: which backend, how, and the cause behind it.
//!
//! At most one line a second and backend, so that an outage does not cost a line a request; the line
//! tells how many it stands for. At level `debug` each has its own.

use std::time::Instant;

use super::describe;
use super::exchange::Exchange;
use crate::config::Timeouts;
use crate::failure::Failure;

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
    // The end of this process is no failing of the backend.
    if failure == Failure::ShuttingDown {
        return;
    }
    match backend.failures.note(now) {
        Some(count) => log::warn!("{}{}", line(exchange, failure, next), others(count - 1)),
        None => log::debug!("{}", line(exchange, failure, next)),
    }
}

fn line(exchange: &Exchange, failure: Failure, next: Next) -> String {
    let addr = exchange.tried.last().map(|backend| format!(" ({})", backend.addr)).unwrap_or_default();
    let mut line = format!("{}{addr}: {failure}", describe(exchange));
    let link = exchange.attempt.as_ref().map(|attempt| &attempt.link);
    let limit = exchange.route.as_ref().and_then(|route| limit(failure, &route.timeouts));
    if let Some(cause) = link.and_then(|link| link.cause().map(str::to_owned)).or(limit) {
        line = line + ": " + &cause;
    }
    if next == Next::Retry {
        line.push_str("; trying another node");
    }
    line
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
fn others(count: u64) -> String {
    match count {
        0 => String::new(),
        1 => " (and 1 failure more of this backend since its last line)".into(),
        _ => format!(" (and {count} failures more of this backend since its last line)"),
    }
}
