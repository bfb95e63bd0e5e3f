//! Finding out, without parsing, whether an answer's JSON may hold a field that matters.
//!
//! A quote inside a JSON string is always escaped, so `"usage"` with its quotes cannot stand in
//! generated text. It can be a whole string value, though (a token of `logprobs`), so a hit is only
//! a reason to parse. A `null` value is none: engines send `"finish_reason":null` with every token.

use std::sync::LazyLock;

use aho_corasick::Span;
use aho_corasick::packed::Searcher;

/// The fields, in the order of their numbers in [`NEEDLES`].
const FIELDS: [&str; 3] = ["\"usage\"", "\"finish_reason\"", "\"error\""];

/// Bytes of the shortest of them: no search in what is left behind the last field of an event.
const SHORTEST: usize = 7;

/// `error` also matters as a value: `{"object":"error", ...}`.
const ERROR: usize = 2;

/// One vectored pass over an event instead of one for each field; on a processor that has no such
/// instructions every event is parsed. (The crate's general search looks for the first byte that all
/// words share: a quote, of which JSON is full.)
static NEEDLES: LazyLock<Option<Searcher>> = LazyLock::new(|| Searcher::new(FIELDS));

/// Whether `usage`, `finish_reason` or `error` may be there with a value.
pub(super) fn any(data: &[u8]) -> bool {
    let Some(needles) = &*NEEDLES else { return true };
    let mut from = 0;
    while data.len() - from >= SHORTEST {
        let Some(found) = needles.find_in(data, Span::from(from..data.len())) else { return false };
        from = match null_behind(data, found.end()) {
            Some(end) => end,
            None if is_value(data, found.end(), found.pattern().as_usize()) => return true,
            None => found.end(),
        };
    }
    false
}

/// Where the value of the field ends whose name ends at `at`, if it is a null.
fn null_behind(data: &[u8], at: usize) -> Option<usize> {
    let rest = value(data, at)?.trim_ascii_start().strip_prefix(b"null")?;
    Some(data.len() - rest.len())
}

/// Whether the word that ends at `at` is the name of a field, or the one that matters without being one.
fn is_value(data: &[u8], at: usize, word: usize) -> bool {
    word == ERROR || value(data, at).is_some()
}

fn value(data: &[u8], at: usize) -> Option<&[u8]> {
    data[at..].trim_ascii_start().strip_prefix(b":")
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
