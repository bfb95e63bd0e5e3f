//! What passes a guard and what does not, field by field.

use super::*;
use crate::openai::request;

/// The message and the `param` of a refusal; `None` for a body that passes.
fn told(limits: Limits, denied: &[&str], dialect: Dialect, body: &str) -> Option<(String, Option<String>)> {
    let mut wanted = Wanted::default();
    let field = |text: &&str| match Pointer::parse(text) {
        Some(pointer) => Field::Pointer((*text).to_owned(), pointer),
        None => Field::Name((*text).to_owned()),
    };
    let denied: Vec<Field> = denied.iter().map(field).collect();
    let guard = Guard::new(&limits, &denied, &mut wanted).expect("something is limited");
    let places = match request::peek(body.as_bytes(), &wanted) {
        Ok(peek) => peek.places,
        // Of another type than the field has: no guard is asked.
        Err(invalid) => return Some((invalid.to_string(), invalid.field().map(str::to_owned))),
    };
    let refused = guard.check(body.as_bytes(), &places, &wanted, dialect).err()?;
    Some((refused.message(), refused.param().map(str::to_owned)))
}

fn param(limits: Limits, body: &str) -> Option<String> {
    told(limits, &[], Dialect::Completions, body).map(|(_, param)| param.unwrap_or_default())
}

#[test]
fn each_limit_holds_for_each_of_its_fields() {
    let all = Limits {
        max_tokens: Some(100),
        n: Some(2),
        best_of: Some(3),
        prompts: Some(2),
        logprobs: Some(5),
        tools: Some(1),
        schema_depth: None,
    };
    for (body, refused) in [
        (r#"{}"#, None),
        (r#"{"max_tokens":100,"n":2,"best_of":3,"logprobs":5,"tools":[{}],"prompt":["a","b"]}"#, None),
        (r#"{"max_tokens":101}"#, Some("max_tokens")),
        (r#"{"max_tokens":null}"#, None),
        (r#"{"max_tokens":-1}"#, Some("max_tokens")),
        (r#"{"max_tokens":1e2}"#, None),
        (r#"{"max_completion_tokens":101}"#, Some("max_completion_tokens")),
        (r#"{"max_output_tokens":"101"}"#, Some("max_output_tokens")),
        (r#"{"max_output_tokens":99999999999999999999999}"#, Some("max_output_tokens")),
        (r#"{"max_tokens":1,"n_predict":-1}"#, Some("n_predict")),
        (r#"{"n":3}"#, Some("n")),
        (r#"{"n":"1"}"#, Some("n")),
        (r#"{"n":1.5}"#, Some("n")),
        (r#"{"best_of":4}"#, Some("best_of")),
        (r#"{"best_of":[1]}"#, Some("best_of")),
        (r#"{"logprobs":true,"top_logprobs":5}"#, None),
        (r#"{"logprobs":6}"#, Some("logprobs")),
        (r#"{"top_logprobs":6}"#, Some("top_logprobs")),
        (r#"{"prompt_logprobs":-1}"#, Some("prompt_logprobs")),
        (r#"{"tools":[{},{}]}"#, Some("tools")),
        (r#"{"tools":{"a":{}}}"#, Some("tools")),
        (r#"{"functions":[1,2]}"#, Some("functions")),
        (r#"{"prompt":"a, b, c, d"}"#, None),
        (r#"{"prompt":[1,2,3,4,5]}"#, None),
        (r#"{"prompt":[ [1,2,3],[4] ]}"#, None),
        (r#"{"prompt":["a","b","c"]}"#, Some("prompt")),
        (r#"{"prompt":[[1],[2],[3]]}"#, Some("prompt")),
        (r#"{"prompt":[1,"b"]}"#, Some("prompt")),
        (r#"{"prompt":["a",2]}"#, Some("prompt")),
        (r#"{"prompt":["a",[2]]}"#, Some("prompt")),
        (r#"{"prompt":[[1],"b"]}"#, Some("prompt")),
        (r#"{"prompt":[]}"#, None),
        (r#"{"documents":["a",{"text":"b"}]}"#, None),
        (r#"{"input":["a","b","c"]}"#, Some("input")),
        (r#"{"documents":["a","b","c"]}"#, Some("documents")),
        (r#"{"input":{"a":1}}"#, Some("input")),
        (r#"{"x":{"n":9,"max_tokens":9999}}"#, None),
    ] {
        assert_eq!(param(all, body).as_deref(), refused, "{body}");
    }
    let items = r#"{"input":[1,{},{},{}]}"#;
    assert_eq!(told(all, &[], Dialect::Responses, items), None, "a conversation is one prompt");
}

#[test]
fn none_at_all_may_be_allowed() {
    let none = Limits { logprobs: Some(0), tools: Some(0), ..Limits::default() };
    assert_eq!(param(none, r#"{"logprobs":true}"#).as_deref(), Some("logprobs"));
    assert_eq!(param(none, r#"{"logprobs":false,"tools":[]}"#), None);
    assert_eq!(param(none, r#"{"tools":[1]}"#).as_deref(), Some("tools"));
}

#[test]
fn denied_fields_are_refused_by_name_anywhere_and_by_pointer_in_one_place() {
    let denied = ["api_base", "/metadata/secret"];
    let field = |body| told(Limits::default(), &denied, Dialect::Chat, body).and_then(|(_, param)| param);
    assert_eq!(field(r#"{"user_config":[{"x":{"api_b\u0061se":"http://a"}}]}"#).as_deref(), Some("api_base"));
    assert_eq!(field(r#"{"metadata":{"secret":0}}"#).as_deref(), Some("/metadata/secret"));
    for body in [
        r#"{"messages":[{"content":"api_base"}],"secret":1}"#,
        r#"{"api_base":null,"metadata":{"secret":null}}"#,
    ] {
        assert_eq!(field(body), None, "{body}");
    }
}

#[test]
fn schemas_are_bounded_in_depth() {
    let limits = Limits { schema_depth: Some(3), ..Limits::default() };
    let told = |body| told(limits, &[], Dialect::Chat, body).map(|(message, _)| message);
    assert_eq!(told(r#"{"guided_json":{"a":{"b":{}}}}"#), None);
    let deep = r#"{"tools":[{"function":{"parameters":{"a":{"b":{"c":{}}}}}}]}"#;
    assert_eq!(told(deep).as_deref(), Some("a JSON schema may be nested 3 levels deep here"));
}

#[test]
fn no_limit_is_no_guard() {
    assert_eq!(Guard::new(&Limits::default(), &[], &mut Wanted::default()), None);
}
