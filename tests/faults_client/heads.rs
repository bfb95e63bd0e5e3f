//! Clients whose heads are slow, too large or no heads at all, rows C7, C9 and C11: each is told what is
//! wrong and closed, no engine hears of it, and good traffic goes on.

use crate::support::sockets::many_descriptors;
use crate::support::wait::{ms, silence};
use crate::support::wire::{CHAT_PATH, MIB};
use crate::support::{Client, Row, Settings, Told, checks};
use serde_json::json;

/// Connections of the slow loris.
const LORISES: usize = 1000;

/// What memory may grow by for reasons of its own, after a first round: the allocator keeps some.
const SLACK_KIB: u64 = 6 * 1024;

fn patient_for(deadline: &'static str) -> impl FnOnce(Settings) -> Settings {
    move |settings| settings.set("server.request.header_timeout", deadline)
}

async fn connect(row: &Row, count: usize) -> Vec<Client> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        clients.push(row.gateway.client().await);
    }
    clients
}

/// A thousand clients send a head byte by byte until each has been told that its time is over, with
/// streams beside them. Gives how many streams.
async fn slow_heads(row: &Row) -> usize {
    let told = async || row.gateway.metric("requests_total", &[("outcome", "timeout")]).await as usize;
    let all = told().await + LORISES;
    let mut lorises = connect(row, LORISES).await;
    let head = format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\nX: ");
    for loris in &mut lorises {
        // The first may be at their end already.
        drop(loris.try_send(&head).await);
    }
    let many = LORISES as f64 / 2.0;
    row.gateway.wait_metric_where("they are open", "connections_active", &[], |open| open > many).await;
    let mut streams = 0;
    while told().await < all {
        assert!(streams < 400, "the heads never ended");
        assert_eq!(row.streams(4).await, vec![Told::whole(); 4]);
        streams += 4;
        for loris in &mut lorises {
            drop(loris.try_send("a").await);
        }
        silence(ms(50)).await;
    }
    for loris in &mut lorises {
        checks::rejected(&loris.answer().await, 408, "request_timeout");
    }
    row.gateway.wait_metric("connections_active", &[], 0.0).await;
    streams
}

/// C7: a thousand heads that come byte by byte end at their deadline, not at their last byte; what
/// they held is free again for the next thousand, and streams beside them never notice.
#[tokio::test]
async fn c7_a_thousand_slow_heads_end_at_their_deadline() {
    many_descriptors();
    let row = Row::start(2, patient_for("2s")).await;
    let mut streams = slow_heads(&row).await;
    let before = row.gateway.rss_kb();
    streams += slow_heads(&row).await;
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < SLACK_KIB, "{grown} KiB more after another {LORISES} slow heads");
    let fields = json!({ "phase": "upload", "status": 408, "attempts": 0, "error": "request_timeout" });
    row.told("timeout", 2 * LORISES, fields).await;
    row.told("completed", streams, json!({ "attempts": 1 })).await;
    row.settled(2 * LORISES + streams).await;
}

