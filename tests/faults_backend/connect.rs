//! Backend faults before an answer, rows B1 to B3: another node takes over and the client learns nothing.

use crate::support::sockets::Blackhole;
use crate::support::told::whole_json;
use crate::support::wire::{CHAT_PATH, MIB, Request, chat_of};
use crate::support::{Row, Settings, Told, as_is, checks};
use serde_json::json;

const EXCHANGES: usize = 30;

/// All streams came whole, though this many were moved for this reason; gives the number.
async fn all_whole(row: &Row, reason: &str) -> u64 {
    assert_eq!(row.streams(EXCHANGES).await, vec![Told::whole(); EXCHANGES]);
    row.lines(EXCHANGES).await;
    row.told("completed", EXCHANGES, json!({ "status": 200, "error": null })).await;
    let moved = row.moved(reason).await;
    assert!(moved > 0, "the fault struck nobody");
    moved as u64
}

/// B1: one of three engines has crashed: its connects are refused.
#[tokio::test]
async fn b1_a_crashed_engine_costs_no_request() {
    let mut row = Row::start(3, as_is).await;
    row.engines.remove(0).kill();
    all_whole(&row, "connect").await;
    row.told("completed", EXCHANGES, json!({ "phase": "stream" })).await;
    let lines = row.lines(EXCHANGES).await;
    assert!(
        lines.iter().all(|line| line["backend"] != "u1"),
        "nobody was served by the dead node: {lines:?}"
    );
    row.gateway.wait_log("the backend could not be reached").await;
    row.settled(EXCHANGES).await;
}

/// B1: one has crashed and the other resets: 502 after two attempts, and never a third.
#[tokio::test]
async fn b1_two_attempts_are_all() {
    let all = |settings: Settings| settings.set("clusters.c.retry", json!({ "budget": "100%" }));
    let mut row = Row::ill(2, "reset_before_head", all).await;
    row.engines.remove(1).kill();
    let answers = row.ask(EXCHANGES, &Request::chat()).await;
    assert!(answers.iter().all(|answer| answer.status() == 502), "{answers:?}");
    row.told("upstream_error", EXCHANGES, json!({ "status": 502, "attempts": 2 })).await;
    row.gateway.wait_metric("retries_total", &[], EXCHANGES as f64).await;
    assert_eq!(row.engines[0].count("failed").await, EXCHANGES as u64, "each asked it once");
    row.settled(EXCHANGES).await;
}

/// B2: one of three engines swallows connects: who meets it waits for the connect timeout, then is served.
#[tokio::test]
async fn b2_a_swallowed_connect_costs_time_only() {
    let blackhole = Blackhole::start().await;
    let row = Row::behind(&[blackhole.addr()], 2, |settings| settings.set("timeouts.connect", "300ms")).await;
    let moved = all_whole(&row, "connect_timeout").await;
    let lines = row.lines(EXCHANGES).await;
    let late = lines.iter().filter(|line| line["total_ms"].as_f64() >= Some(300.0)).count() as u64;
    assert!(late >= moved, "who was moved has waited: {lines:?}");
    assert!(lines.iter().all(|line| line["backend"] != "u1"), "{lines:?}");
    row.gateway.wait_log("connecting to the backend timed out").await;
    row.settled(EXCHANGES).await;
}

/// B3: a reset, or a close, instead of an answer or right behind its head.
#[tokio::test]
async fn b3_a_cut_before_the_first_event_costs_no_request() {
    for fault in ["reset_before_head", "fin_before_head", "reset_after_head", "fin_after_head"] {
        let row = Row::ill(3, fault, as_is).await;
        let moved = all_whole(&row, "disconnected").await;
        assert_eq!(row.engines[0].count("failed").await, moved, "{fault}: each one that was cut was moved");
        assert_eq!(row.engines[0].count("completed").await, 0, "{fault}");
        row.settled(EXCHANGES).await;
    }
}

/// B3b: the same with bodies beyond every buffer, sent whole and identical to the second node.
#[tokio::test]
async fn b3b_a_large_body_is_sent_again() {
    let row = Row::ill(2, "reset_before_head", as_is).await;
    let sizes = [70 * 1024, MIB, 8 * MIB];
    for size in sizes {
        // Two, so that one of them meets the ill node first.
        let request = Request::post(CHAT_PATH, chat_of(size));
        let told: Vec<_> = row.ask(2, &request).await.iter().map(Told::of).collect();
        assert_eq!(told, vec![Told::whole(); 2], "{size} bytes");
    }
    let exchanges = 2 * sizes.len();
    row.told("completed", exchanges, json!({ "status": 200 })).await;
    let moved = row.moved("disconnected").await;
    assert_eq!(row.engines[0].count("failed").await, moved as u64);
    assert!(moved >= sizes.len(), "the fault struck {moved} times");
    let prompts = row.engines[1].count("prompt_tokens").await;
    let expected: usize = sizes.iter().map(|size| 2 * (size / 4)).sum();
    assert_eq!(prompts, expected as u64, "the second node was given every byte");
    row.settled(exchanges).await;
}

/// B3: with one node only there is nobody to move to: 502, and the node is not asked twice.
#[tokio::test]
async fn b3_without_another_node_a_cut_is_502() {
    for fault in ["reset_before_head", "fin_before_head"] {
        let row = Row::ill(1, fault, as_is).await;
        for request in [Request::chat(), Request::unary()] {
            for answer in row.ask(5, &request).await {
                checks::rejected(&answer, 502, "upstream_disconnected");
            }
        }
        let fields = json!({ "status": 502, "attempts": 1, "error": "upstream_disconnected" });
        row.told("upstream_error", 10, fields).await;
        row.never_moved().await;
        assert_eq!(row.engines[0].count("failed").await, 10, "{fault}");
        row.settled(10).await;
    }
}

/// B3: an answer that is no stream moves just as well.
#[tokio::test]
async fn b3_a_call_that_does_not_stream_moves_as_well() {
    let row = Row::ill(3, "reset_before_head", as_is).await;
    row.ask(EXCHANGES, &Request::unary()).await.iter().for_each(whole_json);
    row.told("completed", EXCHANGES, json!({ "status": 200, "streaming": false })).await;
    let moved = row.moved("disconnected").await;
    assert!(moved > 0);
    assert_eq!(row.engines[0].count("failed").await, moved as u64);
    row.settled(EXCHANGES).await;
}

crate::over_h2! {
    b1_a_crashed_engine_costs_no_request,
    b1_two_attempts_are_all,
    b2_a_swallowed_connect_costs_time_only,
    b3_a_cut_before_the_first_event_costs_no_request,
    b3b_a_large_body_is_sent_again,
    b3_without_another_node_a_cut_is_502,
    b3_a_call_that_does_not_stream_moves_as_well,
}
