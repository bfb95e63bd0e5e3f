//! Clients that leave, row C1: in each phase, with a FIN and with a reset. The engine's own socket
//! says when it was left, and nobody is asked again.
//!
//! Leaving during the connect (P6) and closing one side only (C5) need a listener that swallows
//! connects and a raw engine: see `proxy/disconnect`.

use crate::support;
use crate::support::wire::{CHAT_PATH, Request, chat_of};
use crate::support::{Client, Leave, Row, Settings, Told, checks};
use serde_json::{Value, json};

const CLIENTS: usize = 10;

/// No timer of the gateway may be what frees the engine.
fn patient(settings: Settings) -> Settings {
    ["first_event", "unary", "idle"]
        .into_iter()
        .fold(settings, |settings, timeout| settings.set(&format!("timeouts.{timeout}"), "25s"))
        .set("stream.hold_headers", "20s")
}

/// Connects clients that have sent so much.
async fn clients(row: &Row, bytes: &[u8]) -> Vec<Client> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        let mut client = row.gateway.client().await;
        client.send(bytes).await;
        clients.push(client);
    }
    clients
}

fn leave(clients: Vec<Client>, how: Leave) {
    clients.into_iter().for_each(|client| client.leave(how));
}

/// Each engine request was aborted, each exchange is told as cancelled in this phase.
async fn cancelled(row: Row, phase: &str, status: u16) {
    let mut aborted = Vec::new();
    for engine in &row.engines {
        engine.wait_count("running", 0).await;
        let stats = engine.stats().await;
        assert_eq!(stats["aborted"], stats["requests"], "{phase}: {stats}");
        assert_eq!((&stats["completed"], &stats["tokens_after_close"]), (&json!(0), &json!(0)), "{stats}");
        let ids = stats["aborts"].as_array().expect("aborts is a list").iter();
        aborted.extend(ids.map(|abort| abort["request_id"].clone()));
    }
    let fields = json!({ "phase": phase, "status": status, "attempts": 1, "error": null });
    row.told("client_closed", CLIENTS, fields).await;
    row.gateway.wait_metric("cancels_total", &[("phase", phase)], CLIENTS as f64).await;
    row.gateway.wait_metric("cancel_seconds_count", &[], CLIENTS as f64).await;
    let mut told: Vec<Value> =
        row.lines(CLIENTS).await.iter().map(|line| line["request_id"].clone()).collect();
    let by_text = |id: &Value| id.to_string();
    told.sort_by_key(by_text);
    aborted.sort_by_key(by_text);
    assert_eq!(told, aborted, "the engines saw these very requests end");
    row.never_moved().await;
    row.settled(CLIENTS).await;
}

/// P1 and P3: gone before the head was whole. There is no exchange yet, so nothing is told.
#[tokio::test]
async fn c1_leaving_before_the_head_is_whole_is_no_exchange() {
    let half = b"POST /v1/chat/completions HTTP/1.1\r\nHost: gateway.test\r\nContent-Le";
    for how in Leave::ways() {
        for bytes in [&b""[..], &half[..]] {
            let row = Row::start(2, patient).await;
            leave(clients(&row, bytes).await, how);
            row.nobody_asked().await;
            row.gateway.wait_metric("requests_total", &[], 0.0).await;
            row.settled(0).await;
        }
    }
}

/// P4: gone with a part of the body sent.
#[tokio::test]
async fn c1_leaving_during_the_upload() {
    for how in Leave::ways() {
        let row = Row::start(2, patient).await;
        let body = chat_of(100_000);
        let request = Request::post(CHAT_PATH, &body).bytes();
        let clients = clients(&row, &request[..request.len() - body.len() + 10]).await;
        // A reset takes unread bytes with it: only who has been heard is an exchange. 16 KiB are held for each.
        let held = (CLIENTS * 16 * 1024) as f64;
        row.gateway.wait_metric("held_bytes", &[("kind", "body")], held).await;
        leave(clients, how);
        let fields = json!({ "phase": "upload", "status": 0, "attempts": 0, "error": null });
        row.told("client_closed", CLIENTS, fields).await;
        row.gateway.wait_metric("cancels_total", &[("phase", "upload")], CLIENTS as f64).await;
        row.nobody_asked().await;
        row.settled(CLIENTS).await;
    }
}

/// P7: gone during a silent prefill, for a stream whose head is held and for a whole answer.
#[tokio::test]
async fn c1_leaving_during_the_prefill() {
    for how in Leave::ways() {
        for (request, phase) in [(Request::chat(), "first_event"), (Request::unary(), "unary")] {
            let row = Row::start(2, patient).await;
            let request = request.header("x-sim-first-event: 60s").bytes();
            let clients = clients(&row, &request).await;
            row.gateway.wait_metric("in_flight", &[], CLIENTS as f64).await;
            for engine in &row.engines {
                engine.wait_count("running", CLIENTS as u64 / 2).await;
            }
            leave(clients, how);
            cancelled(row, phase, 0).await;
        }
    }
}

/// P8: gone after some tokens, with the next ones on their way.
#[tokio::test]
async fn c1_leaving_during_the_stream() {
    for how in Leave::ways() {
        let row = Row::start(2, patient).await;
        let request = Request::chat().header("x-sim-tokens: 100000").header("x-sim-inter-token: 5ms").bytes();
        let mut clients = clients(&row, &request).await;
        for client in &mut clients {
            assert_eq!(client.head().await.status(), 200);
            client.until_len(1000).await;
        }
        leave(clients, how);
        cancelled(row, "stream", 200).await;
    }
}

/// P9: gone with the last token read, but before the end of the stream.
#[tokio::test]
async fn c1_leaving_after_the_last_token() {
    for how in Leave::ways() {
        let row = Row::start(2, patient).await;
        let stall = format!("x-sim-fault: stall_at={}", support::engine::TOKENS);
        let mut clients = clients(&row, &Request::chat().header(&stall).bytes()).await;
        for client in &mut clients {
            let head = client.head().await;
            let id = head.get("x-request-id").expect("each answer names its request").to_owned();
            while Told::read(client.body(), &id).tokens < support::engine::TOKENS {
                assert!(client.read_body().await, "the stream ended");
            }
        }
        leave(clients, how);
        cancelled(row, "stream", 200).await;
    }
}

/// P9: who leaves behind the whole answer has had it; that is no cancel.
#[tokio::test]
async fn c1_leaving_after_the_end_is_no_cancel() {
    for how in Leave::ways() {
        let row = Row::start(2, patient).await;
        let mut clients = clients(&row, &Request::chat().bytes()).await;
        for client in &mut clients {
            assert_eq!(Told::of(&client.answer().await), Told::whole());
        }
        leave(clients, how);
        row.told("completed", CLIENTS, json!({ "phase": "stream", "status": 200, "cancel_ms": null })).await;
        assert_eq!(row.gateway.metric("cancels_total", &[]).await, 0.0);
        checks::at_rest(&row.gateway).await;
        row.settled(CLIENTS).await;
    }
}

crate::over_h2! {
    c1_leaving_during_the_upload,
    c1_leaving_during_the_prefill,
    c1_leaving_during_the_stream,
    c1_leaving_after_the_last_token,
    c1_leaving_after_the_end_is_no_cancel,
}
