//! Whole answers to operators.

use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_LENGTH, CONTENT_TYPE};
use http::{HeaderValue, Response};
use serde_json::Value;

use super::guard::Refusal;

const TEXT: &str = "text/plain";
const JSON: &str = "application/json";

/// An answer with its body.
pub(super) type Answer = Response<Bytes>;

pub(super) fn refused(refusal: Refusal) -> Answer {
    let (status, why) = match refusal {
        Refusal::Host => (403, "Host is not this listener: ask by its address or as localhost\n"),
        Refusal::Origin => (403, "not from a web page\n"),
        Refusal::Token => (401, "this needs the token of server.admin.token_file as a bearer token\n"),
    };
    let mut answer = text(status, why);
    if refusal == Refusal::Token {
        answer.headers_mut().insert(http::header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    answer
}

pub(super) fn not_allowed(allowed: &str) -> Answer {
    let mut answer = text(405, &format!("{allowed} only\n"));
    let allow = HeaderValue::from_str(allowed).expect("names of methods");
    answer.headers_mut().insert(http::header::ALLOW, allow);
    answer
}

pub(super) fn text(status: u16, text: &str) -> Answer {
    reply(status, TEXT, text.to_owned())
}

pub(super) fn json(status: u16, value: &Value) -> Answer {
    reply(status, JSON, format!("{value:#}\n"))
}

pub(super) fn reply(status: u16, content_type: &str, body: impl Into<Bytes>) -> Answer {
    let body = body.into();
    Response::builder()
        .status(status)
        .header(CONTENT_TYPE, content_type)
        .header(CONTENT_LENGTH, body.len())
        .header(CACHE_CONTROL, "no-store")
        .body(body)
        .expect("a known status and plain headers")
}
