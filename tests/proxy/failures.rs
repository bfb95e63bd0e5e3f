//! Failures are told: a real status before commitment, one error event after it, and an engine's own
//! error answer as it is.

use crate::support;
use crate::support::upstream::either;
use crate::support::wait::ms;
use crate::support::wire::{DONE, FINISH, Request, chunk, event};
use crate::support::{
    Call, Client, End, Gateway, Settings, Upstream, as_is, checks, one_engine, streaming, two_engines,
};

/// A stream with two events already at the client.
async fn two_events(gateway: &Gateway, upstream: &mut Upstream) -> (Client, Call) {
    streaming(gateway, upstream, &["1", "2"]).await
}

fn delivered() -> String {
    [event("1"), event("2")].concat()
}

/// The books of an exchange that an engine cut after its head.
async fn cut_was_counted(gateway: &Gateway, upstream: &mut Upstream, fds: usize) {
    let line = gateway.only_access().await;
    assert_eq!(line["outcome"], "upstream_error", "{line}");
    assert_eq!(line["attempts"], 1, "never tried again after commitment: {line}");
    checks::at_rest(gateway).await;
    upstream.assert_not_asked();
    let connections = upstream.connections();
    checks::alive(gateway, upstream, fds).await;
    assert_eq!(upstream.connections(), connections + 1, "the cut connection is not used again");
}

/// H06 (a): FIN in the middle of a chunk. The partial event is dropped, the error event stands at a boundary.
#[tokio::test]
async fn a_fin_inside_a_chunk_becomes_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.send("40\r\ndata: {\"x\"").await;
    call.close();
    checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// H06 (b): the same with a reset.
#[tokio::test]
async fn a_reset_inside_a_chunk_becomes_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.send("40\r\ndata: {\"x\"").await;
    call.reset();
    checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// A FIN between two events, after the head of the stream only, is a cut as well.
#[tokio::test]
async fn a_fin_between_events_becomes_an_error_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let (mut client, call) = two_events(&gateway, &mut upstream).await;
    call.close();
    checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// H06 (c): a body that is no stream and stays short of its length is short for the client too.
#[tokio::test]
async fn a_short_body_stays_short() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let mut client = gateway.send(&Request::unary()).await;
    let mut call = upstream.call().await;
    let part = "x".repeat(400);
    call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n").await;
    call.send(&part).await;
    call.close();
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Broken);
    checks::same(client.body(), part.as_bytes());
    cut_was_counted(&gateway, &mut upstream, fds).await;
}

/// A part of a large event has gone out: no error event can follow it, so the framing breaks.
#[tokio::test]
async fn a_cut_inside_a_large_event_breaks_the_framing() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    let part = format!("data: {}", "x".repeat(100_000));
    call.chunk(&part).await;
    let whole = [delivered(), part].concat();
    client.until_len(delivered().len() + 1).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    assert!(whole.as_bytes().starts_with(client.body()), "nothing is added after the partial event");
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// `failure_end: abort`: after the error event the framing breaks.
#[tokio::test]
async fn failure_end_abort_breaks_the_framing_after_the_error_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.failure_end", "abort")).await;
    let (mut client, call) = two_events(&gateway, &mut upstream).await;
    call.close();
    assert_eq!(client.end().await, End::Broken);
    let body = String::from_utf8_lossy(client.body()).into_owned();
    let error = body.strip_prefix(&delivered()).expect("what came is delivered");
    assert!(error.contains("upstream_disconnected"), "{error}");
}

/// After commitment the same timeout is told as an event.
#[tokio::test]
async fn a_committed_stream_without_events_ends_in_an_error_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.first_event", "500ms")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    assert_eq!(client.head().await.status(), 200);
    checks::broken(&mut client, "", "first_event_timeout").await;
    call.gone().await;
}

/// An engine that falls silent between events, comments aside.
#[tokio::test]
async fn an_idle_stream_ends_in_an_error_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.idle", "500ms")).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk(": still here\n\n").await;
    let delivered = format!("{}: still here\n\n", delivered());
    client.until_body(delivered.as_bytes()).await;
    checks::broken(&mut client, &delivered, "idle_timeout").await;
    call.gone().await;
    checks::timed_out(&gateway, "stream").await;
}

/// A held partial event is dropped when the idle timeout cuts the stream.
#[tokio::test]
async fn an_idle_timeout_drops_the_partial_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.idle", "500ms")).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk("data: {\"half").await;
    checks::broken(&mut client, &delivered(), "idle_timeout").await;
    call.gone().await;
}

/// H13: a stream that goes on for ever ends at the total timeout.
#[tokio::test]
async fn an_endless_stream_ends_at_the_total_timeout() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.total", "1s")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    let engine = tokio::spawn(async move {
        let mut sent = 0;
        while call.try_send(chunk(event("x"))).await.is_ok() {
            sent += 1;
            support::wait::silence(ms(50)).await;
        }
        sent
    });
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    let count = client.body().windows(event("x").len()).filter(|w| *w == event("x").as_bytes()).count();
    checks::broken(&mut client, &event("x").repeat(count), "total_timeout").await;
    assert!(engine.await.unwrap() >= count, "the engine is left");
    checks::timed_out(&gateway, "stream").await;
}

