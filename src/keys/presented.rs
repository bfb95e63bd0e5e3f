//! The key in a request's head.

use http::HeaderMap;
use http::header::AUTHORIZATION;

use super::KeyError;

/// Longest key in bytes. A longer one is nobody's, and not hashed: what a stranger sends costs little.
pub const KEY_BYTES_MAX: usize = 1024;

/// The other header that may carry a key; Anthropic's clients send theirs in it.
const API_KEY: &str = "x-api-key";

/// What a head has of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Presented<'a> {
    /// One, be it said once or more often.
    Key(&'a [u8]),
    /// None that could be known. Two that differ are none: who takes the first and who takes the last would see two
    /// clients.
    No(KeyError),
}

/// Reads the key from `Authorization: Bearer KEY` (RFC 6750, 2.1; the scheme in any case, and spaces behind it) and
/// `x-api-key: KEY`. Another scheme is for somebody else.
pub fn presented(headers: &HeaderMap) -> Presented<'_> {
    let bearers = headers.get_all(AUTHORIZATION).iter().filter_map(|line| bearer(line.as_bytes()));
    let keys = headers.get_all(API_KEY).iter().map(|line| line.as_bytes().trim_ascii());
    let mut found = None;
    for key in bearers.chain(keys) {
        match found {
            _ if key.is_empty() || key.len() > KEY_BYTES_MAX => return Presented::No(KeyError::Malformed),
            None => found = Some(key),
            Some(first) if first == key => {}
            Some(_) => return Presented::No(KeyError::Differing),
        }
    }
    let why_none =
        if headers.contains_key(AUTHORIZATION) { KeyError::OtherScheme } else { KeyError::Missing };
    found.map_or(Presented::No(why_none), Presented::Key)
}

/// What follows the scheme; empty where nothing does, or no key. Only spaces part the two (RFC 9110, 11.4): what one
/// reader takes for a key behind a tab is to another a scheme of that name.
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, rest) = value.split_at_checked(b"bearer".len())?;
    let is_bearer =
        scheme.eq_ignore_ascii_case(b"bearer") && rest.first().is_none_or(u8::is_ascii_whitespace);
    if !is_bearer {
        return None;
    }
    let key = rest.trim_ascii_end();
    let spaces = key.iter().take_while(|byte| **byte == b' ').count();
    let is_parted = spaces > 0 && key.get(spaces) != Some(&b'\t');
    Some(if is_parted { &key[spaces..] } else { &[] })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[(&'static str, &str)]) -> String {
        let mut headers = HeaderMap::new();
        for (name, value) in lines {
            headers.append(*name, value.parse().unwrap());
        }
        match presented(&headers) {
            Presented::Key(key) => format!("key {}", String::from_utf8_lossy(key)),
            Presented::No(why) => why.as_str().into(),
        }
    }

    #[test]
    fn a_key_is_read_from_either_header() {
        for value in ["Bearer sg-1", "bearer sg-1", "BEARER   sg-1 ", "Bearer sg-1\t"] {
            assert_eq!(read(&[("authorization", value)]), "key sg-1", "{value}");
        }
        assert_eq!(read(&[("x-api-key", " sg-1 ")]), "key sg-1");
        assert_eq!(read(&[]), "missing");
    }

    #[test]
    fn only_spaces_part_the_scheme_from_the_key() {
        for value in ["Bearer\tsg-1", "Bearer \tsg-1", "Bearer\t sg-1", "Bearer", "Bearer\t"] {
            assert_eq!(read(&[("authorization", value)]), "malformed", "{value:?}");
            assert_eq!(read(&[("authorization", value), ("x-api-key", "sg-1")]), "malformed", "{value:?}");
        }
    }

    #[test]
    fn another_scheme_is_no_key() {
        for value in ["Basic dTpw", "BearerX sg-1", "Bear sg-1", "sg-1", ""] {
            assert_eq!(read(&[("authorization", value)]), "other_scheme", "{value}");
        }
        assert_eq!(read(&[("authorization", "Basic dTpw"), ("x-api-key", "sg-1")]), "key sg-1");
    }

    #[test]
    fn one_key_may_be_said_twice_and_two_are_none() {
        let (first, second) = (("authorization", "Bearer sg-1"), ("x-api-key", "sg-1"));
        assert_eq!(read(&[first, second, first]), "key sg-1");
        for (other, why) in [
            (("x-api-key", "sg-2"), "differing"),
            (("x-api-key", ""), "malformed"),
            (("authorization", "Bearer sg-11"), "differing"),
            (("authorization", "Bearer"), "malformed"),
        ] {
            assert_eq!(read(&[first, other]), why, "{other:?}");
            assert_eq!(read(&[other, first]), why, "{other:?}");
        }
    }

    #[test]
    fn an_endless_key_is_nobodys() {
        assert!(read(&[("x-api-key", &"k".repeat(KEY_BYTES_MAX))]).starts_with("key"));
        assert_eq!(read(&[("x-api-key", &"k".repeat(KEY_BYTES_MAX + 1))]), "malformed");
    }

    /// The naive reading: all keys that the lines have, whether they are one, and why not.
    fn naive(lines: &[(bool, String)]) -> String {
        let mut keys: Vec<&str> = lines
            .iter()
            .filter_map(|(is_bearer, value)| match value.trim().split_once(' ') {
                _ if !is_bearer => Some(value.trim()),
                Some((scheme, key)) => (scheme.to_lowercase() == "bearer").then(|| key.trim()),
                None => (value.trim().to_lowercase() == "bearer").then_some(""),
            })
            .collect();
        let before_empty = keys.iter().position(|key| key.is_empty()).unwrap_or(keys.len());
        let has_empty = before_empty < keys.len();
        keys.truncate(before_empty);
        keys.dedup();
        match keys[..] {
            [_, _, ..] => "differing".into(),
            _ if has_empty => "malformed".into(),
            [key] => format!("key {key}"),
            [] if lines.iter().any(|(is_bearer, _)| *is_bearer) => "other_scheme".into(),
            [] => "missing".into(),
        }
    }

    proptest::proptest! {
        #[test]
        fn any_lines_are_read_as_the_naive_reading_has_it(
            lines in proptest::collection::vec((proptest::bool::ANY, "(|[Bb]earer|BASIC|bearers) {0,2}(|k1|k2|k1 k2) ?"), 0..4)
        ) {
            let named: Vec<(&'static str, &str)> = lines
                .iter()
                .map(|(is_bearer, value)| (if *is_bearer { "authorization" } else { API_KEY }, value.trim()))
                .collect();
            // `Authorization` is read first.
            let (bearers, others): (Vec<_>, Vec<_>) = lines.iter().cloned().partition(|(is_bearer, _)| *is_bearer);
            proptest::prop_assert_eq!(read(&named), naive(&[bearers, others].concat()));
        }
    }
}
