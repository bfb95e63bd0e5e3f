//! `response.failed`: how a stream of Responses says that it failed.
//!
//! It is an event like any other of its stream, and carries the response as far as it came.

use serde::Serialize;

use super::responses::Progress;
use super::{Told, json};

/// The data of the `response.failed` event: the response object with its error.
pub(super) fn data(told: &Told<'_>, progress: &Progress) -> String {
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

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::responses::read;
    use super::super::{About, Dialect, Reading};
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
