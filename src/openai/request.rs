//! The few fields of a request body that the gateway acts on.
//!
//! [`peek`] reads a body once and keeps slices; what it does not act on is checked for its lexical
//! form only and otherwise left to the engine.
//!
//! The one hard idea: the gateway and the engine must read the same thing. So what parsers disagree
//! on is refused where we act on it: a name that stands twice, a byte order mark, deep nesting.

use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::lax;
use super::members::{Members, span};
use super::places::{Lost, Places, walk};
use super::pointers::Pointers;

/// Deepest nesting of a body, its outermost object being 1: far beyond any real request, far below
/// where engines' parsers give up.
pub const DEPTH_MAX: usize = 64;
/// Longest text kept of a field, in characters.
pub const TEXT_CHARS_MAX: usize = 256;

/// What a request body says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Peek {
    /// Where the outermost object stands in the body.
    pub object: Range<usize>,
    /// The model's name, its first 256 characters.
    pub model: Option<Text>,
    /// Whether the client asks for a stream.
    pub stream: Option<bool>,
    /// Where the value of `stream_options` stands; it is an object or `null`.
    pub stream_options: Option<Range<usize>>,
    /// `stream_options.include_usage`.
    pub include_usage: Option<bool>,
    /// Where the value of `stream_options.include_usage` stands, `null` included.
    pub include_usage_span: Option<Range<usize>>,
    /// `max_tokens`; a negative number, llama.cpp's "no limit", counts as absent.
    pub max_tokens: Option<u64>,
    /// `max_completion_tokens`, read like `max_tokens`.
    pub max_completion_tokens: Option<u64>,
    /// `n`, absent where it is no count.
    pub n: Option<u64>,
    /// `user`, absent where it is no string or longer than 256 characters.
    pub user: Option<Text>,
    /// Where the wanted pointers lead.
    pub places: Places,
}

/// A string in a body and where it stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// The decoded string.
    pub value: String,
    /// Its bytes in the body, quotes included.
    pub span: Range<usize>,
}

/// Why a body is refused. No message quotes the body.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Invalid {
    /// It is not JSON (RFC 8259).
    #[error("the body is not valid JSON: {reason}")]
    NotJson {
        /// What is wrong and where.
        reason: String,
    },
    /// It is JSON, but no object.
    #[error("the body must be a JSON object")]
    NotObject,
    /// A field that is acted on stands twice; parsers disagree on which one counts.
    #[error("the field {field} stands more than once")]
    Duplicate {
        /// Its name.
        field: &'static str,
    },
    /// The same of a field that a JSON pointer names.
    #[error("the field {pointer} stands more than once")]
    Twice {
        /// The pointer.
        pointer: String,
    },
    /// It is nested too deep.
    #[error("the body is nested deeper than {DEPTH_MAX} levels")]
    TooDeep,
    /// A field has the wrong type.
    #[error("the field {field} must be {must}")]
    Type {
        /// Its name.
        field: &'static str,
        /// What it must be.
        must: &'static str,
    },
}

impl Invalid {
    /// The field it is about, if it is about one.
    pub fn field(&self) -> Option<&'static str> {
        match self {
            Self::Duplicate { field } | Self::Type { field, .. } => Some(field),
            Self::NotJson { .. } | Self::NotObject | Self::Twice { .. } | Self::TooDeep => None,
        }
    }
}

/// Reads a request body, and where in it `wanted` leads: one parse for the form and the fields, one
/// walk from string to string for the depth and the pointers.
///
/// A field that is `null` counts as absent.
///
/// # Errors
/// [`Invalid`] where the body is no JSON object, is nested deeper than 64, or has a field of the
/// wrong type or twice among those acted on.
pub fn peek(body: &[u8], wanted: &Pointers) -> Result<Peek, Invalid> {
    let text = object_text(body)?;
    let members = members(text, NAMES)?;
    let start = body.len() - body.trim_ascii_start().len();
    let (places, end) = walk(body, start, DEPTH_MAX, wanted).map_err(|lost| match lost {
        Lost::TooDeep => Invalid::TooDeep,
        Lost::Twice(pointer) => Invalid::Twice { pointer },
    })?;
    let [model, stream, options, max, max_completion, n, user] = members;
    let mut peek = Peek {
        object: start..end,
        model: model_name(text, model)?,
        stream: flag(stream, "stream")?,
        stream_options: options.map(|value| span(text, value)),
        include_usage: None,
        include_usage_span: None,
        max_tokens: limit(max, "max_tokens")?,
        max_completion_tokens: limit(max_completion, "max_completion_tokens")?,
        n: lax::count(n),
        user: user.and_then(|value| short_string(text, value)),
        places,
    };
    if let Some(options) = not_null(options) {
        if !options.get().starts_with('{') {
            return Err(Invalid::Type { field: "stream_options", must: "an object" });
        }
        let [include_usage] = self::members(options.get(), ["include_usage"])?;
        peek.include_usage = flag(include_usage, "stream_options.include_usage")?;
        peek.include_usage_span = include_usage.map(|value| span(text, value));
    }
    Ok(peek)
}

