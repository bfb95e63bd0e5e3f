//! Changing one place of a JSON body and nothing else.
//!
//! Places come from [`request::peek`](super::request::peek) of the same body. The result is the
//! body with those bytes exchanged: it is not parsed, ordered or spelled anew.

use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::request::Peek;

/// The body with the value at `span` replaced by `json_value`, which must be JSON.
///
/// # Panics
/// Where `span` does not lie in the body.
pub fn replace(body: &Bytes, span: Range<usize>, json_value: &str) -> Bytes {
    let mut out = BytesMut::with_capacity(body.len() - span.len() + json_value.len());
    out.extend_from_slice(&body[..span.start]);
    out.extend_from_slice(json_value.as_bytes());
    out.extend_from_slice(&body[span.end..]);
    out.freeze()
}

/// The body with a member added as the first of the object at `object`, which must not have it yet.
///
/// # Panics
/// Where `object` does not lie in the body.
pub fn insert(body: &Bytes, object: &Range<usize>, name: &str, json_value: &str) -> Bytes {
    let start = object.start + 1;
    let is_empty = body[start..object.end].trim_ascii_start().starts_with(b"}");
    let comma = if is_empty { "" } else { "," };
    replace(body, start..start, &format!("{}:{json_value}{comma}", json_string(name)))
}

/// The body with `stream_options.include_usage` set to true; `None` where it is already.
pub fn ask_for_usage(body: &Bytes, peek: &Peek) -> Option<Bytes> {
    const OPTIONS: &str = r#"{"include_usage":true}"#;
    if peek.include_usage == Some(true) {
        return None;
    }
    Some(match (&peek.stream_options, &peek.include_usage_span) {
        (_, Some(value)) => replace(body, value.clone(), "true"),
        (Some(options), None) if body[options.clone()].starts_with(b"{") => {
            insert(body, options, "include_usage", "true")
        }
        (Some(null), None) => replace(body, null.clone(), OPTIONS),
        (None, None) => insert(body, &peek.object, "stream_options", OPTIONS),
    })
}

/// The text as a JSON string, quotes included.
pub fn json_string(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

#[cfg(test)]
mod tests {
    use super::super::request::peek;
    use super::*;

    fn body(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[test]
    fn only_the_model_differs() {
        let before = body("{ \"seed\": 9007199254740993, \"mod\\u0065l\" : \"m\\u00e9\", \"n\": 1e2 }");
        let model = peek(&before).expect("valid").model.expect("a model");
        let after = replace(&before, model.span, &json_string("a\"b"));
        assert_eq!(after, "{ \"seed\": 9007199254740993, \"mod\\u0065l\" : \"a\\\"b\", \"n\": 1e2 }");
    }

    #[test]
    fn a_member_goes_in_front() {
        assert_eq!(insert(&body(" { }"), &(1..4), "a", "1"), " {\"a\":1 }");
        assert_eq!(insert(&body("{\n \"b\": 2}"), &(0..10), "a", "1"), "{\"a\":1,\n \"b\": 2}");
    }

    #[test]
    fn usage_is_asked_for_in_every_form() {
        for (before, after) in [
            (r#"{"n":1}"#, Some(r#"{"stream_options":{"include_usage":true},"n":1}"#)),
            (r#"{"stream_options":null}"#, Some(r#"{"stream_options":{"include_usage":true}}"#)),
            (r#"{"stream_options":{}}"#, Some(r#"{"stream_options":{"include_usage":true}}"#)),
            (r#"{"stream_options":{"x":1}}"#, Some(r#"{"stream_options":{"include_usage":true,"x":1}}"#)),
            (
                r#"{"stream_options":{"include_usage" : false}}"#,
                Some(r#"{"stream_options":{"include_usage" : true}}"#),
            ),
            (r#"{"stream_options":{"include_usage":true}}"#, None),
        ] {
            let peek = peek(before.as_bytes()).expect("valid");
            assert_eq!(ask_for_usage(&body(before), &peek).as_deref(), after.map(str::as_bytes), "{before}");
        }
    }
}
