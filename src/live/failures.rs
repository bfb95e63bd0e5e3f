//! The exchanges that failed of late, and why.
//!
//! Those that failed in the same way are one entry with a count, so that an outage, or a flood of bad requests, does
//! not push everything else out. What makes two the same comes from the configuration and from closed lists
//! only: no client can fill it with entries. Nothing of a body is in it.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use parking_lot::Mutex;

use super::view::Failure;
use crate::outcome::Outcome;

/// Ways to fail that are kept.
const MOST: usize = 50;
/// Longest text that is kept, in bytes.
const TEXT_MAX: usize = 240;

/// An exchange that has failed.
#[derive(Debug, Clone)]
pub struct Failed {
    /// When.
    pub at: SystemTime,
    /// Its route, as far as it has one.
    pub route: Option<Arc<str>>,
    /// Its cluster.
    pub cluster: Option<Arc<str>>,
    /// The last backend it was tried on.
    pub backend: Option<Arc<str>>,
    /// What the client saw; 0 for none.
    pub status: u16,
    /// How it ended.
    pub outcome: Outcome,
    /// `error.code` of what the client was told.
    pub code: Option<&'static str>,
    /// The cause.
    pub why: Option<String>,
    /// Its id.
    pub request_id: String,
}

/// Where to look for the cause first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Backend,
    Gateway,
    Client,
}

impl Failed {
    /// A refusal is the client's unless it says that there is no room; what timed out without a code did
    /// so because its client took too long.
    fn side(&self) -> Side {
        match self.outcome {
            Outcome::Limited | Outcome::ClientClosed | Outcome::ClientStalled => Side::Client,
            Outcome::Timeout if self.code.is_none() => Side::Client,
            _ if matches!(self.status, 400..=499 | 501) => Side::Client,
            Outcome::UpstreamError | Outcome::Truncated | Outcome::Timeout if self.backend.is_some() => {
                Side::Backend
            }
            _ => Side::Gateway,
        }
    }

    fn is_as(&self, other: &Self) -> bool {
        let all = |of: &Self| (of.status, of.outcome, of.code);
        all(self) == all(other)
            && (&self.route, &self.cluster, &self.backend) == (&other.route, &other.cluster, &other.backend)
    }

