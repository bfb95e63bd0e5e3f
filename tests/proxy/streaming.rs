//! Streams flow: the engine's bytes, at once, whole, whatever their line ends, sizes and splits.

use crate::support;
use crate::support::wait::{SOON, ms, silence, within};
use crate::support::wire::{DONE, FINISH, Request, USAGE, chunk, event, whole_stream};
use crate::support::{End, as_is, checks, one_engine, open_stream};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

#[tokio::test]
async fn each_event_arrives_before_the_next_is_written() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let mut sent = String::new();
    for piece in [&event("a"), &event("b"), FINISH, USAGE, DONE] {
        call.chunk(piece).await;
        sent.push_str(piece);
        client.until_body(sent.as_bytes()).await;
    }
    checks::ends_same(client, call, sent.as_bytes()).await;
    checks::usage(&gateway).await;
    checks::at_rest(&gateway).await;
}

/// Behind a pause too: three events that came in one write stand in one chunk, with no framing between them.
#[tokio::test]
async fn events_that_come_together_go_out_together() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = TcpStream::connect(gateway.addr).await.expect("connect");
    client.write_all(&Request::chat().bytes()).await.expect("send the request");
    let mut call = upstream.call().await;
    call.open().await;
    let (first, three) = (event("a"), ["b", "c", "d"].map(event));
    let mut raw = Vec::new();
    call.chunk(&first).await;
    until_holds(&mut client, &mut raw, &first).await;
    call.send(three.each_ref().map(chunk).concat()).await;
    until_holds(&mut client, &mut raw, &three.concat()).await;
}

async fn until_holds(client: &mut TcpStream, raw: &mut Vec<u8>, wanted: &str) {
    within("the bytes in one piece", SOON, async {
        while !raw.windows(wanted.len()).any(|piece| piece == wanted.as_bytes()) {
            assert_ne!(client.read_buf(raw).await.expect("read"), 0, "the connection ended");
        }
    })
    .await;
}

/// H05 (a): what follows the finish reason is delivered and counted.
#[tokio::test]
async fn usage_after_the_finish_reason_is_delivered() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let begin = [&event("a"), &event("b"), FINISH].concat();
    call.chunk(&begin).await;
    client.until_body(begin.as_bytes()).await;
    silence(ms(200)).await;
    call.chunk(USAGE).await;
    call.chunk(DONE).await;
    checks::ends_same(client, call, [&begin, USAGE, DONE].concat().as_bytes()).await;
    checks::usage(&gateway).await;
}

/// H05 (b): an end marker without any line end is delivered, whether the end comes with it or later.
#[tokio::test]
async fn an_end_marker_without_a_line_end_is_delivered() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let sent = [&event("a"), FINISH, USAGE, DONE.trim_end()].concat();
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(&sent).await;
    checks::ends_same(client, call, sent.as_bytes()).await;
    checks::usage(&gateway).await;

    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(&sent).await;
    client.until_len(sent.len() - DONE.trim_end().len()).await;
    silence(ms(50)).await;
    checks::ends_same(client, call, sent.as_bytes()).await;
    checks::at_rest(&gateway).await;
}

/// H05 (c): a last event without its blank line is delivered at a clean end.
#[tokio::test]
async fn an_unfinished_last_event_is_delivered_at_a_clean_end() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let sent = [&event("a"), USAGE.trim_end()].concat();
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(&sent).await;
    checks::ends_same(client, call, sent.as_bytes()).await;
    checks::at_rest(&gateway).await;
    checks::alive(&gateway, &mut upstream, usize::MAX / 2).await;
}

/// The last event is not lost when the engine closes right behind it.
#[tokio::test]
async fn the_last_event_survives_a_close_right_behind_it() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    for _ in 0..50 {
        let mut client = gateway.send(&Request::chat()).await;
        let mut call = upstream.call().await;
        call.send(support::wire::stream_answer("last")).await;
        call.close();
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), [&event("last"), DONE].concat().as_bytes());
    }
}

/// A body that ends with the engine's connection is a legal body.
#[tokio::test]
async fn a_body_without_framing_ends_with_the_connection() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n").await;
    assert_eq!(client.head().await.status(), 200);
    let sent = whole_stream();
    call.send(&sent).await;
    client.until_body(sent.as_bytes()).await;
    call.close();
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), sent.as_bytes());
    checks::usage(&gateway).await;
}

/// H07 (a): chunk extensions and trailers are consumed, and both connections serve the next exchange.
#[tokio::test]
async fn chunk_extensions_and_trailers_leave_the_connection_in_step() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.send("HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTrailer: x-usage\r\nTransfer-Encoding: chunked\r\n\r\n")
        .await;
    assert_eq!(client.head().await.status(), 200);
    let sent = event("x");
    call.send(format!("{:x};foo=bar\r\n{sent}\r\n", sent.len())).await;
    client.until_body(sent.as_bytes()).await;
    call.send("0\r\nx-usage: 10\r\n\r\n").await;
    call.keep();
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), sent.as_bytes());

    // The connection is missed now and then, in the moment in which the pool lets go of it; not each time.
    let mut is_reused = false;
    for fresh in 1..=5 {
        gateway.wait_metric("in_flight", &[], 0.0).await;
        client.send(Request::chat().bytes()).await;
        let call = upstream.call().await;
        is_reused |= call.connection < fresh;
        call.stream("y").await;
        assert_eq!(client.head().await.status(), 200);
        assert_eq!(client.end().await, End::Clean);
        checks::same(client.body(), [&event("y"), DONE].concat().as_bytes());
    }
    assert!(is_reused, "the engine's connection is used again");
}

