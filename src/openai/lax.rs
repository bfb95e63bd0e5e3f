//! Reading JSON values that may be of another type than they should be.
//!
//! An engine's odd field must not hide its neighbours, so values are kept as text and read one by
//! one: what cannot be read is absent.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

/// Longest text kept from an answer, in bytes: enough for every known finish reason and error code.
pub(super) const TEXT_BYTES_MAX: usize = 64;

/// Bytes as text; what is no UTF-8 becomes U+FFFD. The check of whole texts goes word by word, the one
/// that replaces goes byte by byte.
pub(super) fn utf8(bytes: &[u8]) -> Cow<'_, str> {
    std::str::from_utf8(bytes).map_or_else(|_| String::from_utf8_lossy(bytes), Cow::Borrowed)
}

/// The value as `T`, if it is one.
pub(super) fn read<'a, T: Deserialize<'a>>(value: Option<&'a RawValue>) -> Option<T> {
    serde_json::from_str(value?.get()).ok()
}

/// The value that follows a member's name, which ends at `at`, where it stands whole in the piece.
pub(super) fn value_after(piece: &[u8], at: usize) -> Option<&RawValue> {
    let value = piece[at..].trim_ascii_start().strip_prefix(b":")?;
    serde_json::Deserializer::from_slice(value).into_iter().next()?.ok()
}

/// A count: a whole number of at least 0, however it is spelled (`100`, `1e2`, `100.0`).
pub(super) fn count(value: Option<&RawValue>) -> Option<u64> {
    whole_number(value?.get())
}

/// The same of the text of a JSON value.
pub fn whole_number(text: &str) -> Option<u64> {
    text.parse().ok().or_else(|| {
        // Not past 2^53, where not every whole number has a double of its own.
        let number: f64 = text.parse().ok()?;
        (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
    })
}

/// A string or a number as text of at most 64 bytes.
pub(super) fn short_text(value: Option<&RawValue>) -> Option<Box<str>> {
    text(value, TEXT_BYTES_MAX)
}

/// A string or a number as text of at most `most` bytes.
pub(super) fn text(value: Option<&RawValue>, most: usize) -> Option<Box<str>> {
    let text = match value?.get() {
        "null" => return None,
        quoted if quoted.starts_with('"') => serde_json::from_str(quoted).ok()?,
        other => other.to_owned(),
    };
    let end = (0..=most.min(text.len())).rev().find(|&at| text.is_char_boundary(at))?;
    Some(text[..end].into())
}

/// Whether the value says something: not null, not an empty string, array or object.
pub(super) fn is_present(value: Option<&RawValue>) -> bool {
    value.is_some_and(|value| !matches!(value.get(), "null" | "\"\"" | "[]" | "{}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(json: &str) -> Box<RawValue> {
        serde_json::from_str(json).expect("JSON")
    }

    #[test]
    fn counts_in_every_spelling() {
        for (json, want) in [
            ("7", Some(7)),
            ("1e2", Some(100)),
            ("7.0", Some(7)),
            ("18446744073709551615", Some(u64::MAX)),
            ("1e300", None),
            ("7.5", None),
            ("-1", None),
            ("\"7\"", None),
            ("null", None),
            ("[7]", None),
        ] {
            assert_eq!(count(Some(&raw(json))), want, "{json}");
        }
    }

    #[test]
    fn text_is_bounded_and_cut_between_characters() {
        let long = format!("\"{}\"", "é".repeat(40));
        assert_eq!(short_text(Some(&raw(&long))), Some("é".repeat(32).into()));
        assert_eq!(short_text(Some(&raw("503"))), Some("503".into()));
        assert_eq!(short_text(Some(&raw("null"))), None);
    }
}