/// An error object inside a 200 stream passes as data, and `[DONE]` after it is no success.
#[tokio::test]
async fn an_error_object_in_a_stream_passes_and_is_counted() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    let error = "data: {\"error\":{\"message\":\"engine died\",\"type\":\"server_error\",\"code\":500}}\n\n";
    call.chunk(error).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&delivered(), error, DONE].concat().as_bytes());
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// A missing end marker is counted, not judged, and never invented.
#[tokio::test]
async fn a_missing_end_marker_is_not_invented() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk(FINISH).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&delivered(), FINISH].concat().as_bytes());
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

/// Half an event before a clean end is dropped and told, as if the connection had been cut there.
#[tokio::test]
async fn half_an_event_at_the_end_is_a_cut() {
    for half in
        ["data: {\"x\"", "data: {\"x\":\n", "data: {\"x\": {}", "data: {\"x\": 1}\ndata: {", "data: [DON"]
    {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let fds = gateway.fd_count();
        let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
        call.chunk(half).await;
        call.finish().await;
        checks::broken(&mut client, &delivered(), "upstream_disconnected").await;
        gateway.wait_log("the backend ended its answer in the middle").await;
        cut_was_counted(&gateway, &mut upstream, fds).await;
    }
}

/// Where part of that event is out already, the framing breaks.
#[tokio::test]
async fn half_a_large_event_at_the_end_breaks_the_framing() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
    call.chunk(format!("data: {}", "x".repeat(100_000))).await;
    client.until_len(delivered().len() + 1).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Broken);
    assert_eq!(gateway.only_access().await["outcome"], "upstream_error");
}

/// Half an event and nothing before it: nothing is out, so another node is asked.
#[tokio::test]
async fn half_an_event_and_nothing_else_is_tried_again() {
    let adjust = |settings: Settings| settings.set("stream.hold_headers", "5s");
    let (gateway, mut one, mut two) = two_engines(adjust).await;
    let mut client = gateway.send(&Request::chat()).await;
    let (mut call, other) = either(&mut one, &mut two).await;
    call.open().await;
    call.chunk("data: {\"x\"").await;
    call.finish().await;
    other.call().await.stream("whole").await;
    checks::streamed(&mut client, "whole").await;
    gateway.wait_metric("retries_total", &[("reason", "unfinished")], 1.0).await;
}

/// What readers of lines take for whole stays as it is: some engines leave the last line end out.
#[tokio::test]
async fn a_last_line_without_its_end_is_whole() {
    for last in ["data: [DONE]", "data: [DONE]\n", "data: {\"choices\": []}", "data: x\r\n"] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let (mut client, mut call) = two_events(&gateway, &mut upstream).await;
        call.chunk(last).await;
        call.finish().await;
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), [&delivered(), last].concat().as_bytes());
        assert_eq!(gateway.only_access().await["outcome"], "completed");
    }
}

/// A JSON text whose only end is that of the connection: a whole one is whole, half of it is broken.
#[tokio::test]
async fn half_a_json_text_that_ends_with_its_connection_stays_broken() {
    for (text, end, outcome) in [
        ("{\"choices\": [{\"a\": 1", End::Broken, "upstream_error"),
        ("{\"choices\": []}\n", End::Clean, "completed"),
    ] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let mut client = gateway.send(&Request::unary()).await;
        let mut call = upstream.call().await;
        call.send("HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n").await;
        call.send(text).await;
        call.close();
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.end().await, end, "{text}");
        checks::same(client.body(), text.as_bytes());
        assert_eq!(gateway.only_access().await["outcome"], outcome, "{text}");
    }
}

crate::over_h2! {
    half_an_event_at_the_end_is_a_cut,
    half_a_large_event_at_the_end_breaks_the_framing,
    half_an_event_and_nothing_else_is_tried_again,
    a_last_line_without_its_end_is_whole,
    half_a_json_text_that_ends_with_its_connection_stays_broken,
    a_fin_inside_a_chunk_becomes_an_error_event,
    a_reset_inside_a_chunk_becomes_an_error_event,
    a_fin_between_events_becomes_an_error_event,
    a_short_body_stays_short,
    a_cut_inside_a_large_event_breaks_the_framing,
    failure_end_abort_breaks_the_framing_after_the_error_event,
    a_committed_stream_without_events_ends_in_an_error_event,
    an_idle_stream_ends_in_an_error_event,
    an_idle_timeout_drops_the_partial_event,
    an_endless_stream_ends_at_the_total_timeout,
    an_error_object_in_a_stream_passes_and_is_counted,
    a_missing_end_marker_is_not_invented,
}
