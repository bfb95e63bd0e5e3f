//! OpenAI's Responses (platform.openai.com, API reference, streaming events): `/v1/responses`.
//!
//! Its clients go by the `type` in the data; the `event:` line says the same. What the gateway itself says
//! in this form is in [`response_failed`](super::response_failed).

use std::borrow::Cow;

use memchr::memmem;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::Reading;
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
    pub(super) response: Option<Box<Named>>,
    /// What the next event's number would be.
    pub(super) next_sequence: u64,
}

/// What the error event repeats of a response.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Named {
    pub(super) id: Box<str>,
    pub(super) model: Option<Box<str>>,
    pub(super) created_at: Option<u64>,
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
    let text = lax::utf8(data);
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
    use super::*;

    fn next_after(progress: &mut Progress, head: &[u8], tail: &[u8]) -> Reading {
        read_ends(None, Ends { head, tail }, progress)
    }

    #[test]
    fn the_ends_of_a_large_event_tell_its_kind_and_its_response() {
        let mut progress = Progress::default();
        let created = br#"data: {"response":{"id":"resp_7","created_at":5,"tools":[{"id":"x"#;
        let reading = next_after(&mut progress, created, br#""}]},"type":"response.created"}"#);
        assert!(matches!(reading, Reading::Nothing), "{reading:?}");
        assert_eq!(progress.response.as_ref().map(|named| &*named.id), Some("resp_7"));
        let (head, tail) = (br#"data: {"response":{"id":"resp_8""#, br#"}},"type":"response.failed"}"#);
        let Reading::End(said) = next_after(&mut progress, head, tail) else { panic!("it is the end") };
        assert_eq!((said.error, progress.next_sequence), (Some(Failure::default()), 2));
        assert_eq!(progress.response.map(|named| named.id), Some("resp_7".into()));
    }

    #[test]
    fn an_item_is_no_response() {
        let mut progress = Progress::default();
        next_after(&mut progress, br#"data: {"type":"response.output_item.done","item":{"id":"msg_1""#, b"");
        assert_eq!(progress.response, None);
    }
}
