//! Backend faults of form, rows B11 to B14: what is not HTTP never reaches a client, and what is too
//! large costs no memory.

use std::time::Duration;

use crate::support;
use crate::support::wire::{DONE, MIB, Request, event};
use crate::support::{End, Row, Settings, Told, as_is, checks, one_engine};
use serde_json::json;

/// Each request is refused as no HTTP, and nothing of the engine's bytes comes through.
async fn not_http(row: &Row, rounds: usize) {
    for request in [Request::chat(), Request::unary()] {
        for answer in row.ask(rounds, &request).await {
            checks::rejected(&answer, 502, "upstream_error");
        }
    }
    let fields = json!({ "status": 502, "attempts": 1, "error": "upstream_error" });
    row.told("upstream_error", 2 * rounds, fields).await;
    row.never_moved().await;
}

/// B11: bytes that are not HTTP.
#[tokio::test]
async fn b11_garbage_is_502() {
    let row = Row::ill(1, "garbage", as_is).await;
    not_http(&row, 5).await;
    assert_eq!(row.engines[0].count("failed").await, 10);
    row.settled(10).await;
}

/// A raw engine answers with these bytes: refused, told, and not asked again.
async fn raw_is_refused(bytes: &[u8]) {
    let (gateway, mut upstream) = one_engine(as_is).await;
    let fds = gateway.fd_count();
    let mut client = gateway.send(&Request::chat()).await;
    let mut call = upstream.call().await;
    // The gateway may have seen enough before it has seen all.
    drop(call.try_send(bytes).await);
    call.close();
    checks::rejected(&client.answer().await, 502, "upstream_error");
    let line = gateway.only_access().await;
    assert_eq!((&line["outcome"], &line["attempts"]), (&"upstream_error".into(), &1.into()), "{line}");
    gateway.wait_metric("requests_total", &[("outcome", "upstream_error")], 1.0).await;
    gateway.wait_metric("retries_total", &[], 0.0).await;
    checks::at_rest(&gateway).await;
    upstream.assert_not_asked();
    checks::alive(&gateway, &mut upstream, fds).await;
}

/// B11: an engine that speaks TLS or HTTP/2 on a plain port.
#[tokio::test]
async fn b11_another_protocol_is_502() {
    let alert = b"\x15\x03\x01\x00\x02\x02\x46";
    let settings = b"\x00\x00\x06\x04\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x64";
    raw_is_refused(alert).await;
    raw_is_refused(settings).await;
    raw_is_refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await;
}

/// B12: a 101 that nobody asked for, and interim answers without end.
#[tokio::test]
async fn b12_answers_that_are_none_are_502() {
    for fault in ["unsolicited_101", "interim=9", "interim=1000"] {
        let row = Row::ill(1, fault, as_is).await;
        not_http(&row, 3).await;
        assert_eq!(row.engines[0].count("requests").await, 6, "{fault} struck each, once");
        row.settled(6).await;
    }
}

/// B12: eight interim answers are passed over, nine are not.
#[tokio::test]
async fn b12_a_few_interim_answers_are_passed_over() {
    let row = Row::ill(1, "interim=9", as_is).await;
    checks::rejected(&row.ask(1, &Request::chat()).await[0], 502, "upstream_error");
    row.engines[0].faults("interim=8").await;
    assert_eq!(row.streams(5).await, vec![Told::whole(); 5]);
    row.told("upstream_error", 1, json!({ "status": 502, "attempts": 1 })).await;
    row.told("completed", 5, json!({ "status": 200, "attempts": 1 })).await;
    row.never_moved().await;
    row.settled(6).await;
}

/// B13: 10,000 header lines, 10 MB in all.
#[tokio::test]
async fn b13_a_huge_head_is_refused_in_bounded_memory() {
    let row = Row::start(1, as_is).await;
    assert_eq!(row.streams(4).await, vec![Told::whole(); 4]);
    let before = row.gateway.rss_kb();
    row.engines[0].faults("big_head").await;
    for answer in row.ask(4, &Request::chat()).await {
        checks::rejected(&answer, 502, "upstream_error");
    }
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < 16 * 1024, "{grown} KiB for four huge heads");
    row.engines[0].wait_count("running", 0).await;
    assert_eq!(row.engines[0].count("completed").await, 4, "those before the fault only");
    row.told("upstream_error", 4, json!({ "status": 502, "attempts": 1, "error": "upstream_error" })).await;
    row.never_moved().await;
    row.settled(8).await;
}

