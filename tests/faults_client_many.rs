//! Clients that ask and leave in great numbers, or ask again before they are answered, rows C2 and C12.

mod support;

use serde_json::json;
use support::sockets::many_descriptors;
use support::wire::Request;
use support::{Client, Leave, Row, Settings, Told};

/// Aborts of one storm, and clients at a time.
const ABORTS: usize = 1000;
const AT_ONCE: usize = 50;

/// What memory may grow by for reasons of its own, after a first storm.
const SLACK_KIB: u64 = 6 * 1024;

/// No timer of the gateway may be what frees the engine.
fn patient(settings: Settings) -> Settings {
    settings.set("timeouts.first_event", "25s").set("timeouts.idle", "25s").set("stream.hold_headers", "20s")
}

/// Asks, and every other time leaves during the stream; else gives the client in its prefill.
async fn ask(addr: std::net::SocketAddr, number: usize) -> Option<Client> {
    let during_stream = number.is_multiple_of(2);
    let pace = if during_stream { "x-sim-first-event: 5ms" } else { "x-sim-first-event: 60s" };
    let request =
        Request::chat().header(pace).header("x-sim-tokens: 100000").header("x-sim-inter-token: 5ms");
    let mut client = Client::connect(addr).await;
    client.send(request.bytes()).await;
    if !during_stream {
        return Some(client);
    }
    assert_eq!(client.head().await.status(), 200);
    client.until_len(500).await;
    client.leave(way(number));
    None
}

/// With a FIN or with a reset, in either phase.
fn way(number: usize) -> Leave {
    if number % 4 < 2 { Leave::Fin } else { Leave::Reset }
}

/// `ABORTS` clients, so many at a time.
async fn storm(row: &Row) {
    let addr = row.gateway.addr;
    for first in (0..ABORTS).step_by(AT_ONCE) {
        let numbers = first..first + AT_ONCE;
        let asking: Vec<_> = numbers.clone().map(|number| tokio::spawn(ask(addr, number))).collect();
        let mut waiting = Vec::new();
        for (number, client) in numbers.zip(asking) {
            waiting.extend(client.await.expect("it has asked").map(|client| (client, way(number))));
        }
        // A reset takes unread bytes with it: only who has been heard is an exchange.
        row.gateway.wait_metric("in_flight", &[], waiting.len() as f64).await;
        waiting.into_iter().for_each(|(client, way)| client.leave(way));
    }
    row.gateway.wait_metric("in_flight", &[], 0.0).await;
    row.gateway.wait_metric("connections_active", &[], 0.0).await;
}

/// C2: storms of aborts leave nothing behind: no count, no descriptor, no memory, no engine at work.
#[tokio::test]
async fn c2_a_storm_of_aborts_leaves_nothing_behind() {
    many_descriptors();
    let row = Row::start(2, patient).await;
    storm(&row).await;
    let before = row.gateway.rss_kb();
    storm(&row).await;
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < SLACK_KIB, "{grown} KiB more after another {ABORTS} aborts");
    for engine in &row.engines {
        engine.wait_count("running", 0).await;
        let stats = engine.stats().await;
        assert!(stats["requests"].as_u64() > Some(ABORTS as u64 / 4), "the storm struck: {stats}");
        assert_eq!(stats["aborted"], stats["requests"], "{stats}");
        assert_eq!(stats["tokens_after_close"], 0, "{stats}");
    }
    row.told("client_closed", 2 * ABORTS, json!({ "error": null })).await;
    row.gateway.wait_metric("cancels_total", &[], 2.0 * ABORTS as f64).await;
    row.gateway.wait_metric("cancels_total", &[("phase", "stream")], ABORTS as f64).await;
    row.never_moved().await;
    row.settled(2 * ABORTS).await;
}

/// C12: two and fifty streams asked for in one write are told one after the other, each whole and its own.
#[tokio::test]
async fn c12_pipelined_streams_are_told_in_turn() {
    for count in [2, 50] {
        let row = Row::start(2, patient).await;
        let mut client = row.gateway.client().await;
        client.send(Request::chat().bytes().repeat(count)).await;
        for _ in 0..count {
            assert_eq!(Told::of(&client.answer().await), Told::whole());
        }
        assert_eq!(client.raw(), b"");
        in_turn(row, count).await;
    }
}

/// C12: a stream that is asked for in the middle of another waits for its end, and so do fifty.
#[tokio::test]
async fn c12_a_stream_asked_for_in_another_waits_for_its_end() {
    for count in [1, 49] {
        let row = Row::start(2, patient).await;
        let mut client = row.gateway.client().await;
        client.send(Request::chat().header("x-sim-inter-token: 50ms").bytes()).await;
        let head = client.head().await;
        client.until_len(500).await;
        client.send(Request::chat().bytes().repeat(count)).await;
        assert_eq!(client.end().await, support::End::Clean);
        let id = head.get("x-request-id").expect("each answer names its request");
        assert_eq!(Told::read(client.body(), id), Told::whole());
        for _ in 0..count {
            assert_eq!(Told::of(&client.answer().await), Told::whole());
        }
        in_turn(row, count + 1).await;
    }
}

/// Who pipelines and leaves: the running stream is cancelled, and no engine hears of the others.
#[tokio::test]
async fn c12_leaving_with_streams_asked_for_cancels_the_running_one() {
    for how in [Leave::Fin, Leave::Reset] {
        let row = Row::start(1, patient).await;
        let mut client = row.gateway.client().await;
        let endless = Request::chat().header("x-sim-tokens: 100000").header("x-sim-inter-token: 5ms");
        client.send(endless.bytes().repeat(10)).await;
        assert_eq!(client.head().await.status(), 200);
        client.until_len(500).await;
        client.leave(how);
        row.engines[0].wait_count("aborted", 1).await;
        assert_eq!(row.engines[0].count("requests").await, 1);
        let fields = json!({ "phase": "stream", "status": 200, "attempts": 1 });
        row.told("client_closed", 1, fields).await;
        row.gateway.wait_metric("cancels_total", &[("phase", "stream")], 1.0).await;
        row.settled(1).await;
    }
}

/// The requests of one connection were begun in the order in which they ended, each on one engine.
async fn in_turn(row: Row, count: usize) {
    row.told("completed", count, json!({ "status": 200, "attempts": 1 })).await;
    let lines = row.lines(count).await;
    let begun: Vec<&str> = lines.iter().map(|line| line["time"].as_str().expect("a time")).collect();
    assert!(begun.is_sorted(), "begun in the order of their ends: {begun:?}");
    let mut asked = 0;
    for engine in &row.engines {
        asked += engine.count("requests").await;
    }
    assert_eq!(asked, count as u64);
    row.struck(count - 1, "a request behind a request");
    row.never_moved().await;
    row.settled(count).await;
}
