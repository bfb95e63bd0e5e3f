//! Streams flow: the engine's bytes, at once, whole, whatever their line ends, sizes and splits.

mod support;

use support::wait::{ms, silence};
use support::wire::{DONE, FINISH, Request, USAGE, event};
use support::{Call, Client, End, Gateway, Upstream, as_is, checks, one_engine, open_stream, sse};

/// Ends the stream at the engine; the client must have got exactly `sent`.
async fn ends_same(mut client: Client, call: Call, sent: &[u8]) {
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), sent);
}

/// The stream of H01: two events, the finish reason, usage and the end marker.
fn whole_stream() -> String {
    [&event("a"), &event("b"), FINISH, USAGE, DONE].concat()
}

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
    ends_same(client, call, sent.as_bytes()).await;
    checks::usage(&gateway).await;
    checks::at_rest(&gateway).await;
}

/// H01: CRLF line ends, cut once at every position. Events before the cut arrive before the rest is written.
#[tokio::test]
async fn crlf_events_survive_every_cut() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let stream = whole_stream().replace('\n', "\r\n").into_bytes();
    let cuts = stream.len() - 1;
    for cut in 1..=cuts {
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        let (first, second) = stream.split_at(cut);
        let whole = first.windows(4).rposition(|window| window == b"\r\n\r\n").map_or(0, |at| at + 4);
        call.chunk(first).await;
        client.until_len(whole).await;
        call.chunk(second).await;
        ends_same(client, call, &stream).await;
    }
    gateway.wait_metric("requests_total", &[("outcome", "completed")], cuts as f64).await;
    for line in gateway.access_lines() {
        assert_eq!(
            (line["usage"]["prompt"].as_u64(), line["usage"]["completion"].as_u64()),
            (Some(7), Some(3))
        );
        assert_eq!(line["events"], 5, "never an extra or missing event: {line}");
    }
}

/// H01: the same for every line end, one byte a write.
#[tokio::test]
async fn every_line_end_survives_single_bytes() {
    for line_end in ["\n", "\r\n", "\r"] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let stream = whole_stream().replace('\n', line_end);
        let (client, mut call) = open_stream(&gateway, &mut upstream).await;
        call.trickle(&stream).await;
        ends_same(client, call, stream.as_bytes()).await;
        checks::usage(&gateway).await;
        assert_eq!(gateway.only_access().await["events"], 5);
    }
}

/// H01: a CR that ends a write ends the blank line; its LF may come a second later or never.
#[tokio::test]
async fn an_event_is_whole_at_the_cr_of_its_blank_line() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let stream = whole_stream().replace('\n', "\r\n");
    let cut = event("a").replace('\n', "\r\n").len() - 1;
    call.chunk(&stream[..cut]).await;
    client.until_len(cut).await;
    assert_eq!(sse::parse(client.body()).len(), 1);
    silence(ms(1000)).await;
    call.chunk(&stream[cut..]).await;
    ends_same(client, call, stream.as_bytes()).await;
    assert_eq!(gateway.only_access().await["events"], 5);
}

/// H02: characters cut in two stay whole, and nothing is replaced.
#[tokio::test]
async fn a_cut_inside_a_character_changes_nothing() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let text = event("你好😀é");
    let bytes = text.as_bytes();
    for cut in (1..bytes.len()).filter(|cut| !text.is_char_boundary(*cut)) {
        let (client, mut call) = open_stream(&gateway, &mut upstream).await;
        call.chunk(&bytes[..cut]).await;
        silence(ms(2)).await;
        call.chunk(&bytes[cut..]).await;
        ends_same(client, call, bytes).await;
    }
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.trickle(bytes).await;
    ends_same(client, call, bytes).await;
}

/// H02: a byte that is no UTF-8 passes, and the stream lives.
#[tokio::test]
async fn invalid_utf8_passes() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let mut sent = event("x").into_bytes();
    let at = sent.windows(3).position(|window| window == b"\"x\"").unwrap() + 1;
    sent[at] = 0xff;
    call.chunk(&sent).await;
    client.until_body(&sent).await;
    call.chunk(DONE).await;
    sent.extend_from_slice(DONE.as_bytes());
    ends_same(client, call, &sent).await;
}

/// H03: comments and all fields pass unchanged and at once; the first token is the first content.
#[tokio::test]
async fn comments_and_fields_pass_at_once() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    let many_fields = "event: delta\nid: 42\nretry: 1500\ndata: {\"a\":\ndata: 1}\n\n";
    let comments = [": keep-alive\n\n", ": keep-alive\n\n", ":\n", ": OPENROUTER PROCESSING\n\n"];
    let mut sent = String::new();
    for piece in comments.into_iter().chain([many_fields]) {
        call.chunk(piece).await;
        sent.push_str(piece);
        client.until_body(sent.as_bytes()).await;
    }
    silence(ms(200)).await;
    call.chunk(event("x")).await;
    call.chunk(DONE).await;
    sent.push_str(&event("x"));
    sent.push_str(DONE);
    ends_same(client, call, sent.as_bytes()).await;
    let line = gateway.only_access().await;
    assert!(line["first_token_ms"].as_f64().unwrap() >= 200.0, "{line}");
    assert!(line["first_event_ms"].as_f64().unwrap() < line["first_token_ms"].as_f64().unwrap(), "{line}");
    assert_eq!(line["events"], 3, "data events only: {line}");
}