/// B13: 10,000 short header lines.
#[tokio::test]
async fn b13_a_head_of_many_lines_is_refused() {
    let lines: String = (0..10_000).map(|n| format!("x{n}: y\r\n")).collect();
    raw_is_refused(format!("HTTP/1.1 200 OK\r\n{lines}Content-Length: 0\r\n\r\n").as_bytes()).await;
}

/// B14: one event, and so one line, of 100 MB flows through while it is written.
#[tokio::test]
async fn b14_an_event_of_100_megabytes_flows_through() {
    const BYTES: usize = 100_000_000;
    let row = Row::start(1, |settings: Settings| {
        settings.set("timeouts.idle", "60s").set("timeouts.total", "2m").set("stream.write_stall", "60s")
    })
    .await;
    assert_eq!(row.streams(1).await, [Told::whole()]);
    let before = row.gateway.rss_kb();
    let huge = Request::chat().header("x-sim-tokens: 1").header(&format!("x-sim-event-bytes: {BYTES}"));
    let mut client = row.gateway.client().await.reading(256 * 1024);
    client.send(huge.bytes()).await;
    assert_eq!(client.head().await.status(), 200);
    let (mut read, mut grown, mut tail) = (0, 0, Vec::new());
    let reading = async {
        while client.read_body().await {
            let body = client.take_body();
            read += body.len();
            tail = [tail.split_off(tail.len().saturating_sub(64)), body].concat();
            grown = grown.max(row.gateway.rss_kb().saturating_sub(before));
        }
    };
    support::wait::within("the event is read", Duration::from_secs(60), reading).await;
    assert_eq!(client.end().await, End::Clean);
    assert!(read > BYTES && read < BYTES + MIB, "{read} bytes");
    assert!(tail.ends_with(b"data: [DONE]\n\n"), "{:?}", String::from_utf8_lossy(&tail));
    assert!(grown < 16 * 1024, "{grown} KiB for one event");
    drop(client);
    row.told("completed", 2, json!({ "status": 200, "attempts": 1, "error": null })).await;
    let lines = row.lines(2).await;
    assert_eq!(lines[1]["bytes"], read, "{}", lines[1]);
    row.struck(1, "an event of 100 MB");
    row.settled(2).await;
}

/// B14: an engine that pauses in the middle of an event too large to be held, part of which is out: no heartbeat may
/// stand there, however long it takes.
#[tokio::test]
async fn b14_no_heartbeat_stands_within_an_event() {
    let (gateway, mut upstream) = one_engine(|settings| {
        settings.set("stream.heartbeat", "100ms").set("stream.event_hold", "1KiB").set("timeouts.idle", "25s")
    })
    .await;
    let (mut client, mut call) = support::open_stream(&gateway, &mut upstream).await;
    client.until_len(1).await;
    let large = event(&"x".repeat(4096));
    let (first, second) = large.split_at(2048);
    call.chunk(first).await;
    // Part of it is out, and so is whatever is said in the pause.
    let begun = client.body().len();
    client.until_len(begun + 1024).await;
    support::wait::silence(Duration::from_millis(500)).await;
    support::score::struck(1, "a pause within an event");
    call.chunk(second).await;
    call.chunk(DONE).await;
    call.finish().await;
    assert_eq!(client.end().await, End::Clean);
    let text = String::from_utf8_lossy(client.body()).into_owned();
    assert!(text.starts_with(": keep-alive\n\n"), "{text}");
    assert!(text.contains(&large), "something stands within the event: {text}");
    assert_eq!(text.replace(": keep-alive\n\n", ""), large + DONE);
}

crate::over_h2! {
    b11_garbage_is_502,
    b11_another_protocol_is_502,
    b12_answers_that_are_none_are_502,
    b12_a_few_interim_answers_are_passed_over,
    b13_a_huge_head_is_refused_in_bounded_memory,
    b13_a_head_of_many_lines_is_refused,
    b14_an_event_of_100_megabytes_flows_through,
    b14_no_heartbeat_stands_within_an_event,
}
