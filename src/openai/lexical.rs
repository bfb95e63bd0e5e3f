//! The ends of things in JSON text that is known to be valid: strings, gaps, brackets.

use std::borrow::Cow;

use memchr::memchr2;

/// What a string says, given with its quotes.
pub(super) fn plain(quoted: &[u8], is_escaped: bool) -> Cow<'_, [u8]> {
    if is_escaped {
        // As bytes, so that half a surrogate pair is no error.
        let decoded = serde_json::Deserializer::from_slice(quoted);
        if let Ok(decoded) = decode(decoded) {
            return Cow::Owned(decoded);
        }
    }
    Cow::Borrowed(quoted.get(1..quoted.len() - 1).unwrap_or_default())
}

fn decode<'de>(
    mut json: serde_json::Deserializer<impl serde_json::de::Read<'de>>,
) -> serde_json::Result<Vec<u8>> {
    struct Plain;

    impl serde::de::Visitor<'_> for Plain {
        type Value = Vec<u8>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a string")
        }

        fn visit_bytes<E: serde::de::Error>(self, bytes: &[u8]) -> Result<Vec<u8>, E> {
            Ok(bytes.to_vec())
        }
    }

    serde::Deserializer::deserialize_bytes(&mut json, Plain)
}

/// How deep the brackets of a text go, outside of its strings.
pub(super) fn nesting(json: &[u8]) -> usize {
    let (mut at, mut depth, mut deepest) = (0, 0_usize, 0);
    while let Some(&byte) = json.get(at) {
        match byte {
            b'"' => {
                at = string_end(json, at).0;
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
        at += 1;
    }
    deepest
}

/// Past a mark and the white space around it, or past the white space alone where there is no mark.
pub(super) fn past_mark(json: &[u8], from: usize, mark: u8) -> usize {
    let at = past_space(json, from);
    if json.get(at) == Some(&mark) { past_space(json, at + 1) } else { at }
}

pub(super) fn past_space(json: &[u8], from: usize) -> usize {
    let mut at = from;
    while matches!(json.get(at), Some(b' ' | b'\n' | b'\r' | b'\t')) {
        at += 1;
    }
    at
}

/// Where the string that opens at `at` ends, its quotes included, and whether it has an escape.
pub(super) fn string_end(json: &[u8], at: usize) -> (usize, bool) {
    let (mut at, mut is_escaped) = (at + 1, false);
    while let Some(hit) = memchr2(b'"', b'\\', json.get(at..).unwrap_or_default()) {
        at += hit + 1;
        if json[at - 1] == b'"' {
            return (at, is_escaped);
        }
        (at, is_escaped) = (at + 1, true);
    }
    (json.len(), is_escaped)
}
