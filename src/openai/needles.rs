//! Finding out, without parsing, whether an answer's JSON may hold a field that matters.
//!
//! A quote inside a JSON string is always escaped, so `"usage"` with its quotes cannot stand in
//! generated text. It can be a whole string value, though (a token of `logprobs`), so a hit is only
//! a reason to parse. A `null` value is none: engines send `"finish_reason":null` with every token.

use std::sync::LazyLock;

use aho_corasick::packed::Searcher;

/// The fields, in the order of their numbers in [`NEEDLES`].
const FIELDS: [&str; 3] = ["\"usage\"", "\"finish_reason\"", "\"error\""];

/// `error` also matters as a value: `{"object":"error", ...}`.
const ERROR: usize = 2;

/// One vectored pass over an event instead of one for each field; on a processor that has no such
/// instructions every event is parsed. (The crate's general search looks for the first byte that all
/// words share: a quote, of which JSON is full.)
static NEEDLES: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(FIELDS));

/// Whether `usage`, `finish_reason` or `error` may be there with a value.
pub(super) fn any(data: &[u8]) -> bool {
    NEEDLES.as_ref().is_none_or(|needles| {
        needles.find_iter(data).any(|found| {
            let value = data[found.end()..].trim_ascii_start().strip_prefix(b":");
            let is_null = value.is_some_and(|value| value.trim_ascii_start().starts_with(b"null"));
            !is_null && (value.is_some() || found.pattern().as_usize() == ERROR)
        })
    })
}

#[cfg(test)]
mod tests {
    use super::any;

    #[test]
    fn nulls_and_text_are_no_reason_to_parse() {
        for quiet in [
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason":null}]}"#,
            r#"{"choices":[{"delta":{"content":"x"},"finish_reason" : null}],"usage":null,"error":null}"#,
            r#"{"choices":[{"delta":{"content":"\"usage\": {\"error\": 1}"}}]}"#,
            r#"{"tokens":["usage","finish_reason"]}"#,
        ] {
            assert!(!any(quiet.as_bytes()), "{quiet}");
        }
    }

    #[test]
    fn values_are() {
        for loud in [
            r#"{"choices":[{"finish_reason":null},{"finish_reason":"stop"}]}"#,
            r#"{"usage" : {"prompt_tokens":7}}"#,
            r#"{"error":{"message":"x"}}"#,
            r#"{"object":"error","message":"x"}"#,
        ] {
            assert!(any(loud.as_bytes()), "{loud}");
        }
    }
}