    fn shown(&self, times: u64) -> Failure {
        let owned = |name: &Option<Arc<str>>| name.as_deref().map(str::to_owned);
        Failure {
            unix_ms: since_1970(self.at),
            times,
            side: match self.side() {
                Side::Backend => "backend",
                Side::Gateway => "gateway",
                Side::Client => "client",
            }
            .to_owned(),
            route: owned(&self.route),
            cluster: owned(&self.cluster),
            backend: owned(&self.backend),
            status: self.status,
            outcome: self.outcome.as_str().to_owned(),
            code: self.code.map(str::to_owned),
            why: self.why.clone(),
            request_id: self.request_id.clone(),
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn since_1970(at: SystemTime) -> u64 {
    let since = at.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// The exchanges that failed of late. Its lock is taken once by an exchange that has failed, and by no other.
#[derive(Debug, Default)]
pub struct Failures(Mutex<Kept>);

#[derive(Debug, Default)]
struct Kept {
    /// The newest first, each with its count.
    recent: VecDeque<(Failed, u64)>,
    /// Failures of each route since the start: by no fault of the client, and by its fault.
    counts: HashMap<Option<Arc<str>>, (u64, u64)>,
}

impl Failures {
    /// Notes an exchange that has failed.
    pub fn note(&self, failed: Failed) {
        let failed = Failed { why: failed.why.map(printable), ..failed };
        self.0.lock().note(failed);
    }

    /// What is kept, the newest first.
    pub fn recent(&self) -> Vec<Failure> {
        self.0.lock().recent.iter().map(|(failed, times)| failed.shown(*times)).collect()
    }

    /// Failures of each route since the start: by no fault of the client, and by its fault.
    pub fn counts(&self) -> HashMap<Option<Arc<str>>, (u64, u64)> {
        self.0.lock().counts.clone()
    }
}

impl Kept {
    fn note(&mut self, failed: Failed) {
        let (ours, theirs) = self.counts.entry(failed.route.clone()).or_default();
        *(if failed.side() == Side::Client { theirs } else { ours }) += 1;
        let known = self.recent.iter().position(|(known, _)| known.is_as(&failed));
        let before = known.and_then(|at| self.recent.remove(at)).map_or(0, |(_, times)| times);
        self.recent.push_front((failed, before + 1));
        self.recent.truncate(MOST);
    }
}

/// A text of bounded length without control characters, which a terminal would obey.
fn printable(text: String) -> String {
    let mut end = text.len().min(TEXT_MAX);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let rest = if end < text.len() { "…" } else { "" };
    text[..end]
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .chain(rest.chars())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn failed(backend: &str, outcome: Outcome, status: u16, code: Option<&'static str>) -> Failed {
        Failed {
            at: SystemTime::UNIX_EPOCH + Duration::from_secs(1),
            route: Some("chat".into()),
            cluster: Some("qwen".into()),
            backend: (!backend.is_empty()).then(|| backend.into()),
            status,
            outcome,
            code,
            why: None,
            request_id: "r".into(),
        }
    }

    fn names(failures: &Failures) -> Vec<(Option<String>, u64)> {
        failures.recent().into_iter().map(|failure| (failure.backend, failure.times)).collect()
    }

    #[test]
    fn the_same_failure_is_counted_and_comes_to_the_front() {
        let failures = Failures::default();
        let down = |backend| failed(backend, Outcome::UpstreamError, 502, Some("upstream_error"));
        failures.note(down("a"));
        failures.note(Failed { why: Some("refused".into()), ..down("b") });
        failures.note(Failed {
            why: Some("no route\x1b[2J to host".into()),
            request_id: "last".into(),
            ..down("a")
        });
        assert_eq!(names(&failures), [(Some("a".into()), 2), (Some("b".into()), 1)]);
        let newest = failures.recent().remove(0);
        assert_eq!(newest.why.as_deref(), Some("no route [2J to host"), "a terminal is told nothing");
        assert_eq!(newest.request_id, "last");
    }

    #[test]
    fn a_storm_of_one_kind_pushes_nothing_out_and_of_many_the_oldest() {
        let failures = Failures::default();
        failures.note(failed("first", Outcome::UpstreamError, 502, None));
        for _ in 0..1_000 {
            failures.note(failed("", Outcome::Rejected, 404, Some("not_found")));
        }
        assert_eq!(names(&failures), [(None, 1_000), (Some("first".into()), 1)]);
        (0..MOST)
            .for_each(|n| failures.note(failed(&n.to_string(), Outcome::Timeout, 504, Some("idle_timeout"))));
        let kept = names(&failures);
        assert_eq!((kept.len(), &kept[0].0), (MOST, &Some((MOST - 1).to_string())));
    }

    #[test]
    fn failures_are_counted_by_whose_they_are() {
        let failures = Failures::default();
        for (outcome, status, code, side) in [
            (Outcome::UpstreamError, 502, Some("upstream_error"), "backend"),
            (Outcome::Timeout, 504, Some("first_event_timeout"), "backend"),
            (Outcome::Truncated, 200, None, "backend"),
            (Outcome::Rejected, 503, Some("no_backend"), "gateway"),
            (Outcome::Shutdown, 503, Some("shutting_down"), "gateway"),
            (Outcome::Abandoned, 500, Some("internal"), "gateway"),
            (Outcome::Rejected, 400, Some("invalid_request"), "client"),
            (Outcome::Limited, 429, Some("rate_limited"), "client"),
            (Outcome::Timeout, 408, Some("request_timeout"), "client"),
            (Outcome::Timeout, 200, None, "client"),
            (Outcome::ClientStalled, 200, None, "client"),
        ] {
            failures.note(failed("b", outcome, status, code));
            assert_eq!(failures.recent()[0].side, side, "{outcome:?} {status}");
        }
        failures.note(failed("", Outcome::Timeout, 503, Some("queue_timeout")));
        assert_eq!(failures.recent()[0].side, "gateway");
        assert_eq!(failures.counts()[&Some("chat".into())], (7, 5));
    }

    #[test]
    fn texts_are_bounded() {
        let text = printable("ä".repeat(TEXT_MAX));
        assert_eq!(text.chars().count(), TEXT_MAX / 2 + 1);
    }
}
