//! How long a backend asks to be left alone.

use std::time::{Duration, SystemTime};

/// Reads `Retry-After` (RFC 9110, 10.2.3: seconds, or a date against `now`) and `retry-after-ms`, the finer one
/// that OpenAI's servers and clients know, which wins. `None` where neither can be read; a date that is past asks
/// for no time.
pub fn retry_after(header: Option<&str>, millis: Option<&str>, now: SystemTime) -> Option<Duration> {
    let millis = millis.and_then(number).map(Duration::from_millis);
    millis.or_else(|| {
        let header = header?.trim();
        number(header).map(Duration::from_secs).or_else(|| {
            let date = httpdate::parse_http_date(header).ok()?;
            Some(date.duration_since(now).unwrap_or_default())
        })
    })
}

/// More seconds, and more milliseconds, than anybody is to wait.
const BEYOND: u64 = u32::MAX as u64;

/// A number of digits only; one too large to be counted is as good as any that is too long to be waited for.
fn number(text: &str) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| text.parse().unwrap_or(BEYOND))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_dates_and_milliseconds_are_read() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap();
        let after = |seconds| Some(Duration::from_secs(seconds));
        for (header, millis, expected) in [
            (Some("7"), None, after(7)),
            (Some(" 7 "), None, after(7)),
            (Some("0"), None, after(0)),
            (Some("99999999999999999999"), None, after(u64::from(u32::MAX))),
            (Some("Sun, 06 Nov 1994 08:49:47 GMT"), None, after(10)),
            (Some("Sunday, 06-Nov-94 08:49:47 GMT"), None, after(10)),
            (Some("Sun Nov  6 08:49:47 1994"), None, after(10)),
            (Some("Sun, 06 Nov 1994 08:49:27 GMT"), None, after(0)),
            (Some("7"), Some("1500"), Some(Duration::from_millis(1500))),
            (None, Some("250"), Some(Duration::from_millis(250))),
            (Some("7"), Some("soon"), after(7)),
            (Some("soon"), None, None),
            (Some("-1"), None, None),
            (Some("1.5"), None, None),
            (None, None, None),
        ] {
            assert_eq!(retry_after(header, millis, now), expected, "{header:?} {millis:?}");
        }
    }
}