/// H03: several data lines are one event.
#[tokio::test]
async fn a_multi_line_event_is_one_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    let sent = "data: {\"choices\":[{\"delta\":\ndata: {\"content\":\"x\"}}]}\n\n";
    let (first, second) = sent.split_at(sent.find('\n').unwrap() + 1);
    call.chunk(first).await;
    silence(ms(20)).await;
    call.chunk(second).await;
    ends_same(client, call, sent.as_bytes()).await;
    assert_eq!(gateway.only_access().await["events"], 1);
}

/// H04: no line or event is too long, and a long one flows while it is still being written.
#[tokio::test]
async fn big_events_flow_while_they_are_written() {
    for size in [65_535, 65_537, 300_000, 1_200_000] {
        let (gateway, mut upstream) = one_engine(as_is).await;
        let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
        let big = event(&"x".repeat(size));
        let (first, last) = big.as_bytes().split_at(big.len() - 100);
        for piece in first.chunks(16 * 1024) {
            call.chunk(piece).await;
        }
        client.until_len(1).await;
        call.chunk(last).await;
        client.until_body(big.as_bytes()).await;
        call.chunk(USAGE).await;
        call.chunk(DONE).await;
        ends_same(client, call, [&big, USAGE, DONE].concat().as_bytes()).await;
        checks::usage(&gateway).await;
        assert_eq!(gateway.only_access().await["events"], 3);
    }
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
    ends_same(client, call, [&begin, USAGE, DONE].concat().as_bytes()).await;
    checks::usage(&gateway).await;
}

/// H05 (b) and (c): a last event without its blank line is delivered at the end.
#[tokio::test]
async fn an_unfinished_last_event_is_delivered_at_a_clean_end() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let no_newline = [&event("a"), FINISH, USAGE, DONE.trim_end()].concat();
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(&no_newline).await;
    ends_same(client, call, no_newline.as_bytes()).await;
    checks::usage(&gateway).await;

    let no_blank_line = [&event("a"), USAGE.trim_end()].concat();
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(&no_blank_line).await;
    ends_same(client, call, no_blank_line.as_bytes()).await;
    checks::at_rest(&gateway).await;
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

    client.send(Request::chat().bytes()).await;
    let call = upstream.call().await;
    assert_eq!(call.connection, 0, "the engine's connection is used again");
    call.stream("y").await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Clean);
    checks::same(client.body(), [&event("y"), DONE].concat().as_bytes());
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
    ends_same(client, call, sent.as_bytes()).await;
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
    ends_same(client, call, DONE.as_bytes()).await;
}

/// H13 (a): a stream longer than the first_event and unary timeouts is not cut by them.
#[tokio::test]
async fn a_healthy_stream_outlives_the_other_timeouts() {
    let short = |settings: support::Settings| {
        settings.set("timeouts.first_event", "800ms").set("timeouts.unary", "800ms")
    };
    let (gateway, mut upstream) = one_engine(short).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    let mut sent = String::new();
    for _ in 0..20 {
        call.chunk(event("x")).await;
        sent.push_str(&event("x"));
        silence(ms(100)).await;
    }
    call.chunk(DONE).await;
    sent.push_str(DONE);
    ends_same(client, call, sent.as_bytes()).await;
    assert_eq!(gateway.only_access().await["outcome"], "completed");
}

/// H13 (b): gaps just under the idle timeout do not cut.
#[tokio::test]
async fn gaps_below_the_idle_timeout_pass() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("timeouts.idle", "1500ms")).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    for _ in 0..3 {
        call.chunk(event("x")).await;
        silence(ms(900)).await;
    }
    call.chunk(DONE).await;
    ends_same(client, call, [&event("x").repeat(3), DONE].concat().as_bytes()).await;
}

/// H13 (c): with no hold, the head does not wait for the first event.
#[tokio::test]
async fn the_head_does_not_wait_for_the_first_event() {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let (mut client, mut call) = open_stream(&gateway, &mut upstream).await;
    assert_eq!(client.body(), b"");
    call.chunk(event("late")).await;
    client.until_body(event("late").as_bytes()).await;
    ends_same(client, call, event("late").as_bytes()).await;
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
    ends_same(client, call, sent.as_bytes()).await;
}

/// A held head goes out when the hold is over, before any event.
#[tokio::test]
async fn a_held_head_goes_out_when_the_hold_is_over() {
    let (gateway, mut upstream) = one_engine(|settings| settings.set("stream.hold_headers", "300ms")).await;
    let (client, mut call) = open_stream(&gateway, &mut upstream).await;
    call.chunk(DONE).await;
    ends_same(client, call, DONE.as_bytes()).await;
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