/// Members that are acted on, whatever the configuration says.
pub const NAMES: [&str; 7] =
    ["model", "stream", "stream_options", "max_tokens", "max_completion_tokens", "n", "user"];

/// The body as text that begins with `{`.
fn object_text(body: &[u8]) -> Result<&str, Invalid> {
    let not_json = |reason: String| Invalid::NotJson { reason };
    if body.starts_with(&[0xEF, 0xBB, 0xBF]) {
        return Err(not_json("it begins with a byte order mark".into()));
    }
    let text = std::str::from_utf8(body)
        .map_err(|error| not_json(format!("byte {} is not UTF-8", error.valid_up_to() + 1)))?;
    if text.trim_ascii_start().starts_with('{') {
        return Ok(text);
    }
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) => Err(Invalid::NotObject),
        Err(error) => Err(not_json(error.to_string())),
    }
}

fn members<'a, const N: usize>(
    text: &'a str,
    names: [&'static str; N],
) -> Result<[Option<&'a RawValue>; N], Invalid> {
    // The object is known to be one, so these are errors of syntax, whose texts quote nothing.
    let members =
        Members::read(text, names).map_err(|error| Invalid::NotJson { reason: error.to_string() })?;
    match members.twice {
        Some(index) => Err(Invalid::Duplicate { field: names[index] }),
        None => Ok(members.values),
    }
}

fn not_null(value: Option<&RawValue>) -> Option<&RawValue> {
    value.filter(|value| value.get() != "null")
}

fn model_name(text: &str, value: Option<&RawValue>) -> Result<Option<Text>, Invalid> {
    let Some(value) = not_null(value) else { return Ok(None) };
    let mut name: String =
        serde_json::from_str(value.get()).map_err(|_| Invalid::Type { field: "model", must: "a string" })?;
    if let Some((end, _)) = name.char_indices().nth(TEXT_CHARS_MAX) {
        name.truncate(end);
    }
    Ok(Some(Text { value: name, span: span(text, value) }))
}

fn flag(value: Option<&RawValue>, field: &'static str) -> Result<Option<bool>, Invalid> {
    match value.map(RawValue::get) {
        None | Some("null") => Ok(None),
        Some("true") => Ok(Some(true)),
        Some("false") => Ok(Some(false)),
        Some(_) => Err(Invalid::Type { field, must: "true or false" }),
    }
}

fn limit(value: Option<&RawValue>, field: &'static str) -> Result<Option<u64>, Invalid> {
    let Some(value) = not_null(value) else { return Ok(None) };
    match lax::count(Some(value)) {
        None if value.get().starts_with('-') => Ok(None),
        None => Err(Invalid::Type { field, must: "a whole number" }),
        count => Ok(count),
    }
}

/// An identity is used whole or not at all: cut short, two of them could become one.
fn short_string(text: &str, value: &RawValue) -> Option<Text> {
    let decoded: String = lax::read(Some(value))?;
    let short = decoded.char_indices().nth(TEXT_CHARS_MAX).is_none();
    short.then(|| Text { value: decoded, span: span(text, value) })
}

#[cfg(test)]
mod tests {
    use super::super::{Found, Pointer};
    use super::*;

    fn peek(body: &[u8]) -> Result<Peek, Invalid> {
        super::peek(body, &Pointers::default())
    }

    fn refused(body: &str) -> String {
        peek(body.as_bytes()).expect_err(body).to_string()
    }

