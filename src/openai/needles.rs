//! Finding out, without parsing, whether an answer's JSON may hold a field that matters.
//!
//! A quote inside a JSON string is always escaped, so `"usage"` with its quotes cannot stand in
//! generated text. It can be a whole string value, though (a token of `logprobs`), so a hit is only
//! a reason to parse. A `null` value is none: engines send `"finish_reason":null` with every token.

use std::sync::LazyLock;

use memchr::memmem::Finder;

/// Whether `usage`, `finish_reason` or `error` may be there with a value.
pub(super) fn any(data: &[u8]) -> bool {
    let needles = &*NEEDLES;
    is_set(&needles.finish_reason, data)
        || is_set(&needles.usage, data)
        // Also as a value: {"object":"error", ...}.
        || needles.error.find_iter(data).any(|at| !is_null(&data[at + ERROR.len()..]))
}

fn is_set(key: &Finder<'_>, data: &[u8]) -> bool {
    key.find_iter(data).any(|at| {
        let after = &data[at + key.needle().len()..];
        after.trim_ascii_start().starts_with(b":") && !is_null(after)
    })
}

/// Whether `: null` follows.
fn is_null(after: &[u8]) -> bool {
    let value = after.trim_ascii_start().strip_prefix(b":");
    value.is_some_and(|value| value.trim_ascii_start().starts_with(b"null"))
}

struct Needles {
    usage: Finder<'static>,
    finish_reason: Finder<'static>,
    error: Finder<'static>,
}

const ERROR: &[u8] = b"\"error\"";

static NEEDLES: LazyLock<Needles> = LazyLock::new(|| Needles {
    usage: Finder::new(b"\"usage\""),
    finish_reason: Finder::new(b"\"finish_reason\""),
    error: Finder::new(ERROR),
});

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
