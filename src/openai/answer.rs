//! What an answer says besides its text: usage, finish reason, error.
//!
//! One shape serves the frames of a stream and a whole JSON answer. Reading never fails: what is
//! odd is absent.

use std::borrow::Cow;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::lax;
use crate::usage::{Source, Usage};

/// What has been seen of an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Seen {
    /// The last figures and whether they are final.
    pub usage: Option<(Usage, Source)>,
    /// Why the engine stopped, at most 64 bytes; of several choices one that
    /// [stopped short](stopped_short), else the last.
    pub finish_reason: Option<Box<str>>,
    /// The first error object.
    pub error: Option<Failure>,
}

/// An error object in an answer: `{"error": ...}`, or vLLM's older `{"object": "error", ...}`.
///
/// Its message is not kept: it may quote the prompt.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// Its `code`, at most 64 bytes; vLLM's are numbers.
    pub code: Option<Box<str>>,
    /// Its `type`, at most 64 bytes.
    pub kind: Option<Box<str>>,
}

/// Reads a whole JSON answer. Blank lines before the JSON are skipped: DeepSeek sends them while a
/// request is queued (api-docs.deepseek.com, rate limit page).
pub fn observe_unary(body: &[u8]) -> Seen {
    let mut seen = Seen::default();
    let text = String::from_utf8_lossy(body);
    if let Some(answer) = Answer::parse(&text) {
        seen.note(&answer, Source::Reported);
    }
    seen
}

/// Whether the engine gave up rather than finished, so that a clean end is no success.
///
/// `insufficient_system_resource` is DeepSeek's; `abort` and `error` are vLLM's (`FinishReason` in
/// `vllm/v1/engine`).
pub fn stopped_short(finish_reason: &str) -> bool {
    matches!(finish_reason, "insufficient_system_resource" | "abort" | "error")
}

impl Seen {
    /// Takes over what one answer, or one frame of it, says.
    pub(super) fn note(&mut self, answer: &Answer<'_>, source: Source) {
        if let Some(newer) = answer.usage() {
            let mut usage = self.usage.map_or_else(Usage::default, |(usage, _)| usage);
            usage.update(&newer);
            self.usage = Some((usage, source));
        }
        for reason in answer.choices().iter().filter_map(|choice| lax::short_text(choice.finish_reason)) {
            if !self.finish_reason.as_deref().is_some_and(stopped_short) {
                self.finish_reason = Some(reason);
            }
        }
        if self.error.is_none() {
            self.error = answer.error();
        }
    }
}

/// The top level of an answer or a frame, its fields unread.
pub(super) struct Answer<'a> {
    /// `None` where there are none, or where they cannot be read.
    choices: Option<Vec<Choice<'a>>>,
    fields: Fields<'a>,
}

impl<'a> Answer<'a> {
    /// `None` where the text is not a JSON object.
    pub(super) fn parse(text: &'a str) -> Option<Self> {
        let fields: Fields<'a> = serde_json::from_str(text).ok()?;
        Some(Self { choices: lax::read(fields.choices), fields })
    }

    /// Whether a choice brings text, reasoning or a piece of a tool call.
    pub(super) fn has_token(&self) -> bool {
        self.choices().iter().any(Choice::has_token)
    }

    /// Whether a choice ends here.
    pub(super) fn is_last(&self) -> bool {
        self.choices().iter().any(|choice| lax::is_present(choice.finish_reason))
    }

    /// Whether it is the extra frame that carries usage and nothing else: its `choices` are empty.
    pub(super) fn is_usage_frame(&self) -> bool {
        self.choices.as_ref().is_some_and(Vec::is_empty) && self.usage().is_some() && self.error().is_none()
    }

    fn choices(&self) -> &[Choice<'a>] {
        self.choices.as_deref().unwrap_or_default()
    }

    fn usage(&self) -> Option<Usage> {
        let raw: RawUsage<'_> = lax::read(self.fields.usage)?;
        let prompt: Details<'_> = lax::read(raw.prompt_tokens_details).unwrap_or_default();
        let completion: Details<'_> = lax::read(raw.completion_tokens_details).unwrap_or_default();
        let usage = Usage {
            prompt: lax::count(raw.prompt_tokens),
            completion: lax::count(raw.completion_tokens),
            total: lax::count(raw.total_tokens),
            cached: lax::count(prompt.cached_tokens).or_else(|| lax::count(raw.prompt_cache_hit_tokens)),
            reasoning: lax::count(completion.reasoning_tokens),
        };
        Some(usage).filter(|usage| !usage.is_empty())
    }

    fn error(&self) -> Option<Failure> {
        let failure = |fields: &ErrorFields<'_>| Failure {
            code: lax::short_text(fields.code),
            kind: lax::short_text(fields.kind),
        };
        if lax::is_present(self.fields.error) {
            // The object may also be a bare string.
            return Some(lax::read(self.fields.error).as_ref().map(failure).unwrap_or_default());
        }
        let object: Option<Cow<'_, str>> = lax::read(self.fields.object);
        (object.as_deref() == Some("error"))
            .then(|| failure(&ErrorFields { code: self.fields.code, kind: self.fields.kind }))
    }
}

#[derive(Deserialize)]
struct Fields<'a> {
    #[serde(borrow)]
    choices: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    object: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
    #[serde(borrow, rename = "type")]
    kind: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Choice<'a> {
    #[serde(borrow)]
    delta: Option<Delta<'a>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    finish_reason: Option<&'a RawValue>,
}

impl Choice<'_> {
    fn has_token(&self) -> bool {
        lax::is_present(self.text)
            || self.delta.as_ref().is_some_and(|delta| {
                [
                    delta.content,
                    delta.reasoning,
                    delta.reasoning_content,
                    delta.tool_calls,
                    delta.function_call,
                ]
                .into_iter()
                .any(lax::is_present)
            })
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    content: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_content: Option<&'a RawValue>,
    #[serde(borrow)]
    tool_calls: Option<&'a RawValue>,
    #[serde(borrow)]
    function_call: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct RawUsage<'a> {
    #[serde(borrow)]
    prompt_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    total_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    prompt_tokens_details: Option<&'a RawValue>,
    #[serde(borrow)]
    completion_tokens_details: Option<&'a RawValue>,
    /// DeepSeek's older name for the cached tokens.
    #[serde(borrow)]
    prompt_cache_hit_tokens: Option<&'a RawValue>,
}

#[derive(Deserialize, Default)]
struct Details<'a> {
    #[serde(borrow)]
    cached_tokens: Option<&'a RawValue>,
    #[serde(borrow)]
    reasoning_tokens: Option<&'a RawValue>,
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
    use super::*;

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
}
