//! OpenAI's Responses (platform.openai.com, API reference, streaming events): `/v1/responses`.
//!
//! Its clients go by the `type` in the data; the `event:` line says the same. A failure is an event like
//! any other, `response.failed`, and carries the response as far as it came.

use std::borrow::Cow;

use memchr::memmem;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::{Reading, Told, json};
use crate::openai::answer::failure;
use crate::openai::seen::{Failure, Said};
use crate::openai::{figures, lax};
use crate::sse::Ends;

/// Longest id or model name kept of a response, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// How far a stream of events came, as its error event must say it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Progress {
    /// The response, as the engine named it; `None` before it did.
    response: Option<Box<Named>>,
    /// What the next event's number would be.
    next_sequence: u64,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Named {
    id: Box<str>,
    model: Option<Box<str>>,
    created_at: Option<u64>,
}

impl Progress {
    /// Takes over what an event says of its number and its response.
    fn note(&mut self, frame: &Frame<'_>) {
        if let Some(number) = lax::count(frame.sequence_number) {
            self.next_sequence = number.saturating_add(1);
        }
        if self.response.is_none() {
            self.response = lax::read(frame.response).and_then(|response: Response<'_>| response.named());
        }
    }

    /// Takes the response's id from the beginning of an event.
    fn note_id(&mut self, head: &[u8]) {
        const NAME: &[u8] = b"\"id\"";
        if self.response.is_some() {
            return;
        }
        let response = memmem::find(head, b"\"response\"").map_or(&[][..], |at| &head[at..]);
        let id = memmem::find(response, NAME).and_then(|at| lax::value_after(response, at + NAME.len()));
        self.response =
            lax::text(id, NAME_BYTES_MAX).map(|id| Box::new(Named { id, model: None, created_at: None }));
    }
}

/// Reads one event. An event that is skipped counts as numbered one after its predecessor.
pub(super) fn read(name: Option<&[u8]>, data: &[u8], first: bool, progress: &mut Progress) -> Reading {
    progress.next_sequence = progress.next_sequence.saturating_add(1);
    match name {
        Some(name) if name.ends_with(b".delta") && !first => return Reading::Token,
        Some(b"keepalive") => return Reading::KeepAlive,
        _ => {}
    }
    let text = String::from_utf8_lossy(data);
    let Ok(frame) = serde_json::from_str::<Frame<'_>>(&text) else { return Reading::Nothing };
    progress.note(&frame);
    match frame.kind.as_deref() {
        None => Reading::Unknown,
        Some("error") => Reading::Said(Said { error: Some(frame.error()), ..Said::default() }),
        Some("response.completed" | "response.incomplete" | "response.failed") => Reading::End(frame.last()),
        Some("response.output_item.added") => {
            Reading::Said(Said { token: frame.begins_call(), ..Said::default() })
        }
        Some("keepalive") => Reading::KeepAlive,
        Some(kind) if kind.ends_with(".delta") => {
            Reading::Said(Said { token: lax::is_present(frame.delta), ..Said::default() })
        }
        Some(_) => Reading::Nothing,
    }
}

/// Reads an event of which only the ends are there: they echo the tools and instructions of the request
/// and repeat the whole text, so the first and the last event of an answer are often large.
pub(super) fn read_ends(name: Option<&[u8]>, ends: Ends<'_>, progress: &mut Progress) -> Reading {
    progress.next_sequence = progress.next_sequence.saturating_add(1);
    progress.note_id(ends.head);
    // Without an `event:` line the `type` stands first or last in the data.
    let is = |kind: &str| match name {
        Some(name) => name == kind.as_bytes(),
        None => {
            let quoted = format!("\"{kind}\"");
            [ends.head, ends.tail].iter().any(|end| memmem::find(end, quoted.as_bytes()).is_some())
        }
    };
    let is_failed = is("response.failed");
    if is_failed || is("response.completed") || is("response.incomplete") {
        let error = is_failed.then(Failure::default);
        return Reading::End(Said {
            usage: figures::find(ends.tail),
            is_final: true,
            error,
            ..Said::default()
        });
    }
    match name {
        Some(name) if name.ends_with(b".delta") => Reading::Token,
        _ => Reading::Nothing,
    }
}

/// The data of the `response.failed` event: the response object with its error.
pub(super) fn failed(told: &Told<'_>, progress: &Progress) -> String {
    let named = progress.response.as_deref();
    let own_id = format!("resp_{}", told.about.request_id);
    let response = FailedResponse {
        id: named.map_or(&own_id, |named| &named.id),
        object: "response",
        created_at: named.and_then(|named| named.created_at).unwrap_or(told.about.began),
        status: "failed",
        error: ResponseError { code: told.code, message: told.message },
        incomplete_details: None,
        instructions: None,
        metadata: Empty {},
        model: named.and_then(|named| named.model.as_deref()).or(told.about.model).unwrap_or(""),
        output: [],
        parallel_tool_calls: true,
        previous_response_id: None,
        temperature: None,
        tool_choice: "auto",
        tools: [],
        top_p: None,
        usage: None,
    };
    json(&Failed { r#type: "response.failed", sequence_number: progress.next_sequence, response })
}

#[derive(Serialize)]
struct Failed<'a> {
    r#type: &'a str,
    sequence_number: u64,
    response: FailedResponse<'a>,
}

/// The members that the reference requires of a response, those of the request left open.
#[derive(Serialize)]
struct FailedResponse<'a> {
    id: &'a str,
    object: &'a str,
    created_at: u64,
    status: &'a str,
    error: ResponseError<'a>,
    incomplete_details: Option<()>,
    instructions: Option<()>,
    metadata: Empty,
    model: &'a str,
    output: [(); 0],
    parallel_tool_calls: bool,
    previous_response_id: Option<()>,
    temperature: Option<()>,
    tool_choice: &'a str,
    tools: [(); 0],
    top_p: Option<()>,
    usage: Option<()>,
}

#[derive(Serialize)]
struct ResponseError<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
struct Empty {}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    sequence_number: Option<&'a RawValue>,
    #[serde(borrow)]
    delta: Option<&'a RawValue>,
    #[serde(borrow)]
    item: Option<&'a RawValue>,
    #[serde(borrow)]
    response: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    code: Option<&'a RawValue>,
}