    #[test]
    fn the_fields_are_read_with_their_places() {
        let body = r#" {"mod\u0065l": "m\u00e9", "stream":true, "stream_options": {"include_usage" : true},
            "max_tokens": 1e2, "max_completion_tokens":7, "n":2, "user":"u",
            "messages":[{"content":"\ud83d \"model\": 3"}], "seed": 9007199254740993} "#;
        let peek = peek(body.as_bytes()).expect("valid");
        let model = peek.model.expect("a model");
        assert_eq!((model.value.as_str(), &body[model.span]), ("mé", r#""m\u00e9""#));
        assert_eq!((peek.stream, peek.include_usage), (Some(true), Some(true)));
        assert_eq!(peek.stream_options.map(|span| &body[span]), Some(r#"{"include_usage" : true}"#));
        assert_eq!(peek.include_usage_span.map(|span| &body[span]), Some("true"));
        assert_eq!((peek.max_tokens, peek.max_completion_tokens, peek.n), (Some(100), Some(7), Some(2)));
        assert_eq!(peek.user.map(|user| user.value), Some("u".to_owned()));
        assert_eq!(&body[peek.object], body.trim());
    }

    #[test]
    fn null_is_absent() {
        let body = br#"{"model":null,"stream":null,"stream_options":null,"max_tokens":null,"user":null}"#;
        let peek = peek(body).expect("valid");
        assert_eq!((peek.model, peek.stream, peek.include_usage, peek.max_tokens), (None, None, None, None));
    }

    #[test]
    fn what_is_no_json_is_refused_with_its_place() {
        for (body, want) in [
            ("", "the body is not valid JSON: EOF while parsing a value at line 1 column 0"),
            ("{\"a\":\n", "the body is not valid JSON: EOF while parsing a value at line 2 column 0"),
            ("{\"a\":NaN}", "the body is not valid JSON: expected value at line 1 column 6"),
            ("{} {}", "the body is not valid JSON: trailing characters at line 1 column 4"),
            ("\u{feff}{}", "the body is not valid JSON: it begins with a byte order mark"),
            ("model=m", "the body is not valid JSON: expected value at line 1 column 1"),
            ("[1]", "the body must be a JSON object"),
            ("\"secret\"", "the body must be a JSON object"),
        ] {
            assert_eq!(refused(body), want);
        }
        let not_utf8 = peek(b"{\"a\":\"\xff\"}").expect_err("not UTF-8").to_string();
        assert_eq!(not_utf8, "the body is not valid JSON: byte 7 is not UTF-8");
    }

    #[test]
    fn a_field_of_the_wrong_type_is_refused() {
        for (body, want) in [
            (r#"{"stream":1}"#, "the field stream must be true or false"),
            (r#"{"stream":"true"}"#, "the field stream must be true or false"),
            (r#"{"model":["secret"]}"#, "the field model must be a string"),
            (r#"{"max_tokens":"9"}"#, "the field max_tokens must be a whole number"),
            (r#"{"max_tokens":1.5}"#, "the field max_tokens must be a whole number"),
            (r#"{"stream_options":true}"#, "the field stream_options must be an object"),
            (
                r#"{"stream_options":{"include_usage":1}}"#,
                "the field stream_options.include_usage must be true or false",
            ),
        ] {
            assert_eq!(refused(body), want);
        }
    }

    #[test]
    fn a_field_that_is_acted_on_stands_once() {
        assert_eq!(refused(r#"{"model":"a","mod\u0065l":"a"}"#), "the field model stands more than once");
        assert_eq!(
            refused(r#"{"stream_options":{"include_usage":true,"include_usage":false}}"#),
            "the field include_usage stands more than once"
        );
        assert!(peek(br#"{"seed":1,"seed":2,"x":{"model":1,"model":2}}"#).is_ok());
    }

    #[test]
    fn depth_is_bounded_outside_strings() {
        let nested = |levels: usize| format!(r#"{{"a":{}{}}}"#, "[".repeat(levels), "]".repeat(levels));
        assert!(peek(nested(63).as_bytes()).is_ok());
        assert_eq!(peek(nested(64).as_bytes()), Err(Invalid::TooDeep));
        assert_eq!(peek(nested(100_000).as_bytes()), Err(Invalid::TooDeep));
        assert!(peek(format!(r#"{{"a":"\"{}"}}"#, "[".repeat(100)).as_bytes()).is_ok());
    }

    #[test]
    fn long_names_are_cut_and_long_identities_ignored() {
        let long = "é".repeat(300);
        let body = format!(r#"{{"model":"{long}","user":"{long}","max_tokens":-1,"\ud800":1}}"#);
        let peek = peek(body.as_bytes()).expect("valid");
        assert_eq!(peek.model.map(|model| model.value.chars().count()), Some(256));
        assert_eq!((peek.user, peek.max_tokens), (None, None));
    }

    #[test]
    fn a_pointer_is_followed_and_may_not_be_ambiguous() {
        let mut wanted = Pointers::default();
        let number = wanted.add(Pointer::parse("/a/id").expect("a pointer"));
        let body = br#" {"model":"m","a":{"id":"x"}}"#;
        let places = super::peek(body, &wanted).expect("valid").places;
        assert_eq!(places.find(body, &wanted, number), Found::Value(24..27));
        let twice = super::peek(br#"{"a":{"id":"x","\u0069d":"y"}}"#, &wanted).expect_err("twice");
        assert_eq!(twice.to_string(), "the field /a/id stands more than once");
    }
}
