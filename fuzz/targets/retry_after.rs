//! Retry-After in its forms: read or not, and never in the past.
use std::time::{Duration, SystemTime};

use streamgate::cluster::retry_after;

/// Reads one input; a line end stands between the two headers.
pub(crate) fn run(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    let (header, millis) = text.split_once('\n').map_or((Some(text), None), |(header, millis)| {
        (Some(header).filter(|text| !text.is_empty()), Some(millis))
    });
    let now = SystemTime::UNIX_EPOCH + Duration::from_secs(1_800_000_000);
    let read = retry_after(header, millis, now);
    let digits =
        |text: &str| !text.trim().is_empty() && text.trim().bytes().all(|byte| byte.is_ascii_digit());
    if header.is_some_and(digits) || millis.is_some_and(digits) {
        assert!(read.is_some(), "{text:?}");
    }
}
