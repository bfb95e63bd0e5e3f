//! `early_headers`: a 200 and heartbeats before the engine has said anything, and what follows from it.

use crate::support;
use crate::support::sockets::Blackhole;
use crate::support::wire::{DONE, Request, answer, event};
use crate::support::{Call, Client, Gateway, Leave, Settings, Upstream, checks, one_engine, two_engines};

const HEARTBEAT: &str = ": keep-alive\n\n";

fn early(settings: Settings) -> Settings {
    settings
        .set("stream.early_headers", "200ms")
        .set("stream.heartbeat", "100ms")
        .set("timeouts.connect", "1500ms")
        .set("timeouts.first_event", "20s")
}

/// The client has a head and a heartbeat while the engine is silent.
async fn committed(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    let mut client = gateway.send(&Request::chat()).await;
    let call = upstream.call().await;
    let head = client.head().await;
    assert_eq!(head.status(), 200);
    assert_eq!(head.get("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(head.get("cache-control"), Some("no-cache"));
    // A slow reader finds more than one.
    client.until_len(HEARTBEAT.len()).await;
    assert_eq!(without_heartbeats(&client), "");
    (client, call)
}

/// Heartbeats aside, what the client got.
fn without_heartbeats(client: &Client) -> String {
    String::from_utf8_lossy(client.body()).replace(HEARTBEAT, "")
}

#[tokio::test]
async fn a_silent_engine_is_bridged_by_an_early_head() {
    let (gateway, mut upstream) = one_engine(early).await;
    let (mut client, mut call) = committed(&gateway, &mut upstream).await;
    call.open().await;
    call.chunk(event("late")).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, support::End::Clean);
    assert_eq!(without_heartbeats(&client), [&event("late"), DONE].concat());
    assert_eq!(gateway.only_access().await["outcome"], "completed");
    checks::at_rest(&gateway).await;
}

/// The status can no longer pass: the client gets an error event, and no other node is asked.
#[tokio::test]
async fn an_error_status_after_an_early_head_becomes_an_error_event() {
    let (gateway, mut one, mut two) = two_engines(early).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (mut call, other) = support::upstream::either(&mut one, &mut two).await;
    assert_eq!(client.head().await.status(), 200);
    call.send(answer("503 Service Unavailable", &["Retry-After: 1"], "busy")).await;
    assert_eq!(client.end().await, support::End::Clean);
    let text = without_heartbeats(&client);
    assert!(text.starts_with("data: {\"error\":") && text.contains("\"code\":\"upstream_error\""), "{text}");
    other.assert_not_asked();
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["attempts"]), (&"upstream_error".into(), &1.into()), "{line}");
    checks::at_rest(&gateway).await;
}

/// Nor can an answer that is no event stream, or none that can be read, though it is a success: it is told as that.
#[tokio::test]
async fn an_answer_that_is_no_event_stream_after_an_early_head_is_told_as_that() {
    const WORDS: &str = "the backend's answer is no event stream";
    let gzip = ["Content-Type: text/event-stream", "Content-Encoding: gzip"];
    for headers in [&["Content-Type: application/json"][..], &gzip] {
        let (gateway, mut one, mut two) = two_engines(early).await;
        let mut client = gateway.send(&Request::chat()).await;
        let (mut call, other) = support::upstream::either(&mut one, &mut two).await;
        assert_eq!(client.head().await.status(), 200);
        call.send(answer("200 OK", headers, "{}")).await;
        assert_eq!(client.end().await, support::End::Clean);
        let text = without_heartbeats(&client);
        assert!(text.starts_with("data: {\"error\":") && text.contains(WORDS), "{text}");
        assert!(text.contains("\"code\":\"upstream_error\""), "{text}");
        other.assert_not_asked();
        let line = gateway.only_access().await;
        assert_eq!(
            (&line["outcome"], &line["error"]),
            (&"upstream_error".into(), &"upstream_error".into()),
            "{line}"
        );
        gateway.wait_log(&format!("): {WORDS}\"")).await;
        checks::at_rest(&gateway).await;
    }
}

#[tokio::test]
async fn a_reset_after_an_early_head_becomes_an_error_event() {
    let (gateway, mut one, mut two) = two_engines(early).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (call, other) = support::upstream::either(&mut one, &mut two).await;
    assert_eq!(client.head().await.status(), 200);
    call.reset();
    assert_eq!(client.end().await, support::End::Clean);
    assert!(without_heartbeats(&client).contains("\"code\":\"upstream_disconnected\""));
    other.assert_not_asked();
    checks::at_rest(&gateway).await;
}

/// The head comes early also while connecting; the connect timeout still ends it.
#[tokio::test]
async fn an_unanswered_connect_after_an_early_head_becomes_an_error_event() {
    let blackhole = Blackhole::start().await;
    let gateway = Gateway::start(early(Settings::new(&[blackhole.addr()]))).await;
    let mut client = gateway.send(&Request::chat()).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, support::End::Clean);
    assert!(without_heartbeats(&client).contains("\"code\":\"connect_timeout\""));
    assert_eq!(gateway.only_access().await["outcome"], "timeout");
    checks::at_rest(&gateway).await;
}

#[tokio::test]
async fn leaving_after_an_early_head_stops_the_engine() {
    for how in Leave::ways() {
        let (gateway, mut upstream) = one_engine(early).await;
        let (client, mut call) = committed(&gateway, &mut upstream).await;
        client.leave(how);
        checks::cancel(&gateway, &mut call, "first_event").await;
    }
}

/// A request that does not stream has no event stream to bridge with.
#[tokio::test]
async fn a_whole_answer_gets_no_early_head() {
    let (gateway, mut upstream) = one_engine(|settings| early(settings).set("timeouts.unary", "700ms")).await;
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    checks::rejected(&client.answer().await, 504, "unary_timeout");
    call.gone().await;
}

crate::over_h2! {
    a_silent_engine_is_bridged_by_an_early_head,
    an_error_status_after_an_early_head_becomes_an_error_event,
    an_answer_that_is_no_event_stream_after_an_early_head_is_told_as_that,
    a_reset_after_an_early_head_becomes_an_error_event,
    an_unanswered_connect_after_an_early_head_becomes_an_error_event,
    leaving_after_an_early_head_stops_the_engine,
    a_whole_answer_gets_no_early_head,
}
