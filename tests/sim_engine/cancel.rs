//! An engine sees its client leave, whatever it is doing.

use std::cell::Cell;
use std::time::Duration;

use serde_json::{Value, json};
use streamgate::sim::Settings;

use crate::client::{Client, quick, start, stats_when};

fn gone(stats: &Value) -> bool {
    stats["aborted"] == 1 && stats["running"] == 0
}

#[tokio::test]
async fn in_a_silent_prefill() {
    let address = start(Settings { first_event: Duration::from_secs(3600), ..quick() }).await;
    let mut client = Client::connect(address).await;
    client.stream("x-request-id: r7\r\n").await;
    client.until("\r\n\r\n").await;
    drop(client);
    let stats = stats_when(address, gone).await;
    assert_eq!((&stats["tokens"], &stats["tokens_after_close"]), (&json!(0), &json!(0)));
    assert_eq!((&stats["aborts"][0]["request_id"], &stats["aborts"][0]["tokens"]), (&json!("r7"), &json!(0)));
    assert!(stats["aborts"][0]["at_unix_us"].as_u64().unwrap() > 1_700_000_000_000_000);
}

#[tokio::test]
async fn in_an_answer_that_is_no_stream() {
    let address = start(Settings { inter_token: Duration::from_secs(3600), ..quick() }).await;
    let mut client = Client::connect(address).await;
    client.unary("").await;
    stats_when(address, |stats| stats["tokens"] == 1).await;
    client.reset();
    let stats = stats_when(address, gone).await;
    assert_eq!((&stats["tokens"], &stats["tokens_after_close"]), (&json!(1), &json!(0)));
}

#[tokio::test]
async fn in_mid_stream() {
    let address = start(Settings { tokens: 1_000_000, ..quick() }).await;
    let mut client = Client::connect(address).await;
    client.stream("").await;
    client.until("tok9 ").await;
    drop(client);
    let stats = stats_when(address, gone).await;
    assert_eq!((&stats["completed"], &stats["tokens_after_close"]), (&json!(0), &json!(0)));
}

#[tokio::test]
async fn while_it_is_blocked_writing() {
    let fast = Settings { inter_token: Duration::ZERO, tokens: u32::MAX, event_bytes: 4_096, ..quick() };
    let address = start(fast).await;
    let mut client = Client::connect(address).await;
    client.stream("").await;
    client.until("tok0 ").await;
    let last = Cell::new((None, 0));
    let is_still = |stats: &Value| {
        let (tokens, seen) = last.get();
        let now = stats["tokens"].as_u64();
        last.set((now, if tokens == now { seen + 1 } else { 0 }));
        seen > 20
    };
    stats_when(address, is_still).await;
    client.reset();
    stats_when(address, gone).await;
}

#[tokio::test]
async fn in_a_stall() {
    for fault in ["stall_before_head", "stall_after_head", "stall_at=2", "comments_only", "unsolicited_101"] {
        let address = start(quick()).await;
        let mut client = Client::connect(address).await;
        client.stream(&format!("x-sim-fault: {fault}\r\n")).await;
        stats_when(address, |stats| stats["running"] == 1).await;
        drop(client);
        stats_when(address, gone).await;
    }
}

#[tokio::test]
async fn an_engine_that_ignores_it_counts_what_it_wastes() {
    let address = start(Settings { tokens: 200, ..quick() }).await;
    let mut client = Client::connect(address).await;
    client.stream("x-sim-fault: ignore_cancel\r\n").await;
    client.until("tok2 ").await;
    drop(client);
    let stats = stats_when(address, gone).await;
    let tokens_at_abort = stats["aborts"][0]["tokens"].as_u64().unwrap();
    assert_eq!(stats["tokens"], 200);
    assert_eq!(stats["tokens_after_close"], 200 - tokens_at_abort);
}

#[tokio::test]
async fn reset_forgets_what_was() {
    let address = start(quick()).await;
    let mut client = Client::connect(address).await;
    client.unary("").await;
    client.answer().await;
    client.post("/sim/reset", "", "").await;
    assert_eq!(client.answer().await.status, 200);
    let stats = client.get("/sim/stats").await.json();
    assert_eq!(
        (&stats["requests"], &stats["tokens"], &stats["completed"]),
        (&json!(0), &json!(0), &json!(0))
    );
}