impl Frame<'_> {
    /// Of an `error` event; its members stand in the event itself or in an object of their own.
    fn error(&self) -> Failure {
        failure(self.error).unwrap_or_else(|| Failure { code: lax::short_text(self.code), kind: None })
    }

    fn last(&self) -> Said {
        let Some(response) = lax::read::<Response<'_>>(self.response) else { return Said::default() };
        let is_failed = self.kind.as_deref() == Some("response.failed");
        let incomplete = lax::read::<Incomplete<'_>>(response.incomplete_details);
        let reason = incomplete.and_then(|details| lax::short_text(details.reason));
        Said {
            usage: figures::read(response.usage),
            is_final: true,
            finish_reasons: reason.into_iter().collect(),
            error: failure(response.error).or_else(|| is_failed.then(Failure::default)),
            ..Said::default()
        }
    }

    fn begins_call(&self) -> bool {
        let item: Option<Item<'_>> = lax::read(self.item);
        item.and_then(|item| item.kind).is_some_and(|kind| kind.ends_with("_call"))
    }
}

#[derive(Deserialize)]
struct Item<'a> {
    #[serde(borrow, rename = "type")]
    kind: Option<Cow<'a, str>>,
}

#[derive(Deserialize)]
struct Incomplete<'a> {
    #[serde(borrow)]
    reason: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Response<'a> {
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    model: Option<&'a RawValue>,
    #[serde(borrow)]
    created_at: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
    #[serde(borrow)]
    incomplete_details: Option<&'a RawValue>,
    #[serde(borrow)]
    usage: Option<&'a RawValue>,
}

impl Response<'_> {
    fn named(&self) -> Option<Box<Named>> {
        Some(Box::new(Named {
            id: lax::text(self.id, NAME_BYTES_MAX)?,
            model: lax::text(self.model, NAME_BYTES_MAX),
            created_at: lax::count(self.created_at),
        }))
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::{About, Dialect};
    use super::*;

    const TOLD: Told<'_> = Told {
        code: "idle_timeout",
        kind: "timeout_error",
        message: "silent",
        param: None,
        about: About { request_id: "r1", model: Some("m"), began: 1_700_000_000 },
    };

    fn response(event: &Bytes) -> serde_json::Value {
        let text = std::str::from_utf8(event).expect("text");
        let data =
            text.strip_prefix("event: response.failed\ndata: ").and_then(|rest| rest.strip_suffix("\n\n"));
        serde_json::from_str(data.expect("one event")).expect("JSON")
    }

    #[test]
    fn a_failure_carries_the_response_that_the_engine_began() {
        let mut progress = Progress::default();
        let created = br#"{"type":"response.created","sequence_number":3,"response":{"id":"resp_7","model":"qwen","created_at":5}}"#;
        assert!(matches!(read(None, created, true, &mut progress), Reading::Nothing));
        assert!(matches!(read(Some(b"x.delta"), b"", false, &mut progress), Reading::Token));
        let event = response(&Dialect::Responses.error_event(&TOLD, &progress));
        assert_eq!((&event["type"], &event["sequence_number"]), (&"response.failed".into(), &5.into()));
        let inner = &event["response"];
        assert_eq!(
            (&inner["id"], &inner["model"], &inner["created_at"]),
            (&"resp_7".into(), &"qwen".into(), &5.into())
        );
        assert_eq!(inner["status"], "failed");
        assert_eq!(inner["error"], serde_json::json!({ "code": "idle_timeout", "message": "silent" }));
    }

    #[test]
    fn a_failure_before_the_engine_said_anything_names_the_request() {
        let event = response(&Dialect::Responses.error_event(&TOLD, &Progress::default()));
        assert_eq!(event["sequence_number"], 0);
        let inner = &event["response"];
        assert_eq!((&inner["id"], &inner["model"]), (&"resp_r1".into(), &"m".into()));
        assert_eq!(inner["created_at"], 1_700_000_000);
    }

    #[test]
    fn a_rejection_has_the_openai_form() {
        let json =
            r#"{"error":{"message":"silent","type":"timeout_error","param":null,"code":"idle_timeout"}}"#;
        assert_eq!(Dialect::Responses.error_body(&TOLD), json);
    }
}
