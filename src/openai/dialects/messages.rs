//! Anthropic's Messages (docs.anthropic.com, streaming messages and errors): `/v1/messages`.
//!
//! Its clients go by the `event:` line. vLLM, SGLang and llama.cpp speak it too, in the same form.

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Reading, Told, json};
use crate::openai::answer::failure;
use crate::openai::brings::Brings;
use crate::openai::seen::Said;
use crate::openai::{figures, lax};
use crate::usage::Usage;

/// Reads one event.
pub(super) fn read(name: Option<&[u8]>, data: &[u8], first: bool) -> Reading {
    match name {
        Some(b"content_block_delta") if !first => return Reading::Token,
        Some(b"ping") => return Reading::KeepAlive,
        Some(b"content_block_stop") => return Reading::Nothing,
        _ => {}
    }
    let text = lax::utf8(data);
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else { return Reading::Nothing };
    let kind = frame.kind.as_deref().map(str::as_bytes);
    match name.or(kind) {
        Some(b"message_start") => Reading::Said(frame.start()),
        Some(b"content_block_start" | b"content_block_delta") => {
            Reading::Said(Said { token: frame.has_token(), ..Said::default() })
        }
        Some(b"message_delta") => Reading::Said(frame.last()),
        Some(b"message_stop") => Reading::End(Said::default()),
        Some(b"error") => {
            Reading::Said(Said { error: Some(failure(frame.error).unwrap_or_default()), ..Said::default() })
        }
        Some(b"ping") => Reading::KeepAlive,
        _ => Reading::Unknown,
    }
}

/// The error object, as body and as the data of an event. Our code stands where the anthropic package
/// reads a stable word (`error.details.error_code`) and where all our errors have it (`error.code`).
pub(super) fn error(told: &Told<'_>) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        r#type: &'a str,
        error: Object<'a>,
        request_id: &'a str,
    }
    #[derive(Serialize)]
    struct Object<'a> {
        r#type: &'a str,
        message: &'a str,
        code: &'a str,
        details: Details<'a>,
    }
    #[derive(Serialize)]
    struct Details<'a> {
        error_code: &'a str,
    }
    let details = Details { error_code: told.code };
    let object = Object { r#type: kind(told), message: told.message, code: told.code, details };
    json(&Body { r#type: "error", error: object, request_id: told.about.request_id })
}

/// Anthropic's word for the kind of error (docs.anthropic.com, errors).
fn kind(told: &Told<'_>) -> &'static str {
    match (told.code, told.kind) {
        ("not_found" | "model_not_found", _) => "not_found_error",
        ("unauthorized", _) => "authentication_error",
        ("model_not_allowed", _) => "permission_error",
        ("rate_limited", _) => "rate_limit_error",
        ("body_too_large", _) => "request_too_large",
        ("overloaded" | "no_backend" | "shutting_down", _) => "overloaded_error",
        (_, "invalid_request_error") => "invalid_request_error",
        (_, "timeout_error") => "timeout_error",
        _ => "api_error",
    }
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    message: Option<&'a RawValue>,
    #[serde(borrow)]
    content_block: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

impl Frame<'_> {
    /// `message_start`: the prompt's figures. Its `output_tokens` is a place holder.
    fn start(&self) -> Said {
        let usage = figures::read(lax::read(self.message).and_then(|message: Message<'_>| message.usage));
        Said { usage: Usage { completion: None, ..usage }, ..Said::default() }
    }

    /// `message_delta`: the figures of the whole, and why it ended.
    fn last(&self) -> Said {
        let reason = lax::read(self.delta).and_then(|delta: Delta<'_>| lax::short_text(delta.stop_reason));
        Said {
            usage: figures::read(self.usage),
            is_final: true,
            finish_reasons: reason.into_iter().collect(),
            ..Said::default()
        }
    }

    /// Whether it brings text, thinking or a piece of a tool call.
    fn has_token(&self) -> bool {
        let block: Option<Block<'_>> = lax::read(self.content_block);
        let delta: Brings = lax::read(self.delta).unwrap_or_default();
        delta.anything || block.is_some_and(|block| block.has_token())
    }
}

#[derive(Deserialize)]
struct Message<'a> {
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<std::borrow::Cow<'a, str>>,
    #[serde(borrow)]
    text: Option<&'a RawValue>,
    #[serde(borrow)]
    thinking: Option<&'a RawValue>,
    /// Of thinking that is kept secret.
    #[serde(borrow)]
    data: Option<&'a RawValue>,
}

impl Block<'_> {
    /// Whether it begins a tool call, or has a piece of the answer in it already.
    fn has_token(&self) -> bool {
        self.kind.as_deref().is_some_and(|kind| kind.ends_with("tool_use"))
            || [self.text, self.thinking, self.data].into_iter().any(lax::is_present)
    }
}

#[derive(Deserialize)]
struct Delta<'a> {
    #[serde(borrow)]
    stop_reason: Option<&'a RawValue>,
}

#[cfg(test)]
mod tests {
    use super::super::{About, Dialect, Progress};
    use super::*;

    fn told<'a>(code: &'a str, kind: &'a str) -> Told<'a> {
        let about = About { request_id: "r1", ..About::default() };
        Told { code, kind, message: "it \"broke\"", param: None, about }
    }

    #[test]
    fn an_error_has_anthropics_form_and_our_code() {
        let json = r#"{"type":"error","error":{"type":"timeout_error","message":"it \"broke\"","code":"idle_timeout","details":{"error_code":"idle_timeout"}},"request_id":"r1"}"#;
        let told = told("idle_timeout", "timeout_error");
        assert_eq!(Dialect::Messages.error_body(&told), json);
        let event = Dialect::Messages.error_event(&told, &Progress::default());
        assert_eq!(event, format!("event: error\ndata: {json}\n\n"));
    }

    #[test]
    fn kinds_are_anthropics() {
        for (code, ours, theirs) in [
            ("model_not_found", "invalid_request_error", "not_found_error"),
            ("unauthorized", "invalid_request_error", "authentication_error"),
            ("model_not_allowed", "invalid_request_error", "permission_error"),
            ("rate_limited", "rate_limit_error", "rate_limit_error"),
            ("body_too_large", "invalid_request_error", "request_too_large"),
            ("invalid_request", "invalid_request_error", "invalid_request_error"),
            ("no_backend", "server_error", "overloaded_error"),
            ("upstream_disconnected", "server_error", "api_error"),
            ("first_event_timeout", "timeout_error", "timeout_error"),
        ] {
            assert_eq!(kind(&told(code, ours)), theirs, "{code}");
        }
    }
}
