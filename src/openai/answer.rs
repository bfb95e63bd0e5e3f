//! What a frame of a stream, or a whole JSON answer, says besides its text: usage, finish reason, error.
//!
//! One shape serves both, and every endpoint: an answer of Responses or Messages has other members than
//! one of chat/completions, never the same with another meaning. Reading never fails: what is odd is
//! absent. Most answers are as they should be and are read in one pass; only one that is not is read as text
//! first and member by member then.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::brings::Brings;
use super::figures;
use super::lax;
use super::seen::{Failure, Said, Seen};

/// Reads a whole JSON answer. Blank lines before the JSON are skipped: DeepSeek sends them while a
/// request is queued (api-docs.deepseek.com, rate limit page).
pub fn observe_unary(body: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let text = lax::utf8(body);
    if let Some(answer) = Answer::parse(&text) {
        seen.take(Said { is_final: true, ..answer.said() });
    }
    seen
}

/// The top level of an answer or a frame. Choices and usage are `None` where there are none, or where they
/// cannot be read.
pub(super) struct Answer<'a>(Fields<'a, Vec<Choice<'a>>, figures::Raw<'a>>);

impl<'a> Answer<'a> {
    /// `None` where the text is not a JSON object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let fields = serde_json::from_str(text).ok();
        fields.or_else(|| serde_json::from_str(text).ok().map(Fields::read)).map(Self)
    }

    /// All that it says.
    pub(super) fn said(&self) -> Said {
        let usage = figures::told(self.0.usage.as_ref());
        let error = self.error();
        let has_no_choices = self.0.choices.as_ref().is_some_and(Vec::is_empty);
        let usage_only = has_no_choices && !usage.is_empty() && error.is_none();
        Said {
            token: self.has_token(),
            usage_only,
            usage,
            is_final: usage_only || self.is_last(),
            finish_reasons: self.finish_reasons(),
            error,
        }
    }

    /// Whether it brings a piece of an answer.
    fn has_token(&self) -> bool {
        let Fields { delta, content, text, .. } = &self.0;
        self.choices().iter().any(Choice::has_token)
            || [delta, content, text].into_iter().any(|piece| lax::is_present(*piece))
    }

    /// Whether a choice ends here, or the only text of a transcription (`transcript.text.done`).
    fn is_last(&self) -> bool {
        let kind: Option<Cow<'_, str>> = lax::read(self.0.kind);
        self.choices().iter().any(|choice| lax::is_present(choice.finish_reason))
            || kind.is_some_and(|kind| kind.ends_with(".done"))
    }

    fn choices(&self) -> &[Choice<'a>] {
        self.0.choices.as_deref().unwrap_or_default()
    }

    /// Of its choices; of the whole for Messages (`stop_reason`) and Responses (`incomplete_details`).
    fn finish_reasons(&self) -> Vec<Box<str>> {
        let incomplete = lax::read::<Incomplete<'_>>(self.0.incomplete_details);
        let of_the_whole = [self.0.stop_reason, incomplete.and_then(|details| details.reason)];
        let of_choices = self.choices().iter().map(|choice| choice.finish_reason);
        of_choices.chain(of_the_whole).filter_map(lax::short_text).collect()
    }

    fn error(&self) -> Option<Failure> {
        if let Some(failure) = failure(self.0.error) {
            return Some(failure);
        }
        let object: Option<Cow<'_, str>> = lax::read(self.0.object);
        (object.as_deref() == Some("error"))
            .then(|| Failure { code: lax::short_text(self.0.code), kind: lax::short_text(self.0.kind) })
    }
}

/// The error object that stands at `error`, which may also be a bare string.
pub(super) fn failure(error: Option<&RawValue>) -> Option<Failure> {
    let of = |fields: ErrorFields<'_>| Failure {
        code: lax::short_text(fields.code),
        kind: lax::short_text(fields.kind),
    };
    lax::is_present(error).then(|| lax::read(error).map(of).unwrap_or_default())
}

#[derive(Deserialize)]
struct Fields<'a, C, U> {
    choices: Option<C>,
    usage: Option<U>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
    /// Text of a transcription's event (`transcript.text.delta`).
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    /// Text of llama.cpp's `/completion`.
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    /// Text of SGLang's `/generate`.
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
}

impl<'a> Fields<'a, &'a RawValue, &'a RawValue> {
    /// Reads choices and usage each for itself.
    fn read(self) -> Fields<'a, Vec<Choice<'a>>, figures::Raw<'a>> {
        Fields {
            choices: lax::read(self.choices),
            usage: lax::read(self.usage),
            error: self.error,
            object: self.object,
            code: self.code,
            kind: self.kind,
            delta: self.delta,
            content: self.content,
            text: self.text,
            stop_reason: self.stop_reason,
            incomplete_details: self.incomplete_details,
        }
    }
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    delta: Option<Brings>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    /// What vLLM tells besides, where it is asked to: a token may have no text yet.
    #[serde(borrow)]
    token_ids: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

impl Choice<'_> {
    fn has_token(&self) -> bool {
        [self.text, self.token_ids].into_iter().any(lax::is_present)
            || self.delta.as_ref().is_some_and(|delta| delta.anything)
    }
}

#[derive(Deserialize)]
struct ErrorFields<'a> {
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::super::profiles::stopped_short;
    use super::*;
    use crate::usage::{Source, Usage};

    #[test]
    fn a_whole_answer_is_read() {
        let body = br#"

{"id":"c1","choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,
"completion_tokens":3,"total_tokens":10,"prompt_tokens_details":{"cached_tokens":4},
"completion_tokens_details":{"reasoning_tokens":2}}}"#;
        let usage = Usage {
            prompt: Some(7),
            completion: Some(3),
            total: Some(10),
            cached: Some(4),
            reasoning: Some(2),
        };
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
        let body =
            br#"{"choices":[{"finish_reason":"insufficient_system_resource"},{"finish_reason":"stop"}]}"#;
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
}
