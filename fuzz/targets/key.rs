//! Headers that carry a key: what is taken for one stands in a header, and two that differ are none.
use http::{HeaderMap, HeaderValue};
use streamgate::keys::{Digest, KEY_BYTES_MAX, Presented, presented};

/// Reads one input, a header a line; what begins with a plus is a bearer.
pub(crate) fn run(input: &[u8]) {
    let mut headers = HeaderMap::new();
    for line in input.split(|byte| *byte == b'\n') {
        let is_bearer = line.starts_with(b"+");
        let Ok(value) = HeaderValue::from_bytes(line.strip_prefix(b"+").unwrap_or(line)) else { continue };
        headers.append(if is_bearer { "authorization" } else { "x-api-key" }, value);
    }
    if let Presented::Key(key) = presented(&headers) {
        assert!((1..=KEY_BYTES_MAX).contains(&key.len()));
        assert_eq!(key, key.trim_ascii());
        let stands = |value: &HeaderValue| value.as_bytes().windows(key.len()).any(|window| window == key);
        assert!(headers.values().any(stands));
        for other in headers.get_all("x-api-key") {
            assert_eq!(other.as_bytes().trim_ascii(), key);
        }
        let digest = Digest::of(key).to_hex();
        assert!(Digest::from_hex(&digest).is_ok());
    }
}
