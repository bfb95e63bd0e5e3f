//! Clients that are slow, rows C4 and C6: they cost their engine's patience, a bounded amount of
//! memory, and nobody else anything.

use crate::support::wait::{ms, silence};
use crate::support::wire::{CHAT_PATH, MIB, Request, chat_of};
use crate::support::{Client, End, Row, Settings, Told, checks};
use serde_json::json;

/// `stream.window` of the file, and the most that one read from an engine adds to it.
const WINDOW: f64 = 65_536.0;
const BATCH: f64 = 16_384.0;

/// 128 MiB as fast as the socket takes them.
fn firehose() -> Request {
    Request::chat()
        .header("x-sim-inter-token: 0ms")
        .header("x-sim-event-bytes: 64KiB")
        .header("x-sim-tokens: 2000")
}

/// A client that has sent this and reads a byte at a time.
async fn sipping(row: &Row, request: &Request) -> Client {
    let mut client = row.gateway.narrow_client().await.reading(1);
    client.send(request.bytes()).await;
    client
}

/// C4: a byte ten times a second. The engine is held back by the socket, memory stays small, and the
/// neighbours on the same engine get all of theirs.
#[tokio::test]
async fn c4_a_sipping_client_holds_back_its_engine_only() {
    let row = Row::start(1, |settings: Settings| settings.set("stream.write_stall", "60s")).await;
    assert_eq!(row.streams(10).await, vec![Told::whole(); 10]);
    let (before, written) = (row.gateway.rss_kb(), row.engines[0].count("bytes_written").await);
    let mut client = sipping(&row, &firehose()).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(row.streams(10).await, vec![Told::whole(); 10]);
    for _ in 0..10 {
        assert!(client.read_body().await);
        silence(ms(100)).await;
    }
    assert_eq!(row.streams(10).await, vec![Told::whole(); 10]);
    let held = row.engines[0].count("bytes_written").await - written;
    assert!(held > 100_000, "the firehose flows: {held} bytes");
    assert!(held < 16 * MIB as u64, "the engine was never blocked: {held} bytes");
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < 4 * 1024, "{grown} KiB for one slow client");
    let held = row.gateway.metric("held_bytes", &[("kind", "stream")]).await;
    assert!(held > 0.0 && held <= WINDOW + BATCH, "{held} bytes are held for one slow client");
    row.struck(1, "a client that reads ten bytes a second");
    client.close();
    row.engines[0].wait_count("aborted", 1).await;
    let fields = json!({ "phase": "stream", "status": 200, "attempts": 1 });
    row.told("client_closed", 1, fields).await;
    row.told("completed", 30, json!({ "attempts": 1 })).await;
    row.gateway.wait_metric_where("the stall is counted", "client_stall_seconds_sum", &[], |s| s > 0.1).await;
    let lines = row.lines(31).await;
    let slow = lines.iter().find(|line| line["outcome"] == "client_closed").expect("told above");
    assert!(slow["stalled_ms"].as_f64() > Some(100.0), "{slow}");
    row.never_moved().await;
    row.settled(31).await;
}

/// C4: where `write_stall` is short, so slow a client is cut and its engine freed.
#[tokio::test]
async fn c4_a_client_below_the_least_rate_is_cut() {
    let row = Row::start(1, |settings: Settings| settings.set("stream.write_stall", "500ms")).await;
    let mut client = sipping(&row, &firehose()).await;
    assert_eq!(client.head().await.status(), 200);
    let mut sips = 0;
    while row.engines[0].count("aborted").await == 0 {
        assert!(sips < 100, "the client was never cut");
        assert!(client.read_body().await, "cut");
        sips += 1;
        silence(ms(50)).await;
    }
    assert_eq!(client.reading(64 * 1024).end().await, End::Broken);
    let fields = json!({ "phase": "stream", "status": 200, "attempts": 1 });
    row.told("client_stalled", 1, fields).await;
    row.struck(1, "a client below the least rate");
    row.never_moved().await;
    row.settled(1).await;
}

/// C6: a body at ten bytes a second never stands still, and still has no more than its deadline. No
/// engine is connected for it.
#[tokio::test]
async fn c6_a_body_that_trickles_is_408() {
    let row = Row::start(2, |settings| settings.set("server.request.body_timeout", "500ms")).await;
    let dialer = row.gateway.dialer();
    let clients: Vec<_> = (0..5)
        .map(|_| {
            tokio::spawn(async move {
                let request = Request::post(CHAT_PATH, chat_of(1000));
                let mut client = dialer.client().await;
                client.send(request.head()).await;
                for byte in &request.framed_body()[..7] {
                    // The gateway may have closed.
                    drop(client.try_send([*byte]).await);
                    silence(ms(100)).await;
                }
                client.answer().await
            })
        })
        .collect();
    for client in clients {
        checks::rejected(&client.await.expect("an answer"), 408, "request_timeout");
    }
    let fields = json!({ "phase": "upload", "status": 408, "attempts": 0, "error": "request_timeout" });
    row.told("timeout", 5, fields).await;
    row.nobody_asked().await;
    row.settled(5).await;
}

crate::over_h2! {
    c4_a_sipping_client_holds_back_its_engine_only,
    c6_a_body_that_trickles_is_408,
}
