//! What is read of a request, and what is refused of it.

use super::super::{Found, Pointer, Pointers};
use super::*;

fn peek(body: &[u8]) -> Result<Peek, Invalid> {
    super::peek(body, &Wanted::default())
}

fn refused(body: &str) -> String {
    peek(body.as_bytes()).expect_err(body).to_string()
}

#[test]
fn the_fields_are_read_with_their_places() {
    let body = r#" {"mod\u0065l": "m\u00e9", "stream":true, "stream_options": {"include_usage" : true},
        "max_tokens": 1e2, "max_completion_tokens":7, "max_output_tokens":9, "n":2, "user":"u",
        "messages":[{"content":"\ud83d \"model\": 3"}], "seed": 9007199254740993} "#;
    let peek = peek(body.as_bytes()).expect("valid");
    assert_eq!(
        (peek.max_output_tokens, peek.tokens_max()),
        (Some(9), Some(100)),
        "what any engine may go by"
    );
    let model = peek.model.expect("a model");
    assert_eq!((model.value.as_str(), &body[model.span]), ("mé", r#""m\u00e9""#));
    assert_eq!((peek.stream, peek.include_usage.is_on), (Some(true), true));
    assert_eq!(peek.stream_options.map(|span| &body[span]), Some(r#"{"include_usage" : true}"#));
    assert_eq!(peek.include_usage.span.map(|span| &body[span]), Some("true"));
    assert_eq!((peek.max_tokens, peek.max_completion_tokens, peek.n), (Some(100), Some(7), Some(2)));
    assert_eq!(peek.user.map(|user| user.value), Some("u".to_owned()));
    assert_eq!(&body[peek.object], body.trim());
}

#[test]
fn every_answer_that_is_generated_counts() {
    let answers = |body: &str| peek(body.as_bytes()).expect("valid").answers();
    assert_eq!(answers(r#"{"prompt":"a"}"#), None);
    assert_eq!(answers(r#"{"n":2,"best_of":5}"#), Some(5));
    assert_eq!(answers(r#"{"prompt":["a","b" , "c"],"n":2}"#), Some(6));
    assert_eq!(answers(r#"{"prompt":[ [1,2],[3] ]}"#), Some(2));
    assert_eq!(answers(r#"{"prompt":[1,2,3]}"#), None, "one prompt in tokens");
    assert_eq!(answers(r#"{"prompt":[1,"b",[3]]}"#), Some(3), "as many as it could be");
    assert_eq!(answers(r#"{"prompt":["a","b","c"],"n":"no"}"#.replace(r#","n":"no""#, "").as_str()), Some(3));
    assert_eq!([answers(r#"{"prompt":[]}"#), answers(r#"{"x":{"prompt":["a","b"]}}"#)], [None, None]);
    let most = peek(br#"{"max_tokens":1,"n_predict":2000}"#).expect("valid").tokens_max();
    assert_eq!(most, Some(2000));
}

#[test]
fn null_is_absent() {
    let body = br#"{"model":null,"stream":null,"stream_options":null,"max_tokens":null,"user":null}"#;
    let peek = peek(body).expect("valid");
    assert_eq!(
        (peek.model, peek.stream, peek.include_usage, peek.max_tokens),
        (None, None, Flag::default(), None)
    );
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
        (r#"{"n":"10"}"#, "the field n must be a whole number"),
        (r#"{"max_tokens":1.5}"#, "the field max_tokens must be a whole number"),
        (r#"{"stream_options":true}"#, "the field stream_options must be an object"),
        (
            r#"{"stream_options":{"continuous_usage_stats":"x"}}"#,
            "the field stream_options.continuous_usage_stats must be true or false",
        ),
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
    let places = super::peek(body, &wanted.clone().into()).expect("valid").places;
    assert_eq!(places.find(body, &wanted, number), Found::Value(24..27));
    let twice = super::peek(br#"{"a":{"id":"x","\u0069d":"y"}}"#, &wanted.into()).expect_err("twice");
    assert_eq!(twice.to_string(), "the field /a/id stands more than once");
}
