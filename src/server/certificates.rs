//! What operators are told of the certificates that clients are shown: until when they are good, and that one has been
//! renewed.
//!
//! A certificate that nobody renews ends a service on a day that everybody could have known, so it is said early:
//! at the start, at each reload, and by `check`.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::config::Problem;
use crate::edge::{Below, Shown};
use crate::metrics::Metrics;

/// A certificate that ends within this time should have been renewed, in seconds: 14 days. Let's Encrypt's clients
/// renew those of 90 days when 30 are left.
const SOON: i64 = 14 * 86_400;

/// Of a certificate with a short life, that is when this part of it is left.
const PART_LEFT: i64 = 3;

/// What is in force, for the log and the metrics.
pub fn tell(below: &[Below], metrics: &Metrics) {
    for shown in below.iter().flat_map(Below::shown) {
        metrics.certificate(&shown.file, shown.not_after);
    }
    for remark in remarks(below, SystemTime::now()) {
        log::warn!("{remark}");
    }
}

/// Says that a reload has taken another certificate.
pub fn tell_renewed(shown: &Shown) {
    log::info!(
        "{} has another certificate now{}, good until {}",
        file(shown),
        names(shown),
        date(shown.not_after)
    );
}

/// What deserves a warning: those whose time is over, or soon will be.
pub fn remarks(below: &[Below], now: SystemTime) -> Vec<Problem> {
    let now =
        now.duration_since(UNIX_EPOCH).map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(i64::MAX));
    let listeners = below.iter().map(Below::shown).enumerate();
    let all =
        listeners.flat_map(|(i, shown)| shown.into_iter().enumerate().map(move |(n, shown)| (i, n, shown)));
    all.filter_map(|(listener, number, shown)| {
        Some(Problem {
            path: format!("server.listen[{listener}].tls.certificates[{number}]"),
            line: Some(shown.line),
            column: None,
            what: format!("the certificate in {}{} {}", file(&shown), names(&shown), ends(&shown, now)?),
            fix: "renew it; SIGHUP has it read again".to_owned(),
        })
    })
    .collect()
}

/// That its time is over, or soon will be.
fn ends(shown: &Shown, now: i64) -> Option<String> {
    let left = shown.not_after - now;
    let until = date(shown.not_after);
    match left {
        ..0 => Some(format!("is good no more since {until}")),
        _ if left < SOON.min((shown.not_after - shown.not_before) / PART_LEFT) => {
            Some(format!("is good until {until} only, for {} days", left / 86_400))
        }
        _ => None,
    }
}

fn file(shown: &Shown) -> String {
    format!("{:?}", shown.file)
}

fn names(shown: &Shown) -> String {
    if shown.names.is_empty() { String::new() } else { format!(" for {}", shown.names.join(", ")) }
}

/// RFC 3339 in UTC.
fn date(unix: i64) -> String {
    jiff::Timestamp::from_second(unix).map_or_else(|_| "-".to_owned(), |time| time.to_string())
}