/// C9: heads beyond each bound, a hundred of each. The largest are not read to their end.
#[tokio::test]
async fn c9_heads_beyond_their_bounds_are_refused() {
    let row = Row::start(1, patient_for("10s")).await;
    let post = format!("POST {CHAT_PATH} HTTP/1.1\r\nHost: x\r\n");
    let large = [
        (format!("{post}X: {}\r\n\r\n", "a".repeat(33 * 1024)), 431),
        (format!("{post}{}\r\n", "X: a\r\n".repeat(100)), 431),
        (format!("POST {CHAT_PATH}?{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(9 * 1024)), 414),
        (format!("{post}X: {}", "a".repeat(MIB)), 431),
    ];
    let refuse = async |head: &str, status| {
        let mut client = row.gateway.client().await;
        // It may be refused before its end.
        drop(client.try_send(head).await);
        checks::rejected(&client.answer().await, status, "invalid_request");
    };
    for (head, status) in &large {
        refuse(head, *status).await;
    }
    let before = row.gateway.rss_kb();
    for _ in 0..100 {
        for (head, status) in &large {
            refuse(head, *status).await;
        }
    }
    let grown = row.gateway.rss_kb().saturating_sub(before);
    assert!(grown < SLACK_KIB, "{grown} KiB are kept of large heads");
    let all = 101 * large.len();
    let fields = json!({ "phase": "upload", "attempts": 0, "error": "invalid_request" });
    row.told("rejected", all, fields).await;
    let lines = row.lines(all).await;
    assert_eq!(lines.iter().filter(|line| line["status"] == 414).count(), 101);
    row.nobody_asked().await;
    row.settled(all).await;
}

/// What clients send that speak something else, and bytes that mean nothing.
fn corpus() -> Vec<Vec<u8>> {
    let hello = [
        &b"\x16\x03\x01\x00\x2f\x01\x00\x00\x2b\x03\x03"[..],
        &[7; 32],
        b"\x00\x00\x04\x13\x01\x13\x02\x01\x00",
    ]
    .concat();
    let mut corpus: Vec<Vec<u8>> = [
        &hello[..],
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
        b"SSH-2.0-OpenSSH_9.9\r\n\r\n",
        b"EHLO example.com\r\n\r\n",
        b"*1\r\n$4\r\nPING\r\n",
        b"\x03\x00\x00\x13\x0e\xe0\x00\x00\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00",
        b"PROXY TCP4 192.0.2.1 192.0.2.2 1 2\r\nGET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"\r\n\r\n\r\n\x00",
        b"GET /v1/models\r\n\r\n",
        b"GET /v1/models HTTP/1.1\n\n",
        b"GET\t/v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
        b" GET /v1/models HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHo\x00st: x\r\n\r\n",
        b"GET /v1/models HTTP/1.1\r\nHost: x\x00\r\n\r\n",
        b"{\"model\": \"m\", \"stream\": true}\r\n\r\n",
        b"\xff\xfe\xfd",
        b"\x00",
    ]
    .iter()
    .map(|bytes| bytes.to_vec())
    .collect();
    let mut state = 1_u32;
    for length in [1, 10, 100, 1000, 10_000] {
        let noise = std::iter::repeat_with(|| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 24) as u8
        });
        // The first byte is none that could begin a method.
        corpus.push([0x80].into_iter().chain(noise).take(length).collect());
    }
    corpus
}

/// C11: garbage is refused at once, and none of it reaches an engine.
#[tokio::test]
async fn c11_garbage_is_refused() {
    let row = Row::start(1, patient_for("60s")).await;
    let corpus = corpus();
    for garbage in &corpus {
        let mut client = row.gateway.client().await;
        drop(client.try_send(garbage).await);
        checks::rejected(&client.answer().await, 400, "invalid_request");
        client.closed().await;
        assert_eq!(client.raw(), b"", "one answer to {:?}", garbage.escape_ascii().to_string());
    }
    let fields = json!({ "phase": "upload", "status": 400, "attempts": 0, "error": "invalid_request" });
    row.told("rejected", corpus.len(), fields).await;
    row.nobody_asked().await;
    row.gateway.wait_metric("connections_active", &[], 0.0).await;
    row.settled(corpus.len()).await;
}

/// C11: what may yet become a request has the time of a head, and no more.
#[tokio::test]
async fn c11_what_never_becomes_a_head_is_closed() {
    let row = Row::start(1, patient_for("2s")).await;
    let beginnings: [&[u8]; 4] = [b"G", b"GET /", b"HELO", b"POST / HTTP/1.1\r\nX: \xff\xff"];
    let mut clients = connect(&row, beginnings.len()).await;
    for (client, beginning) in clients.iter_mut().zip(beginnings) {
        client.send(beginning).await;
    }
    for client in &mut clients {
        checks::rejected(&client.answer().await, 408, "request_timeout");
    }
    let fields = json!({ "status": 408, "attempts": 0, "error": "request_timeout" });
    row.told("timeout", beginnings.len(), fields).await;
    row.nobody_asked().await;
    row.settled(beginnings.len()).await;
}