/// H07 (b): a stream is neither asked for nor sent compressed.
#[tokio::test]
async fn a_stream_is_never_compressed() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat().header("Accept-Encoding: gzip, br")).await;
    let mut call = upstream.call().await;
    assert_eq!(call.request.head.get("accept-encoding"), None);
    call.open().await;
    assert_eq!(client.head().await.get("content-encoding"), None);
    let mut sent = String::new();
    for content in ["a", "b", "c"] {
        call.chunk(event(content)).await;
        sent.push_str(&event(content));
        client.until_body(sent.as_bytes()).await;
        silence(ms(100)).await;
    }
    checks::ends_same(client, call, sent.as_bytes()).await;
}

/// What keeps other proxies from buffering the stream.
#[tokio::test]
async fn stream_heads_forbid_buffering() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    let head = client.head().await;
    assert_eq!(head.get("content-type"), Some("text/event-stream"));
    assert_eq!(head.get("cache-control"), Some("no-cache"));
    assert_eq!(head.get("x-accel-buffering"), Some("no"));
    assert_eq!(head.get("content-length"), None);
    call.chunk(DONE).await;
    checks::ends_same(client, call, DONE.as_bytes()).await;
}

/// H13 (a): a stream longer than the first_event and unary timeouts is not cut by them.
#[tokio::test]
async fn a_healthy_stream_outlives_the_other_timeouts() {
    let short =
        |settings: support::Settings| settings.set("timeouts.first_event", "2s").set("timeouts.unary", "2s");
    let (gateway, mut upstream) = one_engine(short).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    let mut sent = String::new();
    for _ in 0..30 {
        call.chunk(event("x")).await;
        sent.push_str(&event("x"));
        silence(ms(100)).await;
    }
    call.chunk(DONE).await;
    sent.push_str(DONE);
    checks::ends_same(client, call, sent.as_bytes()).await;
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

/// H13 (b): gaps just under the idle timeout do not cut.
#[tokio::test]
async fn gaps_below_the_idle_timeout_pass() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.idle", "2500ms")).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    for _ in 0..3 {
        call.chunk(event("x")).await;
        silence(ms(900)).await;
    }
    call.chunk(DONE).await;
    checks::ends_same(client, call, [&event("x").repeat(3), DONE].concat().as_bytes()).await;
}

/// H13 (c): with no hold, the head does not wait for the first event.
#[tokio::test]
async fn the_head_does_not_wait_for_the_first_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    assert_eq!(client.body(), b"");
    call.chunk(event("late")).await;
    client.until_body(event("late").as_bytes()).await;
    checks::ends_same(client, call, event("late").as_bytes()).await;
}

/// A held head goes out with the first data event, and the comments before it with it.
#[tokio::test]
async fn a_held_head_goes_out_with_the_first_data_event() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.hold_headers", "20s")).await;
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    call.open().await;
    call.chunk(": prefill\n\n").await;
    call.chunk(event("x")).await;
    assert_eq!(client.head().await.status(), 200);
    let sent = format!(": prefill\n\n{}", event("x"));
    client.until_body(sent.as_bytes()).await;
    checks::ends_same(client, call, sent.as_bytes()).await;
}

/// A held head goes out when the hold is over, before any event.
#[tokio::test]
async fn a_held_head_goes_out_when_the_hold_is_over() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.hold_headers", "300ms")).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(DONE).await;
    checks::ends_same(client, call, DONE.as_bytes()).await;
}

/// Heartbeats stand between events, and only in silence.
#[tokio::test]
async fn heartbeats_fill_silence_at_event_boundaries() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.heartbeat", "200ms")).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    client.until_len(1).await;
    let (first, second) = FINISH.split_at(10);
    call.chunk(first).await;
    let before = client.body().len();
    client.until_len(before + 1).await;
    call.chunk(second).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    let body = String::from_utf8(client.take_body()).unwrap();
    assert!(body.starts_with(": keep-alive\n\n"), "{body}");
    assert_eq!(body.replace(": keep-alive\n\n", ""), [FINISH, DONE].concat());
}

/// Bytes of an event that is still held are nothing the client has heard: heartbeats go on.
#[tokio::test]
async fn heartbeats_go_on_while_an_event_drips_in() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.heartbeat", "200ms")).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let whole = event("slow");
    let (first, last) = whole.split_at(10);
    for byte in first.as_bytes() {
        call.chunk([*byte]).await;
        silence(ms(100)).await;
    }
    // A second of dripping: some heartbeats have come before anything of the event.
    client.until_len(2 * ": keep-alive\n\n".len()).await;
    call.chunk(last).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    let text = String::from_utf8_lossy(client.body()).into_owned();
    assert!(text.starts_with(": keep-alive\n\n: keep-alive\n\n"), "{text}");
    assert_eq!(text.replace(": keep-alive\n\n", ""), whole);
}

crate::over_h2! {
    each_event_arrives_before_the_next_is_written,
    usage_after_the_finish_reason_is_delivered,
    an_end_marker_without_a_line_end_is_delivered,
    an_unfinished_last_event_is_delivered_at_a_clean_end,
    the_last_event_survives_a_close_right_behind_it,
    a_body_without_framing_ends_with_the_connection,
    chunk_extensions_and_trailers_leave_the_connection_in_step,
    a_stream_is_never_compressed,
    stream_heads_forbid_buffering,
    a_healthy_stream_outlives_the_other_timeouts,
    gaps_below_the_idle_timeout_pass,
    the_head_does_not_wait_for_the_first_event,
    a_held_head_goes_out_with_the_first_data_event,
    a_held_head_goes_out_when_the_hold_is_over,
    heartbeats_fill_silence_at_event_boundaries,
    heartbeats_go_on_while_an_event_drips_in,
}
