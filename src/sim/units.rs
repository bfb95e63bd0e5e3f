//! Durations and sizes as people write them: `250ms`, `5s`, `1m`; `230B`, `64KiB`, `1MiB`.
//!
//! A duration always names its unit; a bare size is bytes.

use std::time::Duration;

/// Why a duration or a size was not understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// It does not begin with a whole number.
    #[error("`{0}` does not begin with a whole number")]
    NoNumber(String),
    /// A duration without a unit: nobody can tell seconds from milliseconds.
    #[error("`{0}` has no unit; write {0}ms, {0}s or {0}m")]
    NoUnit(String),
    /// A unit we do not know.
    #[error("`{text}` has an unknown unit; known are {known}")]
    UnknownUnit {
        /// What was read.
        text: String,
        /// The units to choose from.
        known: &'static str,
    },
    /// More than can be meant: over 365 days, or over 128 MiB.
    #[error("`{text}` is more than {most}")]
    TooMuch {
        /// What was read.
        text: String,
        /// The bound.
        most: &'static str,
    },
}

/// The longest duration: a timer far away is fine, one that overflows an instant is not.
const DURATION_MAX: Duration = Duration::from_secs(365 * 24 * 3600);
/// The largest size: one event of this size is built in memory before it is sent.
const BYTES_MAX: usize = 128 << 20;

/// Reads `250ms`, `100us`, `5s`, `1m`, `2h`.
pub(crate) fn duration(text: &str) -> Result<Duration, UnitError> {
    let (number, unit) = split(text)?;
    let micros_per_unit: u64 = match unit {
        "us" => 1,
        "ms" => 1_000,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "" => return Err(UnitError::NoUnit(text.to_owned())),
        _ => return Err(UnitError::UnknownUnit { text: text.to_owned(), known: "us, ms, s, m, h" }),
    };
    let duration = number.checked_mul(micros_per_unit).map(Duration::from_micros);
    duration
        .filter(|duration| *duration <= DURATION_MAX)
        .ok_or_else(|| UnitError::TooMuch { text: text.to_owned(), most: "365 days" })
}

/// Reads `230`, `230B`, `64KiB`, `1MiB`.
pub(crate) fn bytes(text: &str) -> Result<usize, UnitError> {
    let (number, unit) = split(text)?;
    let shift = match unit {
        "" | "B" => 0,
        "KiB" => 10,
        "MiB" => 20,
        _ => return Err(UnitError::UnknownUnit { text: text.to_owned(), known: "B, KiB, MiB" }),
    };
    let bytes = usize::try_from(number).ok().and_then(|number| number.checked_mul(1 << shift));
    bytes
        .filter(|bytes| *bytes <= BYTES_MAX)
        .ok_or_else(|| UnitError::TooMuch { text: text.to_owned(), most: "128MiB" })
}

fn split(text: &str) -> Result<(u64, &str), UnitError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number = number.parse().map_err(|_| UnitError::NoNumber(text.to_owned()))?;
    Ok((number, unit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("1m"), Ok(Duration::from_secs(60)));
        assert_eq!(duration("0ms"), Ok(Duration::ZERO));
        assert_eq!(duration("250").unwrap_err().to_string(), "`250` has no unit; write 250ms, 250s or 250m");
        assert!(matches!(duration("5sec"), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!(duration("99999999h"), Err(UnitError::TooMuch { .. })));
    }

    #[test]
    fn sizes_are_bytes_unless_they_say_otherwise() {
        assert_eq!(bytes("300000"), Ok(300_000));
        assert_eq!(bytes("230B"), Ok(230));
        assert_eq!(bytes("64KiB"), Ok(65_536));
        assert!(matches!(bytes("1GiB"), Err(UnitError::UnknownUnit { .. })));
        assert!(matches!(bytes("-1"), Err(UnitError::NoNumber(_))));
        assert!(matches!(bytes("129MiB"), Err(UnitError::TooMuch { .. })));
    }
}
