//! Backend faults of time, rows B7 to B10: silence and endless answers end at the deadline they
//! belong to, the engine is left, and nothing that was sent is sent again.

use crate::support::wire::Request;
use crate::support::{End, Row, Settings, Told, checks};
use serde_json::json;

const EXCHANGES: usize = 9;

/// Both budgets of an engine that has not answered.
fn short(settings: Settings) -> Settings {
    settings.set("timeouts.first_event", "2s").set("timeouts.unary", "2s")
}

/// Three nodes of which one fails in time: the others serve, its own exchanges are told `code` by 504.
async fn times_out(fault: &str, request: &Request, code: &str, phase: &str) {
    let row = Row::ill(3, fault, short).await;
    let answers = row.ask(EXCHANGES, request).await;
    let late: Vec<_> = answers.iter().filter(|answer| answer.status() != 200).collect();
    assert!(!late.is_empty(), "{fault} struck nobody");
    late.iter().for_each(|answer| checks::rejected(answer, 504, code));
    row.engines[0].wait_count("aborted", late.len() as u64).await;
    row.lines(EXCHANGES).await;
    let fields = json!({ "backend": "u1", "status": 504, "attempts": 1, "error": code, "phase": phase });
    row.told("timeout", late.len(), fields).await;
    row.told("completed", EXCHANGES - late.len(), json!({ "status": 200, "attempts": 1 })).await;
    row.never_moved().await;
    row.settled(EXCHANGES).await;
}

/// B7: silence instead of a head, and behind a head that is still held back.
#[tokio::test]
async fn b7_silence_before_the_answer_is_504() {
    times_out("stall_before_head", &Request::chat(), "first_event_timeout", "first_event").await;
    times_out("stall_after_head", &Request::chat(), "first_event_timeout", "first_event").await;
    times_out("stall_before_head", &Request::unary(), "unary_timeout", "unary").await;
}

/// B7: comments are no event.
#[tokio::test]
async fn b7_comments_alone_are_silence() {
    times_out("comments_only", &Request::chat(), "first_event_timeout", "first_event").await;
}

/// B8: silence between two tokens.
#[tokio::test]
async fn b8_silence_within_a_stream_is_told() {
    let row = Row::ill(3, "stall_at=5", |settings| settings.set("timeouts.idle", "1500ms")).await;
    let told = row.streams(EXCHANGES).await;
    let idle = told.iter().filter(|told| **told == Told::cut(5, "idle_timeout")).count();
    let whole = told.iter().filter(|told| **told == Told::whole()).count();
    assert!(idle > 0 && idle + whole == EXCHANGES, "{told:?}");
    row.engines[0].wait_count("aborted", idle as u64).await;
    let fields = json!({
        "backend": "u1", "status": 200, "attempts": 1, "error": "idle_timeout", "phase": "stream",
    });
    row.told("timeout", idle, fields).await;
    row.told("completed", whole, json!({ "attempts": 1 })).await;
    row.never_moved().await;
    row.settled(EXCHANGES).await;
}

/// B9: a stream without end, slow but never idle.
#[tokio::test]
async fn b9_an_endless_stream_ends_at_the_total_timeout() {
    let row = Row::start(1, |settings| settings.set("timeouts.total", "2s")).await;
    let endless = Request::chat().header("x-sim-tokens: 1000000").header("x-sim-inter-token: 50ms");
    for answer in row.ask(5, &endless).await {
        let told = Told::of(&answer);
        assert!(told.tokens > 0, "{told:?}");
        assert_eq!(told, Told::cut(told.tokens, "total_timeout"));
    }
    row.engines[0].wait_count("aborted", 5).await;
    row.struck(5, "a stream without end");
    let fields = json!({ "status": 200, "attempts": 1, "error": "total_timeout", "phase": "stream" });
    row.told("timeout", 5, fields).await;
    let lines = row.lines(5).await;
    assert!(lines.iter().all(|line| line["total_ms"].as_f64() >= Some(2000.0)), "not too early: {lines:?}");
    row.never_moved().await;
    row.settled(5).await;
}

/// B9: the same for an answer that is no stream: here the whole of it has its own budget.
#[tokio::test]
async fn b9_an_answer_that_stops_half_way_is_broken_off() {
    let row = Row::ill(1, "stall_at=100", short).await;
    let mut client = row.gateway.send(&Request::unary()).await;
    assert_eq!(client.head().await.status(), 200);
    assert_eq!(client.end().await, End::Broken);
    row.engines[0].wait_count("aborted", 1).await;
    row.told("timeout", 1, json!({ "attempts": 1, "error": "unary_timeout", "phase": "unary" })).await;
    row.never_moved().await;
    row.settled(1).await;
}

/// B10: a head at ten bytes a second never stands still, and still has no more than its deadline.
#[tokio::test]
async fn b10_a_head_that_trickles_is_given_up() {
    times_out("head_trickle", &Request::chat(), "first_event_timeout", "first_event").await;
    times_out("head_trickle", &Request::unary(), "unary_timeout", "unary").await;
}

crate::over_h2! {
    b7_silence_before_the_answer_is_504,
    b7_comments_alone_are_silence,
    b8_silence_within_a_stream_is_told,
    b9_an_endless_stream_ends_at_the_total_timeout,
    b9_an_answer_that_stops_half_way_is_broken_off,
    b10_a_head_that_trickles_is_given_up,
}
