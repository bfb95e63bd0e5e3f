use super::super::profiles::stopped_short;
use super::*;
use crate::usage::{Source, Usage};

#[test]
fn a_whole_answer_is_read() {
    let body = br#"

{"id":"c1","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,
"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4},
"completion_tokens_details":{"reasoning_tokens":2}}}"#;
    let usage =
        Usage { prompt: Some(7), completion: Some(3), total: Some(10), cached: Some(4), reasoning: Some(2) };
    let want =
        Seen { usage: Some((usage, Source::Reported)), finish_reason: Some("stop".into()), error: None };
    assert_eq!(observe_unary(body), want);
}

#[test]
fn errors_come_in_three_forms() {
    let failure = |code: Option<&str>, kind: Option<&str>| {
        Some(Failure { code: code.map(Into::into), kind: kind.map(Into::into) })
    };
    for (body, want) in [
        (
            r#"{"error":{"message":"x","type":"BadRequest","code":400}}"#,
            failure(Some("400"), Some("BadRequest")),
        ),
        (r#"{"object":"error","message":"x","code":"c"}"#, failure(Some("c"), None)),
        (r#"{"error":"overloaded"}"#, failure(None, None)),
        (r#"{"error":null,"object":"list"}"#, None),
    ] {
        assert_eq!(observe_unary(body.as_bytes()).error, want, "{body}");
    }
}

#[test]
fn an_odd_field_hides_no_other() {
    let body = br#"{"choices":7,"usage":{"prompt_tokens":"many","completion_tokens":3.0,
"prompt_tokens_details":[],"prompt_cache_hit_tokens":4}}"#;
    let usage = Usage { completion: Some(3), cached: Some(4), ..Usage::default() };
    assert_eq!(observe_unary(body).usage, Some((usage, Source::Reported)));
    let odd_usage = observe_unary(br#"{"choices":[{"finish_reason":"stop"}],"usage":7}"#);
    assert_eq!((odd_usage.finish_reason.as_deref(), odd_usage.usage), (Some("stop"), None));
    assert_eq!(observe_unary(b"not JSON"), Seen::default());
    assert_eq!(observe_unary(br#"{"usage":{}}"#), Seen::default());
}

#[test]
fn a_choice_that_stopped_short_is_remembered() {
    let body = br#"{"choices":[{"finish_reason":"insufficient_system_resource"},{"finish_reason":"stop"}]}"#;
    let reason = observe_unary(body).finish_reason.expect("a reason");
    assert!(stopped_short(&reason), "{reason}");
    assert!(!stopped_short("length"));
}

#[test]
fn answers_of_every_endpoint_are_read() {
    let usage = |prompt, completion, total| Usage { prompt, completion, total, ..Usage::default() };
    for (body, figures, reason) in [
        // Responses, as OpenAI's reference and vLLM have it.
        (
            r#"{"id":"resp_1","object":"response","status":"incomplete","error":null,"incomplete_details":{"reason":"max_output_tokens"},
"usage":{"input_tokens":7,"output_tokens":3,"total_tokens":10}}"#,
            usage(Some(7), Some(3), Some(10)),
            Some("max_output_tokens"),
        ),
        // Messages.
        (
            r#"{"type":"message","stop_reason":"tool_use","usage":{"input_tokens":7,"output_tokens":3}}"#,
            usage(Some(7), Some(3), None),
            Some("tool_use"),
        ),
        // Embeddings.
        (
            r#"{"object":"list","data":[{"embedding":[0.1]}],"usage":{"prompt_tokens":7,"total_tokens":7,"completion_tokens":0}}"#,
            usage(Some(7), Some(0), Some(7)),
            None,
        ),
        // Rerank and score, as vLLM answers.
        (
            r#"{"id":"rerank-1","results":[{"index":0,"relevance_score":0.9}],"usage":{"total_tokens":56}}"#,
            usage(Some(56), None, Some(56)),
            None,
        ),
        // A transcription, as OpenAI's newer models answer.
        (
            r#"{"text":"hi","usage":{"type":"tokens","input_tokens":14,"output_tokens":2,"total_tokens":16}}"#,
            usage(Some(14), Some(2), Some(16)),
            None,
        ),
    ] {
        let seen = observe_unary(body.as_bytes());
        assert_eq!(seen.usage, Some((figures, Source::Reported)), "{body}");
        assert_eq!(seen.finish_reason.as_deref(), reason, "{body}");
        assert_eq!(seen.error, None, "{body}");
    }
}

#[test]
fn a_failed_answer_of_responses_or_messages_is_an_error() {
    for (body, code, kind) in [
        (
            r#"{"object":"response","status":"failed","error":{"code":"server_error","message":"x"}}"#,
            Some("server_error"),
            None,
        ),
        (
            r#"{"type":"error","error":{"type":"overloaded_error","message":"x"}}"#,
            None,
            Some("overloaded_error"),
        ),
    ] {
        let error = observe_unary(body.as_bytes()).error.expect(body);
        assert_eq!((error.code.as_deref(), error.kind.as_deref()), (code, kind));
    }
}
