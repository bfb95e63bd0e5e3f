//! What is particular to an endpoint: the form of its events, and the form in which its clients expect
//! an error.
//!
//! The only place that writes error JSON. It knows no status codes and chooses no words.

mod messages;
mod path;
mod response_failed;
mod responses;

use bytes::Bytes;
use serde::Serialize;

use super::seen::Said;
use crate::sse::{Ends, decode, encode};
pub use responses::Progress;

/// A client API's form of events and errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Dialect {
    /// `/v1/chat/completions`.
    Chat,
    /// `/v1/completions`.
    Completions,
    /// OpenAI's `/v1/responses`.
    Responses,
    /// Anthropic's `/v1/messages`.
    Messages,
    /// Any other endpoint; errors are in OpenAI's form too.
    #[default]
    Other,
}

/// An error that a client is told, and the exchange it is about.
#[derive(Debug, Clone, Copy)]
pub struct Told<'a> {
    /// The stable word that programs read.
    pub code: &'a str,
    /// OpenAI's kind of error: `invalid_request_error`, `server_error`, `timeout_error`,
    /// `rate_limit_error`.
    pub kind: &'a str,
    /// What happened, for people.
    pub message: &'a str,
    /// The field it is about.
    pub param: Option<&'a str>,
    /// The request.
    pub about: About<'a>,
}

/// The exchange as an error may have to name it.
#[derive(Debug, Clone, Copy, Default)]
pub struct About<'a> {
    /// Its request id.
    pub request_id: &'a str,
    /// The client's model name.
    pub model: Option<&'a str>,
    /// When it began, in seconds since 1970.
    pub began: u64,
}

impl Dialect {
    /// The dialect of a request path, given without its query. A path prefix, another version or none
    /// count as well (DeepSeek's `/beta`), and so do the paths below an answer (`/v1/responses/ID`) and
    /// beside it (`/v1/messages/count_tokens`).
    pub fn of(path: &str) -> Self {
        path::dialect(path)
    }

    /// What is asked for at `path`, as `gen_ai.operation.name` has it (OpenTelemetry, GenAI conventions).
    pub fn operation(self, path: &str) -> Option<&'static str> {
        match self {
            Self::Chat | Self::Responses | Self::Messages => Some("chat"),
            Self::Completions => Some("text_completion"),
            Self::Other => path.ends_with("/embeddings").then_some("embeddings"),
        }
    }

    /// Whether requests may carry `stream_options.include_usage`.
    pub fn has_stream_options(self) -> bool {
        matches!(self, Self::Chat | Self::Completions)
    }

    /// Whether every whole stream of it says that it is over, by an end marker or by why it stopped. Of other endpoints
    /// nothing is known.
    pub fn has_end(self) -> bool {
        self != Self::Other
    }

    /// An error as an event, for a stream whose status has gone out and that came as far as `progress`.
    /// No end marker follows it: clients take that for success.
    pub fn error_event(self, told: &Told<'_>, progress: &Progress) -> Bytes {
        match self {
            Self::Responses => encode::named_event("response.failed", &response_failed::data(told, progress)),
            Self::Messages => encode::named_event("error", &messages::error(told)),
            Self::Chat | Self::Completions | Self::Other => encode::event(&error_json(told)),
        }
    }

    /// An error as a JSON body, for a real status.
    pub fn error_body(self, told: &Told<'_>) -> Bytes {
        match self {
            Self::Messages => messages::error(told).into(),
            _ => error_json(told).into(),
        }
    }

    /// The header beside `x-request-id` in which clients of this dialect look for the request id of an
    /// error.
    pub fn request_id_header(self) -> Option<&'static str> {
        (self == Self::Messages).then_some("request-id")
    }

    /// Reads an event of the kinds that Responses and Messages have, given whole and by its data; `None`
    /// for other endpoints. `first` says that no token has passed yet: until then none is skipped.
    pub(super) fn read(
        self,
        raw: &[u8],
        data: &[u8],
        first: bool,
        progress: &mut Progress,
    ) -> Option<Reading> {
        match self {
            Self::Responses => Some(responses::read(name(raw), data, first, progress)),
            Self::Messages => Some(messages::read(name(raw), data, first)),
            Self::Chat | Self::Completions | Self::Other => None,
        }
    }

    /// Like [`read`](Self::read), for an event of which only the ends are there.
    pub(super) fn read_ends(self, ends: Ends<'_>, progress: &mut Progress) -> Option<Reading> {
        let name = name(ends.head);
        match self {
            Self::Responses => Some(responses::read_ends(name, ends, progress)),
            Self::Messages if name.is_some_and(|name| !name.ends_with(b"_delta")) => Some(Reading::Nothing),
            Self::Messages => Some(Reading::Token),
            Self::Chat | Self::Completions | Self::Other => None,
        }
    }
}

/// What an event of a named kind is.
#[derive(Debug)]
pub(super) enum Reading {
    /// Nothing that matters.
    Nothing,
    /// A token, not looked at.
    Token,
    /// It only says that the engine is alive.
    KeepAlive,
    /// The answer ends here.
    End(Said),
    /// It says something.
    Said(Said),
    /// Its kind is not known here; it may still be an error in OpenAI's form.
    Unknown,
}

/// The value of the `event:` line.
fn name(lines: &[u8]) -> Option<&[u8]> {
    decode::fields(lines).find(|field| field.name == b"event").map(|field| field.value)
}

/// OpenAI's error object (platform.openai.com, error codes): message, type, param, code.
fn error_json(told: &Told<'_>) -> String {
    #[derive(Serialize)]
    struct Body<'a> {
        error: Object<'a>,
    }
    #[derive(Serialize)]
    struct Object<'a> {
        message: &'a str,
        r#type: &'a str,
        param: Option<&'a str>,
        code: &'a str,
    }
    json(&Body {
        error: Object { message: told.message, r#type: told.kind, param: told.param, code: told.code },
    })
}

fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value).expect("strings, numbers and null always serialise")
}
