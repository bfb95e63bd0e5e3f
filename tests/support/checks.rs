//! The standard checks of the cases: SAME, CANCEL, BROKEN, ALIVE, USAGE and error answers.
//!
//! PROMPT needs no helper: a client that waits for an event before the test lets the engine write
//! the next one ([`Client::until_body`]) proves it by order.

use serde_json::Value;

use super::client::{Answer, Client, End};
use super::gateway::Gateway;
use super::sse;
use super::upstream::{Call, Recorded, Upstream};
use super::wait::{SOON, wait_until};
use super::wire::{DONE, Request, event};

/// SAME: the bytes at the client are the bytes the engine sent; shows the first difference.
pub(crate) fn same(got: &[u8], sent: &[u8]) {
    if got == sent {
        return;
    }
    let at = got.iter().zip(sent).position(|(a, b)| a != b).unwrap_or_else(|| got.len().min(sent.len()));
    let view = |bytes: &[u8]| {
        let from = at.saturating_sub(20).min(bytes.len());
        String::from_utf8_lossy(&bytes[from..bytes.len().min(at + 60)]).into_owned()
    };
    panic!(
        "{} bytes instead of {}; they differ at {at}:\n  got  {:?}\n  sent {:?}",
        got.len(),
        sent.len(),
        view(got),
        view(sent)
    );
}

/// The engine got exactly this body, with its true length.
pub(crate) fn has_body(asked: &Recorded, body: impl AsRef<[u8]>) {
    same(&asked.body, body.as_ref());
    assert_eq!(asked.head.get("content-length"), Some(body.as_ref().len().to_string().as_str()));
}

/// CANCEL: the engine is left, the count goes back, and the exchange is told as the client's doing.
pub(crate) async fn cancel(gateway: &Gateway, call: &mut Call, phase: &str) {
    call.gone().await;
    cancelled(gateway, phase).await;
}

/// The books of a cancelled exchange, in whatever phase it was.
pub(crate) async fn cancelled(gateway: &Gateway, phase: &str) {
    let line = gateway.wait_access("client_closed", |line| line["outcome"] == "client_closed").await;
    assert_eq!(line["phase"], phase, "{line}");
    gateway.wait_metric("cancels_total", &[("phase", phase)], 1.0).await;
    at_rest(gateway).await;
    assert_eq!(gateway.metric("requests_total", &[("outcome", "client_closed")]).await, 1.0);
    assert_eq!(gateway.metric("retries_total", &[]).await, 0.0, "nothing is tried again");
}

/// Nothing is held and nothing runs.
pub(crate) async fn at_rest(gateway: &Gateway) {
    gateway.wait_metric("in_flight", &[], 0.0).await;
    gateway.wait_metric("load", &[], 0.0).await;
    gateway.wait_metric("queue_depth", &[], 0.0).await;
    gateway.wait_metric("streams_active", &[], 0.0).await;
    gateway.wait_metric("held_bytes", &[], 0.0).await;
}

/// BROKEN, for a stream: all of `delivered`, one error event with this code, a clean end.
pub(crate) async fn broken(client: &mut Client, delivered: &str, code: &str) {
    assert_eq!(client.end().await, End::Clean, "the body ends by its framing");
    let body = client.body();
    assert!(body.len() > delivered.len(), "no error event: {:?}", String::from_utf8_lossy(body));
    same(&body[..delivered.len()], delivered.as_bytes());
    let events = sse::data(&body[delivered.len()..]);
    let [data] = events.as_slice() else { panic!("not one error event: {events:?}") };
    let error: Value = serde_json::from_str(data).expect("an error event is JSON");
    assert_error_form(&error, code);
}

/// Ends the stream at the engine; the client must have got exactly `sent`.
pub(crate) async fn ends_same(mut client: Client, call: Call, sent: &[u8]) {
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    same(client.body(), sent);
}

/// The client gets a whole stream with this content.
pub(crate) async fn streamed(client: &mut Client, content: &str) {
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    same(client.body(), format!("{}{DONE}", event(content)).as_bytes());
}

/// The books of the only exchange, which timed out in this phase and was not sent again.
pub(crate) async fn timed_out(gateway: &Gateway, phase: &str) {
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["phase"]), (&"timeout".into(), &phase.into()), "{line}");
    assert_eq!(line["attempts"], 1, "a request that timed out is not sent again: {line}");
    gateway.wait_metric("requests_total", &[("outcome", "timeout")], 1.0).await;
    at_rest(gateway).await;
}

/// A rejection: this status, and the code in a body of the expected form.
pub(crate) fn rejected(answer: &Answer, status: u16, code: &str) {
    assert_eq!(answer.status(), status, "{}", answer.text());
    assert_eq!(answer.head.get("content-type"), Some("application/json"));
    assert!(answer.head.get("x-request-id").is_some_and(|id| !id.is_empty()), "{:?}", answer.head);
    assert_error_form(&answer.json(), code);
}

fn assert_error_form(body: &Value, code: &str) {
    let error = &body["error"];
    assert_eq!(error["code"], code, "{body}");
    assert!(error["message"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    assert!(error["type"].as_str().is_some_and(|text| !text.is_empty()), "{body}");
    assert!(error["param"].is_null() || error["param"].is_string(), "{body}");
    assert!(error.get("param").is_some(), "{body}");
}

/// ALIVE: the next exchange is served, and nothing is left open beyond `fds` descriptors.
pub(crate) async fn alive(gateway: &Gateway, upstream: &mut Upstream, fds: usize) {
    let mut client = gateway.send(&Request::chat()).await;
    upstream.call().await.stream("alive").await;
    streamed(&mut client, "alive").await;
    client.close();
    // The engine's connection may stay in the pool.
    wait_until("descriptors are given back", SOON, || gateway.fd_count() <= fds + 2).await;
}

/// USAGE: the exchange was accounted with the figures of [`super::wire::USAGE`].
pub(crate) async fn usage(gateway: &Gateway) {
    let line = gateway.wait_access("completed", |line| line["outcome"] == "completed").await;
    assert_eq!(line["usage"]["prompt"], 7, "{line}");
    assert_eq!(line["usage"]["completion"], 3, "{line}");
}
